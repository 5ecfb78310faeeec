"""Where groups are measured: in processes on this machine, or by the workers of a Dask cluster.

An `Executor` is given groups and gives back what they have come to. It stores nothing: the process that was asked for
the run writes every row, a whole group at a time, into the one place that belongs to that group. So whatever an
executor loses or does twice, when a worker dies or is restarted, is measured again or dropped, and no row is lost or
doubled; and a run that one executor has begun can be finished by the other.

- `processes` (the default): this process watches the measuring processes itself.
- `cluster`: each worker of a cluster watches one, in the same way (`cluster_worker`), and sends back the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tokdfa.errors import OptionError
from tokdfa.lab.run.cluster import LOCAL, DaskCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.lab.config.expand import Group
    from tokdfa.lab.config.experiment import ExperimentConfig
    from tokdfa.lab.run.tasks import Measured


class Executor(Protocol):
    """Measures groups, several at a time. To be closed after use, whatever has happened."""

    def facts(self) -> dict[str, Any]:
        """What to record of the place where it measures, as entries of the provenance."""

    def begin(self, left: Sequence[Group]) -> Group | None:
        """Begin to measure one of the groups `left` (one at least), and say which; None if there is no room now."""

    def poll(self) -> list[tuple[Group, Measured]]:
        """The groups that are finished, each given once; waits a moment if there are none. Raises ClusterError."""

    def activities(self) -> list[tuple[Group, str]]:
        """The groups at work, each with what is being measured."""

    def close(self) -> None:
        """End everything; groups that are not finished are dropped."""


def measures_here(scheduler: str | None) -> bool:
    """Whether all is measured on this machine. Raises OptionError for what is no scheduler."""
    if scheduler is not None and scheduler != LOCAL and "://" not in scheduler:
        raise OptionError(f"a scheduler is {LOCAL}, or an address such as tcp://HOST:8786, not {scheduler!r}")
    return scheduler in (None, LOCAL)


def open_executor(
    config: ExperimentConfig, scheduler: str | None, workers: int | None, say: Callable[[str], None]
) -> Executor:
    """The executor for a run, ready to begin. `scheduler`, `workers`: as in `execute.run`; `say` takes messages.

    Raises MissingDependency without Dask, ClusterError if the cluster is not there or does not fit this run.
    """
    if scheduler is None:
        from tokdfa.lab.run.processes import Processes

        return Processes(config, workers or 1)
    return DaskCluster(config, scheduler, workers, say)
