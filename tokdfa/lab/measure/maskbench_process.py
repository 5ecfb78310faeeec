"""Working through numbered tasks in forks that may hang, swallow the memory or die: each costs one task only.

A fork prepares itself, then takes the tasks in order and sends a message after each. The watching process, which it was
forked from, knows from the messages which task is at work. When one breaks a limit, or the fork dies, that task gets
its `Failure`, and a new fork takes the tasks that are left. A fork may also end by itself after a task, where it cannot
trust its state any more; the next one goes on. Messages carry what a task has found, so nothing is done twice.

    def work(tasks, send, begin):              # runs in the fork
        engine = prepare()
        send(READY)
        for task in tasks:
            begin("compile")
            send(Found(task, engine.run(task)))

    found = in_forks(work, count=25, limits=Limits(seconds=20, memory_mb=4000))   # a result or a Failure for each
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import IO, TYPE_CHECKING, Any

from tokdfa.lab.measure.limits import (
    PREPARE_SECONDS,
    Board,
    Failure,
    death_failure,
    die_with_parent,
    failure_of,
    limit_address_space,
    resident_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from tokdfa.lab.measure.limits import Limits

#: How often limits are looked at. Waking up for it takes the watcher some 20 us.
POLL_SECONDS = 0.05
#: A fork that keeps its time limit by itself, between calls, has this long to say so before it is killed.
GRACE_SECONDS = 1.0
LAST_WORDS = 400

READY = "ready"


@dataclass(frozen=True)
class Found:
    """What a task has found. Unless it is `final` the task goes on, and may find more, which replaces this."""

    task: int
    result: Any
    final: bool = True


class Unprepared(Failure):
    """The failure of a fork that had not sent READY: it says nothing of any task."""


if TYPE_CHECKING:
    #: (tasks, send, begin): what runs in the fork. `send` takes READY or a Found, `begin` the phase that starts.
    Work = Callable[[Sequence[int], Callable[[Found | str], None], Callable[[str], None]], None]


def in_forks(work: Work, count: int, limits: Limits) -> list[Any]:
    """The results of the tasks 0 .. count-1: for each what `work` found last, or a `Failure` if it found nothing.

    `limits.seconds` are for one task (from one final message to the next), `limits.memory_mb` for the growth of the
    fork after READY. If `work` cannot prepare, every task that is left is `Unprepared`.
    """
    found: dict[int, Any] = {}
    left = list(range(count))
    while left:
        before = len(left)
        failure, ready = _fork(work, left, found, limits)
        if failure is None and len(left) < before:  # it ended by itself; the next one goes on
            continue
        failure = failure or Failure("crash", "the process ended without a result")
        if not ready:
            return [found.get(task, Unprepared(failure.kind, failure.message)) for task in range(count)]
        found.setdefault(left.pop(0), failure)
    return [found[task] for task in range(count)]


def _fork(work: Work, left: list[int], found: dict[int, Any], limits: Limits) -> tuple[Failure | None, bool]:
    """Watch one fork: what it finds goes to `found`, tasks that are done leave `left`. Returns why it was ended, if it
    was, and whether it had become ready.
    """
    board, descriptor = Board.create()
    reader, writer = Pipe(duplex=False)
    ready, baseline, since = False, 0, time.monotonic()
    with tempfile.TemporaryFile() as words, reader:
        pid = os.fork()
        if pid == 0:
            reader.close()
            _run(work, left, limits, board, writer, words)
        writer.close()
        os.close(descriptor)
        ended = False
        try:
            while True:
                try:
                    message = reader.recv() if reader.poll(POLL_SECONDS) else None
                except (EOFError, OSError):  # it is done, or dead
                    code, ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), True
                    failure = death_failure(code, _last_words(words), board.read().phase) if code else None
                    return failure, ready
                since = since if message is None else time.monotonic()
                if isinstance(message, Found):
                    found[message.task] = message.result
                    if message.final:
                        left.remove(message.task)
                elif message == READY:
                    ready, baseline = True, resident_bytes(pid)
                elif isinstance(message, Failure):
                    return message, ready
                elif (breach := _breach(pid, board, limits, since, baseline if ready else None)) is not None:
                    return breach, ready
        finally:
            if not ended:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def _breach(pid: int, board: Board, limits: Limits, since: float, baseline: int | None) -> Failure | None:
    """The limit that a fork breaks; `baseline`: its bytes when it became ready."""
    phase, allowed = board.read().phase, PREPARE_SECONDS if baseline is None else limits.seconds
    if time.monotonic() - since > allowed + GRACE_SECONDS:
        return Failure("timeout", f"{phase!r} had not ended after {allowed:g} s")
    grown = 0 if baseline is None else resident_bytes(pid) - baseline
    if grown > limits.memory_bytes:
        return Failure("memory", f"{phase!r} took {grown / 2**20:.0f} MiB, more than {limits.memory_mb:g} MiB")
    return None


def _last_words(words: IO[bytes]) -> str:
    size = words.seek(0, os.SEEK_END)
    text = os.pread(words.fileno(), 4 * LAST_WORDS, max(0, size - 4 * LAST_WORDS)).decode(errors="replace")
    return " ".join(text.split())[-LAST_WORDS:]


def _run(work: Work, tasks: Sequence[int], limits: Limits, board: Board, writer: Connection, words: IO[bytes]) -> None:
    """The life of a fork. It ends without Python's clean-up, which belongs to the process it was forked from."""
    code = 1
    try:
        die_with_parent()
        for stream in (1, 2):
            os.dup2(words.fileno(), stream)
        board.open_job()
        board.begin(-1, "prepare")

        def send(message: Found | str) -> None:
            if message == READY:
                # what is there now stays; the collector runs between tasks only, where nothing is timed
                gc.collect()
                gc.freeze()
                gc.disable()
                limit_address_space(limits)
            else:
                gc.collect()
            writer.send(message)

        try:
            work(tasks, send, lambda phase: board.begin(0, phase))
        except Exception as error:  # of the preparation; those of tasks are results
            writer.send(failure_of(error))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
