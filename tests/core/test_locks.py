"""Locks that are free in the child of a fork, whatever other threads do meanwhile."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import time

import pytest

from tokdfa.core import locks, patience

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def run(*arguments: str) -> str:
    """What a process of its own prints; a fork of this one would copy the threads' locks of the test runner."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", *arguments],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_children_of_a_process_whose_threads_compile() -> None:
    assert "40 of 40" in run("-m", "tests.forking", "40", "60")


@pytest.mark.parametrize("released_at", [1, patience.LOOKS, None])
def test_who_finds_a_lock_busy_rests_before_it_queues(released_at: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, held, release, rests = locks.new_lock(), threading.Event(), threading.Event(), list[float]()

    def hold() -> None:
        with lock, lock:
            held.set()
            release.wait(30)

    holder = threading.Thread(target=hold)

    def rest(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == released_at:
            release.set()
            holder.join()

    monkeypatch.setattr(time, "sleep", rest)
    holder.start()
    held.wait(30)
    if released_at is None:  # while it is queued for
        threading.Timer(0.1, release.set).start()
    with lock:
        assert rests == [patience.REST] * (released_at or patience.LOOKS)
        assert release.is_set()
    holder.join()


#: A handler of a signal raises while a thread takes and releases a lock, which nobody else holds.
INTERRUPTED = """
import signal
from tokdfa.core import locks
lock, count = locks.new_lock(), 0
def interrupt(number, frame):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
while count < 500:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0007)
        while True:
            with lock, lock:
                pass
    except KeyboardInterrupt:
        count += 1
        assert not lock._is_owned()
print("free after each")
"""


def test_an_interrupt_leaves_no_lock_held() -> None:
    assert "free after each" in run("-c", INTERRUPTED)


#: A thread takes two locks in one order, another in the other, and the process forks.
CROSSWISE = """
import os, threading, time
from tokdfa.core import locks
one, other = locks.new_lock(), locks.new_lock()
both = [0, 0]
def work(first, second):
    while True:
        if first.acquire(timeout=0.001):
            if second.acquire(timeout=0.001):
                both[0] += 1; time.sleep(0.0005); both[1] += 1
                second.release()
            first.release()
for order in ((one, other), (other, one), (one, other)):
    threading.Thread(target=work, args=order, daemon=True).start()
for _ in range(100):
    with one:  # the thread that forks may hold some itself
        child = os.fork()
        if child == 0:
            free = other.acquire(timeout=5) and one.acquire(timeout=5)
            os._exit(0 if free and both[0] == both[1] else 1)
    assert os.waitpid(child, 0)[1] == 0
print("ok")
"""


def test_no_order_of_locks_is_needed_and_nothing_is_half_made() -> None:
    assert run("-c", CROSSWISE) == "ok\n"


#: A lock that is never given back.
STUCK = """
import os, threading, time
from tokdfa.core import locks
locks.PATIENCE = 0.2
stuck, free = locks.new_lock(), locks.new_lock()
threading.Thread(target=lambda: (stuck.acquire(), time.sleep(1000)), daemon=True).start()
time.sleep(0.1)
for _ in range(3):
    child = os.fork()
    if child == 0:
        os._exit(0 if stuck.acquire(timeout=5) and free.acquire(timeout=5) else 1)
    assert os.waitpid(child, 0)[1] == 0
assert free.acquire(timeout=5) and not stuck.acquire(timeout=0.01)
print("ok", flush=True)
os._exit(0)
"""


def test_a_lock_that_is_never_given_back_is_new_in_the_child() -> None:
    assert run("-c", STUCK) == "ok\n"


def test_locks_are_forgotten_with_their_users() -> None:
    gc.collect()
    before = len(locks._known)
    made = [locks.new_lock() for _ in range(100)]
    assert len(locks._known) == before + 100
    made.clear()
    gc.collect()
    assert len(locks._known) <= before


def test_all_locks_of_the_library_are_such() -> None:
    """Whoever writes `threading.Lock` where constraints are compiled makes a fork that may hang."""
    from pathlib import Path

    import tokdfa

    package = Path(tokdfa.__file__).parent
    apart = {
        package / "core" / "locks.py",
        package / "lab" / "run" / "cluster.py",
    }  # a worker's own, which nobody forks
    for path in {path for path in package.rglob("*.py*") if path.suffix in (".py", ".pyx")} - apart:
        text = path.read_text()
        assert "threading.Lock()" not in text, path
        assert "threading.RLock()" not in text, path
        assert not re.search(r"from functools import .*\bcached_property", text), (
            f"{path}: import cached_property from tokdfa.core.locks"
        )


def test_forks_of_two_threads_at_once() -> None:
    script = """
import os, threading
from tokdfa.core import locks
kept = [locks.new_lock() for _ in range(50)]
failed = []
def fork():
    for _ in range(20):
        child = os.fork()
        if child == 0:
            os._exit(0 if all(lock.acquire(timeout=5) for lock in kept) else 1)
        failed.append(os.waitpid(child, 0)[1])
threads = [threading.Thread(target=fork) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
assert not any(failed) and len(failed) == 80
print("ok")
"""
    assert run("-c", script) == "ok\n"


def test_a_lock_is_reentrant() -> None:
    lock = locks.new_lock()
    with lock, lock:
        taken = []
        thread = threading.Thread(target=lambda: taken.append(lock.acquire(blocking=False)))
        thread.start()
        thread.join()
        assert taken == [False]
