"""The experiment ``kind: saved_calls``: at how many steps is there nothing to choose, so that no model is needed?

Words (step, forced, call): `tokdfa.lab.measure.forced_steps`. The claims under test: proper tokenization makes forced
steps frequent (Tran-Thien 2024, challenge 3, and the notebook to it); and masks cost little beside the model (the aim:
below 2% of the model's time). Texts are of two kinds:

- *given*, without `models`: an item is a tokenizer and a constraint with its texts. Steps are along the tokenizer's own
  tokens. The published figures (1,000 JSON strings with 18,898 tokens of Mistral-7B's tokenizer) count no end, neither
  as a step nor as an alternative, and leave the tokens of the byte fallback out: that is ``forced_002``.
- *written* by `models` after prompts, all in one item. Engines get the same seed for the same constraint and sample, so
  those that allow the same sequences and have the same masks write the same text. They take turns, text by text.
  ``language`` says which token sequences an engine allows: ``all``, ``proper``, or ``muted``.

A row is a text with an engine: ``model`` ("given, TOKENIZER" for given texts), ``constraint``, ``sample``. Only texts
that all engines went through are counted. Shares are of steps, so long texts weigh more than short ones, as they do in
a decoding loop; differences between engines are paired, text by text. Intervals are bootstraps over constraints.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.declare import Bars, Column, Pivot, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.constraint_entry import ConstraintEntry, fault_of_keys, item_constraint
from tokdfa.lab.measure.engines import Engines, EngineSet
from tokdfa.lab.measure.forced_steps import follow_text, write_text
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.model_bench import Count, ModelSettings, distinct_labels, measure_models, model_kind
from tokdfa.lab.measure.model_entries import OptionalModels  # noqa: TC001 (pydantic reads the annotation)
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.skew_comparison import language_of
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded

TEXT = "text"


class Prompted(ConstraintEntry):
    """A constraint with the prompt that the model goes on from."""

    label: str
    prompt: Annotated[str, Field(min_length=1)]
    max_tokens: Count | None = None


class Settings(ModelSettings):
    """The settings of the experiment. `engines`: the first is what the others are compared with.

    Given texts: `texts`: those of the item's constraint, or label of a constraint -> its texts.

    Written texts: `prompted` have prompts; of `constraints` those are taken that have one in `prompts` (label ->
    prompt). Of all these in a row, every `every`-th is measured, with `samples` texts of at most `max_tokens` tokens
    each (unless it says otherwise). `temperature` is the sampler's. The first texts of all constraints come first.
    """

    models: OptionalModels = Field(default_factory=list)
    engines: Engines
    texts: list[str] | dict[str, list[str]] = Field(default_factory=list)
    prompted: list[Prompted] = Field(default_factory=list)
    constraints: list[dict[str, Any]] = Field(default_factory=list)
    prompts: dict[str, str] = Field(default_factory=dict)
    every: Count = 1
    samples: Count = 2
    max_tokens: Count = 64
    temperature: Annotated[float, Field(gt=0)] = 1.0

    @model_validator(mode="after")
    def _models_have_prompts(self) -> Settings:
        if self.models and not self.entries():
            raise OptionError("saved_calls needs prompted constraints, or constraints and prompts, for its models")
        return self

    def entries(self) -> list[Prompted]:
        """All constraints that have a prompt. Raises OptionError or UnknownNameError."""
        given = {str(entry.get("label")): entry for entry in self.constraints}
        found = list(self.prompted)
        for label, prompt in self.prompts.items():
            if label not in given:
                raise UnknownNameError("constraint in settings.constraints", label, given)
            found.append(typed_settings(Prompted, {**given[label], "prompt": prompt}))
        for entry in found:
            if fault := fault_of_keys(entry.model_fields_set):
                raise OptionError(f"settings: {entry.label}: {fault[0]}")
            entry.build()
        return distinct_labels(found)


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Let the models write, or follow the texts of one constraint.

    `settings`: those of `Settings`; for given texts also ``tokenizer`` (name) and those of a constraint. Raises
    OptionError if a constraint has no texts, ConfigError if there is none.
    """
    own = {key: value for key, value in settings.items() if key in Settings.model_fields}
    typed = typed_settings(Settings, own)
    return measure_models(typed, turns, seed, TEXT) if typed.models else list(_given(settings, typed))


def _given(settings: dict[str, Any], typed: Settings) -> Iterator[dict[str, Any]]:
    constraint = item_constraint({key: value for key, value in settings.items() if key != "texts"}).build()
    texts = typed.texts if isinstance(typed.texts, list) else typed.texts.get(settings.get("label", ""))
    if not texts:
        raise OptionError(f"the constraint {constraint.name!r} has no texts, nor has settings.texts any for it")
    tokenizer = load_tokenizer(settings["tokenizer"])
    engine_set = EngineSet(typed.engines, tokenizer.vocabulary)
    place = {"part": TEXT, "model": f"given, {tokenizer.name}", "tokenizer": tokenizer.name}
    place |= {"constraint": constraint.name, "status": OK, "message": ""}
    for engine in typed.engines:
        compiled = engine_set.compile(engine.name, constraint)
        named = place | {"engine": engine.name, "backend": engine.backend}
        if isinstance(compiled, Failure):
            yield named | compiled.columns
            continue
        for sample, one in enumerate(texts):
            yield named | {"sample": sample, "text": one} | follow_text(compiled, one, tokenizer)


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """One text of each constraint with every engine, then the next."""
    engine_set = EngineSet(settings.engines, loaded.model.vocabulary)
    for engine in settings.engines:
        if not isinstance(backend := engine_set.backend(engine.name), Failure):
            warm_up(backend)
    compiled: dict[tuple[str, str], CompiledConstraint | Failure] = {}
    entries = settings.entries()[:: settings.every]
    for sample, entry, engine in itertools.product(range(settings.samples), entries, settings.engines):
        key = (entry.label, engine.name)
        if sample and isinstance(compiled.get(key), Failure):
            continue
        place = {"constraint": entry.label, "sample": sample, "engine": engine.name, "backend": engine.backend}

        def written(entry: Prompted = entry, sample: int = sample, key: Any = key) -> Iterator[dict[str, Any]]:
            one = compiled[key] if key in compiled else engine_set.compile(key[1], entry.build())
            compiled[key] = one
            backend = engine_set.backend(key[1])
            if isinstance(one, Failure) or isinstance(backend, Failure):
                yield one.columns if isinstance(one, Failure) else {}
                return
            sampler = Sampler(settings.temperature, seed=derive_seed(seed, entry.label, sample))
            context = loaded.tokenizer.encode(entry.prompt)
            limit = entry.max_tokens or settings.max_tokens
            yield {"language": language_of(backend), **write_text(loaded.model, one, context, sampler, limit)}

        yield place, written()


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The texts that all engines went through; each beside the first engine's; pairs of one language."""
    texts, place = found[""], ["model", "constraint", "sample"]
    wanted = texts.groupby("model")["engine"].transform("nunique")
    texts = texts[texts.groupby(place)["engine"].transform("nunique") == wanted]
    texts = texts.assign(saved=texts["steps"] - texts["calls"])
    texts["share"] = texts["saved"] / texts["steps"]
    first = texts.groupby(place, sort=False)[["engine", "share"]].first().add_suffix("_first").reset_index()
    beside = texts.merge(first, on=place)
    made = {
        "": texts,
        "gaps": beside[beside["engine"] != beside["engine_first"]].assign(
            gap=lambda rows: rows["share"] - rows["share_first"]
        ),
    }
    if "sequence" in texts:
        texts = texts.assign(turn=(texts["sample"] == 0).map({True: "first text", False: "later texts"}))
        alike = texts.groupby([*place, "language"], sort=False)[["engine", "sequence"]].first().add_suffix("_first")
        pairs = texts.merge(alike.reset_index(), on=[*place, "language"])
        pairs = pairs[pairs["engine"] != pairs["engine_first"]]
        made |= {"": texts, "pairs": pairs.assign(equal=pairs["sequence"] == pairs["sequence_first"])}
    return made


_BY = ("model", "engine")
_OVER = ("constraint",)
_SAVED = Quotient("saved:sum", "steps:sum", "calls saved", "share", "higher", _OVER)
_MASKS = Quotient("mask_seconds:sum", "model_seconds:sum", "mask share", "share", "lower", _OVER)
_AS_002 = Quotient("forced_002:sum", "tokens:sum", "share as published", "share")
_CALL = Quotient("model_seconds:sum", "calls:sum", "model, a call", "s")

KIND = model_kind(
    Settings,
    turns,
    TEXT,
    measure=measure,
    threads=1,
    columns=(
        *(text("engine"), text("constraint"), text("turn"), text("engine_first", "against"), text("text")),
        text("language", "sequences", "which token sequences an engine allows"),
        Column("steps", meaning="a step appends a token or ends the text"),
        Column("calls", "calls left", "", "lower", "steps at which there is a choice"),
        Column("saved", "forced", "", "higher", "steps with one allowed token, or only end tokens"),
        Column("share", "calls saved", "share", "higher"),
        Column("gap", "more calls saved", "share", "higher", "than by the first engine, of the same text"),
        Column("forced_text", "forced but for the end", "", "higher", "one allowed token beside end tokens"),
        Column("forced_002", "as published", "", "higher", "the same without the tokens of the byte fallback"),
        Column("finished", "finished", "share", "higher", "not cut at the limit on tokens"),
        seconds("model_seconds", "model, a text"),
        seconds("mask_seconds", "masks, a text", "filling masks, advancing, and starting a matcher"),
        seconds("sampling_seconds", "sampling, a text"),
    ),
    places=("constraint", "engine"),
    case=("model", "constraint"),
    place=("sample",),
    frames=frames,
    tables=(
        Summary(
            "saved_calls",
            "Steps that need no call",
            "Over the texts that all engines went through; calls saved: forced steps over all steps, with the 95% "
            "interval by bootstrap over constraints. As published: tokens that are forced if neither end tokens nor "
            "those of the byte fallback count. Of written texts, engines that allow other sequences write others.",
            by=_BY,
            values=(
                *("language", Stat("text", "count", "texts"), "finished:share", Stat("bytes", "mean", "bytes a text")),
                *(Stat("tokens", "sum", "tokens"), Stat("steps", "sum", "steps"), Stat("saved", "sum", "forced")),
                *(_SAVED, Stat("calls", "sum", "calls left"), Stat("forced_text", "sum", "forced but for the end")),
                *(Stat("forced_002", "sum", "as published"), _AS_002),
            ),
            brief=(*_BY, "steps", "calls left", "calls saved", "share as published"),
        ),
        Summary(
            "saved_calls_costs",
            "What a text costs",
            "Means over texts; the prompt's run and compiling are not in them. The masks' share of the model's time "
            "has its 95% interval by bootstrap over constraints.",
            by=_BY,
            values=(
                *(Stat(f"{one}_seconds", "mean", f"{one}, a text") for one in ("model", "mask", "sampling")),
                *(_CALL, Quotient("mask_seconds:sum", "steps:sum", "masks, a step", "s", "lower"), _MASKS),
            ),
            where="model_seconds >= 0",
        ),
        Pivot(
            "saved_calls_first",
            "Masks over the model's time, first texts and later ones",
            "The first text of a constraint pays for masks that are made when they are asked for.",
            rows=("model", "turn"),
            value=_MASKS,
            ratio=False,
            where="model_seconds >= 0",
        ),
        Pivot(
            "saved_calls_constraints",
            "Calls saved by constraint",
            "Share of steps that need no call, then the calls.",
            rows=("model", "constraint"),
            value=_SAVED,
            detail="calls:sum",
            beside=(Stat("sample", "distinct", "texts"),),
        ),
    ),
    charts=(
        Bars(
            "saved_calls",
            "Share of steps that need no call",
            "Forced steps over all steps of the constraint's texts, the end of a text being a step.",
            x=_SAVED,
            rows="constraint",
            panels="model",
            log=False,
        ),
    ),
    sentences=(
        Say(
            "{model}, {engine}: {saved} of the calls are saved, {calls:sum} of {steps:sum} are left.",
            per=_BY,
            blanks={"saved": _SAVED},
        ),
        Say(
            "{model}: beyond what {engine_first} saves, {engine} saves {gap} of the calls, in the mean of the texts.",
            per=_BY,
            blanks={"gap": Stat("gap", "mean", resample=_OVER)},
            frame="gaps",
        ),
        Say(
            "{model}, {engine}: counted as published, one token is allowed at {forced_002:sum} of {tokens:sum} places "
            "({share}).",
            per=_BY,
            blanks={"share": _AS_002},
        ),
        Say(
            "Published (Tran-Thien 2024, other texts, Mistral-7B's tokenizer): 750 with the plain token DFA and 3,853 "
            "with proper sequences only, of 18,898 positions (3.97% and 20.4%).",
            where="forced_002 >= 0",
        ),
        Say(
            "{model}, {engine}: masks take {masks} of the model's time (the aim is below 2%), at {call} a call.",
            per=_BY,
            blanks={"masks": _MASKS, "call": _CALL},
        ),
        Say(
            "{model}: {equal:sum} of {equal:count} texts equal that of the first engine with the same token sequences "
            "and the same seed.",
            per=("model",),
            frame="pairs",
        ),
    ),
)
