"""A station: one watched worker process and the group that it is measuring, job after job.

`Station.step` is called some twenty times a second, and at once when `Station.pipe` becomes readable. A station is all
that measuring a group takes, in the process that was asked for a run and in a worker of a cluster alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.lab.run.tasks import GroupTask
from tokdfa.lab.run.watch import Watch

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured


class Station:
    """A worker process, started when needed and kept from group to group, so that a tokenizer is loaded once."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._task: GroupTask | None = None

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer that the worker has prepared."""
        return self._watch.tokenizer

    @property
    def pipe(self) -> Connection | None:
        """Becomes readable when there is something to do in `step`."""
        return self._watch.pipe

    def begin(self, config: ExperimentConfig, group: Group, processors: tuple[int, ...] | None = None) -> None:
        """Start to measure a group, on these processors only if they are given. Its time begins now.

        Of `config`, what all groups share is used: reference, measures, repeats and limits.
        """
        self._task = GroupTask(config, group)
        self._watch.processors = processors
        self._next_job()

    def step(self) -> Measured | None:
        """See to the job at work; what the group has come to, once it is finished."""
        task = self._task
        if task is None:
            return None
        answer = self._watch.poll()
        if answer is None:
            return None
        task.take(answer)
        if self._next_job():
            return None
        self._task = None
        return task.measured()

    def doing(self) -> str:
        """What is being measured at the moment, for people; "" for nothing."""
        activity = self._watch.activity()
        if activity is None or self._task is None:
            return ""
        what = " ".join(filter(None, (self._task.contender(activity.contender), activity.phase)))
        return f"{self._task.group.title}: {what}"

    def close(self) -> None:
        """End the worker, and with it the group at work, of which nothing stays."""
        self._watch.close()
        self._task = None

    def _next_job(self) -> bool:
        """Start the task's next job; False if there is none."""
        assert self._task is not None
        job = self._task.next_job()
        if job is not None:
            self._watch.submit(job)
        return job is not None
