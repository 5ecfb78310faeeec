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
        with _Fork(work, left, limits) as fork:
            while (message := fork.next_message()) is not None:
                if isinstance(message, Found):
                    found[message.task] = message.result
                    if message.final:
                        left.remove(message.task)
            failure = fork.failure
        if failure is None and fork.finished:  # it ended by itself; the next one goes on
            continue
        failure = failure or Failure("crash", "the process ended without a result")
        if not fork.ready:
            return [found.get(task, Unprepared(failure.kind, failure.message)) for task in range(count)]
        found.setdefault(left.pop(0), failure)
    return [found[task] for task in range(count)]


class _Fork:
    """One fork and what is known of it: whether it is `ready`, how many tasks it `finished`, its `failure`."""

    def __init__(self, work: Work, tasks: Sequence[int], limits: Limits) -> None:
        self.limits = limits
        self.ready, self.finished = False, 0
        self.failure: Failure | None = None
        self._baseline = 0
        self._since = time.monotonic()
        self._board, descriptor = Board.create()
        self._words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        self._reader, writer = Pipe(duplex=False)
        self._pid = os.fork()
        if self._pid == 0:
            self._reader.close()
            _run(work, tasks, limits, self._board, writer, self._words)
        writer.close()
        os.close(descriptor)
        self._ended = False

    def __enter__(self) -> _Fork:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            self._end(signal.SIGKILL)
        self._reader.close()
        self._words.close()

    def next_message(self) -> Found | str | None:
        """The next message, waited for; None once the fork has ended, one way or another."""
        while not self._ended:
            if self._reader.poll(POLL_SECONDS):
                try:
                    return self._take(self._reader.recv())
                except (EOFError, OSError):
                    self._bury()
            else:
                self._see_to_limits()
        return None

    def _take(self, message: Found | str | Failure) -> Found | str | None:
        self._since = time.monotonic()
        if isinstance(message, Failure):
            self.failure = message
            self._end(signal.SIGKILL)
            return None
        if isinstance(message, Found):
            self.finished += message.final
        else:
            self.ready, self._baseline = True, resident_bytes(self._pid)
        return message

    def _see_to_limits(self) -> None:
        phase, allowed = self._board.read().phase, self.limits.seconds if self.ready else PREPARE_SECONDS
        if time.monotonic() - self._since > allowed + GRACE_SECONDS:
            self.failure = Failure("timeout", f"{phase!r} had not ended after {allowed:g} s")
        grown = resident_bytes(self._pid) - self._baseline if self.ready else 0
        if grown > self.limits.memory_bytes:
            most = f"{self.limits.memory_mb:g} MiB"
            self.failure = Failure("memory", f"{phase!r} took {grown / 2**20:.0f} MiB, more than {most}")
        if self.failure is not None:
            self._end(signal.SIGKILL)

    def _bury(self) -> None:
        """The fork has closed its pipe: it is done, or dead."""
        code = self._end()
        if code != 0:
            self._words.seek(0, os.SEEK_END)
            size = self._words.tell()
            text = os.pread(self._words.fileno(), 4 * LAST_WORDS, max(0, size - 4 * LAST_WORDS)).decode(
                errors="replace"
            )
            self.failure = death_failure(code, " ".join(text.split())[-LAST_WORDS:], self._board.read().phase)

    def _end(self, sign: int | None = None) -> int:
        if sign is not None:
            os.kill(self._pid, sign)
        _, status = os.waitpid(self._pid, 0)
        self._ended = True
        return os.waitstatus_to_exitcode(status)


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
