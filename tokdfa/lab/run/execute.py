"""Running an experiment: groups go to where they are measured, finished ones into the store, nothing is measured twice.

A *place* measures groups, several at a time: the worker slots of this machine (`slots`) or a Dask cluster (`cluster`).
One loop gives groups to it, as many as it has room for, and writes what they have come to. Only this loop writes, a
whole group at a time, into the one file that belongs to the group. So whatever a place loses or does twice, when a
worker dies or is restarted, is measured again or dropped, and a run that was begun in one place can be finished in
another. Ctrl-C, or SIGTERM, ends the loop at its next look, twenty times a second: finished groups are in the store,
unfinished ones are measured from their beginning when the run is started again.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import threading
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol

from tokdfa.errors import OptionError
from tokdfa.lab.config.expand import expand_groups
from tokdfa.lab.measure.limits import OK
from tokdfa.lab.measure.machine import MachineUse
from tokdfa.lab.run import provenance
from tokdfa.lab.run.cluster import LOCAL, DaskCluster
from tokdfa.lab.run.plan import format_duration
from tokdfa.lab.run.slots import Slots
from tokdfa.lab.run.store import RunStore
from tokdfa.lab.run.worker import POLL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.group_task import Measured

#: Groups at work at a time, each with a thread of ours that waits for it, however large a cluster is.
MAX_AT_WORK = 1_000

Event = Literal["started", "group_started", "working", "group_finished", "note", "ended"]


class Place(Protocol):
    """Where groups are measured."""

    def room(self) -> int:
        """How many groups may be measured at a time now. Raises ClusterError if the cluster is lost."""

    def facts(self) -> dict[str, Any]:
        """What to record of it, as entries of the provenance."""

    def measure(self, group: Group, tell: Callable[[str], None]) -> Measured:
        """Measure a group; `tell` is told what is being done. Raises ClusterError, and RunEnded after `close`."""

    def close(self) -> None:
        """Stop what is measured, and end what was started for it. May be called again."""


@dataclass(frozen=True)
class Progress:
    """One event of a run, for a progress bar.

    `done` of `total` items are finished, those of earlier starts included; `remaining` is an estimate in seconds, None
    before the first group is finished. Events: ``started``, ``group_started``, ``working`` (`message`: contender
    and phase), ``group_finished``, ``note``, ``ended``.
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
    `begun`: items that were at work when the run was interrupted.
    """

    folder: Path
    total: int
    found: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    seconds: float = 0.0
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
    local cluster (default: one a core), or workers to wait for (default 1). Several processes have a core each, but
    share caches and the way to the memory, so take one for times that are to be quoted.

    Raises StoreError if the run folder is damaged or in use, ClusterError if a cluster cannot be used or is lost,
    MissingDependency without Dask. An interruption does not raise: the summary says so.
    """
    if workers is not None and workers < 1:
        raise OptionError(f"a run needs at least one worker, not {workers}")
    if scheduler is not None and scheduler != LOCAL and "://" not in scheduler:
        raise OptionError(f"a scheduler is {LOCAL}, or an address such as tcp://HOST:8786, not {scheduler!r}")
    store = RunStore.locate(config, folder)
    with store.lock():
        if not fresh:
            store.create(config)
        return _Execution(config, store, progress or (lambda event: None), fresh).run(scheduler, workers)


class _Execution:
    """The state of one call of `run`. `left`: groups that nobody has begun; `at_work`: the others, by their future.

    With `fresh` what was measured earlier is dropped when there is somebody to measure it again, and not before.
    """

    def __init__(
        self, config: ExperimentConfig, store: RunStore, callback: Callable[[Progress], None], fresh: bool
    ) -> None:
        self.config, self.store, self.callback, self.fresh = config, store, callback, fresh
        self.groups = expand_groups(config)
        finished: dict[str, str] = {} if fresh else store.progress()[0]
        self.left = [left for group in self.groups if (left := group.left(finished, config.reference)) is not None]
        self.at_work: dict[Future[Measured], Group] = {}
        total = sum(len(group.items) for group in self.groups)
        found = total - sum(len(group.items) for group in self.left)
        parent = store.folder.parent
        default = config.source is None or parent == config.results_folder
        elsewhere = "" if default else f" --folder {shlex.quote(str(parent))}"
        self.summary = RunSummary(store.folder, total, found, command=config.command + elsewhere)
        self.started = time.monotonic()
        self.stop = False

    def run(self, scheduler: str | None, workers: int | None) -> RunSummary:
        with contextlib.ExitStack() as closing:
            place: Place | None = None
            try:
                record = provenance.collect(self.config, self.groups)
                if self.left:
                    place = self._open_place(scheduler, workers)
                    closing.callback(place.close)
                    facts = place.facts()
                    record |= {**facts, "environment": {**record["environment"], **facts["environment"]}}
            except KeyboardInterrupt:  # nothing has begun that a record would have to tell of
                return self._end(interrupted=True)
            if self.fresh:
                self.store.create(self.config, fresh=True)
            self._remember_earlier(record)
            use = MachineUse() if self.left and scheduler is None else None
            self.store.write_provenance(record)
            self._tell("started")
            try:
                if place is not None:
                    with self._stopped_by_signals():
                        self._work(place, record)
            finally:
                interrupted = self.stop or bool(self.left or self.at_work)
                record |= {"ended": provenance.now(), "interrupted": interrupted}
                if use is not None:
                    record |= {"beside": use.facts()}
                self.store.write_provenance(record)
        return self._end(interrupted)

    def _open_place(self, scheduler: str | None, workers: int | None) -> Place:
        if scheduler is None:
            count = workers or 1
            return Slots(self.config, count, own_cores=count > 1)
        return DaskCluster(self.config, scheduler, workers, lambda message: self._tell("note", message))

    def _end(self, interrupted: bool) -> RunSummary:
        self.summary.interrupted = interrupted
        self.summary.begun = sum(len(group.items) for group in self.at_work.values())
        self.summary.seconds = time.monotonic() - self.started
        self._tell("ended")
        return self.summary

    def _remember_earlier(self, record: dict[str, Any]) -> None:
        """Move the record of the last start into this one's ``earlier``, and say what has changed since."""
        before = self.store.read_provenance()
        if before is None:
            return
        record["earlier"] = [*before.pop("earlier", []), before]
        record["tokenizers"] = before.get("tokenizers", {})
        for change in provenance.differences(before, record) if self.summary.found else ():
            self.summary.notes.append(f"since the earlier items were measured: {change}")
            self._tell("note", self.summary.notes[-1])

    def _work(self, place: Place, record: dict[str, Any]) -> None:
        said: SimpleQueue[tuple[Group, str]] = SimpleQueue()

        def measure(group: Group) -> Measured:
            return place.measure(group, lambda doing: said.put((group, doing)))

        with ThreadPoolExecutor(MAX_AT_WORK) as threads:
            try:
                while (self.left or self.at_work) and not self.stop:
                    while self.left and len(self.at_work) < min(place.room(), MAX_AT_WORK):
                        group = self.left.pop(0)
                        self.at_work[threads.submit(measure, group)] = group
                        self._tell("group_started", group.title, group)
                    if not self.at_work:
                        time.sleep(POLL_SECONDS)
                    done, _ = wait(self.at_work, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                    while not said.empty():
                        group, doing = said.get()
                        self._tell("working", doing, group)
                    for future in done:
                        self._end_group(future, record)
                    place.room()
            finally:
                place.close()

    def _end_group(self, future: Future[Measured], record: dict[str, Any]) -> None:
        group, measured = self.at_work[future], future.result()
        self.store.write_group(group, measured.tables)
        del self.at_work[future]
        if measured.vocabulary is not None:
            record["tokenizers"][group.items[0].tokenizer] = measured.vocabulary
        for row in measured.tables["items"]:
            self.summary.statuses[row["status"]] += 1
            if row["status"] != OK:
                self._tell("note", f"{group.title} / {row['label']}: {row['status']}: {row['message']}", group)
        self._tell("group_finished", group.title, group)

    def _tell(self, event: Event, message: str = "", group: Group | None = None) -> None:
        elapsed, measured = time.monotonic() - self.started, self.summary.measured
        done = self.summary.found + measured
        remaining = elapsed / measured * (self.summary.total - done) if measured else None
        self.callback(Progress(event, done, self.summary.total, elapsed, remaining, group, message))

    @contextlib.contextmanager
    def _stopped_by_signals(self) -> Iterator[None]:
        """Let the first SIGINT or SIGTERM ask for the end, and the second one raise as usual."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def restore() -> None:
            for number, handler in before.items():
                signal.signal(number, handler)

        def ask_for_the_end(number: int, frame: object) -> None:
            self.stop = True
            restore()

        for number in before:
            signal.signal(number, ask_for_the_end)
        try:
            yield
        finally:
            restore()
