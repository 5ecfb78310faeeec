"""The worker process: prepares a tokenizer and its backends once, then forks a process for each job.

A fork starts from the prepared state and ends with its job. So no job finds what an earlier one has left behind in
caches or heaps, the memory of a contender is the growth of its own process, and a contender that dies takes nothing
with it. The worker itself only loads, builds and waits.

It talks to its supervisor through a pipe: jobs come in; (DONE, messages), (DIED, (exit code, last activity, messages))
or (UNPREPARED, failure) goes out; KILL ends the job at work. Messages are what the fork has sent, pickled: the rows of
cases as they come, and last the result. What is going on at any moment stands on the board. If the supervisor goes
away, the worker kills its fork and ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NoReturn

from tokdfa.lab.measure.limits import Board, die_with_parent, failure_of, limit_address_space
from tokdfa.lab.run.jobs import Workbench, run_job

if TYPE_CHECKING:
    from tokdfa.lab.run.jobs import Job

#: What the supervisor says, and what the worker answers.
KILL, DONE, DIED, UNPREPARED = "kill", "done", "died", "unprepared"


def main(pipe: int, board_descriptor: int) -> None:
    """Serve jobs until the supervisor closes the pipe. The first message is the supervisor's table of backends."""
    supervisor = Connection(pipe)
    board = Board(board_descriptor)
    board.open_job()
    bench = Workbench()
    try:
        adopt_backends(supervisor.recv())
        while True:
            message = supervisor.recv()
            if message == KILL:  # for a job that had ended by itself
                continue
            supervisor.send(_serve(message, bench, board, supervisor))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def adopt_backends(targets: dict[str, str]) -> None:
    """Know the backends that another process knows, those that were registered while it ran included."""
    from tokdfa.backends import registry

    registry.BUILT_IN.update(targets)
    registry._targets.cache_clear()


def _serve(job: Job, bench: Workbench, board: Board, supervisor: Connection) -> tuple[str, Any]:
    """Prepare for a job, run it in a fork, and say how it ended. EOFError if the supervisor goes away."""
    board.open_job()
    try:
        bench.prepare(job, board)
    except Exception as error:  # the tokenizer cannot be loaded
        return UNPREPARED, failure_of(error)
    reader, writer = Pipe(duplex=False)
    fork = os.fork()
    if fork == 0:
        supervisor.close()  # else the supervisor would not see the worker's death while this fork lives
        _run_in_fork(job, bench, board, writer)
    writer.close()
    messages: list[bytes] = []
    try:
        is_done = _hear_out(fork, reader, supervisor, messages)
    except BaseException:
        os.kill(fork, signal.SIGKILL)
        raise
    finally:
        reader.close()
        _, status = os.waitpid(fork, 0)
        last = board.read()
        board.open_job()
    return (DONE, messages) if is_done else (DIED, (os.waitstatus_to_exitcode(status), last, messages))


def _hear_out(fork: int, reader: Connection, supervisor: Connection, messages: list[bytes]) -> bool:
    """Gather what the fork sends; whether it came to its end, which is an empty message. EOFError if the supervisor
    goes away.
    """
    while True:
        ready = wait([supervisor, reader])
        if reader in ready:
            try:
                message = reader.recv_bytes()
            except EOFError:
                return False
            if not message:
                return True
            messages.append(message)
        elif supervisor.recv() == KILL:
            os.kill(fork, signal.SIGKILL)


def _run_in_fork(job: Job, bench: Workbench, board: Board, writer: Connection) -> NoReturn:
    """The life of a fork. It ends without Python's clean-up, which belongs to the worker."""
    code = 1
    try:
        die_with_parent()
        board.open_job()
        limit_address_space(job.config.limits)

        def send(message: object) -> None:
            writer.send_bytes(pickle.dumps(message))

        send(run_job(job, bench, board, send))
        writer.send_bytes(b"")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
