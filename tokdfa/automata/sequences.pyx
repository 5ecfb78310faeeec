"""The automaton of texts that are read one after another, each by an automaton of its own.

Words. An *item* is a state of one of the automata, and a *continuation*: the number of what is read when its text has
ended. A *row* is the set of items after some bytes: the texts that are being read. If a byte ends a text, the items
that begin behind it are in the next row, too; the caller says which these are, once for each continuation (`begin`).
`END` is the item of a text that is complete. Rows are the states of a deterministic automaton, found by stepping each
by every byte, as the subset construction does. There need not be finitely many; `explore` stops at a limit.

Bytes that all automata of a row take alike are stepped once.

Cost: about 50 ns an item and class of bytes; 1 kB a row for the table.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.algorithm cimport sort, unique
from libcpp.vector cimport vector

from tokdfa.core.border cimport int32_array, pay
from tokdfa.core.interning cimport Contents, pair_key

import numpy as np

cdef enum:
    COMPLETE = -1
    ACCEPTS = 1
    GOES_ON = 2
    NS_PER_STEP = 20
    STEPS = 1 << 14  # before the budget is asked, and signals

#: The item of a text that is complete.
END = COMPLETE


@cython.final
cdef class Sequences:
    """See the module's docstring. `begin(continuation)`: the items with which what follows begins, a list of ints that
    `item` gave, with `END` if the text may be complete. It may add automata.
    """

    cdef object begin
    # Of the states of all automata: where their transitions begin, which lead to such states, too.
    cdef vector[int64_t] row_at
    cdef vector[int32_t] moves, automaton_of
    cdef vector[uint8_t] flags
    cdef vector[uint8_t] classes  # 256 an automaton
    # The items that follow: those of a continuation are first[c] .. past[c] - 1; past is 0 until they are known.
    cdef vector[int64_t] first, past, following
    cdef Contents[int64_t] rows
    cdef vector[int32_t] table
    cdef vector[int64_t] here, after
    # The number of each pair of byte classes, valid if the pair was met since the last stamp.
    cdef vector[int32_t] stamps
    cdef vector[uint8_t] numbers
    cdef int32_t stamp

    def __init__(self, begin):
        self.begin = begin
        self.stamps.assign(1 << 16, 0)
        self.numbers.assign(1 << 16, 0)

    def add(self, const int32_t[:, ::1] transitions, const uint8_t[::1] byte_class, const uint8_t[::1] accepting):
        """Add an automaton, whose parts are those of a `tokdfa.automata.dfa.Dfa`; returns the number of its state 0.
        O(states x classes).
        """
        cdef int32_t base = <int32_t>self.row_at.size(), automaton = <int32_t>(self.classes.size() // 256), target
        cdef Py_ssize_t state, column, states = transitions.shape[0], width = transitions.shape[1]
        if byte_class.shape[0] != 256 or accepting.shape[0] != states:
            raise ValueError("the parts of the automaton do not belong together")
        if max(byte_class) >= width or np.max(transitions, initial=-1) >= states:
            raise ValueError("a transition leads to no state, or a class of bytes has none")
        for column in range(256):
            self.classes.push_back(byte_class[column])
        for state in range(states):
            self.row_at.push_back(self.moves.size())
            self.automaton_of.push_back(automaton)
            self.flags.push_back(ACCEPTS if accepting[state] else 0)
            for column in range(width):
                target = transitions[state, column]
                if target >= 0:
                    self.flags[base + state] |= GOES_ON
                    target += base
                self.moves.push_back(target)
        return base

    def item(self, int32_t continuation, int32_t state):
        """The item that reads on from a state, and then what a continuation, from 0 on, begins with."""
        if continuation < 0 or not 0 <= state < <int64_t>self.row_at.size():
            raise ValueError("there is no such item")
        return pair_key(continuation, state)

    def accepts(self, int32_t state):
        """Whether a text may end in a state."""
        return self.flags_of(state) & ACCEPTS != 0

    def goes_on(self, int32_t state):
        """Whether a state has transitions."""
        return self.flags_of(state) & GOES_ON != 0

    def explore(self, list items, int64_t limit):
        """The table of all rows from the one of these items on, which is row 0; None if there are more than `limit`.

        Returns int32, shape (rows, 256), the row after each byte, -1 for none; and bool, shape (rows,), whether the
        text may be complete. Raises what `begin` raises.
        """
        cdef int64_t row = 0, work, held = 0
        cdef Py_ssize_t k
        self.rows.clear()
        self.table.clear()
        self.after.clear()
        self.add_items(items, self.after)
        self.intern_after()
        while row < <int64_t>self.rows.size():
            work = 0
            with nogil:
                while row < <int64_t>self.rows.size() <= limit and work < STEPS:
                    work += self.step_row(<int32_t>row)
                    row += 1
            if <int64_t>self.rows.size() > limit:
                return None
            pay(NS_PER_STEP * work, 4 * <int64_t>self.table.size() - held)
            held = 4 * self.table.size()
        complete = [self.rows.content_of(<int32_t>k)[0] == COMPLETE for k in range(<Py_ssize_t>self.rows.size())]
        return int32_array(self.table).reshape(-1, 256), np.array(complete, dtype=np.bool_)

    cdef int flags_of(self, int32_t state) except -1:
        if not 0 <= state < <int64_t>self.flags.size():
            raise IndexError("there is no such state")
        return self.flags[state]

    cdef int add_items(self, list items, vector[int64_t]& out) except -1:
        cdef int64_t item
        for item in items:
            if item != COMPLETE and not (item >= 0 and <int32_t>item < <int64_t>self.row_at.size()):
                raise ValueError("there is no such item")
            out.push_back(item)
        return 0

    cdef int32_t intern_after(self) except -2 nogil:
        """The row of the items in `after`; -1 if there are none."""
        if self.after.empty():
            return -1
        sort(self.after.begin(), self.after.end())
        self.after.erase(unique(self.after.begin(), self.after.end()), self.after.end())
        return self.rows.intern(self.after.data(), self.after.size())

    cdef int64_t step_row(self, int32_t row) except -1 nogil:
        """Append where a row leads; returns how many items were stepped."""
        cdef uint8_t[256] alike     # byte -> number of what all automata take alike
        cdef uint8_t[256] examples  # number -> byte
        cdef int32_t[256] targets
        cdef const int64_t* content = self.rows.content_of(row)
        cdef int count, number
        cdef size_t byte
        self.here.assign(content, content + self.rows.length(row))
        count = self.split_bytes(alike, examples)
        for number in range(count):
            self.after.clear()
            self.step_items(examples[number])
            targets[number] = self.intern_after()
        for byte in range(256):
            self.table.push_back(targets[alike[byte]])
        return count * <int64_t>self.here.size()

    cdef int split_bytes(self, uint8_t* alike, uint8_t* examples) except -1 nogil:
        """Number the sets of bytes that all automata of `here` take alike; returns how many there are."""
        cdef int count = 1
        cdef int32_t automaton, before = -1
        cdef size_t byte, k, pair
        for byte in range(256):
            alike[byte] = 0
        examples[0] = 0
        for k in range(self.here.size()):
            if self.here[k] == COMPLETE:
                continue
            automaton = self.automaton_of[<int32_t>self.here[k]]
            if automaton == before:
                continue
            before = automaton
            self.stamp += 1
            count = 0
            for byte in range(256):
                pair = <size_t>alike[byte] << 8 | self.classes[256 * <size_t>automaton + byte]
                if self.stamps[pair] != self.stamp:
                    self.stamps[pair] = self.stamp
                    self.numbers[pair] = <uint8_t>count
                    examples[count] = <uint8_t>byte
                    count += 1
                alike[byte] = self.numbers[pair]
        return count

    cdef int step_items(self, size_t byte) except -1 nogil:
        """Put into `after` the items after a byte."""
        cdef size_t k
        cdef int64_t item
        cdef int32_t state, target
        for k in range(self.here.size()):
            item = self.here[k]
            if item == COMPLETE:
                continue
            state = <int32_t>item
            target = self.moves[self.row_at[state] + self.classes[256 * <size_t>self.automaton_of[state] + byte]]
            if target < 0:
                continue
            if self.flags[target] & GOES_ON:
                self.after.push_back(pair_key(<int32_t>(item >> 32), target))
            if self.flags[target] & ACCEPTS:
                self.follow(<int32_t>(item >> 32))
        return 0

    cdef int follow(self, int32_t continuation) except -1 nogil:
        """Put into `after` the items that a continuation begins with."""
        if <size_t>continuation >= self.past.size() or not self.past[continuation]:
            self.ask(continuation)
        self.after.insert(
            self.after.end(), self.following.begin() + self.first[continuation],
            self.following.begin() + self.past[continuation],
        )
        return 0

    cdef int ask(self, int32_t continuation) except -1 with gil:
        cdef vector[int64_t] found
        self.add_items(self.begin(continuation), found)
        if <size_t>continuation >= self.past.size():
            self.first.resize(continuation + 1)
            self.past.resize(continuation + 1)
        if self.following.empty():
            self.following.push_back(COMPLETE)  # so that what is known ends beyond 0
        self.first[continuation] = self.following.size()
        self.following.insert(self.following.end(), found.begin(), found.end())
        self.past[continuation] = self.following.size()
        return 0
