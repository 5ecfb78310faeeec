"""The experiment ``kind: saved_calls_lm``: what a constraint saves and costs while a real model writes under it.

The claims under test: where one token only is allowed, the model need not be called, and proper tokenization makes this
frequent (002, challenge 3); and masks cost little beside the model (the aim: below 2% of the model's time). In contrast
to ``saved_calls``, which follows given texts, the model writes its own, by `tokdfa.decoding.loop.generate`.

A *step* appends one token, or ends the text. A *forced* step has one allowed token (or end tokens only) and takes no
call of the model, so calls = steps - forced steps. There is one item; its rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``compile``: one for each constraint and engine: ``compile_seconds``; if it fails, ``status`` and ``message``;
- ``text``: one for each constraint, sample and engine: ``tokens``, ``finished``, ``steps``, ``model_calls``,
  ``forced``, ``bytes`` and ``text``, ``sequence`` (the tokens and the end token as a JSON list), and the seconds:
  ``model_seconds``, ``mask_seconds`` (masks, advancing and starting a matcher), ``sampling_seconds``. The prompt is run
  through the model beforehand (``prompt_tokens``, ``prompt_seconds``) and not counted in them.

``language`` says which token sequences an engine allows: ``all``, ``proper``, or ``muted`` (a backend with muted
literals). All engines get the same seed for the same constraint and sample, so those that allow the same sequences and
have the same masks write the same text. They take turns, text by text. Nothing is shared between them but the prompt: a
model that keeps states between calls forgets them before each text. Compiled kernels are warm, the constraint's masks
are not: an engine that makes masks when they are asked for pays in its first sample.

Engines are compared on the constraints and samples that all of them went through. Texts differ between engines that
allow different token sequences, so shares have 95 % intervals by bootstrap over constraints, those of differences being
paired. The *mask share* is ``mask_seconds`` over ``model_seconds``.
"""

from __future__ import annotations

import itertools
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare import Bars, Column, Computed, Kind, Pivot, Quotient, Results, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.intervals import cluster_interval
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines
from tokdfa.lab.measure.limits import NOT_ASKED, OK, Failure
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_comparison import language_of
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_entries import Loaded

COMPILE, TEXT = "compile", "text"

Count = Annotated[int, Field(ge=1, le=100_000)]


class Prompted(ConstraintEntry):
    """A constraint with the prompt that the model goes on from."""

    label: str
    prompt: Annotated[str, Field(min_length=1)]
    max_tokens: Count | None = None


class Settings(BaseModel):
    """The settings of the experiment.

    `models`: see `tokdfa.lab.measure.model_entries`; `engines`: the first is what the others are compared with.
    Constraints: `prompted` have prompts; of `constraints` those are taken that have one in `prompts` (label -> prompt).
    Of all these in a row, every `every`-th is measured, with `samples` texts of at most `max_tokens` tokens each
    (unless it says otherwise). `temperature` is the sampler's. `seconds`: for each model, texts whose turn comes later
    are not written; the first texts of all constraints come before the second ones. `threads`: of torch.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    engines: list[Engine] = Field(min_length=1)
    prompted: list[Prompted] = Field(default_factory=list)
    constraints: list[dict[str, Any]] = Field(default_factory=list)
    prompts: dict[str, str] = Field(default_factory=dict)
    every: Count = 1
    samples: Count = 2
    max_tokens: Count = 64
    temperature: Annotated[float, Field(gt=0)] = 1.0
    seconds: Annotated[float, Field(gt=0)] = 300.0
    threads: Annotated[int, Field(ge=1, le=64)] = 2


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    labels = [entry.label for entry in all_prompted(typed)]
    if not labels:
        raise OptionError("saved_calls_lm needs prompted constraints, or constraints and prompts for them")
    if len(set(labels)) < len(labels):
        raise OptionError(f"settings: two constraints have the same label: {', '.join(labels)}")
    check_models(typed.models)
    return settings


def all_prompted(settings: Settings) -> list[Prompted]:
    """All constraints that have a prompt. Raises OptionError or UnknownNameError."""
    given = {str(entry.get("label")): entry for entry in settings.constraints}
    found = list(settings.prompted)
    for label, prompt in settings.prompts.items():
        if label not in given:
            raise UnknownNameError("constraint in settings.constraints", label, given)
        found.append(typed_settings(Prompted, {**given[label], "prompt": prompt}))
    for entry in found:
        if fault := fault_of_keys(entry.model_fields_set):
            raise OptionError(f"settings: {entry.label}: {fault[0]}")
        entry.build()
    return found


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Write texts with all models and engines. `settings`: those of `Settings`; `seed`: of the texts."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        rows += _Bench(loaded, typed, seed).measure()
        finish_row(loaded)
    return rows


class _Bench:
    """The engines for one model."""

    def __init__(self, loaded: Loaded, settings: Settings, seed: int) -> None:
        self.loaded, self.settings, self.seed = loaded, settings, seed
        self.workshop = Workshop(settings.engines, loaded.model.vocabulary)
        for engine in settings.engines:
            backend = self.workshop.backend(engine.name)
            if not isinstance(backend, Failure):
                warm_up(backend)

    def measure(self) -> Iterator[dict[str, Any]]:
        """The rows of all constraints: one text of each with every engine, then the next, while there is time."""
        started = time.monotonic()
        entries = all_prompted(self.settings)[:: self.settings.every]
        compiled: dict[str, dict[str, CompiledConstraint]] = {entry.label: {} for entry in entries}
        for sample, entry in itertools.product(range(self.settings.samples), entries):
            place = {**self.loaded.place, "constraint": entry.label}
            if time.monotonic() - started > self.settings.seconds:
                message = f"the {self.settings.seconds:g} s for this model are over"
                late = {"part": TEXT, "sample": sample, "engine": "", "status": NOT_ASKED, "message": message}
                yield {**place, **late}
                continue
            if sample == 0:
                yield from self._compile(entry, place, compiled[entry.label])
            context = self.loaded.tokenizer.encode(entry.prompt)
            for name, one in compiled[entry.label].items():
                named = {**place, "engine": name, "backend": one.backend_name, "part": TEXT}
                yield from guarded({**named, "sample": sample}, self._write(name, one, entry, context, sample))

    def _compile(
        self, entry: Prompted, place: dict[str, str], compiled: dict[str, CompiledConstraint]
    ) -> Iterator[dict[str, Any]]:
        """The rows of compiling; what succeeds goes into `compiled`, by the engine's name."""
        for engine in self.settings.engines:
            row = {**place, "engine": engine.name, "backend": engine.backend, "part": COMPILE}
            found, ns = time_call(partial(self.workshop.compile, engine.name, entry.build()))
            if isinstance(found, Failure):
                yield {**row, "status": found.kind, "message": found.message[:MAX_MESSAGE]}
            else:
                compiled[engine.name] = found
                yield {**row, "status": OK, "message": "", "compile_seconds": ns * 1e-9}

    def _write(
        self, name: str, compiled: CompiledConstraint, entry: Prompted, context: Sequence[int], sample: int
    ) -> Iterator[dict[str, Any]]:
        """The row of one text."""
        model, backend = self.loaded.model, self.workshop.backend(name)
        assert not isinstance(backend, Failure)
        forget = getattr(model, "forget", None)  # of models that keep states
        if forget is not None:
            forget()
        prompt = (*model.start_tokens, *context)
        _, prompt_ns = time_call(partial(model.log_probabilities, [prompt]))
        sampler = Sampler(self.settings.temperature, seed=derive_seed(self.seed, entry.label, sample))
        found = generate(model, compiled, context, sampler, entry.max_tokens or self.settings.max_tokens)
        end = [] if found.end_token is None else [found.end_token]
        yield {
            "language": language_of(backend),
            "tokens": len(found.tokens),
            "finished": found.finished,
            "steps": len(found.tokens) + len(end),
            "model_calls": found.model_calls,
            "forced": found.forced,
            "bytes": len(found.text),
            "text": found.text.decode(errors="backslashreplace"),
            "sequence": json.dumps([*found.tokens, *end]),
            "model_seconds": found.model_seconds,
            "mask_seconds": found.mask_seconds,
            "sampling_seconds": found.sampling_seconds,
            "prompt_tokens": len(prompt),
            "prompt_seconds": prompt_ns * 1e-9,
        }


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The texts of the constraints and samples that every engine went through; pairs of one language; compiling."""
    found = parts(rows, TEXT)
    texts = found[""]
    if texts.empty:
        return found
    wanted = texts.groupby("model")["engine"].transform("nunique")
    texts = texts[texts.groupby(["model", "constraint", "sample"])["engine"].transform("nunique") == wanted]
    texts = texts.assign(turn=(texts["sample"] == 0).map({True: "first text", False: "later texts"}))
    place = ["model", "language", "constraint", "sample"]
    first = texts.groupby(place, sort=False).first().reset_index()
    pairs = texts.merge(first[[*place, "engine", "sequence", "text"]], on=place, suffixes=("", "_first"))
    pairs = pairs[pairs["engine"] != pairs["engine_first"]]
    equal = pairs["sequence"] == pairs["sequence_first"]
    told = pairs["constraint"] + ": " + pairs["text"].map(repr) + ", not " + pairs["text_first"].map(repr)
    return {**found, "": texts, "pairs": pairs.assign(equal=equal, differs=told.where(~equal, None))}


def gaps(results: Results) -> list[str]:
    """How many more calls than the first engine each other one saves, paired by constraint and sample."""
    said = []
    texts = results.rows()
    for model, rows in texts.groupby("model", sort=False) if len(texts) else ():
        names = list(dict.fromkeys(rows["engine"]))
        sums = rows.pivot_table(index=["constraint", "sample"], columns="engine", values=["forced", "steps"])
        clusters = sums.index.get_level_values("constraint").tolist()
        forced, steps = (sums[column][names].to_numpy() for column in ("forced", "steps"))
        for place, name in enumerate(names[1:], 1):

            def gap(chosen: Any, place: int = place, forced: Any = forced, steps: Any = steps) -> float:
                mine, base = (forced[chosen, one].sum() / steps[chosen, one].sum() for one in (place, 0))
                return float(100 * (mine - base))

            value, ends = gap(np.arange(len(sums))), cluster_interval(gap, clusters)
            if value == 0 and (ends is None or ends[0] == ends[1]):
                said.append(f"{model}: {name} saves the same share of calls as {names[0]}.")
            elif ends is None or ends[0] <= 0 <= ends[1]:
                said.append(f"{model}: {name} saves no more and no fewer calls than {names[0]} beyond the error.")
            else:
                said.append(
                    f"{model}: {name} saves {'more' if value > 0 else 'fewer'} calls than {names[0]}, by "
                    f"{value:.3g} percentage points (95% interval {ends[0]:.3g} to {ends[1]:.3g})."
                )
    return said


_BY = ("model", "engine")
_OVER = ("constraint",)
_SAVED = Quotient("forced:sum", "steps:sum", "calls saved", "share", "higher", _OVER)
_MASKS = Quotient("mask_seconds:sum", "model_seconds:sum", "mask share", "share", "lower", _OVER)

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    threads=2,
    columns=(
        *COLUMNS,
        *(text("engine"), text("constraint"), text("turn"), text("engine_first", "against")),
        text("language", "sequences", "which token sequences an engine allows"),
        text("differs", "first that differs"),
        Column("tokens"),
        Column("bytes"),
        Column("finished", "finished", "share", "higher", "not cut at the limit on tokens"),
        Column("steps", meaning="a step appends a token or ends the text"),
        Column("forced", "forced", "", "higher", "steps with one allowed token, which need no call"),
        Column("model_calls", "calls", "", "lower"),
        seconds("model_seconds", "model, a text"),
        seconds("mask_seconds", "masks, a text", "filling masks, advancing, and starting a matcher"),
        seconds("sampling_seconds", "sampling, a text"),
        seconds("compile_seconds", "compile"),
    ),
    case=("model", "constraint"),
    place=("sample",),
    frames=frames,
    tables=(
        Summary(
            "saved_calls_lm",
            "Model calls in real generation",
            "Calls saved: forced steps over steps, with the 95% interval by bootstrap over constraints. Engines that "
            "allow other sequences write other texts.",
            by=_BY,
            values=(
                *("language", Stat("text", "count", "texts"), Stat("finished", "share")),
                *(Stat("bytes", "mean", "bytes a text"), Stat("tokens", "mean", "tokens a text")),
                *(Stat("model_calls", "sum", "calls"), Stat("steps", "sum", "of"), Stat("forced", "sum", "forced")),
                _SAVED,
            ),
            brief=(*_BY, "tokens a text", "calls", "calls saved"),
        ),
        Summary(
            "saved_calls_lm_costs",
            "What a text costs",
            "Means over texts; the prompt's run and compiling are not in them. The masks' share of the model's time "
            "has its 95% interval by bootstrap over constraints.",
            by=_BY,
            values=(
                *(Stat("model_seconds", "mean", "model, a text"), Stat("mask_seconds", "mean", "masks, a text")),
                Stat("sampling_seconds", "mean", "sampling, a text"),
                Quotient("model_seconds:sum", "model_calls:sum", "model, a call", "s"),
                Quotient("mask_seconds:sum", "steps:sum", "masks, a step", "s", "lower"),
                _MASKS,
            ),
        ),
        Pivot(
            "saved_calls_lm_first",
            "Masks over the model's time, first texts and later ones",
            "The first text of a constraint pays for masks that are made when they are asked for.",
            rows=("model", "turn"),
            value=_MASKS,
            ratio=False,
        ),
        Pivot(
            "saved_calls_lm_constraints",
            "Calls saved by constraint",
            "Share of steps that need no call, then the calls.",
            rows=("model", "constraint"),
            value=_SAVED,
            detail="model_calls:sum",
        ),
        Summary(
            "saved_calls_lm_equal",
            "Equal texts from equal seeds",
            "Engines that allow the same token sequences must write the same text from the same seed.",
            by=("model", "language", "engine", "engine_first"),
            values=(*(Stat("equal", "count", "texts"), Stat("equal", "sum", "equal")), Stat("differs", "first")),
            frame="pairs",
        ),
        Summary("saved_calls_lm_compile", "Compiling", by=_BY, values=("compile_seconds",), frame=COMPILE),
        MODELS,
        not_measured("constraint", "engine"),
    ),
    charts=(
        Bars(
            "saved_calls_lm",
            "Model calls saved in real generation",
            "Forced steps over all steps of the constraint's texts, the end of a text being a step.",
            x=_SAVED,
            rows="constraint",
            panels="model",
            log=False,
        ),
        Bars(
            "saved_calls_lm_masks",
            "Masks over the model's time",
            "Prompts and compiling apart.",
            x=_MASKS,
            rows="turn",
            panels="model",
        ),
    ),
    sentences=(
        Say(
            "{model}, {engine}: {saved} of the calls are saved; masks take {masks} of the model's time (the aim is "
            "below 2%), at {call} a call.",
            per=_BY,
            blanks={
                **{"saved": _SAVED, "masks": _MASKS},
                "call": Quotient("model_seconds:sum", "model_calls:sum", "model, a call", "s"),
            },
        ),
        Computed(gaps),
        Say(
            "{model}: {equal} of {texts} texts equal that of the first engine with the same token sequences and the "
            "same seed.",
            per=("model",),
            blanks={"equal": "equal:sum", "texts": "equal:count"},
            frame="pairs",
        ),
        *FAILURES,
    ),
)
