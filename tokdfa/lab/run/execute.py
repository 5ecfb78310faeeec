"""Running an experiment: groups go to an executor, finished ones into the store, and nothing is measured twice.

One loop gives groups to the executor (`executor`), as many as it has room for, and writes what they have come to. Only
this loop writes. Ctrl-C, or SIGTERM, ends it at the next look, twenty times a second: finished groups are in the store,
unfinished ones are measured from their beginning when the run is started again, on the same executor or on another.
With several workers, groups are measured at the same time; they then compete for caches and memory, so use one worker
for times that are to be quoted.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tokdfa.core import jit
from tokdfa.errors import OptionError
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.config.plan import format_duration
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.run import provenance
from tokdfa.lab.run.cluster import LOCAL, DaskCluster
from tokdfa.lab.run.executor import Processes
from tokdfa.lab.run.kernel_steps import steps_of_experiment
from tokdfa.lab.run.store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.executor import Executor
    from tokdfa.lab.run.tasks import Measured

#: How often a callback hears what is being measured.
WORKING_SECONDS = 0.5


Event = Literal["warm_up", "started", "group_started", "working", "group_finished", "note", "ended"]


@dataclass(frozen=True)
class Progress:
    """One event of a run, for a progress bar.

    `done` of `total` items are finished, those of earlier starts included; `remaining` is an estimate in seconds, None
    before the first group is finished. Events: ``warm_up`` (kernels are compiled; `message` says which), ``started``,
    ``group_started``, ``working`` (`message`: contender and phase), ``group_finished``, ``note``, ``ended``.
    """

    event: Event
    done: int
    total: int
    elapsed: float
    remaining: float | None = None
    group: Group | None = None
    message: str = ""


@dataclass
class RunSummary:
    """What a run has done. `statuses`: how many of the items measured now ended how; `found`: items there before;
    `kernels`: steps of compiling them that are done, and all, if they had to be compiled; `begun`: items that were at
    work when the run was interrupted.
    """

    folder: Path
    total: int
    found: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    seconds: float = 0.0
    kernels: tuple[int, int] | None = None
    begun: int = 0
    notes: list[str] = field(default_factory=list)
    command: str = ""

    @property
    def measured(self) -> int:
        """How many items were measured now."""
        return self.statuses.total()

    def __str__(self) -> str:
        how = ", ".join(f"{count} {kind}" for kind, count in sorted(self.statuses.items(), key=lambda e: e[0] != OK))
        lines = [f"{self.measured} items measured in {format_duration(self.seconds)}{f' ({how})' if how else ''}"]
        if self.found:
            lines[0] += f", {self.found} were there already"
        if self.kernels:
            lines.append("{} of {} steps of compiling kernels are done and kept".format(*self.kernels))
        lines += self.notes
        if self.interrupted:
            again = f" ({self.begun} were at work and begin anew)" if self.begun else ""
            left = f"interrupted with {self.total - self.found - self.measured} items to go{again}"
            lines.append(f"{left}; what is finished is kept, go on with: {self.command}")
        return "\n".join([*lines, f"run folder: {self.folder}"])


def run(
    config: ExperimentConfig,
    folder: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    fresh: bool = False,
    workers: int | None = None,
    scheduler: str | None = None,
) -> RunSummary:
    """Measure what the run folder does not hold yet.

    `folder`: where run folders go (default: ``results`` beside the experiment file); `progress` is called with events;
    `fresh`: drop what was measured earlier. `scheduler`: None for processes of this machine, ``dask:local`` for a Dask
    cluster of this machine, or the address of a scheduler. `workers`: how many processes (default 1), workers of the
    local cluster (default: one a core), or workers to wait for (default 1).

    Raises StoreError if the run folder is damaged or in use, ClusterError if a cluster cannot be used or is lost,
    MissingDependency without Dask. An interruption does not raise: the summary says so.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"a run needs at least one worker, not {workers}")
    if scheduler is not None and scheduler != LOCAL and "://" not in scheduler:
        raise OptionError(f"a scheduler is {LOCAL}, or an address such as tcp://HOST:8786, not {scheduler!r}")
    groups = expand_groups(config)
    store = RunStore.locate(config, folder)
    with store.lock():
        if not fresh:
            store.create(config)
        execution = _Execution(config, groups, store, progress or (lambda event: None), fresh)
        return execution.run(
            lambda: open_executor(config, scheduler, workers, execution.say), scheduler in (None, LOCAL)
        )


def open_executor(
    config: ExperimentConfig, scheduler: str | None, workers: int | None, say: Callable[[str], None]
) -> Executor:
    """The executor for a run, ready to begin; `say` takes messages. Raises as `run` does."""
    if scheduler is None:
        return Processes(config, workers or 1)
    return DaskCluster(config, scheduler, workers, say)


class _Execution:
    """The state of one call of `run`. `left`: groups that nobody has begun; `begun`: items at work, by position.

    With `fresh` what was measured earlier is dropped when there is somebody to measure it again, and not before.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        groups: list[Group],
        store: RunStore,
        callback: Callable[[Progress], None],
        fresh: bool,
    ) -> None:
        self.config, self.groups, self.store, self.callback, self.fresh = config, groups, store, callback, fresh
        finished: dict[str, str] = {} if fresh else store.progress()[0]
        self.left = [left for group in groups if (left := group.left(finished, config.reference)) is not None]
        self.begun: dict[int, int] = {}
        total = sum(len(group.items) for group in groups)
        found = total - sum(len(group.items) for group in self.left)
        self.summary = RunSummary(store.folder, total, found, command=config.command)
        self.started = time.monotonic()
        self.stop = False

    def run(self, open_here: Callable[[], Executor], here: bool) -> RunSummary:
        with contextlib.ExitStack() as closing:
            try:
                record = provenance.collect(self.config, self.groups)
                executor = None
                if self.left:
                    if here:
                        self._warm_kernels()
                    executor = open_here()
                    closing.callback(executor.close)
                    _merge(record, executor.facts())
            except KeyboardInterrupt:  # nothing has begun that a record would have to tell of
                return self._end(interrupted=True)
            if self.fresh:
                self.store.create(self.config, fresh=True)
            self._remember_earlier(record)
            self.store.write_provenance(record)
            self._tell("started")
            try:
                if executor is not None:
                    with self._stopped_by_signals():
                        self._work(executor, record)
            finally:
                interrupted = self.stop or bool(self.left or self.begun)
                record |= {"ended": provenance.now(), "interrupted": interrupted}
                self.store.write_provenance(record)
        return self._end(interrupted)

    def _end(self, interrupted: bool) -> RunSummary:
        self.summary.interrupted, self.summary.begun = interrupted, sum(self.begun.values())
        self.summary.seconds = time.monotonic() - self.started
        self._tell("ended")
        return self.summary

    def say(self, message: str) -> None:
        """Let people know."""
        self._tell("note", message)

    def _remember_earlier(self, record: dict[str, object]) -> None:
        """Move the record of the last start into this one's ``earlier``, and say what has changed since."""
        before = self.store.read_provenance()
        if before is None:
            return
        record["earlier"] = [*before.pop("earlier", []), before]
        record["tokenizers"] = before.get("tokenizers", {})
        if self.summary.found:
            for change in provenance.differences(before, record):
                self._note(f"since the earlier items were measured: {change}")

    def _warm_kernels(self) -> None:
        """Compile those of tokdfa's kernels that this run will use, once a machine."""
        steps = steps_of_experiment(self.config)
        if not steps or jit.is_warm(steps):
            return
        total = len(steps)
        for title, done, total in jit.warm_up(steps):
            self.summary.kernels = (done, total)
            self._tell("warm_up", f"compiling kernels once: {title} ({done} of {total} done)")
        self.summary.kernels = (total, total)

    def _work(self, executor: Executor, record: dict[str, object]) -> None:
        last_told = 0.0
        while (self.left or self.begun) and not self.stop:
            while self.left and executor.begin(self.left[0]):
                group = self.left.pop(0)
                self.begun[group.position] = len(group.items)
                self._tell("group_started", group.title, group)
            for group, measured in executor.poll():
                del self.begun[group.position]
                self._end_group(group, measured, record)
            if time.monotonic() - last_told > WORKING_SECONDS:
                last_told = time.monotonic()
                for group, doing in executor.activities():
                    self._tell("working", doing, group)

    def _end_group(self, group: Group, measured: Measured, record: dict[str, object]) -> None:
        self.store.write_group(group, measured.tables)
        tokenizers = record["tokenizers"]
        assert isinstance(tokenizers, dict)
        if measured.vocab_size is not None:
            facts = {"size": measured.vocab_size, "fingerprint": measured.tokenizer_fingerprint}
            tokenizers[group.items[0].tokenizer] = facts
        self.summary.statuses.update(measured.statuses.values())
        for label, failure in measured.failures.items():
            self._tell("note", f"{group.title} / {label}: {failure}", group)
        self._tell("group_finished", group.title, group)

    def _note(self, message: str) -> None:
        self.summary.notes.append(message)
        self.say(message)

    def _tell(self, event: Event, message: str = "", group: Group | None = None) -> None:
        elapsed, measured = time.monotonic() - self.started, self.summary.measured
        left = self.summary.total - self.summary.found - measured
        remaining = elapsed / measured * left if measured else None
        done = self.summary.found + measured
        self.callback(Progress(event, done, self.summary.total, elapsed, remaining, group, message))

    @contextlib.contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Let the first SIGINT or SIGTERM ask for the end, and the second one raise as usual."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def ask_for_the_end(number: int, frame: object) -> None:
            self.stop = True
            for known, handler in before.items():
                signal.signal(known, handler)

        for number in before:
            signal.signal(number, ask_for_the_end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _merge(record: dict[str, Any], facts: dict[str, Any]) -> None:
    """Add an executor's facts to the provenance: to the environment, or in place of what was known of this machine."""
    record |= {**facts, "environment": {**record["environment"], **facts["environment"]}}
