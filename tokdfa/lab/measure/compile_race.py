"""Compiles of one constraint by several engines that take turns: all of a compile, and what of it is the engine's own.

An engine's own time is its compile without the steps that are the same for all: the byte DFA, and the tokenizer's
table. An engine that cannot be made, raises, or has used its seconds takes no further turns; the others go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from tokdfa.backends.registry import create_backend
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.engines import Engine, attempt
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import Backend, CompiledConstraint
    from tokdfa.constraint import Constraint
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Phases of a compile that are the same for all engines: making the byte DFA, and the tokenizer's own table.
SHARED_PHASES = frozenset({"parse", "automaton", "minimize", "tokenizer"})

E = TypeVar("E", bound=Engine)


@dataclass
class Entrant(Generic[E]):
    """One engine on one constraint, and what was measured of it, in seconds. `failure`: its first one."""

    engine: E
    backend: Backend | None = None
    failure: Failure | None = None
    compile_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    compiled: CompiledConstraint | None = None

    @classmethod
    def of(cls, engine: E, vocabulary: Vocabulary, kind: str = "") -> Entrant[E]:
        """An engine, made and warm for constraints of a kind; or why it cannot be made."""
        backend = attempt(create_backend, engine.backend, vocabulary, **engine.options)
        if isinstance(backend, Failure):
            return cls(engine, failure=backend)
        warm_up(backend, kind)
        return cls(engine, backend)

    def again(self) -> Entrant[E]:
        """The same engine before another constraint."""
        return Entrant(self.engine, self.backend, None if self.backend else self.failure)


def compile_in_turns(
    entrants: Sequence[Entrant[E]], constraint: Constraint, repeats: int, seconds: float, keep: bool = False
) -> None:
    """Compile up to `repeats` times with each, until it has used `seconds`. `keep`: keep the last compiled one.

    Whether an engine takes the constraint is asked first, untimed: a peer translates the pattern then.
    """
    for one in entrants:
        if one.backend is None or one.failure is not None:
            continue
        answer = attempt(one.backend.supports, constraint)
        if isinstance(answer, Failure):
            one.failure = answer
        elif not answer:
            one.failure = Failure("unsupported", answer.reason)
    with collector_off():
        for repeat in range(repeats):
            for one in rotated(entrants, repeat):
                if one.backend is None or one.failure is not None or sum(one.compile_s) > seconds:
                    continue
                one.compiled = None  # before the next one is made: some are large
                started = time.perf_counter_ns()
                compiled = attempt(one.backend.compile, constraint)
                taken = (time.perf_counter_ns() - started) * 1e-9
                if isinstance(compiled, Failure):
                    one.failure = compiled
                    continue
                shared = sum(spent for phase, spent in compiled.phases.items() if phase in SHARED_PHASES)
                one.compile_s.append(taken)
                one.own_s.append(taken - shared)
                one.phases.append(dict(compiled.phases))
                one.sizes = dict(compiled.sizes)
                one.compiled = compiled if keep else None
                del compiled
