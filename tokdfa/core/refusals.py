"""What was refused once is refused again: a limit says something of the input, not of what was asked before.

Work that ends in LimitExceeded leaves parts behind that are shared and may stay (`tokdfa.core.budget`), so the same
work takes less the next time. If it were then done, what is refused would depend on who asked how often. So whoever
starts work remembers how much it was at least, and for as much or less it is refused at once, with the same error; a
larger budget tries again. What was done is remembered with the work that it took then.

What parts *other* constraints have left behind is not charged again: near a limit, a process that has compiled much for
a vocabulary may do what a new one refuses.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.core.budget import ruling, unit_of
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from collections.abc import Hashable

    from tokdfa.core.budget import Budget, spending

#: Refusals of one constraint that are remembered at most, and costs of the constraints of one vocabulary.
MOST_REFUSALS, MOST_COSTS = 10_000, 1_000
#: Work of a compile, in nanoseconds, from which on it is remembered that it was done.
LONG_WORK = 10_000_000


class Cost(NamedTuple):
    """Work in nanoseconds and bytes that something takes at least, and the last error that said so, with its budget."""

    work: int = 0
    bytes: int = 0
    error: LimitExceeded | None = None
    budget: Budget | None = None


class Costs:
    """What compiles took, by what was compiled; the oldest are forgotten. `account`: one that begins with it."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, Cost] = OrderedDict()

    def check(self, key: Hashable, account: spending) -> None:
        """Refuse what is known to take more than the budget of an account."""
        known = self._known.get(key) if self._known else None  # to hash a schema takes its time
        if known is None:
            return
        if known.error is not None and known.budget == account.budget:
            raise _copied(known.error)
        account.refuse_beyond(known.work, known.bytes)

    def refused(self, key: Hashable, account: spending, error: LimitExceeded) -> None:
        """Note that a budget was not enough; no other limit is noted, as that is met again."""
        unit, budget, error = unit_of(error, account.budget), account.budget, _copied(error)
        if unit == "seconds":
            self._note(key, Cost(work=budget.work + 1, error=error, budget=budget))
        elif unit == "mb":
            self._note(key, Cost(bytes=budget.bytes + 1, error=error, budget=budget))

    def done(self, key: Hashable, account: spending) -> None:
        """Note the work of what was done."""
        if account.work_done >= LONG_WORK or (self._known and key in self._known):
            self._note(key, Cost(work=account.work_done))

    def _note(self, key: Hashable, cost: Cost) -> None:
        known = self._known.pop(key, Cost())
        error, budget = (cost.error, cost.budget) if cost.error is not None else (known.error, known.budget)
        self._known[key] = Cost(max(known.work, cost.work), max(known.bytes, cost.bytes), error, budget)
        while len(self._known) > MOST_COSTS:
            self._known.popitem(last=False)


def _copied(error: LimitExceeded) -> LimitExceeded:
    """The same without a traceback, whose frames would keep alive what was worked on."""
    return LimitExceeded(str(error), limit=error.limit, value=error.value)


class Refusals(dict["Hashable", tuple[LimitExceeded, "Budget"]]):
    """The steps of one compiled constraint that were refused, by the tokens before them: the error, the budget."""

    def check(self, key: Hashable, budget: Budget) -> None:
        """Refuse a step that was refused, with a budget that was no smaller. `budget`: unless another one rules."""
        known = self.get(key)
        if known is None:
            return
        (error, refused), now = known, _ruling_budget() or budget
        unit = unit_of(error, refused)
        if (unit == "seconds" and now.work > refused.work) or (unit == "mb" and now.bytes > refused.bytes):
            return
        raise _copied(error)

    def note(self, key: Hashable, error: LimitExceeded, budget: Budget) -> None:
        """Note a step that was refused."""
        if len(self) < MOST_REFUSALS or key in self:
            self[key] = _copied(error), _ruling_budget() or budget


def _ruling_budget() -> Budget | None:
    account = ruling()
    return None if account is None else account.budget
