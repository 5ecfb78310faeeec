"""Locks that survive a fork of the process, however many threads hold some of them at that moment.

A child has one thread, the one that forked. A lock that another thread held stays locked there for ever, and what that
thread was making is half made. So whoever forks first acquires all locks of this module, and parent and child release
them: no thread is then in the middle of anything that a lock protects. The fork waits for that as long as the longest
piece of work under a lock takes, a compilation as a rule.

The hooks of a fork run in the reverse order of their registration before it. Those of the standard library's own locks
(logging, thread pools), which may be waited for by a thread that holds one of ours, must therefore be there before
ours: hence the imports.

**Convoys.** A thread that queues for a lock gets it as soon as it is released, but runs only when it has the
interpreter's lock, too, which the thread that released it still holds. If that one asks for the lock again, it must
queue in turn, and from then on the two change places at each step. So ``with lock`` does not queue for a busy lock at
once, but looks again after some rest, in which the other thread goes on at full speed. Two threads that make masks of
different constraints over one vocabulary are about as fast as one; in turns they were half as fast.

All locks are re-entrant, so a thread may fork while it holds some. No order between locks is needed: where one is busy,
those acquired are given back before it is waited for, so that nobody is waited for by a thread that it waits for.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import functools
import logging  # noqa: F401
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from tokdfa.core.patience import enter

if TYPE_CHECKING:
    from functools import cached_property

    Lock = threading.RLock

__all__ = ["cached_property", "new_lock", "watch"]

#: Seconds that a fork waits. After that, locks that are busy still are made new in the child, whatever they protect.
PATIENCE = 60.0

_known: dict[int, weakref.ref[Lock]] = {}
#: Held by a thread that forks, so that one does at a time.
_forking = threading.RLock()
#: What that thread holds from before the fork until after it, and what it could not get.
_held: list[Lock] = []
_given_up: list[Lock] = []


if TYPE_CHECKING:
    _PatientLock = threading.RLock
else:

    class _PatientLock(type(threading.RLock())):
        """See the module's docstring: convoys."""

        __enter__ = enter


def new_lock() -> Lock:
    """A re-entrant lock that is free in the child of a fork. It is forgotten with its last user."""
    lock = _PatientLock()
    watch(lock)
    return lock


def watch(lock: Lock) -> None:
    """Have a re-entrant lock that somebody else made acquired before each fork, too."""
    number = id(lock)
    _known[number] = weakref.ref(lock, lambda _: _known.pop(number, None))


if not TYPE_CHECKING:

    class cached_property(functools.cached_property):  # noqa: N801  # its name in the standard library
        """That of the standard library, whose lock is watched: Python 3.11 has one for each property, 3.12 has none."""

        def __init__(self, function: Any) -> None:
            super().__init__(function)
            if hasattr(self, "lock"):
                watch(self.lock)


def _living() -> list[Lock]:
    return [lock for found in list(_known.values()) if (lock := found()) is not None]


def _acquire_all() -> None:
    """Hold all locks. Those made meanwhile, too."""
    _forking.acquire()
    deadline = time.monotonic() + PATIENCE
    while busy := _try_all():
        left = deadline - time.monotonic()
        if left <= 0:
            _held.extend(lock for lock in _living() if lock.acquire(blocking=False))
            held = set(map(id, _held))
            _given_up.extend(lock for lock in _living() if id(lock) not in held)
            return
        if busy.acquire(timeout=left):
            _held.append(busy)


def _try_all() -> Lock | None:
    """Hold all locks, or none and say which is busy."""
    while True:
        held = set(map(id, _held))
        missing = [lock for lock in _living() if id(lock) not in held]
        if not missing:
            return None
        for lock in missing:
            if not lock.acquire(blocking=False):
                _release_all()
                return lock
            _held.append(lock)


def _release_all() -> None:
    while _held:
        _held.pop().release()


def _end_fork() -> None:
    _release_all()
    _given_up.clear()
    _forking.release()


def _begin_child() -> None:
    for lock in _given_up:
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # what the standard library does with its own
    _end_fork()


os.register_at_fork(before=_acquire_all, after_in_parent=_end_fork, after_in_child=_begin_child)
