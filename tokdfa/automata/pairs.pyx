"""Two automata at once: searches over pairs of their states, breadth first, each pair met once.

Products. A pair leads by a byte to the pair of the states after it; either may be dead.

Containment: can one automaton read every text of another without dying? Decided exactly, within a budget. A *slice* is
a regular language of bytes, given by the start of an automaton whose states are all live. It is *contained* in a state
of some other automaton, live states only, if that state can read every text of the slice. Each path of the slice's
automaton is the beginning of a text of the slice. Hence the slice is contained iff no pair (state, slice state) that
can be reached from the two starts has a byte with which the slice goes on and the other does not. So the search can
stop after as many bytes as the longest token has, where only tokens matter. Its budget is the number of pairs met. Past
it the search is *given up*, and the slice counts as not contained: work is then done that was not needed, and nothing
else changes.

Cost: O(pairs x byte classes).
Source of containment: llguidance checks the same by an under-approximation on expressions: both slice and lexeme must
be repetitions, whose bounds are compared as numbers and whose bodies by an emptiness test. That costs nothing for large
bounds, where ours meets a pair or more for each repetition; ours needs no particular form, and is never wrong within
its budget.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, PAID_WORK, pay
from tokdfa.core.interning cimport Keys, pair_key

from collections import namedtuple

import numpy as np

from tokdfa.core.budget import spend

cdef enum:
    UNKNOWN = -2  # of `tokdfa.vocabulary.byte_table`
    NS_PER_ENTRY = 5
    NS_PER_PAIR = 50

cpdef enum:
    INSIDE = -1
    OUTSIDE = -2
    GIVEN_UP = -3

ANY_DEPTH = 1 << 40
Table = namedtuple("Table", "transitions width places")
Limits = namedtuple("Limits", "flags refused")


def explore_pairs(
    const int32_t[:, ::1] first, const int32_t[:, ::1] second, tuple starts, tuple needed, limit
):
    """The pairs of states that can be reached from `starts`, in order, and where they lead.

    `first`, `second`: int32, equal columns, -1 for dead; `starts`: a state of each, -1 for dead; `needed`: which of the
    two has to be alive for a pair to be one. Returns int32 arrays of shape (pairs, 2), -1 for dead, and (pairs,
    columns), -1 where no pair follows; after some more than `limit` pairs it stops, and the latter lacks rows.
    """
    cdef Keys pairs
    cdef vector[int32_t] table
    cdef bint needs_first, needs_second
    cdef size_t most = limit, k, before = 0
    if first.shape[1] != second.shape[1]:
        raise ValueError("the tables have different columns")
    needs_first, needs_second = needed
    pairs.intern(pair_key(starts[0], starts[1]))
    add_rows(first, second, needs_first, needs_second, most, HELD_WORK, pairs, table)
    while table.size() < pairs.size() * first.shape[1] and pairs.size() <= most:
        before = table.size()
        with nogil:
            add_rows(first, second, needs_first, needs_second, most, PAID_WORK, pairs, table)
        pay(NS_PER_ENTRY * (table.size() - before), 0)
    states, rows = np.empty((pairs.size(), 2), dtype=np.int32), np.empty(table.size(), dtype=np.int32)
    cdef int32_t[:, ::1] numbers = states
    cdef int32_t[::1] entries = rows
    for k in range(pairs.size()):
        numbers[k, 0], numbers[k, 1] = <int32_t>(pairs.key(k) >> 32), <int32_t>pairs.key(k)
    for k in range(table.size()):
        entries[k] = table[k]
    return states, rows.reshape(-1, first.shape[1])


cdef int add_rows(
    const int32_t[:, ::1] first, const int32_t[:, ::1] second, bint needs_first, bint needs_second, size_t limit,
    size_t most, Keys& pairs, vector[int32_t]& table,
) except -1 nogil:
    """Write the rows of the next pairs, some `most` entries."""
    cdef size_t end = table.size() + most, head = table.size() // first.shape[1]
    cdef Py_ssize_t column
    cdef int32_t p, q, p_after, q_after
    while head < pairs.size() <= limit and table.size() < end:
        p, q = <int32_t>(pairs.key(head) >> 32), <int32_t>pairs.key(head)
        for column in range(first.shape[1]):
            p_after = first[p, column] if p >= 0 else -1
            q_after = second[q, column] if q >= 0 else -1
            if (p_after < 0 and (needs_first or q_after < 0)) or (q_after < 0 and needs_second):
                table.push_back(-1)
            else:
                table.push_back(pairs.intern(pair_key(p_after, q_after)))
        head += 1
    return 0


@cython.final
cdef class PairSearch:
    """Searches for containment, one at a time. `budget`: pairs that one of them may meet."""

    cdef Keys met
    cdef int32_t budget

    def __cinit__(self, budget: int):
        self.budget = budget

    def search(self, state: int, start: int, tables, make_row, depth: int = ANY_DEPTH):
        """INSIDE, OUTSIDE or GIVEN_UP: whether `state` reads all texts from `start`, of up to `depth` bytes.

        `tables()`: (the state's `Table`, the slice's, `Limits` of the state's automaton), asked for again after each
        `make_row(state)`, which makes a row of the state's automaton. Raises what that raises.
        """
        cdef const int32_t[::1] table, slice_table
        cdef const int64_t[::1] places, slice_places
        cdef const uint8_t[::1] flags
        cdef int64_t width, slice_width, key, bytes_left = depth
        cdef size_t head = 0, level
        cdef int refused, found = INSIDE
        (table, width, places), (slice_table, slice_width, slice_places), (flags, refused) = tables()
        self.met.clear()
        self.met.intern(pair_key(state, start))
        while found == INSIDE and bytes_left > 0 and head < self.met.size():
            level = self.met.size()  # the pairs after so many bytes end here
            while found == INSIDE and head < level:
                key = self.met.key(head)
                if table[(key >> 32) * width] == UNKNOWN:
                    make_row(key >> 32)
                    (table, width, places), (slice_table, slice_width, slice_places), (flags, refused) = tables()
                else:
                    found = self._follow(
                        &table[(key >> 32) * width], &slice_table[<int32_t>key * slice_width], places,
                        slice_places, flags, refused,
                    )
                    head += 1
            bytes_left -= 1
        spend(NS_PER_PAIR * self.met.size())
        return found

    cdef int _follow(
        self, const int32_t* row, const int32_t* slice_row, const int64_t[::1] places, const int64_t[::1] slice_places,
        const uint8_t[::1] flags, int refused,
    ) except 0 nogil:
        """Enter the pairs after one; INSIDE, or why the search ends."""
        cdef Py_ssize_t k
        cdef int32_t target, follower
        cdef int64_t key, last = -1
        for k in range(places.shape[0]):
            follower = slice_row[slice_places[k]]
            if follower < 0:
                continue
            target = row[places[k]]
            if target < 0 or (refused and flags[target] & refused):
                return OUTSIDE
            key = pair_key(target, follower)
            if key != last and self.met.intern(key) == self.budget:  # mostly equal: what was done a byte before
                return GIVEN_UP
            last = key
        return INSIDE
