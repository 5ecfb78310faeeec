"""Items of many cases, measured one after another in one process: what a case breaks costs that case only.

The process may hang, swallow the memory or die; then the case at work gets the `Failure`, and a new process takes the
cases that are left. A measure may also end by itself after a case, where it cannot trust its process any more.

    def measure_cases(settings, seed, queue):       # runs in a fork of the worker
        engine = prepare()
        queue.ready()                               # the memory of now is what growth counts from
        for case in queue.left:
            queue.begin(case, "compile")
            yield case, engine.run(case)            # a row; may come again, as more is known
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokdfa.lab.measure.limits import Failure, Limits, limit_address_space

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tokdfa.lab.measure.limits import Board

#: In the place of a case: what ended the process was none of them, so no other process would get further.
NOBODY = -1


@dataclass(frozen=True)
class Cases:
    """The cases 0 .. `count` - 1 of an item. `limits`: of one phase of a case; those of the experiment hold before."""

    count: int
    limits: Limits


@dataclass(frozen=True)
class CaseQueue:
    """What a process has to do, and how it says what it does.

    `left`: the cases without a row; `failures`: how some of them, or `NOBODY`, have ended an earlier process.
    """

    cases: Cases
    left: tuple[int, ...]
    board: Board
    failures: Mapping[int, Failure] = field(default_factory=dict)

    def failure(self, case: int) -> Failure | None:
        """Why a case that is left cannot be measured any more; None if it can."""
        return self.failures.get(case, self.failures.get(NOBODY))

    def begin(self, case: int, phase: str) -> None:
        """Say what starts now. About a microsecond."""
        self.board.begin(case, phase)

    def ready(self) -> None:
        """Say that all is prepared: what is there now stays, and is not what a case has taken.

        From now on the collector runs between rows, where nothing is timed.
        """
        gc.collect()
        gc.freeze()
        gc.disable()
        limit_address_space(self.cases.limits)
        self.board.open_job()
