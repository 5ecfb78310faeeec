"""Repetitions as rules: ``e?``, ``e*``, ``e+``, ``e{m,n}`` become nonterminals with few and flat rules.

    e*       p -> nothing | p e
    e+       p -> e | p e
    e{n}     n <= 8: e e .. e;   else g{n div 4} e .. e, where g = e{4}: the last part has n mod 4
    e{0,n}   n < 12: nothing | e | e e | ..;   else (with q = n div 4)  g{0,q-1} (0 to 3 times e) | g{q} (0 to n mod 4)
    e{m,n}   e{m} e{0,n-m};   e{m,}  e{m} e*

Unbounded ones are left-recursive: an Earley parser then keeps one item for them, however long the text. Counted ones
take O(log n) rules, all with right sides of at most 11 symbols. Each number of times has one derivation only, because
n = 4 g + r with 0 <= r < 4 in one way. Encodings: 000 (llguidance); the split of e{0,n} into disjoint parts likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from tokdfa.grammar.builder import CfgBuilder

#: Symbols in a group of a counted repetition.
GROUP = 4
#: Exactly so many are written out one after another.
LONGEST_SEQUENCE = 8
#: Up to so many are written out as alternatives.
LONGEST_CHOICE = 11


class Repetitions:
    """The repetitions of one grammar in the making; equal ones are one nonterminal."""

    def __init__(self, builder: CfgBuilder) -> None:
        self.builder = builder
        self._made: dict[tuple[int, int, int | None], int] = {}

    def repeat(self, symbol: int, low: int, high: int | None) -> int:
        """The symbol for `symbol` from `low` to `high` times (None: without end). O(log high) new rules.

        Raises OptionError unless 0 <= low <= high.
        """
        if low < 0 or (high is not None and high < low):
            raise OptionError(f"a repetition needs 0 <= low <= high, not {low} and {high}")
        if (low, high) == (1, 1):
            return symbol
        key = symbol, low, high
        if key not in self._made:
            self._made[key] = made = self.builder.nonterminal(self.builder.name(symbol) + _suffix(low, high))
            for right in self._right_sides(made, symbol, low, high):
                self.builder.add_rule(made, right)
        return self._made[key]

    def _right_sides(self, made: int, symbol: int, low: int, high: int | None) -> list[tuple[int, ...]]:
        """What `made` derives."""
        if high is None:
            if low > 1:
                return [(self.repeat(symbol, low, low), self.repeat(symbol, 0, None))]
            return [(symbol,) * low, (made, symbol)]
        if low == high:
            return [self._exactly(symbol, low)]
        if low > 0:
            return [(self.repeat(symbol, low, low), self.repeat(symbol, 0, high - low))]
        if high <= LONGEST_CHOICE:
            return [(symbol,) * times for times in range(high + 1)]
        group, (groups, rest) = self.repeat(symbol, GROUP, GROUP), divmod(high, GROUP)
        return [
            (self.repeat(group, 0, groups - 1), self.repeat(symbol, 0, GROUP - 1)),
            (*self._times(group, groups), *self._up_to(symbol, rest)),
        ]

    def _exactly(self, symbol: int, times: int) -> tuple[int, ...]:
        if times <= LONGEST_SEQUENCE:
            return (symbol,) * times
        groups, rest = divmod(times, GROUP)
        return (*self._times(self.repeat(symbol, GROUP, GROUP), groups), *(symbol,) * rest)

    def _times(self, symbol: int, times: int) -> tuple[int, ...]:
        """A few times written out, many times as one symbol."""
        return (symbol,) * times if times <= GROUP else (self.repeat(symbol, times, times),)

    def _up_to(self, symbol: int, times: int) -> tuple[int, ...]:
        return (self.repeat(symbol, 0, times),) if times else ()


def _suffix(low: int, high: int | None) -> str:
    """The notation of a repetition, as it is in names."""
    if high is None:
        return "*" if low == 0 else "+" if low == 1 else f"{{{low},}}"
    if low == high:
        return f"{{{low}}}"
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"
