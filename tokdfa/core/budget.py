"""Budgets: how much work a compile or a step may take before it is refused.

A *step* is one mask or one advance. A budget bounds its *work*, counted in nanoseconds that the work takes on a current
processor, and its *memory*, the bytes that it keeps. Work is counted where it is done, never read off a clock, so that
the same input is refused on every machine, busy or not. Every loop whose length the input decides counts:

- Python code calls `spend` once per round of such a loop, and `hold` for what it keeps;
- compiled code calls `pay` of ``core/border.pxd`` every 65,536 steps or so, which is `spend`, and handles signals.

The budget belongs to the thread (`tokdfa.core.account`): whoever starts a compile or a step opens it (`spending`), and
everything below counts towards it without passing anything on. The outermost one rules: what a step makes lazily counts
towards the step.

Past the budget these functions raise `LimitExceeded`. A caller must leave what is shared whole: a table that only grows
may keep the entries that are finished. What was refused is refused again (`tokdfa.core.refusals`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokdfa.core.account import ruling, spend, spending

if TYPE_CHECKING:
    from tokdfa.errors import LimitExceeded

__all__ = ["COMPILE", "STEP", "Budget", "hold", "is_spent", "ruling", "spend", "spending", "unit_of"]


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


def is_spent(error: LimitExceeded) -> bool:
    """Whether a budget is used up, and not a limit of its own passed: such an error is passed on, never remembered."""
    return error.limit in _OPTIONS


def hold(nbytes: int) -> None:
    """Count bytes that are kept, or with a negative number given back, as `spend` does."""
    spend(0, nbytes)


def unit_of(error: LimitExceeded, budget: Budget) -> str:
    """What of a budget is used up, "seconds" or "mb"; "" for any other limit."""
    return error.limit.removeprefix(f"{budget.kind}_") if is_spent(error) else ""
