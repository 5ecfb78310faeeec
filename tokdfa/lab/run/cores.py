"""Cores: what measures has a core that nothing else measures on, so that two times are never taken on one.

Words. A *core* is a physical one. Where it runs two threads, the system shows two *processors* for it; the lowest of
them stands for the core, and the other stays idle. A *lease* is an exclusive lock on a file named after the core. It
holds for all runs of a user on a machine, whether they measure in processes of their own or as workers of a cluster,
and the system ends it with the process that holds it. Who has a lease pins the measuring process to its processors.

What uses several threads gets as many cores. The folder of the locks is on the machine's own disk (``$TMPDIR``), so
containers that do not share it do not see each other's leases: give each of them cores of its own.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.core.folders import private_folder
from tokdfa.errors import StoreError
from tokdfa.lab.kinds import find_kind

if TYPE_CHECKING:
    from filelock import FileLock

    from tokdfa.lab.config.expand import Group, Item

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@dataclass(frozen=True)
class CoreReservation:
    """Cores that are ours until `release`. `processors`: the numbers to pin a process to, one a core."""

    processors: tuple[int, ...]
    _locks: tuple[FileLock, ...]

    def release(self) -> None:
        """Let others have them."""
        for lock in self._locks:
            lock.release()


def take_cores(count: int) -> CoreReservation | None:
    """`count` cores that nobody else holds (all of them, if the machine has fewer); None if so many are not free now.

    Never waits, and never keeps some while others are missing, so two who want several cannot block each other.
    """
    cores = usable_processors()
    wanted = min(count, len(cores))
    taken: dict[int, FileLock] = {}
    for core in cores:
        lock = _try_lock(f"core-{core}")
        if lock is not None:
            taken[core] = lock
        if len(taken) == wanted:
            return CoreReservation(tuple(taken), tuple(taken.values()))
    for lock in taken.values():
        lock.release()
    return None


def usable_processors() -> tuple[int, ...]:
    """One processor for each core that this process may run on, in order."""
    if not hasattr(os, "sched_getaffinity"):  # macOS: leases count cores, and nothing is pinned
        return tuple(range(os.cpu_count() or 1))
    allowed = sorted(os.sched_getaffinity(0))
    return tuple({_siblings(processor): processor for processor in reversed(allowed)}.values())[::-1]


def _siblings(processor: int) -> str:
    """A name for the core that a processor belongs to, such as "0,32"."""
    try:
        return Path(_TOPOLOGY.format(processor)).read_text().strip()
    except OSError:  # the system does not say: a core of its own
        return str(processor)


def pin(pid: int, processors: tuple[int, ...]) -> None:
    """Let a process, and what it starts from now on, run on these processors only; no effect if it is gone."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(pid, processors)


def stay_with_parent() -> None:
    """Run where the parent of this process may run by now."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))


def threads_of(group: Group) -> int:
    """How many threads the items of a group use at most: what they set as ``threads``, or the default of their kind."""
    return max(map(_threads, (*group.items, *group.beside)))


def _threads(item: Item) -> int:
    if item.backend is not None:
        given: Any = item.backend.options.get("threads", 1)
    else:
        given = item.settings.get("threads") or find_kind(item.kind).threads
    return max(given) if isinstance(given, list | tuple) else int(given)


def _try_lock(name: str) -> FileLock | None:
    """A lock that is held until it is released; None if another process or thread has it.

    Raises StoreError for a folder or file that others could reach: whoever else could lock it, or have us write
    elsewhere through a link.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(private_folder() / f"{name}.lock", blocking=False, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        return None
    except OSError as error:
        raise StoreError(f"{lock.lock_file} cannot be locked ({error.strerror}); delete it") from None
    return lock
