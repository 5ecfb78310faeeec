"""What a worker's fork measures: one group side by side, the memory of one contender, or one item of a special kind.

A job and its result are plain data. The `Workbench` holds what is made once a tokenizer and inherited by every fork:
the tokenizer and the backends, loaded and built before anything is timed.
"""

from __future__ import annotations

import collections
import gc
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.core import jit
from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.measure.cases import NOBODY, CaseQueue
from tokdfa.lab.measure.contenders import Contender, Outcome, check_support, measure_compiles, replay, replay_seen
from tokdfa.lab.measure.growing import load_subset
from tokdfa.lab.measure.limits import Failure, attempt, failure_of
from tokdfa.lab.measure.memory import measure_memory
from tokdfa.lab.measure.set_up import set_up_seconds
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import Strings, Texts, follow, plan_walks
from tokdfa.lab.run.kernel_steps import steps_of_entries, steps_of_kind
from tokdfa.mask import allocate_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tokdfa.backends.base import Backend
    from tokdfa.constraint import Constraint
    from tokdfa.lab.config.expand import Item
    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.measure.cases import Cases
    from tokdfa.lab.measure.constraint_entry import ConstraintEntry
    from tokdfa.lab.measure.growing import VocabularySubset
    from tokdfa.lab.measure.limits import Board, Limits
    from tokdfa.lab.measure.workloads import Encoder, Walk
    from tokdfa.vocabulary.tokenizers import Tokenizer


@dataclass(frozen=True)
class Job:
    """What one process measures: the backends of `items`, side by side on the constraint and workload that they share;
    given `walks`, which those have replayed, the memory of one item's backend; or the one item of a special kind.

    `config`: the experiment, of which reference, measures, repeats, limits and known are used. `cases`: of a
    special item that has some; `done` have their rows, and `failures` says how earlier processes were ended.
    """

    config: ExperimentConfig
    items: tuple[Item, ...]
    walks: tuple[Walk, ...] | None = None
    cases: Cases | None = None
    done: frozenset[int] = frozenset()
    failures: Mapping[int, Failure] = field(default_factory=dict)

    def limits(self, contender: int) -> Limits:
        """The limits that hold while a contender, or a case, is at work."""
        return self.config.limits if self.cases is None or contender == NOBODY else self.cases.limits


@dataclass(frozen=True)
class GroupResult:
    """What was found side by side. `walks`: what was replayed; `vocabulary`: its ``size`` and ``fingerprint``."""

    outcomes: tuple[Outcome, ...]
    walks: tuple[Walk, ...]
    vocabulary: dict[str, Any]


if TYPE_CHECKING:
    #: Of backends side by side; of memory, its peak and what is retained, in bytes; the rows of a special item, without
    #: those of cases; or why there is none of these.
    Result = GroupResult | tuple[int, int] | list[dict[str, Any]] | Failure
    #: Is given the rows of cases as they come, each with its case.
    Send = Callable[[tuple[int, dict[str, Any]]], None]


@dataclass
class Workbench:
    """The tokenizer and the backends of one worker. A backend that cannot be built is kept as its failure."""

    tokenizer: Tokenizer | VocabularySubset | None = None
    backends: dict[str, Backend | Failure] = field(default_factory=dict)
    #: The warm-up steps whose kernels are loaded.
    warm: set[str] = field(default_factory=set)
    #: Label -> seconds of its set-up by itself (`tokdfa.lab.measure.set_up`), None if that failed.
    set_up: dict[str, float | None] = field(default_factory=dict)

    def prepare(self, job: Job, board: Board) -> None:
        """Load and build what the job needs and is not there yet; see to it that forks inherit it warm.

        tokdfa's kernels that it needs are loaded here, as a constraint that is the first to need one would otherwise
        pay some 50 ms and 13 MB for it. Backends without foreign packages are also warmed up here. Those of peers are
        warmed up in each fork instead, as their engines may start threads, which do not survive a fork.
        """
        board.begin(-1, "prepare")
        first = job.items[0]
        if first.backend is None:
            kind = find_kind(first.kind)
            if targets()[first.kind].startswith("tokdfa."):
                self._load_kernels(steps_of_kind(kind, first.settings))
            if kind.prepare is not None:
                kind.prepare(dict(first.settings))
            return
        name = first.tokenizer
        assert name is not None
        if self.tokenizer is None or self.tokenizer.name != name:
            self.tokenizer, self.backends, self.set_up = load_subset(name), {}, {}
            self._time_set_up(job, board)
        for index, item in enumerate(job.items):
            if item.label not in self.backends and item.backend is not None:
                board.begin(index, "prepare")
                self.backends[item.label] = self._build(item.backend, index, board)
        gc.collect()
        gc.freeze()  # what is here now stays: collections in forks need not touch, and so copy, its pages

    def _time_set_up(self, job: Job, board: Board) -> None:
        """Time the set-up of each backend, before anything of the vocabulary is there."""
        items, limits = job.items, job.config.limits
        entries = {item.label: item.backend for item in items if item.backend is not None}
        own = [entry for entry in entries.values() if not entry.backend_class().packages]
        self._load_kernels(steps_of_entries(own))
        kind = items[0].constraint.build().kind if items[0].constraint else ""
        assert self.tokenizer is not None
        for index, (label, entry) in enumerate(entries.items()):
            board.begin(index, "prepare")
            self.set_up[label] = set_up_seconds(entry.name, self.tokenizer.vocabulary, entry.options, kind, limits)

    def _load_kernels(self, steps: Sequence[str]) -> None:
        missing = [step for step in steps if step not in self.warm]
        if missing:
            collections.deque(jit.warm_up(missing), maxlen=0)
            self.warm.update(missing)

    def _build(self, entry: BackendEntry, index: int, board: Board) -> Backend | Failure:
        from tokdfa.backends.registry import create_backend

        assert self.tokenizer is not None
        backend = attempt(create_backend, entry.name, self.tokenizer.vocabulary, **entry.options)
        if not isinstance(backend, Failure) and not backend.packages:
            self._load_kernels(steps_of_entries([entry]))
            board.begin(index, "warm up")
            warm_up(backend)
        return backend


def run_job(job: Job, bench: Workbench, board: Board, send: Send) -> Result:
    """Measure. To be called in a fork of the process that has prepared `bench`."""
    first = job.items[0]
    if first.backend is None:
        return _run_special(job, board, send)
    assert first.constraint is not None
    constraint = first.constraint.build()
    return (
        _run_group(job, constraint, bench, board) if job.walks is None else _run_memory(job, constraint, bench, board)
    )


def _run_group(job: Job, constraint: Constraint, bench: Workbench, board: Board) -> GroupResult:
    assert bench.tokenizer is not None
    config, measures = job.config, job.config.measures
    outcomes = [Outcome(item.label, set_up_s=bench.set_up.get(item.label)) for item in job.items]
    contenders = []
    for index, outcome in enumerate(outcomes):
        backend = bench.backends[outcome.label]
        if isinstance(backend, Failure):
            outcome.fail(backend)
        else:
            contenders.append(Contender(index, backend, outcome))
    check_support(contenders, constraint)
    for contender in contenders:
        if not contender.dropped:
            board.begin(contender.index, "warm up")
            warm_up(contender.backend, constraint.kind)
            for entry in config.known:
                attempt(_make_masks, contender.backend, entry, bench.tokenizer)
    timed = {"compile", "first_mask"} & {*measures}
    repeats = config.repeats if timed else 1
    measure_compiles(contenders, constraint, repeats, board.begin, first_mask="first_mask" in measures)
    walks: list[Walk] = []
    if {"mask", "advance", "seen", "memory"} & {*measures}:
        walks = _decide_walks(job, constraint, bench.tokenizer, contenders, board)
    kept, seconds = frozenset(measures) & {"mask", "advance"}, config.limits.seconds
    if kept:
        replay(contenders, walks, config.reference, seconds, board.begin, kept)
    if "seen" in measures:
        replay_seen(contenders, walks, config.repeats, seconds, board.begin)
    for contender in contenders:
        if contender.compiled is not None:
            contender.outcome.sizes = {**contender.compiled.sizes}
        contender.outcome.samples = [one for one in contender.outcome.samples if one.measure in measures]
    vocabulary = bench.tokenizer.vocabulary
    facts = {"size": vocabulary.size, "fingerprint": vocabulary.fingerprint}
    return GroupResult(tuple(outcomes), tuple(walks), facts)


def _make_masks(backend: Backend, entry: ConstraintEntry, tokenizer: Encoder) -> None:
    """Make all masks along the texts of a constraint. Who cannot will not know its parts."""
    compiled, mask = backend.compile(entry.build()), allocate_mask(backend.vocab.size)
    for written in entry.texts:
        for matcher in follow(compiled, tokenizer.encode(written)):
            matcher.fill_mask(mask)


class _TooSlow(Exception):
    """A contender has used up its time for deciding the walks."""


def _decide_walks(
    job: Job, constraint: Constraint, tokenizer: Encoder, contenders: list[Contender], board: Board
) -> list[Walk]:
    """The walks, decided by the reference, or else by the first contender that can, with a compiled constraint that is
    not replayed on. So the walks visit nothing in advance of the timed masks. If nobody can, everybody fails.
    """
    workload, seed, limit = job.items[0].workload, job.items[0].seed, job.config.limits.seconds
    assert workload is not None
    if isinstance(workload, Strings | Texts):
        return plan_walks(workload, constraint, tokenizer, None, seed)
    last: Failure | None = None
    for contender in sorted(contenders, key=lambda one: one.outcome.label != job.config.reference):
        if contender.dropped:
            continue
        deadline = time.monotonic() + limit

        def begin(index: int = contender.index, deadline: float = deadline) -> None:
            if time.monotonic() > deadline:
                raise _TooSlow
            board.begin(index, "plan the walks")

        try:
            begin()
            start = contender.backend.compile(constraint).start
            return plan_walks(workload, constraint, tokenizer, start, seed, begin)
        except (KeyboardInterrupt, SystemExit):
            raise
        except _TooSlow:
            last = Failure("timeout", f"the walks were not decided within {limit:g} s")
        except BaseException as error:
            last = failure_of(error)
            contender.drop(Failure(last.kind, f"while deciding the walks: {last.message}"))
    for contender in contenders:
        if not contender.dropped and last is not None:
            contender.drop(last)
    return []


def _run_memory(job: Job, constraint: Constraint, bench: Workbench, board: Board) -> Result:
    backend = bench.backends[job.items[0].label]
    if isinstance(backend, Failure):
        return backend
    board.begin(0, "warm up")
    warm_up(backend, constraint.kind)
    backend.supports(constraint)  # a peer translates the pattern here, which is not its own memory
    return measure_memory(backend, constraint, job.walks or (), lambda: board.begin(0, "memory"))


def _run_special(job: Job, board: Board, send: Send) -> list[dict[str, Any]]:
    item = job.items[0]
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
