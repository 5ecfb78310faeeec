"""The executor that measures on a Dask cluster: a client of its scheduler, which hands groups to the cluster's workers.

Words. The *scheduler* knows the *workers*; a worker announces as many units of the resource ``core`` as groups it may
measure at a time, and has as many threads. A group takes one unit; beneath, it takes cores of the worker's machine that
nothing else of ours measures on (`tokdfa.lab.run.cores`). As many groups are on their way as there is room for, so that
whoever is free gets the next one, workers that join later included.

When a worker dies, Dask hands its groups to others, from their beginning. A group whose workers have died several times
(Dask's ``distributed.scheduler.allowed-failures``, 3 by default, and once more) becomes rows that say so, as one does
without a cluster whose process is killed again and again.

Workers must be what the client takes them for: each looks at itself before its first group of a run, and one that does
not fit ends it (`cluster_worker.faults` says what is compared).
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
import uuid
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tokdfa
from tokdfa.core.packages import missing_dependency
from tokdfa.errors import ClusterError
from tokdfa.lab.kinds import find_kind
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.run import cluster_worker, provenance
from tokdfa.lab.run.cores import usable_processors
from tokdfa.lab.run.executor import Executor
from tokdfa.lab.run.kernel_steps import steps_of_experiment
from tokdfa.lab.run.supervisor import POLL_SECONDS, Answer
from tokdfa.lab.run.tasks import GroupTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured

#: The scheduler that is a cluster on this machine, started for the run and ended with it.
LOCAL = "dask:local"
#: The resource of workers that a group takes one unit of.
CORE = "core"
#: How long to wait for the scheduler, for the workers, and for the rows of a finished group.
CONNECT_SECONDS, JOIN_SECONDS, FETCH_SECONDS = 10.0, 120.0, 10.0
#: How often the list of workers is looked at.
LOOK_SECONDS = 1.0
#: A worker on this machine leaves Ctrl-C to the client, which ends it.
_IGNORE_INTERRUPT = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
#: A local cluster gives up a worker that is not back by then; starting anew may take longer than Dask's 15 s.
PATIENT = {"distributed.deploy.lost-worker-timeout": "10 minutes"}


class DaskCluster(Executor):
    """On the cluster at `address`, or on one of `workers` processes that it starts on this machine.

    Of a cluster that is there, it waits until `workers` have joined (default 1), and uses all.
    """

    def __init__(self, config: ExperimentConfig, address: str, workers: int | None, say: Callable[[str], None]) -> None:
        super().__init__()
        distributed = _import_distributed()
        self._address, self._say, self._config = address, say, config
        self._known: set[str] = set()
        self._looked = 0.0
        self._closing = contextlib.ExitStack()
        with contextlib.ExitStack() as undone:
            self._closing = undone
            self._client = self._connect(distributed, workers)
            self._wait_for_workers(workers or 1)
            run = f"tokdfa-{config.folder_name}-{uuid.uuid4().hex[:8]}"
            self._token = distributed.Semaphore(name=run, scheduler_rpc=self._client.scheduler, loop=self._client.loop)
            self._order = self._make_order(run)
            self._token.acquire()
            self._client.subscribe_topic(cluster_worker.TOPIC, self._hear)
            self._closing = undone.pop_all()

    def _connect(self, distributed: Any, workers: int | None) -> Any:
        target: Any = self._address
        if self._address == LOCAL:
            self._closing.enter_context(importlib.import_module("dask").config.set(PATIENT))
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
        self._looked = 0.0
        self._look_at_workers()
        if not self.room:
            raise ClusterError(
                f"no worker at {self._address} announces the resource {CORE}, which says how many groups it may "
                f"measure at a time; {start}"
            )

    def _look_at_workers(self) -> None:
        """Learn who is there, and how many groups they have room for."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        self._looked = time.monotonic()
        self.room = sum(min(one["nthreads"], int(one["resources"].get(CORE, 0))) for one in workers.values())
        for gone in sorted(self._known - set(workers)):
            self._say(f"worker {gone} is gone; what it was measuring is measured again by another")
        if self._known and not workers:
            self._say(f"no worker is left at {self._address}; the run goes on when one joins")
        self._known = set(workers)

    def _make_order(self, run: str) -> cluster_worker.Order:
        """What workers have to know; all are to be as the first one of them is."""
        names = provenance.packages_of(self._config)
        try:
            self._described = self._client.run(cluster_worker.describe_worker, names)
        except Exception as error:
            raise ClusterError(
                f"a worker at {self._address} cannot be asked: {error!r}; it needs the tokdfa that is installed here"
            ) from error
        if not self._described:
            raise ClusterError(f"all workers at {self._address} went away; start workers, then the run again")
        return cluster_worker.Order(
            run=run,
            config=self._config.model_copy(update={"constraints": [], "settings": {}}),
            backends=dict(importlib.import_module("tokdfa.backends.registry").BUILT_IN),
            code=provenance.code_fingerprint(Path(tokdfa.__file__).parent),
            names=names,
            versions=cluster_worker.versions_of(next(iter(self._described.values()))),
            paths=tuple(whole_paths(self._config)),
            sections=tuple(_checked_on_disk(self._config)),
            kernels=steps_of_experiment(self._config),
        )

    def facts(self) -> dict[str, Any]:
        elsewhere: dict[str, Any] = {} if self._address == LOCAL else {"calibration": {}}  # this machine's says nothing
        return {
            **next(iter(self._described.values())),
            **elsewhere,
            "environment": {"scheduler": self._address, "workers": len(self._described)},
            "workers": {worker: described["machine"] for worker, described in self._described.items()},
        }

    def _submit(self, group: Group) -> Any:
        """Dask decides where."""
        return self._client.submit(
            cluster_worker.measure_group,
            self._order,
            group,
            key=f"{self._order.run}-{group.part_name}",
            resources={CORE: 1},
            pure=False,
        )

    def _wait(self) -> None:
        if not any(future.done() for future in self._groups):
            time.sleep(POLL_SECONDS)
        if self._client.status != "running":
            raise ClusterError(
                f"the scheduler at {self._address} is gone; what is finished is kept, start the run again to go on"
            )
        self._look_at_workers()

    def _fetch(self, future: Any) -> Measured | None:
        """None if a group's rows were lost with a worker."""
        from distributed import KilledWorker

        try:
            measured: Measured | None = future.result(timeout=FETCH_SECONDS)
        except TimeoutError:
            return None
        except KilledWorker:
            return self._of_killed(self._groups[future])
        except CancelledError:
            raise ClusterError(
                f"the scheduler at {self._address} has dropped this run; "
                "what is finished is kept, start it again to go on"
            ) from None
        except ClusterError:
            raise
        except Exception as error:
            raise ClusterError(f"a worker failed at {self._groups[future].title}: {error!r}") from error
        if measured is None:
            raise ClusterError(
                f"the scheduler at {self._address} has not heard of this run for too long; "
                "what is finished is kept, start it again to go on"
            )
        return measured

    def _of_killed(self, group: Group) -> Measured:
        """The rows of a group whose workers have died again and again."""
        failure = Failure("crash", "the workers that measured this group died, one after the other")
        return GroupTask(self._config, group, lambda job, look: Answer(failure=failure), self._say).measure()

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        _, told = event
        if told["run"] == self._order.run:
            self._doing[told["group"]] = told["doing"]

    def close(self) -> None:
        with contextlib.suppress(Exception):  # the scheduler is gone, and with it all that there was to end
            self._token.release()
            self._token.close()
            self._client.cancel(list(self._groups))
        self._groups.clear()
        self._closing.close()


def whole_paths(config: ExperimentConfig) -> Iterator[str]:
    """The whole paths among an experiment's settings and tokenizers that exist here, so workers will look for them."""
    of_constraints = (name for entry in config.constraints for name in entry.tokenizers)
    for text in (*config.tokenizers, *of_constraints, *_texts(config.settings)):
        kind, _, rest = text.partition(":")
        path = rest if kind in ("hf", "tiktoken") else text
        with contextlib.suppress(OSError, ValueError):  # too long for a path, or no path at all
            if Path(path).is_absolute() and Path(path).exists():
                yield path


def _texts(value: Any) -> Iterator[str]:
    """All texts in plain data, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _checked_on_disk(config: ExperimentConfig) -> Iterator[tuple[str, dict[str, Any]]]:
    """The sections of special kinds that complete their settings, and so check them against the disk."""
    sections = config.settings if config.kind == "backends" else {config.kind: config.settings}
    for kind, settings in sections.items():
        if find_kind(kind).complete is not None:
            yield kind, settings


def _import_distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise missing_dependency("dask", "a run on a cluster") from None
