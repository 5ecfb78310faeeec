"""Where groups are measured: in worker processes of this machine, or by the workers of a Dask cluster.

An `Executor` is given groups and gives back what they have come to. It stores nothing: the process that was asked for
the run writes every row, a whole group at a time, into the one place that belongs to that group. So whatever an
executor loses or does twice, when a worker dies or is restarted, is measured again or dropped, and no row is lost or
doubled; and a run that one executor has begun can be finished by the other.

- `Processes` (the default): a thread of this process for each group at work.
- `DaskCluster`: a task of a cluster's worker for each (`tokdfa.lab.run.cluster`).

Either measures through `tokdfa.lab.run.slots`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.lab.run.slots import Slots
from tokdfa.lab.run.supervisor import POLL_SECONDS

if TYPE_CHECKING:
    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured


class Executor(ABC):
    """Measures groups, several at a time. To be closed after use, whatever has happened.

    `room`: how many at a time. `_groups`: what is at work, by its future; `_doing`: what is being measured, by the
    position of its group.
    """

    room: int = 0

    def __init__(self) -> None:
        self._groups: dict[Any, Group] = {}
        self._doing: dict[int, str] = {}

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What to record of the place where it measures, as entries of the provenance."""

    @abstractmethod
    def _submit(self, group: Group) -> Any:
        """A future of what the group will have come to."""

    @abstractmethod
    def _wait(self) -> None:
        """Wait a moment, unless a group is finished. Raises ClusterError."""

    def _fetch(self, future: Any) -> Measured | None:
        """What a finished group has come to; None if it is measured again."""
        measured: Measured | None = future.result()
        return measured

    @abstractmethod
    def close(self) -> None:
        """End everything; groups that are not finished are dropped."""

    def begin(self, group: Group) -> bool:
        """Begin to measure a group; False if there is no room now."""
        if len(self._groups) >= self.room:
            return False
        self._groups[self._submit(group)] = group
        return True

    def poll(self) -> list[tuple[Group, Measured]]:
        """The groups that are finished, each given once; waits a moment if there are none. Raises ClusterError."""
        self._wait()
        finished = []
        for future in [future for future in self._groups if future.done()]:
            measured = self._fetch(future)
            if measured is not None:
                group = self._groups.pop(future)
                self._doing.pop(group.position, None)
                finished.append((group, measured))
        return finished

    def activities(self) -> list[tuple[Group, str]]:
        """The groups at work, each with what is being measured."""
        at_work = [(group, self._doing.get(group.position)) for group in self._groups.values()]
        return [(group, doing) for group, doing in at_work if doing]


class Processes(Executor):
    """Measures in `count` worker processes of this machine.

    One worker measures wherever the system puts it. Several have a core each (`tokdfa.lab.run.cores`), so only as many
    groups are measured at a time as there are cores; they still share caches and the way to the memory, so take one
    worker for times that are to be quoted.
    """

    def __init__(self, config: ExperimentConfig, count: int) -> None:
        super().__init__()
        self._config, self.room = config, count
        self._slots = Slots()
        self._threads = ThreadPoolExecutor(count)

    def facts(self) -> dict[str, Any]:
        return {"environment": {"scheduler": "processes", "workers": self.room}}

    def _submit(self, group: Group) -> Any:
        tell = partial(self._doing.__setitem__, group.position)
        return self._threads.submit(self._slots.measure, self._config, group, tell, own_cores=self.room > 1)

    def _wait(self) -> None:
        wait(self._groups, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)

    def close(self) -> None:
        self._slots.end()
        self._threads.shutdown()
        self._groups.clear()
