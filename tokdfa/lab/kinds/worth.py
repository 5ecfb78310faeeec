"""The experiment ``kind: worth``: what each way to constrain a model costs, and what it does to the answers.

A grid of models, tasks (`tokdfa.tasks`) and ways to decode (`tokdfa.lab.measure.ways`): one sampled answer to each item
in each way, with the same seed for all ways. Each model and task is an item of the run. Prompts come a few at a time,
in all ways: where the time of a model is over, which it has for each task, the first prompts are answered in all
ways, and shares are of the prompts that every way was asked.

Rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``answer``: one for each item and way: ``task``, ``item``, ``way``, ``method``, ``text``, ``finished``, ``valid`` (it
  ended, and has the form by the task's own judge), ``score`` (0 to 1; 0 if not valid), ``passes``, ``tokens``,
  ``seconds``, ``mask_seconds``, ``outcome``. What cannot be compiled is a row that says why, and no score;
- ``exact``, with the setting of that name: for each prompt with choices the model's own distribution over them, and
  what sampling through the masks of each way of masks makes of it (`tokdfa.skew.exact`): ``choices`` and
  ``probabilities``, JSON lists. How far the answers of all ways are from it says `tokdfa.lab.measure.drawn_skew`.

``outcome``: "valid"; "named", no answer within the limits, and said so (cut, or all drafts refused); "silent", it ended
as an answer does and has not the form. A constraint that is refused at compile time is a row that is not ``ok``.

``passes`` are different prefixes that the model was asked about for one answer, its prompt's once; a loop that keeps
rows needs as many. Rows are made for all ways of a few items together (`tokdfa.lab.measure.together`), so the model's
seconds of an answer are reckoned: its batches and the tokens that they read, at the price of a call and of a row that
was measured on this task before (`tokdfa.lab.measure.model_price`). Reading the prompt is in no answer's seconds.

``mask_seconds`` are a way's own: none uses masks that another has kept. What a backend shares between the constraints
of a vocabulary (divisions of `pushdown_trie` and `earley_trie`) is paid for by the way that asks first.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from tokdfa.backends.registry import create_backend
from tokdfa.decoding.draws import Eos  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Computed, Listing, Pivot, Points, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.drawn_skew import IDEAL, skew_of_ways
from tokdfa.lab.measure.limits import Failure, attempt, failure_of
from tokdfa.lab.measure.model_bench import Count, ModelSettings, model_kind
from tokdfa.lab.measure.model_price import calibrate
from tokdfa.lab.measure.prompted_task import (
    DISTINCT_TASKS,
    PROMPTED,
    Prompted,
    TaskEntry,
    entry_of,
    limits_of,
    prompted_task,
    sort_of,
    with_prompts,
)
from tokdfa.lab.measure.settings import distinct, typed_settings
from tokdfa.lab.measure.together import run_together
from tokdfa.lab.measure.ways import Way, answer
from tokdfa.lab.measure.workloads import canonical_json, derive_seed
from tokdfa.models.cache import CachedModel
from tokdfa.skew.exact import ideal_distribution, masked_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.lab.declare import Results
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded
    from tokdfa.lab.measure.model_price import Price
    from tokdfa.models.base import LanguageModel
    from tokdfa.tasks.base import Item, Task

#: The part of the rows with distributions, and the mass that these may leave open.
EXACT, TOLERANCE = "exact", 1e-4
#: How many items are answered at once: a batch of a few rows takes a model on a core hardly longer than one.
ITEMS_TOGETHER = 2


class Settings(ModelSettings):
    """The settings of the experiment: the first `items` of each task, answered in every one of the `ways`.

    `backend`: makes the masks, unless a way names another. An answer is cut at the task's own limit on tokens. Prompts
    of the experiment's own are one more task (`tokdfa.lab.measure.prompted_task`): `prompted`, and those of the
    `constraints` that have one in `prompts` (label -> prompt); `samples` answers each of at most `max_tokens` tokens,
    unless an entry says otherwise. `eos`: of the ways that draw sequences (`tokdfa.decoding.draws.Eos`). `exact`: for
    the distributions over the choices of own prompts, each from so many rows of the model at most; none without.
    """

    tasks: Annotated[list[str | TaskEntry], DISTINCT_TASKS] = Field(default_factory=list)
    prompted: list[Prompted] = Field(default_factory=list)
    constraints: list[dict[str, Any]] = Field(default_factory=list)
    prompts: dict[str, str] = Field(default_factory=dict)
    samples: Count = 1
    max_tokens: Count = 96
    eos: Eos = "counted"
    exact: Count | None = None
    ways: Annotated[list[Way], Field(min_length=1), distinct("ways")]
    items: Count = 100
    backend: str = "pushdown_trie"

    @model_validator(mode="after")
    def _has_prompts(self) -> Settings:
        if not self.entries() and not self.tasks:
            raise OptionError("worth needs tasks, or prompted constraints")
        return self

    def entries(self) -> list[Prompted]:
        """The experiment's own prompts. Raises OptionError or UnknownNameError."""
        return with_prompts(self.prompted, self.constraints, self.prompts)

    def every_task(self) -> Iterator[Task]:
        """All tasks, that of the experiment's own prompts last."""
        yield from (entry_of(task).load() for task in self.tasks)
        if entries := self.entries():
            yield prompted_task(entries, self.samples, self.max_tokens)


def split(settings: dict[str, Any], seed: int) -> list[tuple[str, dict[str, Any]]]:
    """An item of the run for each model and task, so that a run that is interrupted goes on behind the last of them."""
    own = {key: settings[key] for key in ("prompted", "constraints", "prompts") if settings.get(key)}
    others = {key: value for key, value in settings.items() if key not in own}
    tasks: list[tuple[Any, dict[str, Any]]] = [(task, {"tasks": [task]}) for task in settings.get("tasks") or []]
    if typed_settings(Settings, settings).entries():
        tasks.append((PROMPTED, {"tasks": [], **own}))
    found = []
    for model in settings["models"]:
        for task, asked in tasks:
            named = [one if isinstance(one, str) else one.get("label") or one["name"] for one in (model, task)]
            found.append((", ".join(named), {**others, "models": [model], **asked}))
    return found


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """A few items of a task at a time, in all ways, after the model's price on this task is known."""
    for task in settings.every_task():
        prompt = (*loaded.model.start_tokens, *loaded.tokenizer.encode(task.items[0].prompt))
        price = calibrate(loaded.model, prompt, seed)
        loaded.row.update(call_seconds=price.call, row_seconds=price.row)
        desk = _Desk(loaded, settings, task, price, seed)
        for entry in settings.entries() if task.name == PROMPTED and settings.exact else ():
            if entry.choice:
                yield {"part": EXACT, "task": task.name, "item": entry.label}, desk.distributions(entry)
        items = task.items[: settings.items]
        for first in range(0, len(items), ITEMS_TOGETHER):
            ahead = items[first : first + ITEMS_TOGETHER]
            yield {"task": task.name, "item": ahead[0].label}, desk.answers(ahead)


class _Desk:
    """Where the items of one task are answered by one model."""

    def __init__(self, loaded: Loaded, settings: Settings, task: Task, price: Price, seed: int) -> None:
        self._loaded, self._settings, self._task, self._price, self._seed = loaded, settings, task, price, seed
        vocabulary = loaded.model.vocabulary
        self._made_of: dict[str, str] = {}
        #: By what makes them: a backend's name and options, as JSON.
        self._backends: dict[str, Backend | Failure] = {}
        for way in settings.ways:
            name, options = way.backend or settings.backend, way.options | ({"proper": True} if way.proper else {})
            if (made_of := canonical_json([name, options])) not in self._backends:
                self._backends[made_of] = attempt(create_backend, name, vocabulary, **options)
            self._made_of[way.name] = made_of
        #: By the name of the way.
        self._compiled: dict[str, tuple[Constraint, CompiledConstraint | Failure]] = {}
        self._limits = limits_of(settings.entries(), settings.max_tokens)
        self._kept = CachedModel(loaded.model, settings.cache_mb)

    def answers(self, items: Sequence[Item]) -> Iterator[dict[str, Any]]:
        """A row for each item and way: their loops run together."""
        places, works, refused = [], [], []
        for item in items:
            for way in self._settings.ways:
                place = {"task": self._task.name, "item": item.label, "way": way.name, "method": way.method}
                compiled = self._compile(way, item.constraint)
                if isinstance(compiled, Failure):
                    refused.append({**place, **compiled.columns})
                else:
                    places.append(place)
                    works.append(partial(self._answer, way, compiled, item))
        yield from refused
        for place, found in zip(places, run_together(self._kept, works), strict=True):
            yield place | (failure_of(found).columns if isinstance(found, BaseException) else found)

    def distributions(self, entry: Prompted) -> Iterator[dict[str, Any]]:
        """The rows of the part ``exact`` of a prompt with choices."""
        given: Any = (self._kept, self._loaded.tokenizer.encode(entry.prompt), entry.choice)
        limits: Any = {"eos": self._settings.eos, "tolerance": TOLERANCE, "max_prefixes": self._settings.exact}
        found = {IDEAL: ideal_distribution(*given, **limits)}
        for way in self._settings.ways:
            compiled = self._compile(way, entry.build()) if way.draws_as_masked else None
            if compiled is not None and not isinstance(compiled, Failure):
                found[way.name] = masked_distribution(compiled, *given, follow_spellings=False, **limits)
        for name, one in found.items():
            probabilities = json.dumps(one.distribution.probabilities.tolist())
            yield {"way": name, "choices": json.dumps(entry.choice), "probabilities": probabilities}

    def _compile(self, way: Way, constraint: Constraint) -> CompiledConstraint | Failure:
        """The constraint by the backend of a way; the last one is kept, as the items of a task often share theirs.

        Each way has its own, with masks of its own: it would not pay for those that another one has made.
        """
        if way.name not in self._compiled or self._compiled[way.name][0] != constraint:
            backend = self._backends[self._made_of[way.name]]
            made = backend if isinstance(backend, Failure) else attempt(backend.compile, way.constraint(constraint))
            self._compiled[way.name] = (constraint, made)
        return self._compiled[way.name][1]

    def _answer(self, way: Way, compiled: CompiledConstraint, item: Item, model: LanguageModel) -> dict[str, Any]:
        """The columns of one answer."""
        task, seed = self._task, derive_seed(self._seed, self._task.name, item.label)
        most = self._limits.get(item.constraint, task.max_tokens)
        tokenizer, eos = self._loaded.tokenizer, self._settings.eos
        row = answer(way, model, compiled, item.prompt, tokenizer, most, seed, self._price, eos)
        valid = row["finished"] and task.is_valid(item, row["text"])
        outcome = "valid" if valid else "silent" if row["finished"] else "named"
        return row | {"valid": valid, "score": task.score(item, row["text"]) if valid else 0.0, "outcome": outcome}


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The answers to items that every way was asked; the means of each way over its tasks, and which are dominated."""
    import pandas as pd

    rows = found[""]
    ways = rows.groupby("model")["way"].transform("nunique")
    rows = rows[rows.groupby(["model", "task", "item"])["way"].transform("nunique") == ways]
    sorts = [sort_of(task, item) for task, item in zip(rows["task"], rows["item"], strict=True)]
    rows = rows.assign(case=rows["task"] + " " + rows["item"], silent=rows["outcome"] == "silent", sort=sorts)
    rows["prompt"] = rows["item"].str.replace(r", \d+$", "", regex=True)
    told = []
    for (model, way), group in rows.groupby(["model", "way"], sort=False):
        means = {
            name: float(group[name].astype(float).mean()) for name in ("score", "valid", "passes", "tokens", "seconds")
        }
        means["step_seconds"] = group["mask_seconds"].sum() / max(1, group["steps"].sum())
        told.append({"model": model, "way": way, "method": group["method"].iloc[0], "answers": len(group), **means})
    points = pd.DataFrame(told)
    if len(points):
        points["front"] = [_is_on_front(one, points) for _, one in points.iterrows()]
        if EXACT in found:
            points = points.merge(skew_of_ways(rows, found[EXACT]), on=["model", "way"], how="left")
    return {"": rows, "told": points, "invalid": rows[~rows["valid"].astype(bool)]}


def _is_on_front(one: pd.Series[Any], points: pd.DataFrame) -> str:
    """ "yes" if no way of the same model is at least as good and as cheap, and better in one of both."""
    others = points[points["model"] == one["model"]]
    as_good = (others["score"] >= one["score"]) & (others["passes"] <= one["passes"])
    better = (others["score"] > one["score"]) | (others["passes"] < one["passes"])
    return "no" if (as_good & better).any() else "yes"


def _front(results: Results) -> list[str]:
    """Which ways no other one beats in both; one sentence a model."""
    told = results.rows("told")
    if "front" not in told:
        return []
    said = []
    for model, group in told[told["front"] == "yes"].sort_values("passes").groupby("model", sort=False):
        named = [f"{one.way} ({one.passes:.3g} passes, score {one.score:.3g})" for one in group.itertuples()]
        said.append(f"{model}: no way is both cheaper and better, by these means, than {', '.join(named)}.")
    return said


_OVER = ("case",)
_SCORE = Stat("score", "mean", "score", resample=_OVER)
_VALID = Stat("valid", "share", "valid", resample=_OVER)
_PASSES = Stat("passes", "mean", "passes an answer", resample=_OVER)
_FORCED = Quotient("forced:sum", "steps:sum", "forced steps", "share", "higher")
_MASKS = Quotient("mask_seconds:sum", "seconds:sum", "masks", "share", "lower")
_TV = Stat("tv", ends=("tv_from", "tv_to"))
_A_STEP = Quotient("mask_seconds:sum", "steps:sum", "masks a step", "s", "lower")

KIND = model_kind(
    Settings,
    turns,
    "answer",
    columns=(
        *(text(name) for name in ("task", "item", "way", "method", "outcome", "text")),
        *(text("sort", "task"), text("front", "on the front")),
        Column("score", "score", "", "higher", "0 to 1; an answer that is not valid scores 0"),
        Column("valid", "valid", "share", "higher", "ended, and has the form"),
        Column("silent", "silent", "share", "lower", "ended as an answer does, and has not the form"),
        Column("finished", "ended", "share", "higher"),
        Column("passes", "passes", "", "lower", "different prefixes that the model was asked about"),
        Column("tokens", "tokens", "", "neither", "of the answer"),
        Column("forced", "forced", "", "higher", "steps with one allowed token, of local masking"),
        Column("answers", "answers", "", "neither"),
        seconds("seconds", "seconds", "of an answer"),
        seconds("mask_seconds", "masks", "all questions to matchers"),
        seconds("step_seconds", "masks a step", "all questions to matchers, over the tokens of the answers"),
        Column("tv", "total variation", "share", "lower", "of the answers from the model's own distribution"),
        Column("plug_in", "plug-in", "share", "lower", "too large in expectation"),
        Column("noise_floor", "noise floor", "share", "neither", "what the plug-in shows for exact draws"),
    ),
    split=split,
    engine="way",
    case=("model", "task", "item"),
    places=("task", "item", "way"),
    frames=frames,
    tables=(
        Summary(
            "worth",
            "What each way is worth",
            "Means over the items that every way was asked, with 95 % bootstrap intervals over items. Silent: answers "
            "that ended without the form. Masks: share of the time in questions to matchers; a step: their time for a "
            "token of the answer or its end, with all that was drawn on the way.",
            by=("model", "way"),
            values=(
                *(Stat("score", "count", "answers"), _SCORE, _VALID, Stat("silent", "share", "silent"), _PASSES),
                *(Stat("finished", "share", "ended"), Stat("tokens", "mean", "tokens")),
                Stat("seconds", "mean", "seconds an answer"),
                *(_FORCED, _MASKS, _A_STEP),
            ),
            brief=("model", "way", "score", "valid", "passes an answer"),
        ),
        Summary(
            "cost_vs_skew",
            "Skew and cost of each way",
            "Total variation of the answers from the model's own distribution over the choices, mean over the prompts: "
            "exact for masks; otherwise cross-fitted (too small in expectation, may be negative) with 1.96 standard "
            "errors. Passes: different prefixes that the model was asked about.",
            by=("model", "way"),
            values=("prompts", _TV, "plug_in", "noise_floor", "step_seconds", "seconds", "tokens", "passes"),
            frame="told",
            where="tv.notna()",
        ),
        Pivot("worth_tasks", "Score by task", rows=("model", "sort"), value=_SCORE, across="way", ratio=False),
        Pivot("worth_valid", "Valid answers by task", rows=("model", "sort"), value=_VALID, across="way", ratio=False),
        Listing(
            "worth_invalid",
            "Answers that are not valid",
            shown=("way", "sort", "item", "outcome", "text"),
            frame="invalid",
            most=40,
        ),
    ),
    charts=(
        Points(
            "worth_pareto",
            "Score against forward passes",
            "One point a way, means over all items: better is up and to the left.",
            x="passes",
            y="score",
            panels="model",
            hover=("valid", "tokens", "seconds", "front"),
            frame="told",
        ),
        Points(
            "worth_seconds",
            "Score against seconds",
            "The same against all the time of an answer.",
            x="seconds",
            y="score",
            panels="model",
            hover=("valid", "passes"),
            frame="told",
        ),
        *(
            Points(
                f"cost_vs_skew_{name}",
                title,
                "One point a way, mean total variation over its prompts.",
                x=name,
                y="tv",
                panels="model",
                hover=("prompts", "tv_from", "tv_to", "noise_floor"),
                frame="told",
                where="tv.notna()",
                optional=True,
            )
            for name, title in (("step_seconds", "Skew against masks, by step"), ("seconds", "Skew against seconds"))
        ),
        Bars("worth_bars", "Score by task", x=_SCORE, rows="sort", panels="model", log=False),
    ),
    sentences=(
        Say(
            "{model}: {way} ({prompts} prompts) is {tv} in total variation from the model's own distribution; an "
            "answer takes {seconds}, masks {step_seconds} a step.",
            per=("model", "way"),
            blanks={"tv": _TV},
            frame="told",
            where="tv.notna()",
        ),
        Computed(_front),
        Say(
            "{model}, {way}: score {score}, {valid} of the answers valid, {passes} forward passes an answer.",
            per=("model", "way"),
            blanks={"score": _SCORE, "valid": _VALID, "passes": _PASSES},
        ),
        Say(
            "{model}, {way}: {forced} of the steps have one allowed token; masks take {masks} of the time.",
            per=("model", "way"),
            blanks={"forced": _FORCED, "masks": _MASKS},
        ),
    ),
)
