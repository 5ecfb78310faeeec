"""The experiment ``kind: skew``: how far each engine bends a model's distribution over a prompt's choices, exactly.

The claim under test (002, challenge 1): masks that admit every spelling of a choice give much of the probability to
choices that begin with a common word; masks that admit the proper spelling only stay near the ideal, as models write
properly by themselves. `tokdfa.lab.measure.skew_comparison` has the words and the walk. There is one item; its rows
have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``strategy``: one for each model, prompt and engine, the first of each prompt being the ideal: ``prompt`` (label),
  ``text`` (the prompt itself), ``topic``, ``choices`` (JSON list), ``count`` (how many), ``expected``; ``strategy``,
  ``backend``, ``language``; ``probabilities`` (JSON list in the order of the choices, resolved mass) and
  ``unresolved``; ``top``, ``top_certain`` (no other choice can have more, wherever the unresolved mass belongs),
  ``expected_top`` (1 or 0, missing where it is not certain or nothing is expected); ``total_variation_low``,
  ``..._high`` and so on for ``kl_forward`` (KL(ideal || engine)), ``kl_backward`` and ``jensen_shannon``, bounds in
  nats, and ``top_differs`` (1 or 0, missing where one of the two is not certain); ``improper_mass``, ``mean_tokens``,
  ``forced_share``; ``proper_shares`` (JSON list: the share of the proper spelling in each choice's mass); ``rows``
  (model rows that it needs by itself), ``rows_computed`` (those that nobody before it had asked for), ``seconds``,
  ``compile_seconds``;
- ``agreement``: one for each engine but the first of its language: ``first``, ``other`` and their largest
  ``difference`` in any choice's probability, with the status `MISMATCH` above 1e-9.

A prompt whose ideal fails has no other rows; one whose turn comes after `seconds` has one, with status ``not_asked``.

A distance is told by the middle of its bounds. Only prompts that every engine went through, with bounds at most `OPEN`
apart, are counted, so that nobody gains by having failed on a hard one. The first engine of a language stands for all
that agree with it.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.decoding.draws import Eos  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Distribution, Kind, Listing, Pivot, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines, spread
from tokdfa.lab.measure.limits import NOT_ASKED, OK
from tokdfa.lab.measure.model_entries import Models, check_models, finish_row, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_comparison import AGREEMENT, IDEAL, Limits, agreements, compare_engines, strategy_row
from tokdfa.models.cache import CachedModel
from tokdfa.skew.eos import check_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from tokdfa.lab.measure.model_entries import Loaded

#: The parts of the rows, besides that of the models.
STRATEGY, AGREEING = "strategy", "agreement"
#: Two engines of one language do not agree.
MISMATCH = "mismatch"
#: token language -> how people call it.
LANGUAGES = {"all": "all spellings", "proper": "proper only", "muted": "muted literals"}
DISTANCES = ("total_variation", "kl_forward", "kl_backward", "jensen_shannon")
#: A total variation whose bounds are further apart says too little to be counted.
OPEN = 0.05
#: At most so many prompts, and choices of each, are shown one by one.
FEW = 8
#: The prompt of 002 (challenge 1), which prints figures of another model than ours.
PUBLISHED_PROMPT = (
    "Question: What is the first name of the US president who was a member of the Sigma Alpha Epsilon fraternity?"
    "\nAnswer:"
)

Count = Annotated[int, Field(ge=1, le=1_000_000)]


class Prompt(BaseModel):
    """A prompt with the choices for what comes next. `expected`: the right choice, where there is one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str
    prompt: str
    choices: list[str] = Field(min_length=2)
    topic: str = ""
    expected: str | None = None


class Settings(BaseModel):
    """The settings of the experiment.

    `only`: labels of prompts, all if empty; `min_choices`: prompts with fewer are left out; `limit`: at most so many of
    these, evenly spread. `eos`, `tolerance`, `max_prefixes` and `follow_spellings` are those of `tokdfa.skew.exact`;
    without the last an engine's row has no ``improper_mass``, ``mean_tokens``, ``forced_share``. `threads`: of torch.
    `cache_mb`: for the rows of one prompt; it should hold them all (8 V bytes each), see `compare_engines`. `seconds`
    belong below the experiment's limit on an item.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    engines: list[Engine] = Field(min_length=1)
    prompts: list[Prompt] = Field(min_length=1)
    only: list[str] = Field(default_factory=list)
    min_choices: Annotated[int, Field(ge=2)] = 2
    limit: Count | None = None
    eos: Eos = "ignored"
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    max_prefixes: Count = 4_000
    follow_spellings: bool = True
    threads: Annotated[int, Field(ge=1, le=256)] = 2
    cache_mb: Annotated[float, Field(gt=0)] = 2000.0
    seconds: Annotated[float, Field(gt=0)] = 600.0

    def chosen(self) -> list[Prompt]:
        """The prompts that are measured."""
        asked = [one for one in self.prompts if not self.only or one.label in self.only]
        return spread([one for one in asked if len(one.choices) >= self.min_choices], self.limit)


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_models(typed.models)
    check_engines(typed.engines)
    if IDEAL in {engine.name for engine in typed.engines}:
        raise OptionError(f"settings.engines: the label {IDEAL!r} is that of the model's own distribution")
    labels = [one.label for one in typed.prompts]
    if len(set(labels)) < len(labels):
        raise OptionError("settings.prompts: two prompts have the same label")
    for label in typed.only:
        if label not in labels:
            raise OptionError(f"settings.only: there is no prompt {label!r}")
    if not typed.chosen():
        raise OptionError(f"settings.prompts: none of the prompts has {typed.min_choices} choices")
    for one in typed.chosen():
        try:
            check_texts(one.choices, typed.eos)
        except OptionError as error:
            raise OptionError(f"settings.prompts: {one.label}: {error}") from None
        if one.expected is not None and one.expected not in one.choices:
            raise OptionError(f"settings.prompts: {one.label}: {one.expected!r} is expected, but none of its choices")
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Measure every model on every prompt; `settings`: those of `Settings`. `seed` is not used: nothing is random."""
    typed = typed_settings(Settings, settings)
    limits = Limits(typed.eos, typed.tolerance, typed.max_prefixes, typed.follow_spellings)
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        workshop = Workshop(typed.engines, loaded.model.vocabulary)
        for prompt in typed.chosen():
            place = {**loaded.place, **_about(prompt)}
            if time.monotonic() - started > typed.seconds:
                failure = {"status": NOT_ASKED, "message": f"the {typed.seconds:g} s for all prompts are over"}
                rows.append({"part": STRATEGY, **place, "strategy": IDEAL, **failure})
                continue
            rows += [{**place, **row} for row in _measure(prompt, loaded, typed, workshop, limits)]
        finish_row(loaded)
    return rows


def _about(prompt: Prompt) -> dict[str, Any]:
    return {
        "prompt": prompt.label,
        "text": prompt.prompt,
        "topic": prompt.topic,
        "choices": json.dumps(prompt.choices, ensure_ascii=False),
        "count": len(set(prompt.choices)),
        "expected": prompt.expected,
    }


def _measure(
    prompt: Prompt, loaded: Loaded, settings: Settings, workshop: Workshop, limits: Limits
) -> Iterator[dict[str, Any]]:
    """The rows of one prompt."""
    model = CachedModel(loaded.model, settings.cache_mb)
    context = loaded.tokenizer.encode(prompt.prompt)
    entrants = []
    ideal_top: str | None = None
    for entrant in compare_engines(model, context, prompt.choices, settings.engines, workshop, limits):
        entrants.append(entrant)
        row = {"part": STRATEGY, **strategy_row(entrant, prompt.expected)}
        if entrant.name == IDEAL:
            ideal_top = row["top"] if row.get("top_certain") else None
        elif row.get("top_certain") and ideal_top is not None:
            row["top_differs"] = float(row["top"] != ideal_top)
        yield row
    for one in agreements(entrants):
        row = {"part": AGREEING, "language": one.language, "first": one.first, "other": one.other}
        row |= {"status": OK, "message": "", "difference": one.difference}
        if not one.holds:
            said = f"{one.other} is {one.difference:.3g} from {one.first}, more than {AGREEMENT:g}"
            row |= {"status": MISMATCH, "message": f"{said}, with the same token language"}
        yield row


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All strategies on the prompts that count; the leaders on one prompt, on several, by group, in pairs."""
    import pandas as pd

    found = parts(rows, STRATEGY)
    compared = rows[rows["part"] == AGREEING]
    apart = compared["status"] != OK
    language = compared["language"].map(LANGUAGES.get) if len(compared) else None
    found["agreement"] = compared.assign(apart=apart, same=~apart, language=language)
    if found[""].empty:
        return found
    measured = _counted(found[""])
    tried = rows[rows["part"] == STRATEGY].groupby("model", sort=False)["prompt"].nunique()
    lost = tried - measured.groupby("model")["prompt"].nunique().reindex(tried.index, fill_value=0)
    found["lost"] = pd.DataFrame({"model": lost.index, "lost": lost.to_numpy()}).query("lost > 0")
    labels = _leaders(measured, set(compared.loc[apart, "other"]) if len(compared) else set())
    leading = measured[measured["strategy"].isin(labels)]
    leading = leading.assign(strategy=leading["strategy"].map(labels))
    engines = leading[leading["strategy"] != IDEAL]
    several = leading["prompt"].nunique() > 1
    listed = _listed(leading)
    shown = listed[listed["followed"]]
    certain = leading.dropna(subset=["expected_top"]) if "expected_top" in leading else leading.iloc[:0]
    everyone = leading.groupby("model")["strategy"].nunique()
    by_all = certain.groupby(["model", "prompt"])["strategy"].transform("nunique") == certain["model"].map(everyone)
    sizes = pd.cut(engines["count"].astype(float), [0, 2, 3, 4, 5, 9, 19, 39, np.inf], labels=_SIZES).astype(str)
    topics = engines["topic"].fillna("").replace("", "no topic")
    groups = [engines.assign(split="choices", group=sizes).sort_values("count", kind="stable")]
    groups.append(engines.assign(split="topic", group=topics).sort_values("group", kind="stable"))
    worst = engines.sort_values("total_variation", ascending=False, kind="stable")
    return {
        **found,
        "": measured.assign(language=measured["language"].map(LANGUAGES.get).where(measured["strategy"] != IDEAL, "")),
        "listed": listed if leading["prompt"].nunique() <= FEW else listed.iloc[:0],
        "published": leading[leading["text"] == PUBLISHED_PROMPT].assign(published="Mistral-7B"),
        "one": shown.iloc[:0] if several else shown,
        "several": engines if several else engines.iloc[:0],
        "expected": certain[by_all] if several else certain.iloc[:0],
        "groups": pd.concat(groups) if leading["prompt"].nunique() > FEW else engines.iloc[:0],
        "worst": _with_tops(worst, leading) if several else worst.iloc[:0],
        "pairs": _pairs(engines) if several else engines.iloc[:0],
    }


_SIZES = ["2", "3", "4", "5", "6 to 9", "10 to 19", "20 to 39", "40 and more"]


def _counted(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of prompts that all engines of a model went through, with close bounds; each distance's middle."""
    for name in DISTANCES:
        low, high = rows[f"{name}_low"], rows[f"{name}_high"]
        rows = rows.assign(**{name: ((low + high) / 2).where(np.isfinite(high), low)})
    width = rows["total_variation_high"] - rows["total_variation_low"]
    rows = rows.assign(width=width)
    place = [rows["model"], rows["prompt"]]
    complete = rows.groupby(place)["strategy"].transform("nunique")
    wanted = rows["model"].map(rows.groupby("model")["strategy"].nunique())
    return rows[(complete == wanted) & ~(width > OPEN).groupby(place).transform("any")].reset_index(drop=True)


def _leaders(rows: pd.DataFrame, apart: set[str]) -> dict[str, str]:
    """The ideal and the first engine of each language, with labels: ``token_index (and 4 equal)``."""
    first: dict[str, str] = {}
    equal: dict[str, int] = {}
    for engine, language in dict(zip(rows["strategy"], rows["language"], strict=True)).items():
        leader = engine if engine == IDEAL or engine in apart else first.setdefault(language, engine)
        equal[leader] = equal.get(leader, -1) + 1
    return {leader: f"{leader} (and {count} equal)" if count else leader for leader, count in equal.items()}


def _probabilities(row: Mapping[Any, Any]) -> dict[str, float]:
    return dict(zip(dict.fromkeys(json.loads(row["choices"])), json.loads(row["probabilities"]), strict=True))


def _listed(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each choice of a prompt, the most probable ones ideally first, and each strategy."""
    import pandas as pd

    order: dict[tuple[str, str], list[str]] = {}
    found = []
    for row in rows.to_dict("records"):
        values = _probabilities(row)
        choices = order.setdefault((row["model"], row["prompt"]), sorted(values, key=lambda one: -values[one])[:FEW])
        followed = row["expected"] if isinstance(row["expected"], str) else next(iter(values))
        shares = dict(zip(values, json.loads(row["proper_shares"]), strict=True)) if row["strategy"] == IDEAL else {}
        about = {name: row[name] for name in ("model", "prompt", "strategy", "total_variation")}
        found += [
            {
                **about,
                **{"choice": repr(one), "followed": one == followed, "probability": values[one]},
                "proper_share": shares.get(one),
            }
            for one in choices
        ]
    return pd.DataFrame(found)


def _with_tops(rows: pd.DataFrame, leading: pd.DataFrame) -> pd.DataFrame:
    """The most probable choices, ideally and here, each with its probability by the model alone and with the engine."""
    ideals = {(row["model"], row["prompt"]): row for row in leading.to_dict("records") if row["strategy"] == IDEAL}
    ideally: list[str] = []
    here: list[str] = []
    for row in rows.to_dict("records"):
        ideal = ideals[row["model"], row["prompt"]]
        before, after = _probabilities(ideal), _probabilities(row)
        for cells, one in ((ideally, ideal["top"]), (here, row["top"])):
            cells.append(f"{one!r} {before[one]:.3g} → {after[one]:.3g}")
    return rows.assign(ideally=ideally, here=here)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each prompt and engine but the first: which of the two is nearer, if their bounds are apart."""
    first = rows["strategy"].iloc[0] if len(rows) else ""
    base = rows[rows["strategy"] == first]
    both = rows[rows["strategy"] != first].merge(base, on=["model", "prompt"], suffixes=("", "_first"))
    nearer = both["total_variation_high"] < both["total_variation_low_first"]
    farther = both["total_variation_low"] > both["total_variation_high_first"]
    return both.assign(nearer=nearer, farther=farther, neither=~nearer & ~farther)


_SKEW = ("model", "strategy")

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        text("strategy"),
        text("language", "spellings"),
        text("prompt"),
        text("choice"),
        text("split", "by"),
        text("group"),
        text("first", "engine"),
        text("strategy_first"),
        text("published"),
        text("other", "compared"),
        text("ideally", "on top ideally"),
        text("here", "on top here"),
        Column("count", "choices"),
        Column("total_variation", "total variation", "", "lower", "from the model's own distribution"),
        Column("kl_forward", "KL(ideal || it)", "", "lower", "nats"),
        Column("kl_backward", "KL(it || ideal)", "", "lower", "nats"),
        Column("jensen_shannon", "Jensen-Shannon", "", "lower", "nats"),
        Column("width", "open", "", "lower", "between the bounds of the total variation"),
        Column("improper_mass", "improper mass", "share", "neither", "of sequences that the tokenizer would not make"),
        Column("mean_tokens", "tokens", meaning="of a text"),
        Column("forced_share", "forced", "share", "neither", "steps with one allowed token"),
        Column("top_differs", "other choice on top", "share", "lower"),
        Column("expected_top", "expected on top", "share", "higher"),
        Column("probability"),
        Column("proper_share", "proper share", "share", "higher", "of the ideal's mass, what the proper spelling has"),
        Column("difference", "largest difference", "", "lower"),
        seconds("compile_seconds", "compile"),
    ),
    engine="strategy",
    case=("model", "prompt"),
    frames=frames,
    tables=(
        Summary(
            "skew",
            "Distribution skew",
            "Distances from the model's own distribution over the choices, in nats but for total variation: medians "
            "over the prompts that every engine went through, middles of their bounds.",
            by=_SKEW,
            values=(
                *("language", Stat("prompt", "distinct", "prompts"), "total_variation"),
                *(Stat("total_variation", how, how) for how in ("p90", "max")),
                *(*DISTANCES[1:], "improper_mass", "mean_tokens", "forced_share"),
                *("top_differs:share", "expected_top:share", "rows", "compile_seconds", "seconds"),
            ),
            brief=(*_SKEW, "total variation", "improper mass", "expected on top"),
        ),
        Pivot(
            "skew_probabilities",
            "Probabilities of the choices",
            "Probability of each choice, given that it is one of them. Proper share: of the ideal's mass for a choice, "
            "what its proper spelling has.",
            rows=("model", "prompt", "choice"),
            value="probability",
            beside=(Stat("proper_share", "max", "proper share"),),
            frame="listed",
        ),
        Listing(
            "skew_worst",
            "Where the skew is largest",
            "Of each prompt the choice that is on top ideally, and with the engine: its probability by the model alone "
            "and with the engine.",
            shown=(*_SKEW, "prompt", "count", "total_variation", "ideally", "here"),
            most=30,
            frame="worst",
        ),
        Pivot(
            "skew_groups",
            "Total variation by number of choices and by topic",
            "Median over the prompts of a group, and the maximum.",
            rows=("model", "split", "group"),
            value="total_variation",
            detail="total_variation:max",
            beside=(Stat("prompt", "distinct", "prompts"),),
            frame="groups",
        ),
        Summary(
            "skew_agreement",
            "Engines of the same token language",
            f"Compared with the first of it on every prompt: the largest difference in the probability of any choice, "
            f"and on how many prompts it is above {AGREEMENT:g}.",
            by=("model", "language", "first", "other"),
            values=(
                *(Stat("prompt", "distinct", "prompts"), Stat("difference", "max", "largest difference")),
                Stat("apart", "sum", "above"),
            ),
            frame="agreement",
        ),
        MODELS,
        not_measured("prompt", "strategy"),
    ),
    charts=(
        Bars(
            "skew_choice",
            "Probability of one choice",
            "By the model itself and with each engine.",
            x="probability",
            rows="strategy",
            panels="model",
            hover=("choice",),
            frame="one",
            log=False,
        ),
        Distribution(
            "skew_ecdf",
            "Skew: share of prompts with at most so much",
            "Engines that agree on every prompt to 1e-9 share a curve.",
            x="total_variation",
            panels="model",
            frame="several",
            log=False,
        ),
        Bars(
            "skew_by_count",
            "Skew by number of choices",
            "Medians.",
            x="total_variation",
            rows="group",
            panels="model",
            frame="groups",
            where="split == 'choices'",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{model}: P({choice}) is {probability} by the model itself.",
            per=("model",),
            blanks={"choice": "choice", "probability": "probability"},
            frame="one",
            where=f"strategy == '{IDEAL}'",
        ),
        Say(
            "{model}, {strategy}: P({choice}) is {probability}, total variation from the ideal {skew}.",
            per=_SKEW,
            blanks={"choice": "choice", "probability": "probability", "skew": "total_variation"},
            frame="one",
        ),
        Say(
            "Published for {mistral} on this prompt (002): P(' William') is 0.859 ideally, 0.529 with all spellings, "
            "0.859 with proper ones only.",
            blanks={"mistral": Stat("published", "first")},
            frame="published",
        ),
        Say(
            "{model}, {strategy}: total variation from the ideal {middle} in the median of {prompts} prompts (p90 "
            "{p90}, max {max}).",
            per=_SKEW,
            blanks={
                **{"middle": "total_variation", "p90": "total_variation:p90", "max": "total_variation:max"},
                "prompts": "prompt:distinct",
            },
            frame="several",
        ),
        Say(
            "{model}, {strategy}: another choice is on top than ideally on {share} of {known} prompts where both are "
            "certain.",
            per=_SKEW,
            blanks={"share": "top_differs:share", "known": "top_differs:count"},
            frame="several",
        ),
        Say(
            "{model}, {strategy}: the expected choice is on top on {share} of {prompts} prompts certain for all.",
            per=_SKEW,
            blanks={"share": "expected_top:share", "prompts": "expected_top:count"},
            frame="expected",
        ),
        Say(
            "{model}: {strategy} is nearer to the ideal than {first} on {nearer} prompts, farther on {farther}, and "
            "neither for certain on {neither}.",
            per=_SKEW,
            blanks={
                **{"first": "strategy_first", "nearer": "nearer:sum", "farther": "farther:sum"},
                "neither": "neither:sum",
            },
            frame="pairs",
        ),
        Say(
            "Engines of the same token language have the same distribution to 1e-9 in {same} of {count} comparisons; "
            "the largest difference in any probability is {difference}.",
            blanks={"same": "same:sum", "count": "same:count", "difference": "difference:max"},
            frame="agreement",
        ),
        Say(
            "Exact up to what was left unresolved: no total variation is open by more than {width}.",
            blanks={"width": "width:max"},
        ),
        Say(
            "{model}: {lost} prompts are left out of all numbers, as an engine failed there or its bounds are more "
            f"than {OPEN:g} apart.",
            per=("model",),
            blanks={"lost": "lost"},
            frame="lost",
        ),
        *FAILURES,
    ),
)
