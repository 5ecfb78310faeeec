"""Engines as a server has them: each in a process of its own that lives as long as the run and is warm.

An item that measures engines in turns keeps a `Servant` for each. The order of turns is its own business; only one
servant is at work at a time, and nothing else is: rows wait until a turn is over. The garbage collector stays on. A
servant that breaks a limit or dies costs the case at work, and a new one takes its place, prepared anew; the others go
on as they are.

    with Servants(queue, prepare) as servants:      # in the process of the item
        for number, row in servants.work(engine, numbers):
            ...

`prepare(engine)` is called in the new process and returns what measures a case: ``measure(number, begin) -> row``.

A servant is a fork of the item's process, or, where an engine has an interpreter of its own (`interpreters`), a process
of that. Then `prepare` goes over pickled, so it is a function of a module, with plain data.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import traceback
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tokdfa.backends import registry
from tokdfa.lab.measure import interpreters
from tokdfa.lab.measure.cases import CaseQueue
from tokdfa.lab.measure.limits import (
    Board,
    Failure,
    breach,
    death_failure,
    die_with_parent,
    resident_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tokdfa.lab.measure.limits import Activity, Limits

    Row = dict[str, Any]
    #: Told the phase that starts.
    Begin = Callable[[str], None]
    Measure = Callable[[int, Begin], Row]

#: Memory and time of a servant at work are looked at this often.
POLL_SECONDS = 0.05
_START = "import sys; from tokdfa.lab.measure.servants import serve_apart; serve_apart(*map(int, sys.argv[1:]))"


@dataclass
class _Servant:
    """A process at work or waiting. `pipe`: takes numbers of cases, or None at the end, and answers with rows."""

    pid: int
    pipe: Connection


@dataclass
class Servants:
    """See the module. `prepare(engine)` is called in the servant's process; `limits`: those while it prepares;
    `pythons`: engine -> its interpreter, of those that have their own.
    """

    queue: CaseQueue
    prepare: Callable[[str], Measure]
    limits: Limits
    pythons: Mapping[str, str] = field(default_factory=dict)
    _running: dict[str, _Servant] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for servant in self._running.values():
            with contextlib.suppress(OSError):
                servant.pipe.send(None)
            servant.pipe.close()
            os.waitpid(servant.pid, 0)
        self._running.clear()

    def work(self, engine: str, numbers: Sequence[int]) -> Iterator[tuple[int, Row | Failure]]:
        """Have an engine measure cases one after another without a break: each with its row, or with what ended the
        process. Rows come when all are measured; where a case ends the process, those before it are measured again.
        """
        left = [*numbers]
        while left:
            servant = self._running.get(engine) or self._start(engine)
            try:
                servant.pipe.send(left)
                rows = self._answer(servant)
            except (EOFError, OSError):
                rows = None
            if rows is not None:
                yield from zip(left, rows, strict=True)
                return
            number, failure = self._buried(engine, servant)
            ended = number if number in left else left[0]
            left.remove(ended)
            yield ended, failure

    def _start(self, engine: str) -> _Servant:
        ours, theirs = Pipe()
        if engine in self.pythons:
            pid = interpreters.start(self.pythons[engine], _START, [theirs.fileno(), self.queue.board.descriptor])
            with contextlib.suppress(OSError):  # it has died: the first answer says so
                ours.send_bytes(pickle.dumps((registry.BUILT_IN, engine, self.prepare, self.queue.cases)))
        else:
            pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._running.values():
                other.pipe.close()
            _serve(engine, theirs, self.queue, self.prepare)
        theirs.close()
        self._running[engine] = _Servant(pid, ours)
        return self._running[engine]

    def _answer(self, servant: _Servant) -> list[Row] | None:
        """The servant's rows; None if it has broken a limit and was killed for it. EOFError if it has died."""
        while not servant.pipe.poll(POLL_SECONDS):
            activity = self.queue.board.read()
            if activity.pid == servant.pid and self._breach(activity) is not None:
                os.kill(servant.pid, signal.SIGKILL)
                return None
        found: list[Row] = pickle.loads(servant.pipe.recv_bytes())
        return found

    def _breach(self, activity: Activity) -> Failure | None:
        limits = self.limits if activity.contender < 0 else self.queue.cases.limits
        return breach(activity, limits, resident_bytes(activity.pid))

    def _buried(self, engine: str, servant: _Servant) -> tuple[int, Failure]:
        """The case at which a servant is gone, negative for none, and why: the board shows the last that it did."""
        activity = self.queue.board.read()
        broken = self._breach(activity) if activity.pid == servant.pid else None
        servant.pipe.close()
        _, status = os.waitpid(servant.pid, 0)
        del self._running[engine]
        return activity.contender, broken or death_failure(os.waitstatus_to_exitcode(status), "", activity.phase)


def serve_apart(pipe: int, board: int) -> NoReturn:
    """The life of a servant under an interpreter of its own. `pipe`, `board`: descriptors."""
    item = Connection(pipe)
    backends, engine, prepare, cases = pickle.loads(item.recv_bytes())
    registry.adopt(backends)
    _serve(engine, item, CaseQueue(cases, (), Board(board)), prepare)


def _serve(engine: str, pipe: Connection, queue: CaseQueue, prepare: Callable[[str], Measure]) -> NoReturn:
    """The life of a servant: prepare, then case after case until None."""
    code = 1
    try:
        die_with_parent()
        board = queue.board
        board.open_job()
        board.begin(-1, "warm up")
        measure = prepare(engine)
        queue.ready()
        gc.enable()  # as in a server
        while (numbers := pipe.recv()) is not None:
            rows = []
            for number in numbers:
                board.open_job()
                rows.append(measure(number, partial(board.begin, number)))
                board.begin(-1, "idle")
            pipe.send_bytes(pickle.dumps(rows))
        code = 0
    except EOFError:
        code = 0  # the item's process is gone
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
