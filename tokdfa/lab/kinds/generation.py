"""The experiment ``kind: generation``: what a model writes under a JSON schema, engine by engine.

A mask says what may come next, not that something good does: a small model that is let write numbers and strings as it
likes may never end them. So a model answers prompts under schemas, and each answer is asked whether it ended within the
limit on tokens, whether it is JSON, and whether it is valid (`jsonschema`, formats asserted).

Rows have a ``part``:

- ``model``: one for each model, see `tokdfa.lab.measure.model_entries`;
- ``compile``: one for each schema and engine; what cannot be compiled says why;
- ``text``: one for each schema, decoding (``greedy``, ``sampled``), sample and engine: ``text``, ``tokens`` (without an
  end token), ``steps``, ``model_calls``, ``forced``, ``finished``, ``parses``, ``valid``, and ``fault``.

An engine is a backend with its options, and the options of the schema that it gets, such as ``profile: generation``.
Samplers have equal seeds for the same schema and sample. Engines are compared on the answers that all of them were let
write; which schemas an engine does not take is told beside. Schemas come one after another, each with all decodings and
engines, so a model whose time is over has answered the first of them completely.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from tokdfa.constraint import JsonSchema
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Listing, Pivot, Quotient, Ranking, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.engines import Engine, EngineSet, check_engines
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.maskbench_walks import Judge
from tokdfa.lab.measure.model_bench import Count, ModelSettings, distinct_labels, model_kind
from tokdfa.lab.measure.settings import Strict
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.loop import Generation
    from tokdfa.lab.measure.model_bench import Turn
    from tokdfa.lab.measure.model_entries import Loaded

COMPILE, TEXT = "compile", "text"
GREEDY: Literal["greedy"] = "greedy"
SAMPLED: Literal["sampled"] = "sampled"


class WritingEngine(Engine):
    """A backend with its options. `json_schema`: options of the constraint, such as ``profile: generation``.

    `always_ends`: masks leave out what cannot be closed within the limit on tokens.
    """

    json_schema: dict[str, Any] = Field(default_factory=dict)
    always_ends: bool = False

    def constraint(self, schema: dict[str, Any], label: str) -> JsonSchema:
        """A schema as this engine gets it. Raises OptionError, and TypeError for an option that does not exist."""
        return JsonSchema(schema, label=label, **self.json_schema)


class Task(Strict):
    """A schema with the prompt that the model goes on from."""

    label: Annotated[str, Field(min_length=1)]
    prompt: Annotated[str, Field(min_length=1)]
    json_schema: dict[str, Any]

    @property
    def sort(self) -> str:
        """The first word of the label."""
        return self.label.split()[0]


def _checked(engines: list[WritingEngine]) -> list[WritingEngine]:
    """The engines, for pydantic. Raises OptionError or UnknownNameError, which name what is wrong."""
    check_engines(engines)
    for engine in engines:
        try:
            engine.constraint({}, "")
        except TypeError as error:
            raise OptionError(f"settings.engines: {engine.name}: json_schema: {error}") from None
    return engines


class Settings(ModelSettings):
    """The settings of the experiment.

    `tasks`: schemas and prompts, of which the first `most` are taken (all by default). Greedy decoding gives one answer
    each, sampling at `temperature` `samples`; an answer is cut at `max_tokens`, the end token included. Engines share
    the rows of the model; ``model_calls`` are those that each would have needed by itself.
    """

    engines: Annotated[list[WritingEngine], Field(min_length=1), AfterValidator(_checked)]
    tasks: Annotated[list[Task], Field(min_length=1), AfterValidator(distinct_labels)]
    most: Count | None = None
    decodings: list[Literal["greedy", "sampled"]] = Field(default=[GREEDY, SAMPLED], min_length=1)
    samples: Count = 1
    temperature: Annotated[float, Field(gt=0)] = 0.8
    max_tokens: Count = 96


def turns(loaded: Loaded, settings: Settings, seed: int) -> Iterator[Turn]:
    """Schema by schema: compiling, then answer by answer with all engines in turns."""
    engines = EngineSet(settings.engines, loaded.model.vocabulary)
    model = CachedModel(loaded.model, settings.cache_mb)
    for task in settings.tasks[: settings.most]:
        place = {"schema": task.label, "sort": task.sort}
        compiled: dict[str, CompiledConstraint] = {}
        always = {engine.name: engine.always_ends for engine in settings.engines}
        for engine in settings.engines:
            about = {**place, "part": COMPILE, "engine": engine.name, "backend": engine.backend}
            yield about, _compile(engines, engine, task, compiled)
        context, judge = loaded.tokenizer.encode(task.prompt), Judge(JsonSchema(task.json_schema).text)
        for decoding in settings.decodings:
            for sample in range(1 if decoding == GREEDY else settings.samples):
                for name, one in compiled.items():
                    drawn = derive_seed(seed, task.label, sample)
                    sampler = Sampler(settings.temperature, greedy=decoding == GREEDY, seed=drawn)
                    about = {**place, "engine": name, "backend": one.backend_name, "decoding": decoding}
                    write = partial(
                        generate, model, one, context, sampler, settings.max_tokens, always_ends=always[name]
                    )
                    yield {**about, "sample": sample}, _write(write, judge)
        model.clear()  # no other schema has the prompt


def _compile(
    engines: EngineSet, engine: WritingEngine, task: Task, compiled: dict[str, CompiledConstraint]
) -> Iterator[dict[str, Any]]:
    """The row of one compile; what came out of it is in `compiled`."""
    found, ns = time_call(partial(engines.compile, engine.name, engine.constraint(task.json_schema, task.label)))
    if isinstance(found, Failure):
        yield found.columns
    else:
        compiled[engine.name] = found
        yield {"compile_seconds": ns * 1e-9}


def _write(write: Callable[[], Generation], judge: Judge) -> Iterator[dict[str, Any]]:
    """The row of one answer."""
    found = write()
    fault = judge.fault(found.text)
    yield {
        "text": found.text.decode(errors="backslashreplace"),
        "tokens": len(found.tokens),
        "steps": len(found.tokens) + found.finished,
        "model_calls": found.model_calls,
        "forced": found.forced,
        "finished": found.finished,
        "parses": found.finished and not fault.startswith("no JSON"),
        "valid": found.finished and not fault,
        "fault": fault if found.finished else "",
        "mask_seconds": found.mask_seconds,
    }


def frames(found: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The answers that all engines were let write; those that are no valid one; compiling."""
    texts = found[""]
    wanted = texts.groupby("model")["engine"].transform("nunique")
    answers = texts.groupby(["model", "schema", "decoding", "sample"])["engine"].transform("nunique")
    texts = texts[answers == wanted].assign(shown=lambda one: one["text"].map(repr))
    return {"": texts, "invalid": texts[~texts["valid"].astype(bool)]}


_BY = ("model", "decoding", "engine")
_OVER = ("schema",)
_ENDED = Stat("finished", "share", "ended", resample=_OVER)
_PARSE = Stat("parses", "share", "JSON", resample=_OVER)
_VALID = Stat("valid", "share", "valid", resample=_OVER)

KIND = model_kind(
    Settings,
    turns,
    TEXT,
    columns=(
        *(text("engine"), text("schema"), text("sort"), text("decoding"), text("shown", "text"), text("fault")),
        Column("tokens", "tokens", "", "lower"),
        Column("steps", meaning="a step appends a token or ends the text"),
        Column("forced", "forced", "", "higher", "steps with one allowed token, which need no call"),
        Column("model_calls", "calls", "", "lower"),
        Column("finished", "ended", "share", "higher", "ended within the limit on tokens"),
        Column("parses", "JSON", "share", "higher", "ended, and is JSON"),
        Column("valid", "valid", "share", "higher", "ended, and is valid under its schema"),
        seconds("mask_seconds", "masks, a text"),
        seconds("compile_seconds", "compile"),
    ),
    case=("model", "schema", "decoding"),
    place=("sample",),
    places=("schema", "engine"),
    frames=frames,
    tables=(
        Summary(
            "generation",
            "Answers",
            "Shares of all answers, with the 95% interval by bootstrap over schemas. An answer that was cut at the "
            "limit counts as none of the three.",
            by=_BY,
            values=(
                *(Stat("finished", "count", "answers"), _ENDED, _PARSE, _VALID),
                *(Stat("tokens", "mean", "tokens an answer"), Stat("model_calls", "mean", "calls an answer")),
                Quotient("forced:sum", "steps:sum", "forced", "share", "higher"),
            ),
            brief=(*_BY, "ended", "valid", "tokens an answer"),
        ),
        Pivot(
            "generation_sorts",
            "Valid answers by sort of schema",
            "Share of the answers that ended and are valid, then the mean number of tokens.",
            rows=("model", "sort"),
            value=Stat("valid", "share", "valid"),
            detail="tokens:mean",
            ratio=False,
        ),
        Summary(
            "generation_compile",
            "Schemas taken",
            "How many of the schemas an engine compiles; those that one does not take are in no number above.",
            by=("model", "engine"),
            values=(Stat("compile_seconds", "count", "schemas"), "compile_seconds"),
            frame=COMPILE,
        ),
        Listing(
            "generation_invalid",
            "Answers that are not valid",
            "No fault: cut at the limit.",
            shown=("decoding", "schema", "engine", "fault", "shown"),
            frame="invalid",
        ),
    ),
    charts=(
        Bars(
            "generation",
            "Valid answers",
            "Share of the answers that ended within the limit and are valid.",
            x=_VALID,
            rows="decoding",
            panels="model",
            log=False,
        ),
        Bars(
            "generation_tokens",
            "Tokens an answer",
            "Mean over answers, cut ones included.",
            x="tokens:mean",
            rows="decoding",
            panels="model",
            log=False,
        ),
    ),
    sentences=(
        Ranking((Stat("valid", "share", "share of valid answers"),), each="decoding"),
        Ranking((Stat("tokens", "mean", "tokens an answer"),)),
        Say(
            "{model}, {decoding}, {engine}: {ended} of the answers end within the limit, and {valid} are valid, with "
            "{tokens} tokens an answer.",
            per=_BY,
            blanks={"ended": _ENDED, "valid": _VALID, "tokens": "tokens:mean"},
        ),
    ),
)
