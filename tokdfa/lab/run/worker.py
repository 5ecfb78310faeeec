"""A worker process, from both sides: `Worker` starts and watches one, `serve` is what it runs.

The worker prepares a tokenizer, and backends, once, then forks a process for each job. A fork starts from the prepared
state and ends with its job. So no job finds what an earlier one has left behind in caches or heaps, the memory of a
contender is the growth of its own process, and a contender that dies takes nothing with it. Turns of a contender are
the exception: their fork stays for its next ones, those of the experiment (*served*) or of the item (*fresh*).

A job goes down the pipe, and comes back as (exit code of the fork, last activity, messages): the rows of cases as they
came, and last (END, result), each pickled; without that last one the fork has died. What is going on at any moment
stands on the board, which the watching side reads twenty times a second, to kill whoever breaks a limit: the fork, or
the worker while it prepares. A new worker is then started for the next job. If the watching process goes away, the
worker ends, and its forks with it.
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
import traceback
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn

from tokdfa.backends import registry
from tokdfa.lab import kinds
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.clock import ONE_THREAD
from tokdfa.lab.measure.limits import (
    Board,
    Failure,
    attempt,
    breach,
    death_failure,
    die_with_parent,
    limit_address_space,
    resident_bytes,
)
from tokdfa.lab.run.cores import pin, stay_with_parent
from tokdfa.lab.run.jobs import Workbench, run_job
from tokdfa.lab.run.turns import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.lab.measure.limits import Activity
    from tokdfa.lab.run.jobs import Job, Result

    #: What a worker answers: exit code, last activity, messages.
    Reply = tuple[int, Activity, list[bytes]]

#: Memory is looked at this often; a process may outgrow its limit by what it can allocate meanwhile.
POLL_SECONDS = 0.05
#: What an idle worker may take to end.
END_SECONDS = 5.0
#: How much of what a process printed last is told with its death.
LAST_WORDS = 400
#: In the place of a case: what goes with it is the result of the whole job.
END = None

_START = (
    "import json, sys; path, *given = json.loads(sys.argv[1]); sys.path[:] = path or sys.path; "
    "from tokdfa.lab.run.worker import serve; serve(*given)"
)


@dataclass(frozen=True)
class Answer:
    """How a job ended: with a result, or with a failure and the contender (index in the job, -1 for none) at work.

    `from_outside`: killed by a SIGKILL that is not ours. `rows`: those of cases, each with its case.
    """

    result: Result | None = None
    failure: Failure | None = None
    contender: int = -1
    from_outside: bool = False
    rows: tuple[tuple[int, dict[str, Any]], ...] = ()


class Worker:
    """A worker process as its watcher sees it: started when needed, and kept from job to job.

    `tokenizer`: what it has prepared; `processors`: where the next job may run (`tokdfa.lab.run.cores`), None: wherever
    the system puts it; `python`: the path of the interpreter that runs it, by default this one.
    """

    def __init__(self, python: str = "") -> None:
        self._python = python
        self.tokenizer: str | None = None
        self.processors: tuple[int, ...] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Its process id, None if it is not running."""
        return self._process.pid if self._process else None

    def run(self, job: Job, look: Callable[[Activity], None] = lambda activity: None) -> Answer:
        """Have a job measured, and say how it ended.

        `look` is called with what is being done, every `POLL_SECONDS`; if it raises, the job goes on until `close`.
        """
        if self._python:
            found = attempt(interpreters.look, self._python, (__name__,))
            if isinstance(found, Failure):
                return Answer(failure=found)
        if self.tokenizer != job.item.tokenizer:
            self.close()  # a new process, so that no tokenizer's memory stays with another's
        process = self._process or self._start()
        self.tokenizer = job.item.tokenizer
        if self.processors is not None:
            pin(process.pid, self.processors)  # its forks inherit it
        printed = self._printed()
        with contextlib.suppress(OSError):  # it has died: the reply says so
            self._pipe.send(job)
        broken, blamed = None, -1
        while (reply := self._reply(process)) is None:
            activity = self._board.read()
            if broken is None:
                broken = breach(activity, job.limits(activity.contender), resident_bytes(activity.pid))
                if broken is not None:
                    blamed = activity.contender
                    _kill(activity.pid, process.pid)
            look(activity)
        code, last, messages = reply
        sent = [pickle.loads(message) for message in messages]
        if sent and sent[-1][0] is END:
            result, rows = sent[-1][1], tuple(sent[:-1])
            if isinstance(result, Failure):
                return Answer(failure=result, contender=last.contender, rows=rows)
            return Answer(result, rows=rows)
        words = self._last_words(printed)
        if process.poll() is not None:
            self.close()
        if broken is not None:
            return Answer(failure=broken, contender=blamed, rows=tuple(sent))
        failure = death_failure(code, words, last.phase)
        return Answer(None, failure, last.contender, from_outside=code == -signal.SIGKILL, rows=tuple(sent))

    def _start(self) -> subprocess.Popen[bytes]:
        self._pipe, theirs = Pipe()
        self._board, board = Board.create()
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process; see `close`)
        given = [theirs.fileno(), board, registry.BUILT_IN, kinds.ADDED]
        own, apart = [sys.executable, "-c", _START], interpreters.command(self._python, _START)
        paths = [] if self._python else sys.path
        try:
            self._process = subprocess.Popen(
                [*(apart if self._python else own), json.dumps([paths, *given])],
                pass_fds=(theirs.fileno(), board),
                stdin=subprocess.DEVNULL,
                stdout=self._words,
                stderr=self._words,
                env={**os.environ, **ONE_THREAD},
                start_new_session=True,  # Ctrl-C then reaches the watcher only, and all of it can be killed at once
            )
        finally:
            theirs.close()
            os.close(board)
        return self._process

    def _reply(self, process: subprocess.Popen[bytes]) -> Reply | None:
        """What the worker answers, None if it does not within POLL_SECONDS; its death is an answer, too."""
        try:
            reply: Reply | None = self._pipe.recv() if self._pipe.poll(POLL_SECONDS) else None
        except (EOFError, OSError):  # it crashed while it prepared, or was killed, by us or from outside
            return process.wait(), self._board.read(), []
        return reply

    def _printed(self) -> int:
        """How many bytes the process has printed so far."""
        return os.fstat(self._words.fileno()).st_size

    def _last_words(self, begin: int) -> str:
        """The end of what was printed from byte `begin` on, as one line."""
        # Read without moving: the file's position is shared with the process, which writes at it.
        recent = max(begin, self._printed() - 4 * LAST_WORDS)
        text = os.pread(self._words.fileno(), 4 * LAST_WORDS, recent).decode(errors="replace")
        return " ".join(text.split())[-LAST_WORDS:]

    def close(self) -> None:
        """End the process, and with it the job at work."""
        if self._process is None:
            return
        self._pipe.close()  # it waits for its forks then, so that their processor time counts as this run's
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._words.close()
        self._process = None


def _kill(pid: int, worker: int) -> None:
    """Kill the process at work, the worker or a fork of it; nothing if it has ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(pid) == worker:
            os.kill(pid, signal.SIGKILL)


def serve(pipe: int, board: int, backends: dict[str, str], added: dict[str, str]) -> None:
    """The life of a worker: job after job, until the watching process closes the pipe or goes away."""
    adopt(backends, added)
    forks = _Forks(Connection(pipe), Board(board))
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            forks.board.open_job()
            forks.watcher.send(forks.carry_out(forks.watcher.recv()))
    for fork in forks.waiting.values():
        fork.end()


def adopt(backends: dict[str, str], added: dict[str, str]) -> None:
    """Know the backends and kinds that another process knows, those that were registered while it ran included."""
    registry.adopt(backends)
    kinds.ADDED.update(added)


@dataclass
class _Fork:
    """A process that takes jobs from `pipe` until it gets None, and answers with messages, an empty one at the end of
    each job. `item_id`: of its last turn.
    """

    pid: int
    pipe: Connection
    item_id: str = ""

    def end(self) -> int:
        """Let it end, if it has not died; its exit code."""
        with contextlib.suppress(OSError):
            self.pipe.send(None)
        self.pipe.close()
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


@dataclass
class _Forks:
    """What a worker has: who gives it jobs, the board, what forks inherit, and those that wait for their next turn."""

    watcher: Connection
    board: Board
    bench: Workbench = field(default_factory=Workbench)
    waiting: dict[str, _Fork] = field(default_factory=dict)

    def carry_out(self, job: Job) -> Reply:
        """Prepare for a job and have a fork do it. EOFError if the watching process goes away."""
        unprepared = attempt(self.bench.prepare, job, self.board)
        if unprepared is not None:  # the tokenizer cannot be loaded
            return 0, self.board.read(), [pickle.dumps((END, unprepared))]
        fork = self._fork_for(job)
        with contextlib.suppress(OSError):  # it has died while it waited: there will be no answer
            fork.pipe.send(job)
        try:
            messages, is_alive = self._hear_out(fork.pipe)
        except BaseException:
            os.kill(fork.pid, signal.SIGKILL)
            raise
        last = self.board.read()
        if is_alive and isinstance(job.task, Turn):
            fork.item_id = job.item.item_id
            self.waiting[job.item.label] = fork
            return 0, last, messages
        return fork.end(), last, messages

    def _fork_for(self, job: Job) -> _Fork:
        """The contender's own one for a turn, if there is one that may take it; else a new one."""
        waiting = self.waiting.pop(job.item.label, None) if isinstance(job.task, Turn) else None
        if waiting is not None:
            if job.config.way == "served" or waiting.item_id == job.item.item_id:
                return waiting
            waiting.end()
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            for inherited in (self.watcher, ours, *(other.pipe for other in self.waiting.values())):
                inherited.close()  # else the watching side would not see the worker's death while this fork lives
            _run_fork(self.bench, self.board, theirs)
        theirs.close()
        return _Fork(pid, ours)

    def _hear_out(self, pipe: Connection) -> tuple[list[bytes], bool]:
        """What a fork says of a job, and whether it has come to its end, which it has not if it died. EOFError if the
        watching process goes away, which says nothing while a job is at work.
        """
        messages: list[bytes] = []
        while self.watcher not in wait([self.watcher, pipe]):
            try:
                message = pipe.recv_bytes()
            except (EOFError, OSError):  # OSError: it died while it was sending
                return messages, False
            if not message:
                return messages, True
            messages.append(message)
        raise EOFError


def _run_fork(bench: Workbench, board: Board, pipe: Connection) -> NoReturn:
    """The life of a fork. It ends without Python's clean-up, which belongs to the worker."""
    code = 1
    try:
        die_with_parent()

        def send(message: tuple[int | None, object]) -> None:
            pipe.send_bytes(pickle.dumps(message))

        while (job := pipe.recv()) is not None:
            stay_with_parent()
            board.open_job()
            limit_address_space(job.config.limits)
            send((END, attempt(run_job, job, bench, board, send)))
            pipe.send_bytes(b"")
        code = 0
    except EOFError:
        code = 0  # the worker is gone
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
