from collections.abc import Callable
from threading import Event
from types import TracebackType
from typing import Self

from tokdfa.core.budget import Budget

class spending:  # noqa: N801 - used as a verb: with spending(budget, "the mask of a regex")
    """The work of the block of a ``with`` counts towards a budget, unless the thread has one open already.

    `what`: what is being built, for the message, or what says it when it is asked. `stopped`: once it is set, the next
    work that is counted raises CancelledError. It may be entered again, also within the block; by one thread at a
    time. 0.1 us.
    """

    budget: Budget
    what: str | Callable[[], str]
    def __init__(self, budget: Budget, what: str | Callable[[], str], stopped: Event | None = None) -> None: ...
    @property
    def work_left(self) -> int:
        """Nanoseconds of work that are left."""

    @property
    def bytes_left(self) -> int: ...
    @property
    def work_done(self) -> int:
        """Nanoseconds of work counted so far."""

    def refuse_beyond(self, work: int, nbytes: int) -> None:
        """Raise what `spend` raises if the budget has less than this in all."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

def spend(work: float, nbytes: float = 0) -> None:
    """Count work, in nanoseconds, and bytes that are kept towards the thread's budget; none without one. 0.1 us.

    Raises LimitExceeded if that is more than the budget has. Call it before the memory is taken.
    """

def ruling() -> spending | None:
    """The account that the work of this thread counts towards, None without one."""
