"""Budgets: how much work a compile or a step may take before it is refused.

A *step* is one mask or one advance. A budget bounds its *work*, counted in nanoseconds that the work takes on a current
processor, and its *memory*, the bytes that it keeps. Work is counted where it is done, never read off a clock, so that
the same input is refused on every machine, busy or not. Every loop whose length the input decides counts:

- Python code calls `spend` once per round of such a loop, and `hold` for what it keeps;
- compiled code calls `pay` of ``core/border.pxd`` every 65,536 steps or so, which is `spend`, and handles signals.

The budget belongs to the thread: whoever starts a compile or a step opens it (`spending`), and everything below counts
towards it without passing anything on. The outermost one rules: what a step makes lazily counts towards the step.

Past the budget these functions raise `LimitExceeded`. A caller must leave what is shared whole: a table that only grows
may keep the entries that are finished. What was refused is refused again (`tokdfa.core.refusals`).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


@dataclass(frozen=True)
class Budget:
    """What one compile or one step may take: seconds of counted work, and megabytes (2**20 bytes) kept.

    `kind` names the options that raise it: ``compile`` for compile_seconds and compile_mb, ``step`` for step_seconds
    and step_mb.
    """

    seconds: float
    megabytes: float
    kind: str = "compile"
    #: The same in nanoseconds and bytes.
    work: int = field(init=False, compare=False)
    bytes: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", _whole(self.seconds * 1e9))
        object.__setattr__(self, "bytes", _whole(self.megabytes * (1 << 20)))


def _whole(amount: float) -> int:
    return int(min(amount, 1 << 62))


#: What a compile may take, and what one mask or advance may, unless options say otherwise.
COMPILE, STEP = Budget(5.0, 512.0, "compile"), Budget(1.0, 256.0, "step")


_OPTIONS = frozenset(f"{kind}_{what}" for kind in ("compile", "step") for what in ("seconds", "mb"))


class _Thread(threading.local):
    """By thread: the work and the bytes that are left, and what they are for."""

    account: spending | None = None


_thread = _Thread()


class spending:  # noqa: N801 - used as a verb: with spending(budget, "the mask of a regex")
    """The work of the block of a ``with`` counts towards a budget, unless the thread has one open already.

    `what`: what is being built, for the message, or what says it when it is asked. It may be entered again, also within
    the block; by one thread at a time. 0.2 us, and 0.2 us to make one.
    """

    __slots__ = ("_within", "budget", "bytes_left", "what", "work_left")

    def __init__(self, budget: Budget, what: str | Callable[[], str]) -> None:
        self.budget, self.what = budget, what
        #: What is left, in nanoseconds and bytes: ints, which are counted down faster than floats are compared.
        self.work_left, self.bytes_left = budget.work, budget.bytes
        #: How often it was entered while the thread had a budget open.
        self._within = 0

    @property
    def work_done(self) -> int:
        """Nanoseconds of work counted so far."""
        return self.budget.work - self.work_left

    def refuse_beyond(self, work: int, nbytes: int) -> None:
        """Raise what `spend` raises if the budget has less than this in all."""
        if work > self.budget.work:
            raise _out_of_work(self)
        if nbytes > self.budget.bytes:
            raise _out_of_memory(self)

    def __enter__(self) -> spending:
        if _thread.account is None:
            budget = self.budget
            self.work_left, self.bytes_left = budget.work, budget.bytes
            _thread.account = self
        else:
            self._within += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._within:
            self._within -= 1
        else:
            _thread.account = None


def is_spent(error: LimitExceeded) -> bool:
    """Whether a budget is used up, and not a limit of its own passed: such an error is passed on, never remembered."""
    return error.limit in _OPTIONS


def spend(work: int, nbytes: int = 0) -> None:
    """Count work, in nanoseconds, and bytes that are kept towards the thread's budget; none without one. 0.1 us.

    Raises LimitExceeded if that is more than the budget has. Call it before the memory is taken.
    """
    account = _thread.account
    if account is None:
        return
    account.work_left = left = account.work_left - work
    if left < 0:
        raise _out_of_work(account)
    if nbytes:
        account.bytes_left = left = account.bytes_left - nbytes
        if left < 0:
            raise _out_of_memory(account)


def hold(nbytes: int) -> None:
    """Count bytes that are kept, or with a negative number given back, as `spend` does."""
    spend(0, nbytes)


def ruling() -> spending | None:
    """The account that the work of this thread counts towards, None without one."""
    return _thread.account


def unit_of(error: LimitExceeded, budget: Budget) -> str:
    """What of a budget is used up, "seconds" or "mb"; "" for any other limit."""
    return error.limit.removeprefix(f"{budget.kind}_") if is_spent(error) else ""


def _out_of_work(account: spending) -> LimitExceeded:
    return _exceeded(account, "seconds", f"{account.budget.seconds:g} s of work", account.budget.seconds)


def _out_of_memory(account: spending) -> LimitExceeded:
    return _exceeded(account, "mb", f"{account.budget.megabytes:g} MB", account.budget.megabytes)


def _exceeded(account: spending, unit: str, limit: str, value: float) -> LimitExceeded:
    option = f"{account.budget.kind}_{unit}"
    what = account.what if isinstance(account.what, str) else account.what()
    return LimitExceeded(
        f"{what} takes more than {limit}; raise {option}, or ask for something simpler",
        limit=option,
        value=value,
    )
