"""One prompt with its choices: the exact distribution of every engine beside the ideal one.

Words. The *ideal* is the model's own distribution over the choices, given that one of them comes next; an engine's
distribution is what sampling through its masks gives (`tokdfa.skew.exact`, 002 challenge 1). The *language* of an
engine is what it admits of the spellings of a choice: all of them, the proper one only, or what muting leaves. Two
engines of one language have equal masks, so with equal rows of the model they have equal distributions, to rounding;
`agreements` says how equal.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.constraint import Choice
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.skew.distances import compare
from tokdfa.skew.exact import ideal_distribution, masked_distribution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.decoding.draws import Eos
    from tokdfa.lab.measure.engines import Engine, EngineSet
    from tokdfa.models.cache import CachedModel
    from tokdfa.skew.distances import Distances
    from tokdfa.skew.exact import ExactResult

#: The name of the ideal distribution among the engines.
IDEAL = "ideal"
#: The language of an engine that mutes literals; those of the others are in `Backend.token_language`.
MUTED = "muted"
#: How far the probabilities of two engines of one language may be apart: rounding, and no more.
AGREEMENT = 1e-9


@dataclass(frozen=True)
class Limits:
    """How far the walks go: see `tokdfa.skew.exact`. `follow_spellings`: those of the engines."""

    eos: Eos
    tolerance: float
    max_prefixes: int
    follow_spellings: bool = True


@dataclass(frozen=True)
class Entrant:
    """What became of one engine, or of the ideal. `result`: the distribution, or why there is none.

    `distances`: from the ideal (p) to this distribution (q), None for the ideal itself; `rows_computed`: model rows
    that no entrant before it had asked for; `seconds`: of the walk, the model's time included.
    """

    name: str
    backend: str
    language: str
    result: ExactResult | Failure
    distances: Distances | None = None
    compile_seconds: float = 0.0
    seconds: float = 0.0
    rows_computed: int = 0


@dataclass(frozen=True)
class Agreement:
    """Two engines of one language: the largest difference between their probabilities of any choice."""

    language: str
    first: str
    other: str
    difference: float

    @property
    def holds(self) -> bool:
        """Whether it is rounding."""
        return self.difference <= AGREEMENT


def language_of(backend: Backend) -> str:
    """What a backend admits of the spellings of a text: ``all``, ``proper`` or ``muted``."""
    return MUTED if backend.settings.get("mute_literals") else backend.token_language


def compare_engines(
    model: CachedModel,
    context: Sequence[int],
    choices: Sequence[str],
    engines: Sequence[Engine],
    engine_set: EngineSet,
    limits: Limits,
) -> Iterator[Entrant]:
    """The ideal, then every engine in turn; nobody after an ideal that fails, as there is nothing to compare with.

    The rows that `model` keeps are shared by all; its capacity should hold all rows of a prompt, since a row that is
    computed again may differ by the model's noise (1e-5 in float32), and agreements with it.
    """

    def walk_ideal() -> ExactResult:
        return ideal_distribution(
            model, context, choices, eos=limits.eos, tolerance=limits.tolerance, max_prefixes=limits.max_prefixes
        )

    ideal = _timed(model, walk_ideal, IDEAL, "", "all")
    yield ideal
    if isinstance(ideal.result, Failure):
        return
    constraint = Choice(choices)
    for engine in engines:
        backend = engine_set.backend(engine.name)
        if isinstance(backend, Failure):
            yield Entrant(engine.name, engine.backend, "", backend)
            continue
        language = language_of(backend)
        begun = time.perf_counter_ns()
        compiled = engine_set.compile(engine.name, constraint)
        compile_seconds = (time.perf_counter_ns() - begun) * 1e-9
        if isinstance(compiled, Failure):
            yield Entrant(engine.name, engine.backend, language, compiled, compile_seconds=compile_seconds)
            continue

        def walk(compiled: CompiledConstraint = compiled) -> ExactResult:
            return masked_distribution(compiled, model, context, choices, **vars(limits))

        found = replace(_timed(model, walk, engine.name, engine.backend, language), compile_seconds=compile_seconds)
        if not isinstance(found.result, Failure):
            found = replace(found, distances=compare(ideal.result.distribution, found.result.distribution))
        yield found


def _timed(model: CachedModel, walk: Callable[[], ExactResult], name: str, backend: str, language: str) -> Entrant:
    misses, begun = model.misses, time.perf_counter_ns()
    result = attempt(walk)
    seconds = (time.perf_counter_ns() - begun) * 1e-9
    return Entrant(name, backend, language, result, seconds=seconds, rows_computed=model.misses - misses)


def agreements(entrants: Sequence[Entrant]) -> list[Agreement]:
    """Each engine compared with the first one of its language; the ideal has masks of no kind and stays out."""
    first: dict[str, tuple[str, ExactResult]] = {}
    found = []
    for entrant in entrants:
        if entrant.distances is None or isinstance(entrant.result, Failure):
            continue
        name, result = first.setdefault(entrant.language, (entrant.name, entrant.result))
        if name != entrant.name:
            apart = np.abs(result.distribution.probabilities - entrant.result.distribution.probabilities).max()
            found.append(Agreement(entrant.language, name, entrant.name, float(apart)))
    return found
