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

import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import JsonSchema
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError
from tokdfa.lab.declare import Bars, Column, Kind, Listing, Pivot, Quotient, Say, Stat, Summary
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.models import COLUMNS, FAILURES, MODELS, not_measured, parts
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines
from tokdfa.lab.measure.limits import NOT_ASKED, OK, Failure
from tokdfa.lab.measure.maskbench_walks import Judge
from tokdfa.lab.measure.model_entries import MAX_MESSAGE, Models, check_models, finish_row, guarded, load_models
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.workloads import derive_seed
from tokdfa.models.cache import CachedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pandas as pd

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.loop import Generation

COMPILE, TEXT = "compile", "text"
GREEDY: Literal["greedy"] = "greedy"
SAMPLED: Literal["sampled"] = "sampled"

Count = Annotated[int, Field(ge=1, le=100_000)]


class WritingEngine(Engine):
    """A backend with its options. `json_schema`: options of the constraint, such as ``profile: generation``."""

    json_schema: dict[str, Any] = Field(default_factory=dict)

    def constraint(self, schema: dict[str, Any], label: str) -> JsonSchema:
        """A schema as this engine gets it. Raises OptionError, and TypeError for an option that does not exist."""
        return JsonSchema(schema, label=label, **self.json_schema)


class Task(BaseModel):
    """A schema with the prompt that the model goes on from."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: Annotated[str, Field(min_length=1)]
    prompt: Annotated[str, Field(min_length=1)]
    json_schema: dict[str, Any]

    @property
    def sort(self) -> str:
        """The first word of the label."""
        return self.label.split()[0]


class Settings(BaseModel):
    """The settings of the experiment.

    `models`: see `tokdfa.lab.measure.model_entries`; `tasks`: schemas and prompts, of which the first `most` are taken
    (all by default). Greedy decoding gives one answer each, sampling at `temperature` `samples`; an answer is cut at
    `max_tokens`, the end token included. `seconds`: for each model; schemas whose turn comes later are not asked.
    `threads`: of torch. `cache_mb`: for the rows of the model, which the engines share: ``model_calls`` are those that
    each would have needed by itself.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    models: Models
    engines: list[WritingEngine] = Field(min_length=1)
    tasks: list[Task] = Field(min_length=1)
    most: Count | None = None
    decodings: list[Literal["greedy", "sampled"]] = Field(default=[GREEDY, SAMPLED], min_length=1)
    samples: Count = 1
    temperature: Annotated[float, Field(gt=0)] = 0.8
    max_tokens: Count = 96
    seconds: Annotated[float, Field(gt=0)] = 1200.0
    threads: Annotated[int, Field(ge=1, le=64)] = 1
    cache_mb: Annotated[float, Field(gt=0)] = 800.0


def complete(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings as they are. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    check_models(typed.models)
    labels = [task.label for task in typed.tasks]
    if len(set(labels)) < len(labels):
        raise OptionError(f"settings.tasks: two tasks have the same label: {', '.join(labels)}")
    for engine in typed.engines:
        try:
            engine.constraint({}, "")
        except TypeError as error:
            raise OptionError(f"settings.engines: {engine.name}: json_schema: {error}") from None
    return settings


def measure(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Let all models write under all schemas. `settings`: those of `Settings`; `seed`: of the samples."""
    typed = typed_settings(Settings, settings)
    rows: list[dict[str, Any]] = []
    for loaded in load_models(typed.models, typed.threads, rows):
        workshop, model = Workshop(typed.engines, loaded.model.vocabulary), CachedModel(loaded.model, typed.cache_mb)
        started = time.monotonic()
        for task in typed.tasks[: typed.most]:
            place = {**loaded.place, "schema": task.label, "sort": task.sort}
            if time.monotonic() - started > typed.seconds:
                message = f"the {typed.seconds:g} s for this model are over"
                rows.append({**place, "part": TEXT, "engine": "", "status": NOT_ASKED, "message": message})
            else:
                context = loaded.tokenizer.encode(task.prompt)
                rows += _answer(model, context, workshop, typed, task, place, seed)
                model.clear()  # no other schema has the prompt
        finish_row(loaded)
    return rows


def _answer(
    model: CachedModel,
    context: Sequence[int],
    workshop: Workshop,
    settings: Settings,
    task: Task,
    place: dict[str, str],
    seed: int,
) -> Iterator[dict[str, Any]]:
    """The rows of a schema: compiling, then answer by answer with all engines in turns."""
    compiled: dict[str, CompiledConstraint] = {}
    for engine in settings.engines:
        row = {**place, "engine": engine.name, "backend": engine.backend, "part": COMPILE}
        constraint = engine.constraint(task.json_schema, task.label)
        found, ns = time_call(partial(workshop.compile, engine.name, constraint))
        if isinstance(found, Failure):
            yield {**row, "status": found.kind, "message": found.message[:MAX_MESSAGE]}
        else:
            compiled[engine.name] = found
            yield {**row, "status": OK, "message": "", "compile_seconds": ns * 1e-9}
    judge = Judge(JsonSchema(task.json_schema).text)
    for decoding in settings.decodings:
        for sample in range(1 if decoding == GREEDY else settings.samples):
            for name, one in compiled.items():
                drawn = derive_seed(seed, task.label, sample)
                sampler = Sampler(settings.temperature, greedy=decoding == GREEDY, seed=drawn)
                row = {**place, "engine": name, "backend": one.backend_name, "part": TEXT}
                written = _write(partial(generate, model, one, context, sampler, settings.max_tokens), judge)
                yield from guarded({**row, "decoding": decoding, "sample": sample}, written)


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


def frames(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The answers that all engines were let write; those that are no valid one; compiling."""
    found = parts(rows, TEXT)
    texts = found[""]
    if texts.empty:
        return found
    wanted = texts.groupby("model")["engine"].transform("nunique")
    answers = texts.groupby(["model", "schema", "decoding", "sample"])["engine"].transform("nunique")
    texts = texts[answers == wanted].assign(shown=lambda one: one["text"].map(repr))
    invalid = texts[~texts["valid"].astype(bool)]
    return {**found, "": texts, "invalid": invalid}


_BY = ("model", "decoding", "engine")
_OVER = ("schema",)
_ENDED = Stat("finished", "share", "ended", resample=_OVER)
_PARSE = Stat("parses", "share", "JSON", resample=_OVER)
_VALID = Stat("valid", "share", "valid", resample=_OVER)

KIND = Kind(
    measure=measure,
    settings=Settings,
    complete=complete,
    columns=(
        *COLUMNS,
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
        MODELS,
        not_measured("schema", "engine"),
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
        Say(
            "{model}, {decoding}, {engine}: {ended} of the answers end within the limit, and {valid} are valid, with "
            "{tokens} tokens an answer.",
            per=_BY,
            blanks={"ended": _ENDED, "valid": _VALID, "tokens": "tokens:mean"},
        ),
        *FAILURES,
    ),
)
