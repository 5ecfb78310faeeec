"""Running an experiment: groups go to worker processes, finished ones into the store, and nothing is measured twice.

One loop carries jobs to workers and answers to tasks (`tasks`), and looks twenty times a second at what the workers do
(`watch`). Ctrl-C, or SIGTERM, ends it at the next look: finished groups are in the store, unfinished ones are measured
from their beginning when the run is started again. With several `processes`, groups are measured at the same time; they
then compete for caches and memory, so use one process for times that are to be quoted.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Literal

from tokdfa import jit
from tokdfa.bench.limits import OK
from tokdfa.errors import OptionError
from tokdfa.runs import provenance
from tokdfa.runs.expand import expand_groups, format_seconds
from tokdfa.runs.jobs import uses_kernels
from tokdfa.runs.store import RunStore
from tokdfa.runs.tasks import GroupTask
from tokdfa.runs.watch import POLL_SECONDS, Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tokdfa.runs.config import ExperimentConfig
    from tokdfa.runs.expand import Group, Item

#: How often a callback hears what is being measured.
WORKING_SECONDS = 0.5


@dataclass(frozen=True)
class Progress:
    """One event of a run, for a progress bar.

    `done` of `total` items are finished, those of earlier starts included; `remaining` is an estimate in seconds, None
    before the first group is finished. Events: ``warm_up`` (kernels are compiled; `message` says which), ``started``,
    ``group_started``, ``working`` (`message`: contender and phase), ``item_finished`` (`status`), ``group_finished``,
    ``note`` (`message`), ``ended``.
    """

    event: Literal["warm_up", "started", "group_started", "working", "item_finished", "group_finished", "note", "ended"]
    done: int
    total: int
    elapsed: float
    remaining: float | None = None
    group: Group | None = None
    item: Item | None = None
    status: str = ""
    message: str = ""


@dataclass
class RunSummary:
    """What a run has done. `statuses`: how many of the items measured now ended how; `found`: items there before."""

    folder: Path
    total: int
    found: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    command: str = ""

    @property
    def measured(self) -> int:
        """How many items were measured now."""
        return self.statuses.total()

    @property
    def failures(self) -> dict[str, int]:
        """Kind of failure -> how many of the items measured now."""
        return {kind: count for kind, count in self.statuses.items() if kind != OK}

    def __str__(self) -> str:
        how = ", ".join(f"{count} {kind}" for kind, count in sorted(self.statuses.items(), key=lambda e: e[0] != OK))
        lines = [f"{self.measured} items measured in {format_seconds(self.seconds)}{f' ({how})' if how else ''}"]
        if self.found:
            lines[0] += f", {self.found} were there already"
        lines += self.notes
        left = self.total - self.found - self.measured
        if self.interrupted:
            lines.append(f"interrupted with {left} items to go; what is finished is kept, go on with: {self.command}")
        return "\n".join([*lines, f"run folder: {self.folder}"])


def run(
    config: ExperimentConfig,
    folder: str | Path | None = None,
    progress: Callable[[Progress], None] | None = None,
    fresh: bool = False,
    processes: int = 1,
) -> RunSummary:
    """Measure what the run folder does not hold yet.

    `folder`: where run folders go (default: ``results`` beside the experiment file); `progress` is called with events;
    `fresh`: drop what was measured earlier; `processes`: groups measured at the same time. Raises StoreError if the run
    folder is damaged or in use. An interruption does not raise: the summary says so.
    """
    if processes < 1:
        raise OptionError(f"a run needs at least one process, not {processes}")
    groups = expand_groups(config)
    store = RunStore.locate(config, folder)
    with store.lock():
        store.create(config, fresh)
        return _Execution(config, groups, store, progress or (lambda event: None), processes).run()


class _Execution:
    """The state of one call of `run`."""

    def __init__(
        self,
        config: ExperimentConfig,
        groups: list[Group],
        store: RunStore,
        callback: Callable[[Progress], None],
        processes: int,
    ) -> None:
        self.config, self.groups, self.store, self.callback = config, groups, store, callback
        self.processes = processes
        finished, _ = store.progress()
        self.left = deque(g for g in groups if any(item.item_id not in finished for item in g.items))
        total = sum(len(group.items) for group in groups)
        found = total - sum(len(group.items) for group in self.left)
        self.summary = RunSummary(store.folder, total, found, command=config.command)
        self.started = time.monotonic()
        self.stop = False

    def run(self) -> RunSummary:
        record = provenance.collect(self.config, self.groups, self.processes)
        self._remember_earlier(record)
        self.store.write_provenance(record)
        self._warm_kernels()
        self._tell("started")
        try:
            with self._stopped_by_signals():
                self._work(record)
        finally:
            self.summary.interrupted = self.stop or bool(self.left)
            self.summary.seconds = time.monotonic() - self.started
            record |= {"ended": provenance.now(), "interrupted": self.summary.interrupted}
            self.store.write_provenance(record)
        self._tell("ended")
        return self.summary

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
        """Compile tokdfa's kernels, once a machine, if this run will use them."""
        classes = [entry.backend_class() for entry in self.config.backends]
        needed = not classes or any(map(uses_kernels, classes))
        if not (needed and self.left) or jit.is_warm():
            return
        for title, done, total in jit.warm_up():
            self._tell("warm_up", message=f"compiling kernels once: {title} ({done} of {total} done)")

    def _work(self, record: dict[str, object]) -> None:
        watches = [Watch() for _ in range(min(self.processes, len(self.left)))]
        tasks: dict[Watch, GroupTask] = {}
        last_told = 0.0
        try:
            while (self.left or tasks) and not self.stop:
                for watch in watches:
                    if watch not in tasks and self.left:
                        tasks[watch] = self._begin_group(watch)
                wait([watch.pipe for watch in tasks if watch.pipe], timeout=POLL_SECONDS)
                for watch, task in list(tasks.items()):
                    answer = watch.poll()
                    if answer is not None:
                        task.take(answer)
                        if not self._go_on(watch, task):
                            del tasks[watch]
                            self._end_group(task, record)
                if time.monotonic() - last_told > WORKING_SECONDS:
                    last_told = time.monotonic()
                    self._tell_activities(tasks)
        finally:
            for task in tasks.values():
                self.left.appendleft(task.group)
            for watch in watches:
                watch.close()

    def _begin_group(self, watch: Watch) -> GroupTask:
        """Hand the next group to a worker, one of the worker's tokenizer if there is one."""
        same = (group for group in self.left if group.items[0].tokenizer == watch.tokenizer)
        group = next(same, self.left[0])
        self.left.remove(group)
        task = GroupTask(self.config, group)
        self._tell("group_started", group=group, message=group.title)
        self._go_on(watch, task)
        return task

    @staticmethod
    def _go_on(watch: Watch, task: GroupTask) -> bool:
        """Start the task's next job; False if there is none."""
        job = task.next_job()
        if job is not None:
            watch.submit(job)
        return job is not None

    def _end_group(self, task: GroupTask, record: dict[str, object]) -> None:
        self.store.write_group(task.group, task.tables())
        tokenizers = record["tokenizers"]
        assert isinstance(tokenizers, dict)
        if task.vocab_size is not None:
            facts = {"size": task.vocab_size, "fingerprint": task.tokenizer_fingerprint}
            tokenizers[task.group.items[0].tokenizer] = facts
        statuses = task.statuses()
        self.summary.statuses.update(statuses.values())
        for item in task.group.items:
            self._tell("item_finished", group=task.group, item=item, status=statuses[item.item_id])
        for label, failure in task.failures().items():
            self._tell("note", group=task.group, message=f"{task.group.title} / {label}: {failure}")
        self._tell("group_finished", group=task.group, message=task.group.title)

    def _tell_activities(self, tasks: dict[Watch, GroupTask]) -> None:
        for watch, task in tasks.items():
            activity = watch.activity()
            if activity is not None:
                doing = " ".join(filter(None, (task.contender(activity.contender), activity.phase)))
                self._tell("working", group=task.group, message=f"{task.group.title}: {doing}")

    def _note(self, message: str) -> None:
        self.summary.notes.append(message)
        self._tell("note", message=message)

    def _tell(
        self,
        event: Literal[
            "warm_up", "started", "group_started", "working", "item_finished", "group_finished", "note", "ended"
        ],
        group: Group | None = None,
        item: Item | None = None,
        status: str = "",
        message: str = "",
    ) -> None:
        elapsed, measured = time.monotonic() - self.started, self.summary.measured
        left = self.summary.total - self.summary.found - measured
        remaining = elapsed / measured * left if measured else None
        done = self.summary.found + measured
        self.callback(Progress(event, done, self.summary.total, elapsed, remaining, group, item, status, message))

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
