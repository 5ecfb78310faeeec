"""The interval algorithm from the other side: which tokens may a given one not follow?

The same as `tokdfa.proper.intervals` in a mirror, with the rules by their right tokens and the merge tree of right
parts: what precedes t u on the left by equal levels does not on the right, so each "less" becomes an "at most".

Liveness asks this (`tokdfa.backends.proper_merge.proper_table`): a state where u may come next is a dead end only for
last tokens among these. Cost: O(rules with y on their right, for each y of the spine); the predecessors of one token in
microseconds. Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.proper.intervals import collect_intervals_kernel, join_intervals_kernel, longer_kernel
from tokdfa.proper.merge_tree import build_merge_tree

if TYPE_CHECKING:
    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.proper.derivations import Derivations
    from tokdfa.proper.merge_rules import Int32, MergeRules
    from tokdfa.proper.merge_tree import MergeTree


@dataclass(frozen=True, eq=False)
class Predecessors:
    """What `list_predecessors_kernel` reads. The rules by their right token: those of y have the left tokens
    ``rule_left[row_starts[y] : row_starts[y + 1]]`` and the ranks `rule_rank` (int32). `merge_tree`: that of right
    parts.
    """

    row_starts: Int32
    rule_left: Int32
    rule_rank: Int32
    merge_tree: MergeTree
    derivations: Derivations

    @property
    def arrays(self) -> tuple[Int32, ...]:
        """The arguments of the kernel after the token."""
        merge_tree, derivations = self.merge_tree, self.derivations
        return (
            *(self.row_starts, self.rule_left, self.rule_rank),
            *(derivations.left, derivations.level, derivations.rest_after_left, derivations.rest_after_right),
            *merge_tree.arrays,
        )

    def forbidden_before(self, token: int) -> Int32:
        """The proper tokens that `token` may not follow inside a piece, int32, in the order of the merge_tree."""
        return np.asarray(list_predecessors_kernel(token, *self.arrays), dtype=np.int32)


def build_predecessors(rules: MergeRules, derivations: Derivations, fallback: ByteFallback | None) -> Predecessors:
    """Sort the rules by their right tokens and number the merge_tree of right parts. 10 to 60 ms."""
    by_right = np.lexsort((rules.rank, rules.right))
    row_starts = np.zeros(rules.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(rules.right, minlength=rules.size), out=row_starts[1:])
    silent = np.zeros(0, dtype=np.int32) if fallback is None else fallback.used_tokens()
    merge_tree = build_merge_tree(derivations, silent, side="right")
    return Predecessors(row_starts, rules.left[by_right], rules.rank[by_right], merge_tree, derivations)


@kernel
def list_predecessors_kernel(  # type: ignore[no-untyped-def]
    token, row_starts, rule_left, rule_rank, left, level, rest_after_left, rest_after_right,
    order, number, end, children, child_starts, irregular_starts,
):  # fmt: skip
    """The tokens that `token` may not follow, each once."""
    found, count = np.empty(64, dtype=np.int64), -1
    while count < 0:
        count = collect_intervals_kernel(
            token, np.int32(0), row_starts, rule_left, rule_rank, left, level, rest_after_left, rest_after_right,
            number, end, children, child_starts, irregular_starts, found,
        )  # fmt: skip
        if count < 0:
            found = longer_kernel(found)
    count = join_intervals_kernel(found[:count])
    total = 0
    for k in range(count):
        total += (found[k] & np.int64(0xFFFFFFFF)) - (found[k] >> 32)
    tokens = np.empty(total, dtype=np.int32)
    written = 0
    for k in range(count):
        for place in range(found[k] >> 32, found[k] & np.int64(0xFFFFFFFF)):
            tokens[written] = order[place]
            written += 1
    return tokens
