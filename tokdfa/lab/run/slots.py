"""Where groups are measured on one machine: worker slots, shared by the threads that ask for groups.

A run in processes asks from threads of its own (`tokdfa.lab.run.executor`), a run on a cluster from the tasks of its
Dask workers (`tokdfa.lab.run.cluster_worker`); from there on both go the same way.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from tokdfa.core.locks import new_lock
from tokdfa.lab.run.cores import take_cores, threads_of
from tokdfa.lab.run.supervisor import POLL_SECONDS, Supervisor
from tokdfa.lab.run.tasks import GroupTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured

#: How often is said what is being measured.
TELL_SECONDS = 0.5


class _Ended(Exception):
    """The run has ended, and with it what is measured for it."""


class Slots:
    """What one run needs on a machine: workers that are kept for its next groups, and whether it is still on."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self._idle: list[Supervisor] = []
        self._lock = new_lock()

    def measure(
        self, config: ExperimentConfig, group: Group, tell: Callable[[str], None], own_cores: bool
    ) -> Measured | None:
        """Measure a group; None if the run has ended before.

        Of `config`, what all groups share is used: reference, measures, repeats and limits. `own_cores`: on cores that
        nothing else of ours measures on, as soon as they are free.
        """
        told = 0.0

        def tell_at_times(doing: str) -> None:
            nonlocal told
            if self.ended.is_set():
                raise _Ended
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                tell(doing)

        try:
            with self._cores(threads_of(group) if own_cores else 0) as processors, self._supervisor(group) as chosen:
                chosen.processors = processors
                return GroupTask(config, group, chosen.run, tell_at_times).measure()
        except _Ended:
            return None

    def end(self) -> None:
        """Stop what is measured, and end the workers that are not at work."""
        with self._lock:
            self.ended.set()
            idle, self._idle = self._idle, []
        for supervisor in idle:
            supervisor.close()

    @contextlib.contextmanager
    def _supervisor(self, group: Group) -> Iterator[Supervisor]:
        """One that has loaded the group's tokenizer, if there is one; kept for the next group if all goes well."""
        with self._lock:
            self._idle.sort(key=lambda one: one.tokenizer == group.items[0].tokenizer)
            supervisor = self._idle.pop() if self._idle else Supervisor()
        try:
            yield supervisor
        except BaseException:
            supervisor.close()
            raise
        with self._lock:
            if not self.ended.is_set():
                self._idle.append(supervisor)
                return
        supervisor.close()

    @contextlib.contextmanager
    def _cores(self, count: int) -> Iterator[tuple[int, ...] | None]:
        """The processors of so many cores, as soon as they are free; of no cores None, wherever the system likes."""
        if not count:
            yield None
            return
        while (lease := take_cores(count)) is None:
            if self.ended.wait(POLL_SECONDS):
                raise _Ended
        try:
            yield lease.processors
        finally:
            lease.release()
