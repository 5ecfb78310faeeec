"""One pair of tokens, without any table: may u follow t?

The condition is that of `tokdfa.proper.intervals`, but only the pairs (x, y) that really stand side by side are looked
at. Going back in time from (t, u): the token that was completed last is taken apart, so x moves to right(x) if level(x)
> level(y), and y to left(y) otherwise; px is the token that x was a part of, py likewise. That is at most len(right
spine) + len(left spine) steps with one search each: about 0.2 us a pair in compiled code.
"""

cimport cython
from libc.stdint cimport int32_t

from tokdfa.proper.bpe cimport int32_data

import numpy as np


@cython.final
cdef class AdjacentPairs:
    """Which pairs of tokens may stand side by side, by their `MergeRules` and `Derivations`. 28 bytes a token."""

    def __init__(self, rules, derivations):
        of, rows = derivations, rules.row_starts
        columns = rows[: rules.size], rows[1:], of.left, of.right, of.level, of.rest_after_left, of.rest_after_right
        merges = np.ascontiguousarray(np.column_stack(columns), dtype=np.int32)
        cdef const int32_t[:, ::1] table = merges
        self.arrays, self.size = (merges, rules.right, rules.rank), rules.size
        self.merges = <const Merge*>(&table[0, 0] if table.shape[0] else NULL)
        self.rule_right, self.rule_rank = int32_data(rules.right, len(rules)), int32_data(rules.rank, len(rules))

    def first_merge(self, int32_t left, int32_t right):
        """The index of the first rule that merges across the border of two proper tokens, or -1 if none does."""
        return self.find_break(self.checked(left), self.checked(right))
