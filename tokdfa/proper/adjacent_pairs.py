"""One pair of tokens, without any table: may u follow t?

The condition is that of `tokdfa.proper.intervals`, but only the pairs (x, y) that really stand side by side are looked
at. Going back in time from (t, u): the token that was completed last is taken apart, so x moves to right(x) if level(x)
> level(y), and y to left(y) otherwise. That is at most len(right spine) + len(left spine) steps with one search each:
about 0.3 us a pair inside a kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.jit import kernel
from tokdfa.proper.merge_rules import find_rule_kernel

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tokdfa.proper.derivations import Derivations
    from tokdfa.proper.merge_rules import MergeRules


def first_merge(rules: MergeRules, derivations: Derivations, left: int, right: int) -> int:
    """The index of the first rule that merges across the border of two proper tokens, or -1 if none does."""
    return int(find_break_kernel(left, right, *pair_arrays(rules, derivations)))


def pair_arrays(rules: MergeRules, derivations: Derivations) -> tuple[npt.NDArray[np.int32], ...]:
    """The arrays that `find_break_kernel` needs after the two tokens."""
    return (
        *(rules.row_starts, rules.right, rules.rank),
        *(derivations.left, derivations.right, derivations.level),
        *(derivations.rest_after_left, derivations.rest_after_right),
    )


@kernel
def find_break_kernel(t, u, row_starts, rule_right, rule_rank, left, right, level, rest_after_left, rest_after_right):  # type: ignore[no-untyped-def]
    """The rule that merges across the border of t and u, or -1. Of several, the one found last is the first in time."""
    x, y, px, py = t, u, -1, -1
    found = -1
    while True:
        rule = find_rule_kernel(x, y, row_starts, rule_right)
        y_is_last = level[x] <= level[y]
        if rule >= 0:
            r = rule_rank[rule]
            if y_is_last:
                breaks = (px < 0 or (r < level[px] and level[y] < level[px])) and (py < 0 or r <= rest_after_left[py])
            else:
                breaks = (px < 0 or r < rest_after_right[px]) and (py < 0 or max(r, level[x]) <= level[py])
            if breaks:
                found = rule
        # Letters have level -1, and a letter of level -1 against another: both are letters, there is nothing before.
        if y_is_last:
            if left[y] < 0:
                return found
            y, py = left[y], y
        else:
            x, px = right[x], x
