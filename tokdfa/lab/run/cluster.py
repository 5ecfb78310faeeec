"""Measuring on a Dask cluster: `DaskCluster` is the client, `measure_group` what a worker of the cluster does.

Words. The *scheduler* knows the *workers*; a worker announces as many units of the resource ``core`` as groups it may
measure at a time, and has as many threads. A group takes one unit; beneath, it takes cores of the worker's machine that
nothing else of ours measures on (`tokdfa.lab.run.cores`). As many groups are on their way as there is room for, so that
whoever is free gets the next one, workers that join later included.

Nothing is measured in the Dask worker itself. It watches a process that measures, as a run without a cluster does, so
an item that hangs, swallows the memory or dies costs that item only, and the worker goes on. When the run ends or its
client dies, the scheduler drops the run's tasks; a worker sees that twice a second, and stops what it measures.

When a worker dies, Dask hands its groups to others, from their beginning. A group whose workers have died several times
(Dask's ``distributed.scheduler.allowed-failures``, 3 by default, and once more) becomes rows that say so, as one does
without a cluster whose process is killed again and again.

Workers must be what the client takes them for: each looks at itself before its first group of a run, and one that does
not fit ends it (`faults` says what is compared).
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
import time
import uuid
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.backends import registry
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import ClusterError, TokdfaError
from tokdfa.lab import kinds
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.machine import machine_facts
from tokdfa.lab.run import provenance
from tokdfa.lab.run.cores import usable_processors
from tokdfa.lab.run.group_task import GroupTask
from tokdfa.lab.run.slots import RunEnded, Slots
from tokdfa.lab.run.worker import Answer, adopt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.group_task import Measured

#: The scheduler that is a cluster on this machine, started for the run and ended with it.
LOCAL = "dask:local"
#: The resource of workers that a group takes one unit of.
CORE = "core"
#: How long to wait for the scheduler, and for the workers.
CONNECT_SECONDS, JOIN_SECONDS = 10.0, 120.0
#: How often the list of workers, and the end of the run, is looked at.
LOOK_SECONDS, END_SECONDS = 1.0, 0.2
#: A worker on this machine leaves Ctrl-C to the client, which ends it.
_IGNORE_INTERRUPT = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: A local cluster gives up a worker that is not back by then; starting anew may take longer than Dask's 15 s.
_PATIENT = {"distributed.deploy.lost-worker-timeout": "10 minutes"}
#: Events of this topic say what is being measured: {"run": ..., "group": its position, "doing": ...}.
TOPIC = "tokdfa"
#: The name of tokdfa's own code among the versions.
CODE = "code of tokdfa"


@dataclass(frozen=True)
class Order:
    """What workers have to know of a run, beside its groups.

    `run`: its name; `config`: what the groups share; `backends`, `kinds`: the client's tables; `versions`: of packages,
    Python and tokdfa's code, "none" for what nobody must have; `paths`: files and folders that must be there;
    `sections`: settings of those special kinds that check them against the disk.
    """

    run: str
    config: ExperimentConfig
    backends: dict[str, str]
    kinds: dict[str, str]
    versions: dict[str, str]
    paths: tuple[str, ...]
    sections: dict[str, dict[str, Any]]


class DaskCluster:
    """The cluster at `address`, or one of `workers` processes that it starts on this machine.

    Of a cluster that is there, it waits until `workers` have joined (default 1), and uses all. `say` takes messages.
    """

    def __init__(self, config: ExperimentConfig, address: str, workers: int | None, say: Callable[[str], None]) -> None:
        distributed = _import_distributed()
        self._address, self._say = address, say
        self._known: set[str] = set()
        self._room, self._looked = 0, 0.0
        self._tells: dict[int, Callable[[str], None]] = {}
        self._ended = threading.Event()
        self._closing = contextlib.ExitStack()
        try:
            self._client = self._connect(distributed, workers)
            self._wait_for_workers(workers or 1)
            self._order = self._make_order(config)
            self._client.subscribe_topic(TOPIC, self._hear)
        except BaseException:
            self._closing.close()
            raise

    def _connect(self, distributed: Any, workers: int | None) -> Any:
        target: Any = self._address
        if self._address == LOCAL:
            self._closing.enter_context(importlib.import_module("dask").config.set(_PATIENT))
            target = self._closing.enter_context(
                distributed.LocalCluster(
                    n_workers=workers or len(usable_processors()),
                    threads_per_worker=1,
                    resources={CORE: 1},
                    memory_limit=0,  # what measures is a process of its own, with the experiment's limits
                    dashboard_address=":0",
                    preload=_IGNORE_INTERRUPT,
                    silence_logs=logging.ERROR,  # that a worker is gone is said by us
                )
            )
        try:
            return self._closing.enter_context(
                distributed.Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
            )
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"there is no Dask scheduler at {self._address} ({error}); start one with: dask scheduler"
            ) from None

    def _wait_for_workers(self, count: int) -> None:
        self._look_at_workers()
        if len(self._known) < count:
            self._say(f"waiting for {count} workers at {self._address}, {len(self._known)} are there")
        start = f"start workers with: dask worker {self._address} --nworkers N --nthreads 1 --resources core=1"
        try:
            self._client.wait_for_workers(count, timeout=JOIN_SECONDS)
        except TimeoutError:
            raise ClusterError(
                f"fewer than {count} workers have joined {self._address} within {JOIN_SECONDS:g} s; {start}"
            ) from None
        self._look_at_workers()
        if not self._room:
            raise ClusterError(
                f"no worker at {self._address} announces the resource {CORE}, which says how many groups it may "
                f"measure at a time; {start}"
            )

    def _look_at_workers(self) -> None:
        """Learn who is there, and how many groups they have room for."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        self._looked = time.monotonic()
        self._room = sum(min(one["nthreads"], int(one["resources"].get(CORE, 0))) for one in workers.values())
        for gone in sorted(self._known - set(workers)):
            self._say(f"worker {gone} is gone; what it was measuring is measured again by another")
        if self._known and not workers:
            self._say(f"no worker is left at {self._address}; the run goes on when one joins")
        self._known = set(workers)

    def _make_order(self, config: ExperimentConfig) -> Order:
        """What workers have to know; all are to be as the first one of them is, with the client's code."""
        names = provenance.packages_of(config)
        try:
            self._described = self._client.run(describe_worker, names)
        except Exception as error:
            raise ClusterError(
                f"a worker at {self._address} cannot be asked: {error!r}; it needs the tokdfa that is installed here"
            ) from error
        if not self._described:
            raise ClusterError(f"all workers at {self._address} went away; start workers, then the run again")
        checked = {kind: given for kind, given in config.sections.items() if kinds.find_kind(kind).complete is not None}
        return Order(
            run=f"tokdfa-{config.folder_name}-{uuid.uuid4().hex[:8]}",
            config=config.common,
            backends=dict(registry.BUILT_IN),
            kinds=dict(kinds.ADDED),
            versions={**versions_of(next(iter(self._described.values())), names), CODE: _code()},
            paths=tuple(whole_paths(config.model_dump(mode="json"))),
            sections=checked,
        )

    def room(self) -> int:
        """How many groups the workers that are there now can measure. Raises ClusterError without a scheduler."""
        if self._client.status != "running":
            raise ClusterError(
                f"the scheduler at {self._address} is gone; what is finished is kept, start the run again to go on"
            )
        if time.monotonic() - self._looked > LOOK_SECONDS:
            self._look_at_workers()
        return self._room

    def facts(self) -> dict[str, Any]:
        """What the first worker is, and the machines of all."""
        return {
            **next(iter(self._described.values())),
            "environment": {"scheduler": self._address, "workers": len(self._described)},
            "workers": {worker: described["machine"] for worker, described in self._described.items()},
        }

    def measure(self, group: Group, tell: Callable[[str], None]) -> Measured:
        """Have a worker measure a group, and another one if that dies. Dask decides which."""
        from distributed import KilledWorker

        self._tells[group.position] = tell
        key = f"{self._order.run}-{group.file_name}"
        future = self._client.submit(measure_group, self._order, group, key=key, resources={CORE: 1}, pure=False)
        try:
            while not self._ended.is_set():
                with contextlib.suppress(TimeoutError):
                    measured: Measured = future.result(timeout=END_SECONDS)
                    return measured
            raise RunEnded
        except KilledWorker:
            failure = Failure("crash", "the workers that measured this group died, one after the other")
            return GroupTask(self._order.config, group, lambda job, look: Answer(failure=failure), tell).measure()
        except CancelledError:
            raise ClusterError(
                f"the scheduler at {self._address} has dropped this run; "
                "what is finished is kept, start it again to go on"
            ) from None
        except (ClusterError, RunEnded):
            raise
        except Exception as error:
            raise ClusterError(f"a worker failed at {group.title}: {error!r}") from error
        finally:
            future.release()
            del self._tells[group.position]

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, told = event
        if told["run"] == self._order.run and (tell := self._tells.get(told["group"])):
            tell(told["doing"])

    def close(self) -> None:
        """Have the scheduler drop what is at work, and end the local cluster."""
        self._ended.set()
        deadline = time.monotonic() + CONNECT_SECONDS
        while self._tells and time.monotonic() < deadline:
            time.sleep(END_SECONDS / 4)
        self._closing.close()


def whole_paths(value: Any) -> Iterator[str]:
    """The whole paths in plain data, ``hf:`` and the like apart, that exist here, so workers will look for them."""
    if isinstance(value, str):
        kind, _, rest = value.partition(":")
        path = rest if kind in ("hf", "tiktoken") else value
        with contextlib.suppress(OSError, ValueError):  # too long for a path, or no path at all
            if Path(path).is_absolute() and Path(path).exists():
                yield path
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from whole_paths(inner)


def _import_distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise missing_dependency("dask", "a run on a cluster") from None


# ---- in a worker of the cluster


def _code() -> str:
    return interpreters.code_fingerprint(Path(tokdfa.__file__).parent)


def describe_worker(names: tuple[str, ...]) -> dict[str, Any]:
    """What a worker is, as entries of the provenance; ``packages`` are those of `names` that it has. About 0.1 s."""
    packages = interpreters.package_versions(names)
    return {"packages": packages, "python": interpreters.python_facts(), "machine": machine_facts()}


def versions_of(described: dict[str, Any], names: tuple[str, ...]) -> dict[str, str]:
    """The versions of a worker's packages, "none" for those it has not, and of its Python."""
    return {
        "Python": described["python"]["version"],
        **{name: described["packages"].get(name, "none") for name in names},
    }


def faults(order: Order) -> list[str]:
    """Why this worker cannot measure for a run, in words; nothing if it can.

    Cost: that of `complete` of the special kinds, which may read a folder of data.
    """
    names = tuple(name for name in order.versions if name not in ("Python", CODE))
    versions = {**versions_of(describe_worker(names), names), CODE: _code()}
    found = [
        f"its {name} is {versions[name]}, not {wanted}; install the same on every worker, and start it anew"
        for name, wanted in order.versions.items()
        if versions[name] != wanted
    ]
    missing = [path for path in order.paths if not Path(path).exists()]
    found += [f"{path} is not there; give every worker the same data at the same path" for path in missing]
    for kind, settings in {}.items() if missing else order.sections.items():
        complete = kinds.find_kind(kind).complete
        try:
            if complete is not None:
                complete(settings)
        except TokdfaError as error:
            found.append(str(error))
    return found


def measure_group(order: Order, group: Group) -> Measured:
    """Measure a group, on a core of its own. A task of a Dask worker.

    Raises ClusterError if the worker does not fit the run, and RunEnded if the scheduler has dropped the task.
    """
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()
    slots = _slots_for(order, worker.address)

    def tell(doing: str) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state != "executing" or worker.status.name in ("closing", "closed", "failed"):
            raise RunEnded
        worker.log_event(TOPIC, {"run": order.run, "group": group.position, "doing": doing})

    return slots.measure(group, tell)


#: The slots of each run that this worker has taken part in.
_slots: dict[str, Slots] = {}
_slots_lock = threading.Lock()


def _slots_for(order: Order, address: str) -> Slots:
    """This worker's slots for a run. The first time, checks that it fits. Raises ClusterError."""
    with _slots_lock:
        if order.run not in _slots:
            adopt(order.backends, order.kinds)
            if found := faults(order):
                raise ClusterError(f"worker {address} does not fit this run: {'; '.join(found)}")
            _slots[order.run] = Slots(order.config, 1, own_cores=True)
        return _slots[order.run]
