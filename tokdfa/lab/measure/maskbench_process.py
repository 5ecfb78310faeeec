"""Working through numbered tasks in forks that may hang, swallow the memory or die: each costs one task only.

A fork prepares itself, then takes the tasks in order and sends what it finds. The watching process, which it was forked
from, knows from the messages which task is at work. When one breaks a limit, or the fork dies, that task gets its
`Failure`, and a new fork takes the tasks that are left. A fork may also end by itself after a task, where it cannot
trust its state any more; the next one goes on.

    def work(tasks, begin, ready, send):       # runs in the fork
        engine = prepare()
        ready()                                # the memory of now is what growth counts from
        for task in tasks:
            begin("compile")
            send(task, engine.run(task))       # may be sent again, as more is known
            send(task, None)                   # this task is done

    found = in_forks(work, count=25, limits=Limits(seconds=20, memory_mb=4000))   # a result or a Failure for each
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import traceback
from multiprocessing import Pipe
from typing import IO, TYPE_CHECKING, Any

from tokdfa.lab.measure.limits import (
    PREPARING,
    Board,
    Failure,
    breach,
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

    #: (tasks, begin, ready, send): what runs in the fork.
    Work = Callable[[Sequence[int], Callable[[str], None], Callable[[], None], Callable[[int, Any], None]], None]

#: How often limits are looked at. Waking up for it takes the watcher some 20 us.
POLL_SECONDS = 0.05
LAST_WORDS = 400


class Unprepared(Failure):
    """The failure of a fork that had begun no task: it says nothing of any."""


def in_forks(work: Work, count: int, limits: Limits) -> list[Any]:
    """The results of the tasks 0 .. count-1: for each what `work` sent last, or a `Failure` if it sent nothing.

    `limits` are for one phase of the board. If `work` cannot prepare, every task that is left is `Unprepared`.
    """
    found: dict[int, Any] = {}
    left = list(range(count))
    while left:
        before = len(left)
        failure, phase = _fork(work, left, found, limits)
        if failure is None and len(left) < before:  # it ended by itself; the next one goes on
            continue
        failure = failure or Failure("crash", "the process ended without a result")
        if phase in ("prepare", "warm up"):
            return [found.get(task, Unprepared(failure.kind, failure.message)) for task in range(count)]
        found.setdefault(left.pop(0), failure)
    return [found[task] for task in range(count)]


def _fork(work: Work, left: list[int], found: dict[int, Any], limits: Limits) -> tuple[Failure | None, str]:
    """Watch one fork: what it finds goes to `found`, tasks that are done leave `left`. Returns why it was ended, if it
    was, and the phase in which it was.
    """
    board, descriptor = Board.create()
    reader, writer = Pipe(duplex=False)
    with tempfile.TemporaryFile() as words, reader:
        pid = os.fork()
        if pid == 0:
            reader.close()
            _run(work, left, limits, board, writer, words)
        writer.close()
        os.close(descriptor)
        failure: Failure | None = None
        try:
            while failure is None:
                if reader.poll(POLL_SECONDS):
                    task, result = reader.recv()
                    if task is None:  # it could not prepare
                        failure = result
                    elif result is None:
                        left.remove(task)
                    else:
                        found[task] = result
                else:
                    activity = board.read()
                    resident = 0 if activity.phase in PREPARING else resident_bytes(pid)
                    failure = breach(activity, limits, resident)
            os.kill(pid, signal.SIGKILL)
        except (EOFError, OSError):  # it is done, or dead
            pass
        except BaseException:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        phase = board.read().phase
        if failure is None and code:
            failure = death_failure(code, _last_words(words), phase)
        return failure, phase


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

        def ready() -> None:
            # what is there now stays; the collector runs when something is sent, where nothing is timed
            gc.collect()
            gc.freeze()
            gc.disable()
            limit_address_space(limits)
            board.open_job()

        def send(task: int | None, result: Any) -> None:
            gc.collect()
            writer.send((task, result))

        try:
            work(tasks, lambda phase: board.begin(0, phase), ready, send)
        except Exception as error:  # of the preparation; those of tasks are results
            send(None, failure_of(error))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
