"""Slots: where groups are measured on one machine, by a run itself or by a worker of its cluster."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any

from tokdfa.core.locks import new_lock
from tokdfa.lab.run.cores import take_cores, threads_of
from tokdfa.lab.run.group_task import GroupTask
from tokdfa.lab.run.turns import Turn
from tokdfa.lab.run.worker import POLL_SECONDS, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.measure.limits import Activity
    from tokdfa.lab.run.group_task import Measured
    from tokdfa.lab.run.jobs import Job
    from tokdfa.lab.run.worker import Answer

    #: Is told what is being measured; may raise RunEnded.
    Tell = Callable[[str], None]

#: How often is said what is being measured.
TELL_SECONDS = 0.5
#: So long a worker is kept that has nothing to do.
IDLE_SECONDS = 5.0


class RunEnded(Exception):
    """The run has ended, and with it what is measured for it."""


class _Workers:
    """The worker processes of a slot, two for each interpreter. Contenders take their turns in forks of one that has
    the tokenizer and no backend, so none inherits another's; the other builds the backends, for forks that do one job.
    """

    def __init__(self) -> None:
        self._of_turns: dict[str, Worker] = {"": Worker()}
        self._of_jobs: dict[str, Worker] = {"": Worker()}
        self._processors: tuple[int, ...] | None = None

    @property
    def tokenizers(self) -> set[str | None]:
        """What they have prepared."""
        return {self._of_turns[""].tokenizer, self._of_jobs[""].tokenizer}

    def pin(self, processors: tuple[int, ...] | None) -> None:
        """Where the next jobs may run; None: wherever the system puts them."""
        self._processors = processors

    def run(self, job: Job, look: Callable[[Activity], None]) -> Answer:
        """Have a job done, as `Worker.run` does, under the interpreter of the job's backend."""
        if job.item.backend is None:
            for idle in self._of_turns.values():
                idle.close()  # no contender is measured any more, or not beside this
        python = "" if job.item.backend is None else job.config.pythons.get(job.item.backend.name, "")
        workers = self._of_turns if isinstance(job.task, Turn) else self._of_jobs
        worker = workers.get(python) or workers.setdefault(python, Worker(python))
        worker.processors = self._processors
        return worker.run(job, look)

    def close(self) -> None:
        """End them all, and with them the job at work."""
        for worker in (*self._of_turns.values(), *self._of_jobs.values()):
            worker.close()


class Slots:
    """What one run has on a machine: `count` slots, and the workers that wait for its next groups.

    `own_cores`: a group is measured on cores that nothing else of ours measures on, as soon as they are free, so only
    as many groups are measured at a time as there are cores. They still share caches and the way to the memory.
    """

    def __init__(self, config: ExperimentConfig, count: int, *, own_cores: bool) -> None:
        self._config, self._count, self._own_cores = config.common, count, own_cores
        self._ended = threading.Event()
        self._idle: dict[_Workers, threading.Timer] = {}
        self._lock = new_lock()

    def room(self) -> int:
        """How many groups may be measured at a time."""
        return self._count

    def facts(self) -> dict[str, Any]:
        """What to record of this place, as entries of the provenance."""
        return {"environment": {"scheduler": "processes", "workers": self._count}}

    def measure(self, group: Group, tell: Tell) -> Measured:
        """Measure a group. Raises RunEnded if the run ends before, be it that `tell` says so."""
        told = 0.0

        def look(doing: str) -> None:
            nonlocal told
            if self._ended.is_set():
                raise RunEnded
            if time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                tell(doing)

        with self._cores(group, look) as processors, self._workers(group.items[0].tokenizer) as workers:
            workers.pin(processors)
            return GroupTask(self._config, group, workers.run, look).measure()

    def close(self) -> None:
        """Stop what is measured, and end the workers."""
        with self._lock:
            self._ended.set()
        for workers in list(self._idle):
            self._end_idle(workers)

    def _end_idle(self, workers: _Workers) -> None:
        with self._lock:
            timer = self._idle.pop(workers, None)
        if timer is not None:
            timer.cancel()
            workers.close()

    @contextlib.contextmanager
    def _workers(self, tokenizer: str | None) -> Iterator[_Workers]:
        """Such that have loaded this tokenizer, if there are any; kept for the next group if all goes well."""
        with self._lock:
            idle = sorted(self._idle, key=lambda one: tokenizer not in one.tokenizers)
            workers = idle[0] if idle else _Workers()
            if idle:
                self._idle.pop(workers).cancel()
        try:
            yield workers
        except BaseException:
            workers.close()
            raise
        timer = threading.Timer(IDLE_SECONDS, self._end_idle, [workers])
        timer.daemon = True
        with self._lock:
            self._idle[workers] = timer
            timer.start()
        if self._ended.is_set():
            self._end_idle(workers)

    @contextlib.contextmanager
    def _cores(self, group: Group, look: Tell) -> Iterator[tuple[int, ...] | None]:
        """The processors of as many cores as the group needs, once they are free; None: wherever the system likes."""
        if not self._own_cores:
            yield None
            return
        while (reservation := take_cores(threads_of(group))) is None:
            look(f"{group.title}: waiting for a free core")
            time.sleep(POLL_SECONDS)
        try:
            yield reservation.processors
        finally:
            reservation.release()
