"""The executor that measures in worker processes of this machine, which the calling process watches itself.

One worker measures wherever the system puts it. Several have a core each (`tokdfa.lab.run.cores`), so only as many
groups are measured at a time as there are cores, whatever their number; they still share caches and the way to the
memory, so take one worker for times that are to be quoted.
"""

from __future__ import annotations

from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from tokdfa.lab.run.cores import take_cores, threads_of
from tokdfa.lab.run.station import Station
from tokdfa.lab.run.watch import POLL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.cores import Lease
    from tokdfa.lab.run.tasks import Measured


class Processes:
    """An `Executor` with `count` worker processes."""

    def __init__(self, config: ExperimentConfig, count: int) -> None:
        self._config = config
        self._idle = [Station() for _ in range(count)]
        self._busy: list[tuple[Station, Group, Lease | None]] = []
        self._several = count > 1

    def facts(self) -> dict[str, Any]:
        return {"environment": {"scheduler": "processes", "workers": len(self._idle) + len(self._busy)}}

    def begin(self, left: Sequence[Group]) -> Group | None:
        """One of the tokenizer that the next idle worker has loaded, if there is one."""
        if not self._idle:
            return None
        station = self._idle[0]
        same = (group for group in left if group.items[0].tokenizer == station.tokenizer)
        group = next(same, left[0])
        lease = take_cores(threads_of(group)) if self._several else None
        if self._several and lease is None:
            return None
        self._busy.append((self._idle.pop(0), group, lease))
        station.begin(self._config, group, lease.processors if lease else None)
        return group

    def poll(self) -> list[tuple[Group, Measured]]:
        wait([station.pipe for station, _, _ in self._busy if station.pipe], timeout=POLL_SECONDS)
        finished, busy = [], []
        for station, group, lease in self._busy:
            measured = station.step()
            if measured is None:
                busy.append((station, group, lease))
                continue
            finished.append((group, measured))
            self._idle.append(station)
            if lease is not None:
                lease.release()
        self._busy = busy
        return finished

    def activities(self) -> list[tuple[Group, str]]:
        return [(group, doing) for station, group, _ in self._busy if (doing := station.doing())]

    def close(self) -> None:
        for station in (*self._idle, *(station for station, _, _ in self._busy)):
            station.close()
        for _, _, lease in self._busy:
            if lease is not None:
                lease.release()
        self._idle, self._busy = [], []
