"""The watching side of one worker process: starts it, hands it jobs, and ends what breaks its limits.

`Watch.poll` is called some twenty times a second. It returns an `Answer` when the job has ended, one way or another. A
fork that breaks a limit is killed through its worker; a worker that breaks one while it prepares, or that does not
answer, is killed itself, and a new one is started for the next job.
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
from dataclasses import dataclass
from multiprocessing import Pipe
from typing import IO, TYPE_CHECKING, Any

from tokdfa.lab.measure.clock import ONE_THREAD
from tokdfa.lab.measure.limits import Activity, Board, Failure, breach, death_failure, resident_bytes
from tokdfa.lab.run.cores import pin
from tokdfa.lab.run.worker import DONE, KILL, UNPREPARED

if TYPE_CHECKING:
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

    `from_outside`: killed by a SIGKILL that the watcher has not sent.
    """

    result: Result | None = None
    failure: Failure | None = None
    contender: int = -1
    from_outside: bool = False


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
                start_new_session=True,  # Ctrl-C then reaches the watcher only, and all of it can be killed at once
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

    def last_words(self) -> str:
        """The end of what was printed since the job began, on one line."""
        # Read without moving: the file's position is shared with the worker, which writes at it.
        recent = max(self.said, self.printed() - 4 * LAST_WORDS)
        text = os.pread(self.words.fileno(), 4 * LAST_WORDS, recent).decode(errors="replace")
        return " ".join(text.split())[-LAST_WORDS:]

    def printed(self) -> int:
        """How many bytes it has printed so far."""
        return os.fstat(self.words.fileno()).st_size

    def end(self) -> int:
        """Kill the worker and its forks if they still live; the exit code."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        self.pipe.close()
        self.words.close()
        return code


class Watch:
    """A worker process, started when needed, and its current job."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None
        self._job: Job | None = None
        self._verdict: tuple[Failure, int] | None = None
        self._deadline = 0.0
        #: The tokenizer that the worker has prepared.
        self.tokenizer: str | None = None
        #: Where the next jobs may run (see `tokdfa.lab.run.cores`); None: wherever the system puts them.
        self.processors: tuple[int, ...] | None = None

    @property
    def pipe(self) -> Connection | None:
        """Becomes readable when there is an answer."""
        return self._worker.pipe if self._worker else None

    @property
    def pid(self) -> int | None:
        """The worker's process id, None if it is not running."""
        return self._worker.process.pid if self._worker else None

    def activity(self) -> Activity | None:
        """What the worker or its fork is doing."""
        return self._worker.board.read() if self._worker else None

    def submit(self, job: Job) -> None:
        """Start a job; `poll` tells how it ends."""
        if self._worker is not None and self.tokenizer != job.tokenizer:
            self.close()  # a new process, so that no tokenizer's memory stays with another's
        if self._worker is None:
            self._worker = _Worker.start()
        self.tokenizer = job.tokenizer
        if self.processors is not None:
            pin(self._worker.process.pid, self.processors)  # its forks inherit it
        self._worker.said = self._worker.printed()
        self._job, self._verdict = job, None
        self._worker.send(job)

    def close(self) -> None:
        """End the worker, and with it the job at work."""
        if self._worker is not None:
            self._worker.end()
        self._worker = self._job = None

    def poll(self) -> Answer | None:
        """The answer to the current job, if it has ended; otherwise see to its limits."""
        worker, job = self._worker, self._job
        if worker is None or job is None:
            return None
        try:
            if worker.pipe.poll():
                kind, content = worker.pipe.recv()
                self._job = None
                return self._answer(worker, kind, content)
        except (EOFError, OSError):
            return self._bury(worker)
        self._see_to_limits(worker, job)
        return None

    def _answer(self, worker: _Worker, kind: str, content: Any) -> Answer:
        if kind == DONE:
            return Answer(result=pickle.loads(content))
        if kind == UNPREPARED:
            return Answer(failure=content)
        code, last = content
        return self._death(worker, code, last)

    def _bury(self, worker: _Worker) -> Answer:
        """The worker itself is gone: it crashed while it prepared, or was killed, by us or from outside."""
        last = worker.board.read()
        code = worker.process.wait()
        answer = self._death(worker, code, last)
        self.close()
        return answer

    def _death(self, worker: _Worker, code: int, last: Activity) -> Answer:
        if self._verdict is not None:
            failure, contender = self._verdict
            return Answer(failure=failure, contender=contender)
        failure = death_failure(code, worker.last_words(), last.phase)
        return Answer(failure=failure, contender=last.contender, from_outside=code == -signal.SIGKILL)

    def _see_to_limits(self, worker: _Worker, job: Job) -> None:
        now = time.monotonic()
        if self._verdict is not None:
            if now > self._deadline:
                worker.process.kill()
            return
        activity = worker.board.read()
        failure = breach(activity, job.limits, resident_bytes(activity.pid))
        if failure is None:
            return
        self._verdict, self._deadline = (failure, activity.contender), now + ANSWER_SECONDS
        if activity.pid == worker.process.pid:  # it is preparing, and would not read a message
            worker.process.kill()
        else:
            worker.send(KILL)
