"""What a worker's fork measures: one group side by side, the memory of one contender, or one item of a special kind.

A job holds the items to be measured and the experiment that they are of; its result is plain data. The `Workbench`
holds what is made once a tokenizer and inherited by every fork: the tokenizer and the backends, loaded and built
before anything is timed.
"""

from __future__ import annotations

import collections
import gc
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokdfa.core import jit
from tokdfa.lab.kinds import load_kind
from tokdfa.lab.measure.batch import measure_batches
from tokdfa.lab.measure.cases import NOBODY, CaseQueue
from tokdfa.lab.measure.growing import load_part
from tokdfa.lab.measure.limits import GOT_THROUGH, Failure, attempt, failure_of
from tokdfa.lab.measure.measure import Contender, Outcome, check_support, measure_compiles, replay, replay_seen
from tokdfa.lab.measure.memory import measure_memory
from tokdfa.lab.measure.warm_up import warm_up
from tokdfa.lab.measure.workloads import Strings, Texts, plan_walks
from tokdfa.lab.run.kernel_steps import steps_of_entries, steps_of_kind
from tokdfa.mask import allocate_mask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tokdfa.backends.base import Backend
    from tokdfa.constraint import Constraint
    from tokdfa.lab.config.expand import Item
    from tokdfa.lab.config.experiment import BackendEntry, ExperimentConfig
    from tokdfa.lab.declare.kind import Kind
    from tokdfa.lab.measure.cases import Cases
    from tokdfa.lab.measure.constraint_entry import ConstraintEntry
    from tokdfa.lab.measure.growing import VocabularyPart
    from tokdfa.lab.measure.limits import Board, Limits
    from tokdfa.lab.measure.workloads import Encoder, Walk
    from tokdfa.vocabulary.tokenizers import Tokenizer


@dataclass(frozen=True)
class Job:
    """Measure the backends of `items` side by side on the one constraint and workload that they share.

    `config`: the experiment, of which reference, measures, repeats, limits, batch and known are used.
    """

    config: ExperimentConfig
    items: tuple[Item, ...]


@dataclass(frozen=True)
class MemoryJob(Job):
    """Measure the memory of the one item's backend, with the `walks` that its group has replayed."""

    walks: tuple[Walk, ...] = ()


@dataclass(frozen=True)
class SpecialJob(Job):
    """Measure the one item, of a special kind: ``target`` is the place of that, "module:KIND".

    `cases`: of an item that has some; `done` have their rows, and `failures` says how earlier processes were ended.
    """

    target: str = ""
    cases: Cases | None = None
    done: frozenset[int] = frozenset()
    failures: Mapping[int, Failure] = field(default_factory=dict)


@dataclass(frozen=True)
class GroupResult:
    """What a `Job` found. `walks`: what was replayed."""

    outcomes: tuple[Outcome, ...]
    walks: tuple[Walk, ...]
    vocab_size: int
    tokenizer_fingerprint: str


@dataclass(frozen=True)
class MemoryResult:
    """Bytes; or why there are none."""

    peak: int | None = None
    retained: int | None = None
    failure: Failure | None = None


@dataclass(frozen=True)
class SpecialResult:
    """The rows of a special item, those of cases apart; or why there are none."""

    rows: tuple[dict[str, Any], ...] = ()
    failure: Failure | None = None


Result = GroupResult | MemoryResult | SpecialResult


@dataclass
class Workbench:
    """The tokenizer and the backends of one worker. A backend that cannot be built is kept as its failure."""

    tokenizer: Tokenizer | VocabularyPart | None = None
    backends: dict[str, Backend | Failure] = field(default_factory=dict)
    #: The warm-up steps whose kernels are loaded.
    warm: set[str] = field(default_factory=set)

    def prepare(self, job: Job, board: Board) -> None:
        """Load and build what the job needs and is not there yet; see to it that forks inherit it warm.

        tokdfa's kernels that it needs are loaded here, as a constraint that is the first to need one would otherwise
        pay some 50 ms and 13 MB for it. Backends without foreign packages are also warmed up here. Those of peers are
        warmed up in each fork instead, as their engines may start threads, which do not survive a fork.
        """
        board.begin(-1, "prepare")
        if isinstance(job, SpecialJob):
            kind = load_kind(job.target)
            if job.target.startswith("tokdfa."):
                self._load_kernels(steps_of_kind(kind, job.items[0].settings))
            if kind.prepare is not None:
                kind.prepare(dict(job.items[0].settings))
            return
        name = job.items[0].tokenizer
        assert name is not None
        if self.tokenizer is None or self.tokenizer.name != name:
            self.tokenizer, self.backends = load_part(name), {}
        for index, item in enumerate(job.items):
            if item.label not in self.backends and item.backend is not None:
                board.begin(index, "prepare")
                self.backends[item.label] = self._build(item.backend, index, board)
        gc.collect()
        gc.freeze()  # what is here now stays: collections in forks need not touch, and so copy, its pages

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


def limits_of(job: Job, contender: int) -> Limits:
    """The limits that hold while a contender, or a case, is at work."""
    if isinstance(job, SpecialJob) and job.cases is not None and contender != NOBODY:
        return job.cases.limits
    return job.config.limits


def run_job(job: Job, bench: Workbench, board: Board, send: Callable[[tuple[int, dict[str, Any]]], None]) -> Result:
    """Measure. To be called in a fork of the process that has prepared `bench`; `send` is given the rows of cases."""
    if isinstance(job, SpecialJob):
        return _run_special(job, board, send)
    entry = job.items[0].constraint
    assert entry is not None
    if isinstance(job, MemoryJob):
        return _run_memory(job, entry.build(), bench, board)
    return _run_group(job, entry.build(), bench, board)


def _run_group(job: Job, constraint: Constraint, bench: Workbench, board: Board) -> GroupResult:
    assert bench.tokenizer is not None
    config, measures = job.config, job.config.measures
    outcomes = [Outcome(item.label) for item in job.items]
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
    if {"mask", "advance", "seen", "batch", "memory"} & {*measures}:
        walks = _decide_walks(job, constraint, bench.tokenizer, contenders, board)
    kept, seconds = frozenset(measures) & {"mask", "advance"}, config.limits.seconds
    if kept:
        replay(contenders, walks, config.reference, seconds, board.begin, kept)
    if "seen" in measures:
        replay_seen(contenders, walks, config.repeats, seconds, board.begin)
    if config.batch is not None:
        measure_batches(contenders, constraint, walks, config.batch, config.repeats, seconds, board.begin)
    for contender in contenders:
        if contender.compiled is not None:
            contender.outcome.sizes = {**contender.compiled.sizes}
        contender.outcome.samples = [
            one for one in contender.outcome.samples if one.measure in measures or one.measure.startswith("batch_")
        ]
    vocabulary = bench.tokenizer.vocabulary
    return GroupResult(tuple(outcomes), tuple(walks), vocabulary.size, vocabulary.fingerprint)


def _make_masks(backend: Backend, entry: ConstraintEntry, tokenizer: Encoder) -> None:
    """Make all masks along the texts of a constraint. Who cannot will not know its parts."""
    compiled, mask = backend.compile(entry.build()), allocate_mask(backend.vocab.size)
    for written in entry.texts:
        matcher = compiled.start()
        for token in tokenizer.encode(written):
            matcher.fill_mask(mask)
            matcher.advance(token)


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


def _run_memory(job: MemoryJob, constraint: Constraint, bench: Workbench, board: Board) -> MemoryResult:
    backend = bench.backends[job.items[0].label]
    if isinstance(backend, Failure):
        return MemoryResult(failure=backend)
    board.begin(0, "warm up")
    warm_up(backend, constraint.kind)
    backend.supports(constraint)  # a peer translates the pattern here, which is not its own memory
    found = attempt(measure_memory, backend, constraint, job.walks, lambda: board.begin(0, "memory"))
    return MemoryResult(failure=found) if isinstance(found, Failure) else MemoryResult(*found)


def _run_special(job: SpecialJob, board: Board, send: Callable[[tuple[int, dict[str, Any]]], None]) -> SpecialResult:
    kind, settings, seed = load_kind(job.target), dict(job.items[0].settings), job.items[0].seed
    if job.cases is None:
        assert kind.measure is not None
        board.begin(NOBODY, "run")
        found = attempt(kind.measure, settings, seed)
        return SpecialResult(failure=found) if isinstance(found, Failure) else SpecialResult(tuple(found))
    left = tuple(case for case in range(job.cases.count) if case not in job.done)
    board.begin(NOBODY, "prepare")
    queue = CaseQueue(job.cases, left, board, job.failures)
    return SpecialResult(failure=attempt(_run_cases, kind, settings, seed, queue, send))


def _run_cases(
    kind: Kind,
    settings: dict[str, Any],
    seed: int,
    queue: CaseQueue,
    send: Callable[[tuple[int, dict[str, Any]]], None],
) -> None:
    """Send the rows of cases as they come."""
    assert kind.measure_cases is not None
    for row in kind.measure_cases(settings, seed, queue):
        gc.collect()
        send(row)


def failed(outcome: Outcome) -> bool:
    """Whether an outcome is too incomplete for its memory to be measured."""
    return outcome.status not in GOT_THROUGH
