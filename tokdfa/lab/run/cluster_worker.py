"""What a worker of a Dask cluster does for a run: it checks that it fits, then measures groups in slots of its own.

Nothing is measured in the Dask worker itself. It watches a process that measures, as a run without a cluster does, so
an item that hangs, swallows the memory or dies costs that item only, and the worker goes on.

A run is on as long as its client holds the run's *token*, a semaphore of one lease on the scheduler, which the client
gives back at the end of the run or at Ctrl-C, and which runs out when the client dies. Each worker looks once a second;
when the token is gone, it stops what it measures for the run and ends the processes that it has kept for it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.core import jit
from tokdfa.errors import ClusterError, TokdfaError
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.measure.machine import machine_facts
from tokdfa.lab.run import provenance
from tokdfa.lab.run.slots import Slots
from tokdfa.lab.run.worker import adopt_backends

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured

#: Events of this topic say what is being measured: {"run": ..., "group": its position, "doing": ...}.
TOPIC = "tokdfa"
#: How often a worker looks whether the run is still on.
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Order:
    """What workers have to know of a run, beside its groups.

    `run`: its name, and that of its token; `config`: the experiment without its constraints and settings; `backends`:
    the table of backends; `code`: what the fingerprint of the worker's code must be; `names`: packages of which it must
    have the `versions`, and the Python called so there (`versions_of`); `paths`: files and folders that must be there;
    `sections`: (kind, settings) of those special kinds that check their settings against the disk; `kernels`: the
    warm-up steps of tokdfa's kernels that will be used.
    """

    run: str
    config: ExperimentConfig
    backends: dict[str, str]
    code: str
    names: tuple[str, ...]
    versions: dict[str, str]
    paths: tuple[str, ...]
    sections: tuple[tuple[str, dict[str, Any]], ...]
    kernels: tuple[str, ...]


def describe_worker(names: tuple[str, ...]) -> dict[str, Any]:
    """What a worker is, as entries of the provenance; ``packages`` are those of `names` that it has. About 0.1 s."""
    packages = provenance.package_versions(names)
    return {"packages": packages, "python": provenance.python_facts(), "machine": machine_facts()}


def versions_of(described: dict[str, Any]) -> dict[str, str]:
    """The versions of a worker's packages and of its Python."""
    return {"Python": described["python"]["version"], **described["packages"]}


@cache
def _code() -> str:
    return provenance.code_fingerprint(Path(tokdfa.__file__).parent)


def faults(order: Order) -> list[str]:
    """Why this worker cannot measure for a run, in words; nothing if it can.

    Cost: that of `complete_settings` of the special kinds, which may read a folder of data.
    """
    found = []
    if _code() != order.code:
        found.append("its tokdfa is not the client's; install the same, and start the worker anew")
    versions = versions_of(describe_worker(order.names))
    for name in sorted({*order.versions, *versions}):
        ours, theirs = versions.get(name), order.versions.get(name)
        if ours != theirs:
            found.append(f"it has {name} {ours or 'not at all'}, where another worker has {theirs or 'none'}")
    missing = [path for path in order.paths if not Path(path).exists()]
    found += [f"{path} is not there; give every worker the same data at the same path" for path in missing]
    for kind, settings in () if missing else order.sections:
        complete = find_kind(kind).complete
        try:
            if complete is not None:
                complete(settings)
        except TokdfaError as error:
            found.append(str(error))
    return found


def measure_group(order: Order, group: Group) -> Measured | None:
    """Measure a group, on a core of its own; None if the run has ended before.

    To be called as a task of a Dask worker. Raises ClusterError if the worker does not fit the run.
    """
    from distributed import get_worker

    worker = get_worker()
    slots = _take_part(order, worker)

    def tell(doing: str) -> None:
        worker.log_event(TOPIC, {"run": order.run, "group": group.position, "doing": doing})

    if order.kernels and not jit.is_warm(order.kernels):
        tell(f"{group.title}: compiling kernels, once a machine")
        for _ in jit.warm_up(order.kernels):  # the workers of a machine share them out (`tokdfa.core.first_use`)
            if slots.ended.is_set():
                return None
    return slots.measure(order.config, group, tell, own_cores=True)


#: The runs that this worker takes part in.
_runs: dict[str, Slots] = {}
_runs_lock = threading.Lock()


def _take_part(order: Order, worker: Any) -> Slots:
    """This worker's part in a run. The first time, checks that it fits, and begins to look after the run's token."""
    from distributed import Semaphore

    with _runs_lock:
        if order.run not in _runs:
            found = faults(order)
            if found:
                raise ClusterError(f"worker {worker.address} does not fit this run: {'; '.join(found)}")
            adopt_backends(order.backends)
            token: Any = Semaphore(name=order.run, scheduler_rpc=worker.scheduler, loop=worker.loop)
            _runs[order.run] = Slots()
            threading.Thread(target=_look_after, args=(order.run, token.get_value), daemon=True).start()
        return _runs[order.run]


def _look_after(name: str, holders: Callable[[], int]) -> None:
    """End the run called `name` when nobody holds its token any more, or the scheduler is gone."""
    with contextlib.suppress(Exception):  # no answer: the Dask worker itself says so, and why
        while holders():
            time.sleep(LOOK_SECONDS)
    with _runs_lock:
        slots = _runs.pop(name)
    slots.end()
