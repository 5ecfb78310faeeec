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
"""

from __future__ import annotations

import itertools
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from tokdfa.constraint import Choice, Regex
from tokdfa.decoding.loop import generate
from tokdfa.decoding.sampling import Sampler
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.measure.clock import time_call
from tokdfa.lab.measure.engines import Engine, Workshop, check_engines
from tokdfa.lab.measure.limits import OK, Failure
from tokdfa.lab.measure.model_entries import (
    MAX_MESSAGE,
    Models,
    check_models,
    finish_row,
    guarded,
    load_models,
)
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.lab.measure.model_entries import Loaded

COMPILE, TEXT = "compile", "text"
#: A text whose turn came after the time for its model.
NOT_ASKED = "not_asked"
#: The token language of a backend that spells literals in one way only.
MUTED = "muted"

Count = Annotated[int, Field(ge=1, le=100_000)]


class Prompted(BaseModel):
    """A constraint, which is a regex or choices, with the prompt that the model goes on from."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    label: str
    prompt: Annotated[str, Field(min_length=1)]
    regex: str | None = None
    choice: list[str] | None = None
    max_tokens: Count | None = None

    def build(self) -> Regex | Choice:
        """The constraint. Raises OptionError."""
        if self.regex is not None and self.choice is None:
            return Regex(self.regex, label=self.label)
        if self.choice is not None and self.regex is None:
            return Choice(self.choice, label=self.label)
        raise OptionError(f"settings: the constraint {self.label!r} has either a regex or choices")


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


def check_settings(settings: dict[str, Any]) -> Settings:
    """The typed settings of an experiment. Raises OptionError or UnknownNameError, which name what is wrong."""
    typed = typed_settings(Settings, settings)
    check_engines(typed.engines)
    labels = [entry.label for entry in all_prompted(typed)]
    if not labels:
        raise OptionError("saved_calls_lm needs prompted constraints, or constraints and prompts for them")
    if len(set(labels)) < len(labels):
        raise OptionError(f"settings: two constraints have the same label: {', '.join(labels)}")
    check_models(typed.models)
    return typed


def all_prompted(settings: Settings) -> list[Prompted]:
    """All constraints that have a prompt. Raises OptionError or UnknownNameError."""
    given = {str(entry.get("label")): entry for entry in settings.constraints}
    found = list(settings.prompted)
    for label, prompt in settings.prompts.items():
        if label not in given:
            raise UnknownNameError("constraint in settings.constraints", label, given)
        found.append(typed_settings(Prompted, {**given[label], "prompt": prompt}))
    for entry in found:
        entry.build()
    return found


def run_item(settings: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Write texts with all models and engines. `settings`: those of `Settings`; `seed`: of the texts."""
    typed = check_settings(settings)
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
            "language": MUTED if backend.settings.get("mute_literals") else backend.token_language,
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
