"""What a worker's fork does: a turn of a contender, decide walks, measure memory, measure an item of a special kind.

A job and its result are plain data. The `Workbench` holds what is made once a tokenizer and inherited by every fork.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.backends.registry import create_backend
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.measure.cases import NOBODY, CaseQueue
from tokdfa.lab.measure.growing import load_subset
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.memory import measure_memory
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import Strings, Texts, plan_walks
from tokdfa.lab.run.turns import Seat, Taken, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.backends.base import Backend
    from tokdfa.lab.config.expand import Item
    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.measure.cases import Cases
    from tokdfa.lab.measure.growing import VocabularySubset
    from tokdfa.lab.measure.limits import Board, Limits
    from tokdfa.lab.measure.workloads import Walk
    from tokdfa.vocabulary.tokenizers import Tokenizer


@dataclass(frozen=True)
class Plan:
    """Decide the walks of the item's workload by its backend."""


@dataclass(frozen=True)
class Planned:
    """The walks that all contenders of a group go along."""

    walks: tuple[Walk, ...]


@dataclass(frozen=True)
class Memory:
    """Measure the memory of the item's backend, with all masks of `walks`."""

    walks: tuple[Walk, ...]


@dataclass(frozen=True)
class Job:
    """What one process does for an item: a `task`, or, without one, measure an item of a special kind.

    `config`: the experiment, of which measures, repeats, limits, known and way are used. `cases`: of a special item
    that has some; `done` have their rows, and `failures` says how earlier processes were ended.
    """

    config: ExperimentConfig
    item: Item
    task: Turn | Plan | Memory | None = None
    cases: Cases | None = None
    done: frozenset[int] = frozenset()
    failures: Mapping[int, Failure] = field(default_factory=dict)

    def limits(self, contender: int) -> Limits:
        """The limits that hold while the contender, or a case, is at work."""
        return self.config.limits if self.cases is None or contender == NOBODY else self.cases.limits


if TYPE_CHECKING:
    #: Of a turn; of a plan; of memory, its peak and what is retained, in bytes; the rows of a special item, without
    #: those of cases; or why there is none of these.
    Result = Taken | Planned | tuple[int, int] | list[dict[str, Any]] | Failure
    #: Is given the rows of cases as they come, each with its case.
    Send = Callable[[tuple[int, dict[str, Any]]], None]


@dataclass
class Workbench:
    """The tokenizer of a worker; the backends that it has built for its forks, those that cannot be built as their
    failures; and in the process of a contender its `seat`.
    """

    tokenizer: Tokenizer | VocabularySubset | None = None
    backends: dict[str, Backend | Failure] = field(default_factory=dict)
    seat: Seat | None = None

    def prepare(self, job: Job, board: Board) -> None:
        """Load and build what the job needs and is not there yet; see to it that forks inherit it warm.

        A contender's process builds its backend itself. For other forks it is built here, and one without foreign
        packages is warmed up, too. Those of peers are warmed up in each fork instead, as their engines may start
        threads, which do not survive a fork.
        """
        board.begin(NOBODY, "prepare")
        item = job.item
        if item.backend is None:
            kind = find_kind(item.kind)
            if kind.prepare is not None:
                kind.prepare(dict(item.settings))
            return
        name = item.tokenizer
        assert name is not None
        if self.tokenizer is None or self.tokenizer.name != name:
            self.tokenizer, self.backends = load_subset(name), {}
        if not isinstance(job.task, Turn) and item.label not in self.backends:
            board.begin(0, "prepare")
            self.backends[item.label] = self._build(item.backend, board)
        gc.collect()
        gc.freeze()  # what is here now stays: collections in forks need not touch, and so copy, its pages

    def _build(self, entry: BackendEntry, board: Board) -> Backend | Failure:
        assert self.tokenizer is not None
        backend = attempt(create_backend, entry.name, self.tokenizer.vocabulary, **entry.options)
        if not isinstance(backend, Failure) and not backend.packages:
            board.begin(0, "warm up")
            warm_up(backend)
        return backend


def run_job(job: Job, bench: Workbench, board: Board, send: Send) -> Result:
    """Do a job. To be called in a fork of the process that has prepared `bench`."""
    if job.task is None:
        return _run_special(job, board, send)
    assert bench.tokenizer is not None
    if isinstance(job.task, Turn):
        bench.seat = bench.seat or Seat(bench.tokenizer, board)
        return bench.seat.take(job.task, job.item, job.config)
    backend = bench.backends[job.item.label]
    if isinstance(job.task, Plan):
        return _decide_walks(job, backend, bench.tokenizer, board)
    return backend if isinstance(backend, Failure) else _measure_memory(job, job.task.walks, backend, board)


class _TooSlow(Exception):
    """A contender has used up its time for deciding the walks."""


def _decide_walks(
    job: Job, backend: Backend | Failure, tokenizer: Tokenizer | VocabularySubset, board: Board
) -> Planned | Failure:
    """The walks, decided in a process that measures nothing: so they visit nothing in advance of the timed masks."""
    assert job.item.constraint is not None
    assert job.item.workload is not None
    constraint, workload, seed = job.item.constraint.build(), job.item.workload, job.item.seed
    if isinstance(workload, Strings | Texts):
        return Planned(tuple(plan_walks(workload, constraint, tokenizer, None, seed)))
    if isinstance(backend, Failure):
        return backend
    seconds = job.config.limits.seconds
    deadline = time.monotonic() + seconds

    def begin() -> None:
        if time.monotonic() > deadline:
            raise _TooSlow
        board.begin(0, "plan the walks")

    begin()
    try:
        start = backend.compile(constraint).start
        return Planned(tuple(plan_walks(workload, constraint, tokenizer, start, seed, begin)))
    except _TooSlow:
        return Failure("timeout", f"the walks were not decided within {seconds:g} s")


def _measure_memory(job: Job, walks: tuple[Walk, ...], backend: Backend, board: Board) -> tuple[int, int]:
    assert job.item.constraint is not None
    constraint = job.item.constraint.build()
    board.begin(0, "warm up")
    warm_up(backend, constraint.kind)
    backend.supports(constraint)  # a peer translates the pattern here, which is not its own memory
    return measure_memory(backend, constraint, walks, lambda: board.begin(0, "memory"))


def _run_special(job: Job, board: Board, send: Send) -> list[dict[str, Any]]:
    item = job.item
    kind, settings = find_kind(item.kind), dict(item.settings)
    if job.cases is None:
        assert kind.measure is not None
        board.begin(NOBODY, "run")
        return list(kind.measure(settings, item.seed))
    assert kind.measure_cases is not None
    left = tuple(case for case in range(job.cases.count) if case not in job.done)
    board.begin(NOBODY, "prepare")
    for row in kind.measure_cases(settings, item.seed, CaseQueue(job.cases, left, board, job.failures)):
        gc.collect()
        send(row)
    return []
