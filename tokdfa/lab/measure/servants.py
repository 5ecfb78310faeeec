"""Engines as a server has them: each in a process of its own that lives as long as the run and is warm.

An item that measures engines in turns keeps a `Servant` for each. The order of turns is its own business; only one
servant is at work at a time. A servant that breaks a limit or dies costs the case at work, and a new one takes its
place with the next turn, prepared anew; the others go on as they are.

    with Servants(queue, prepare) as servants:      # in the process of the item
        for number, row in servants.work(engine, numbers):
            ...

`prepare(engine)` is called in the new process and returns what measures a case: ``measure(number, begin) -> row``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import traceback
from dataclasses import dataclass, field
from multiprocessing import Pipe
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tokdfa.lab.measure.limits import (
    Failure,
    breach,
    death_failure,
    die_with_parent,
    resident_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from tokdfa.lab.measure.cases import CaseQueue
    from tokdfa.lab.measure.limits import Activity, Limits

    Row = dict[str, Any]
    #: Told the phase that starts.
    Begin = Callable[[str], None]
    Measure = Callable[[int, Begin], Row]

#: Memory and time of a servant at work are looked at this often.
POLL_SECONDS = 0.05


@dataclass
class _Servant:
    """A process at work or waiting. `pipe`: takes numbers of cases, or None at the end, and answers with rows."""

    pid: int
    pipe: Connection


@dataclass
class Servants:
    """See the module. `prepare(engine)` is called in the servant's process; `limits`: those while it prepares."""

    queue: CaseQueue
    prepare: Callable[[str], Measure]
    limits: Limits
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
        """Have an engine measure cases, one after another: each with its row, or with what ended the process."""
        for number in numbers:
            servant = self._running.get(engine) or self._start(engine)
            try:
                servant.pipe.send(number)
                answer = self._answer(servant)
            except (EOFError, OSError):
                answer = None
            if answer is None:
                yield number, self._buried(engine, servant)
            else:
                yield number, answer

    def _start(self, engine: str) -> _Servant:
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._running.values():
                other.pipe.close()
            self._serve(engine, theirs)
        theirs.close()
        self._running[engine] = _Servant(pid, ours)
        return self._running[engine]

    def _answer(self, servant: _Servant) -> Row | Failure | None:
        """What the servant says; None if it has broken a limit and was killed for it. EOFError if it has died."""
        while not servant.pipe.poll(POLL_SECONDS):
            activity = self.queue.board.read()
            if activity.pid == servant.pid and self._breach(activity) is not None:
                os.kill(servant.pid, signal.SIGKILL)
                return None
        found: Row | Failure = pickle.loads(servant.pipe.recv_bytes())
        return found

    def _breach(self, activity: Activity) -> Failure | None:
        limits = self.limits if activity.contender < 0 else self.queue.cases.limits
        return breach(activity, limits, resident_bytes(activity.pid))

    def _buried(self, engine: str, servant: _Servant) -> Failure:
        """Why a servant is gone: what the board shows of it is the last that it did."""
        activity = self.queue.board.read()
        broken = self._breach(activity) if activity.pid == servant.pid else None
        servant.pipe.close()
        _, status = os.waitpid(servant.pid, 0)
        del self._running[engine]
        return broken or death_failure(os.waitstatus_to_exitcode(status), "", activity.phase)

    def _serve(self, engine: str, pipe: Connection) -> NoReturn:
        """The life of a servant: prepare, then case after case until None."""
        code = 1
        try:
            die_with_parent()
            board = self.queue.board
            board.open_job()
            board.begin(-1, "warm up")
            measure = self.prepare(engine)
            self.queue.ready()
            while (number := pipe.recv()) is not None:
                board.open_job()

                def begin(phase: str, number: int = number) -> None:
                    board.begin(number, phase)

                pipe.send_bytes(pickle.dumps(measure(number, begin)))
                board.begin(-1, "idle")
                gc.collect()
            code = 0
        except EOFError:
            code = 0  # the item's process is gone
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
