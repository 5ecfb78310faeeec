"""The watching side of one worker process: starts it, hands it a job, and ends what breaks its limits.

While a job runs, `Supervisor.run` looks at it some twenty times a second. A fork that breaks a limit is killed through
its worker; a worker that breaks one while it prepares, or that does not answer, is killed itself, and a new one is
started for the next job.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from typing import IO, TYPE_CHECKING, Any

from tokdfa.lab.measure.clock import ONE_THREAD
from tokdfa.lab.measure.limits import Activity, Board, Failure, breach, death_failure, resident_bytes
from tokdfa.lab.run.cores import pin
from tokdfa.lab.run.jobs import limits_of
from tokdfa.lab.run.worker import DIED, DONE, KILL, UNPREPARED

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from tokdfa.lab.run.jobs import Job, Result

#: Memory is looked at this often; a process may outgrow its limit by what it can allocate meanwhile.
POLL_SECONDS = 0.05
#: A worker that has been told to kill its fork must answer within this time.
ANSWER_SECONDS = 10.0
LAST_WORDS = 400

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tokdfa.lab.run.worker import main; main(int(sys.argv[2]), int(sys.argv[3]))"
)


@dataclass(frozen=True)
class Answer:
    """How a job ended: with a result, or with a failure and the contender (index in the job, -1 for none) at work.

    `from_outside`: killed by a SIGKILL that the supervisor has not sent. `rows`: those of cases, each with its case.
    """

    result: Result | None = None
    failure: Failure | None = None
    contender: int = -1
    from_outside: bool = False
    rows: tuple[tuple[int, dict[str, Any]], ...] = ()


@dataclass
class _Worker:
    """A running worker process. `words`: a file with all it prints; `said`: how long that was when the job began."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    board: Board
    words: IO[bytes]
    said: int = 0

    @classmethod
    def start(cls) -> _Worker:
        from tokdfa.backends import registry

        ours, theirs = Pipe()
        board, descriptor = Board.create()
        words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker; see `end`)
        try:
            process = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path), str(theirs.fileno()), str(descriptor)],
                pass_fds=(theirs.fileno(), descriptor),
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl-C then reaches the supervisor only, and all of it can be killed at once
            )
        finally:
            theirs.close()
            os.close(descriptor)
        worker = cls(process, ours, board, words)
        worker.send(dict(registry.BUILT_IN))
        return worker

    def send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # it has died: the next `receive` says so
            self.pipe.send(message)

    def kill(self, pid: int) -> None:
        """Kill the process at work: a fork through the worker, which says how it ended."""
        if pid == self.process.pid:  # it is preparing, and would not read a message
            self.process.kill()
        else:
            self.send(KILL)

    def last_words(self) -> str:
        """The end of what was printed since the job began, on one line."""
        # Read without moving: the file's position is shared with the worker, which writes at it.
        recent = max(self.said, self.printed() - 4 * LAST_WORDS)
        text = os.pread(self.words.fileno(), 4 * LAST_WORDS, recent).decode(errors="replace")
        return " ".join(text.split())[-LAST_WORDS:]

    def printed(self) -> int:
        """How many bytes it has printed so far."""
        return os.fstat(self.words.fileno()).st_size

    def end(self) -> None:
        """Kill the worker and its forks if they still live."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()
        self.words.close()


class Supervisor:
    """A worker process, started when needed and kept from job to job, so that a tokenizer is loaded once."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        #: The tokenizer that the worker has prepared.
        self.tokenizer: str | None = None
        #: Where the next jobs may run (see `tokdfa.lab.run.cores`); None: wherever the system puts them.
        self.processors: tuple[int, ...] | None = None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None if it is not running."""
        return self._worker.process.pid if self._worker else None

    def run(self, job: Job, look: Callable[[Activity], None] = lambda activity: None) -> Answer:
        """Have a job measured, and say how it ended.

        `look` is called with what is being done, every `POLL_SECONDS`; if it raises, the job goes on until `close`.
        """
        worker = self._worker_for(job.items[0].tokenizer)
        worker.said = worker.printed()
        worker.send(job)
        verdict, deadline = None, 0.0
        while True:
            try:
                if worker.pipe.poll(POLL_SECONDS):
                    kind, content = worker.pipe.recv()
                    break
            except (EOFError, OSError):  # it crashed while it prepared, or was killed, by us or from outside
                kind, content = DIED, (worker.process.wait(), worker.board.read(), [])
                break
            activity = worker.board.read()
            if verdict is None:
                verdict = _breach(activity, job)
                if verdict is not None:
                    deadline = time.monotonic() + ANSWER_SECONDS
                    worker.kill(activity.pid)
            elif time.monotonic() > deadline:
                worker.process.kill()
            look(activity)
        if kind == DONE:
            *rows, result = map(pickle.loads, content)
            return Answer(result=result, rows=tuple(rows))
        if kind == UNPREPARED:
            return Answer(failure=content)
        code, last, messages = content
        answer = verdict or _death(code, last, worker.last_words())
        if worker.process.poll() is not None:
            self.close()
        return replace(answer, rows=tuple(map(pickle.loads, messages)))

    def _worker_for(self, tokenizer: str | None) -> _Worker:
        if self._worker is not None and self.tokenizer != tokenizer:
            self.close()  # a new process, so that no tokenizer's memory stays with another's
        if self._worker is None:
            self._worker = _Worker.start()
        self.tokenizer = tokenizer
        if self.processors is not None:
            pin(self._worker.process.pid, self.processors)  # its forks inherit it
        return self._worker

    def close(self) -> None:
        """End the worker, and with it the job at work."""
        if self._worker is not None:
            self._worker.end()
        self._worker = None


def _breach(activity: Activity, job: Job) -> Answer | None:
    failure = breach(activity, limits_of(job, activity.contender), resident_bytes(activity.pid))
    return None if failure is None else Answer(failure=failure, contender=activity.contender)


def _death(code: int, last: Activity, words: str) -> Answer:
    failure = death_failure(code, words, last.phase)
    return Answer(failure=failure, contender=last.contender, from_outside=code == -signal.SIGKILL)
