"""All states of the automaton of a number set, found breadth-first: equal rows are one state.

What is left to merge, and dead ends, are for `tokdfa.automata`. Cost: 0.4 us a state.
"""

cimport cython
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy, memset
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents
from tokdfa.json_schema.sets.number_rows cimport COLUMN_COUNT, Row
from tokdfa.json_schema.sets.number_states cimport NumberStates

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.json_schema.sets import number_plan

cdef enum:
    HELD_STATES = 4096  # explored before other threads may run; 2 ms

#: Columns of the table.
COLUMNS = COLUMN_COUNT
#: Work (`tokdfa.core.budget`) of a state, in nanoseconds.
NS_PER_NUMBER_STATE = 600


def explore_states(normal, int shift):
    """See number_exploration.pyi."""
    cdef Exploration states = Exploration(NumberStates(normal, shift))
    cdef size_t counted = 0, found, limit = number_plan.STATE_LIMIT
    states.explore(HELD_STATES, limit)
    while True:
        found = states.rows.size()
        spend(NS_PER_NUMBER_STATE * (found - counted), 4 * COLUMN_COUNT * (found - counted))
        if found > limit:
            raise number_plan.too_many_states(normal)
        if found == states.accepting.size():
            break
        counted = found
        with nogil:
            states.explore(16 * HELD_STATES, limit)
    table, accepting = np.empty((found, COLUMN_COUNT), dtype=np.int32), np.empty(found, dtype=np.bool_)
    cdef int32_t[:, ::1] entries = table
    cdef uint8_t[::1] flags = accepting.view(np.uint8)
    memcpy(&entries[0, 0], states.table.data(), states.table.size() * sizeof(int32_t))
    memcpy(&flags[0], states.accepting.data(), found)
    return table, accepting, states.states.only_tens


@cython.final
cdef class Exploration:
    """The states found so far. The first ones are explored: they have a row of `table` each, and say who accepts."""

    cdef NumberStates states
    cdef Contents[int32_t] rows
    cdef vector[int32_t] table
    cdef vector[uint8_t] accepting

    def __cinit__(self, NumberStates states not None):
        cdef Row start
        self.states = states
        memset(&start, 0, sizeof(Row))
        self.intern(&start)

    cdef int32_t intern(self, const Row* row) except -1 nogil:
        return self.rows.intern(<const int32_t*>row, sizeof(Row) // sizeof(int32_t))

    cdef int explore(self, size_t most, size_t limit) except -1 nogil:
        """Explore so many more states, none once there are more than `limit`."""
        cdef Row row, after
        cdef size_t place
        cdef int column
        while most and self.accepting.size() < self.rows.size() <= limit:
            memcpy(&row, self.rows.content_of(<int32_t>self.accepting.size()), sizeof(Row))
            place = self.table.size()
            self.table.resize(place + COLUMN_COUNT, -1)
            for column in range(1, COLUMN_COUNT):
                if self.states.follow(&row, column, &after):
                    self.table[place + column] = self.intern(&after)
            self.accepting.push_back(self.states.accepts(&row))
            most -= 1
        return 0
