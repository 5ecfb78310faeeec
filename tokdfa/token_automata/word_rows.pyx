"""Rows of an automaton over words: from each state all words are run, along their trie or each by itself.

A *word* is a string of letters, known by its number: a token by its rank (`tokdfa.token_automata.token_index`), a class
string by its token class (`tokdfa.token_automata.prefix_graphs`). The row of a state lists the words that can be read
from it, ascending, as they come along a walk, and the state that each leads to. Along the trie shared prefixes are read
once; the walk is that of `tokdfa.vocabulary.byte_table`, with a table that is complete.

States are numbered as they turn up. Everything belongs to one `WordRows`, so threads may each fill their own.

Cost: 1.6 to 4 ns for each node whose parent survives, or 1 ns a letter for words by themselves.
"""

cimport cython
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport int32_array, int64_array, pay
from tokdfa.token_automata.row_walk cimport RowView, WordList
from tokdfa.vocabulary.byte_table cimport DEAD, WalkProgress

import numpy as np

from tokdfa.errors import LimitExceeded


cdef enum:
    # Of the budget: a node of a trie, and a word by itself; nodes or words between two looks at it.
    NS_PER_NODE = 3
    NS_PER_WORD = 10
    LOOK_WORK = 1 << 20


cdef inline RowView view_of "view_of" (const RowView* view) noexcept nogil:
    return view[0]


cdef int mend_nothing "mend_nothing" (
    const RowView* view, int32_t* stack, uint64_t depth, uint64_t letter
) except -1 nogil:
    with gil:
        raise AssertionError("an entry of a complete table is not known")


cdef extern from "tokdfa/vocabulary/walker.hpp" namespace "tokdfa" nogil:
    int walk_words "tokdfa::walk<view_of, tokdfa::step_row, mend_nothing, tokdfa::list_word>" (
        const uint64_t*, WalkProgress&, int64_t, const RowView*, int32_t*, WordList&) except -1


@cython.final
cdef class WordRows:
    """The rows of a complete automaton, as far as they are filled.

    `transitions`: int32, shape (states, classes), -1 for dead; `class_of`: uint8, shape (256,), the class of each
    letter, None if letters are classes; `start`: the state that is row 0, None for the rows of all states, by their own
    numbers; `max_entries`: past it filling raises LimitExceeded.
    """

    cdef vector[int32_t] table                # state * width + class -> state * width, or DEAD
    cdef uint8_t[256] class_of
    cdef int32_t width
    cdef vector[int32_t] row_of, state_of     # -1 for a state that has not been met
    cdef vector[int64_t] offsets
    cdef vector[int32_t] words, targets
    cdef size_t max_entries, held             # entries that the budget knows of
    cdef readonly int64_t steps               # of the automaton, each a look-up in its table

    def __init__(self, const int32_t[:, ::1] transitions, const uint8_t[::1] class_of, start, size_t max_entries):
        cdef Py_ssize_t state, column
        cdef int32_t target
        self.width, self.max_entries = <int32_t>transitions.shape[1], max_entries
        for column in range(256):
            self.class_of[column] = <uint8_t>(column if column < self.width else 0)
            if class_of is not None:
                self.class_of[column] = class_of[column]
        self.table.reserve(transitions.shape[0] * self.width)
        for state in range(transitions.shape[0]):
            for column in range(self.width):
                target = transitions[state, column]
                self.table.push_back(target * self.width if target >= 0 else DEAD)
        self.row_of.assign(transitions.shape[0], -1)
        self.offsets.push_back(0)
        for state in range(transitions.shape[0]) if start is None else (start,):
            self.enter(<int32_t>state)

    def fill_along(self, const uint64_t[::1] nodes, int64_t depth_limit, uint64_t word_count):
        """Fill all rows by walks along a trie: uint64, packed as in `tokdfa.vocabulary.trie`, with words for tokens."""
        cdef vector[int32_t] stack
        cdef RowView view = RowView(self.table.data(), &self.class_of[0])
        cdef int64_t work
        found = np.empty((2, word_count + 1), dtype=np.int32)
        cdef int32_t[:, ::1] lists = found
        cdef WordList out = WordList(&lists[0, 0], &lists[1, 0], 0, word_count)
        self.reserve(word_count)
        stack.resize(depth_limit + 1)
        while not self.is_done():
            work = 0
            with nogil:
                while work < LOOK_WORK and not self.is_done():
                    work += self.walk(&view, nodes, stack, out)
            self.look(NS_PER_NODE * work)

    def fill_by_word(self, const uint8_t[::1] letters, const int64_t[::1] offsets, const int32_t[::1] order):
        """Fill all rows by running each word by itself: word k is ``letters[offsets[i]:offsets[i + 1]]``, i being
        ``order[k]``.
        """
        cdef vector[uint8_t] classes
        cdef Py_ssize_t k
        cdef int64_t work
        found = np.empty((2, order.shape[0]), dtype=np.int32)
        cdef int32_t[:, ::1] lists = found
        self.reserve(order.shape[0])
        classes.reserve(letters.shape[0])
        for k in range(letters.shape[0]):
            classes.push_back(self.class_of[letters[k]])
        while not self.is_done():
            work = 0
            with nogil:
                while work < LOOK_WORK and not self.is_done():
                    self.run(classes.data(), offsets, order, lists)
                    work += order.shape[0] + 1
            self.look(NS_PER_WORD * work)

    def arrays(self):
        """The rows in compressed form: offsets, int64, shape (rows + 1,); words; the row that each leads to, int32."""
        return int64_array(self.offsets), int32_array(self.words), int32_array(self.targets)

    @property
    def states(self):
        """int32: the state of each row."""
        return int32_array(self.state_of)

    cdef inline bint is_done(self) noexcept nogil:
        """Whether all rows that have turned up are filled, or hold too much."""
        return self.offsets.size() > self.state_of.size() or self.words.size() > self.max_entries

    cdef int reserve(self, size_t word_count) except -1:
        """Take room for some full rows: what is not used stays untouched."""
        self.words.reserve(4 * word_count)
        self.targets.reserve(4 * word_count)
        return 0

    cdef int look(self, int64_t work) except -1:
        """Count work and new entries; refuse too many."""
        pay(work, 8 * (self.words.size() - self.held))
        self.held = self.words.size()
        if self.held > self.max_entries:
            raise LimitExceeded(
                f"the token index has more than {self.max_entries} transitions ({self.offsets.size() - 1} of at least "
                f"{self.state_of.size()} states done): use token_index with lazy=True, or raise max_transitions",
                limit="max_transitions",
                value=self.max_entries,
            )
        return 0

    cdef int64_t walk(
        self, const RowView* view, const uint64_t[::1] nodes, vector[int32_t]& stack, WordList& out
    ) except -1 nogil:
        """Fill the next row by one walk; the nodes visited."""
        cdef WalkProgress progress = WalkProgress(0, nodes.shape[0], 0, 0)
        stack[0] = self.state_of[self.offsets.size() - 1] * self.width
        out.count = 0
        if nodes.shape[0]:
            walk_words(&nodes[0], progress, INT64_MAX, view, stack.data(), out)
        self.steps += progress.visited
        self.add_row(out.words, out.rows, out.count)
        return progress.visited + 1

    cdef int run(
        self, const uint8_t* classes, const int64_t[::1] offsets, const int32_t[::1] order, int32_t[:, ::1] lists
    ) except -1 nogil:
        """Fill the next row word by word."""
        cdef int32_t first = self.state_of[self.offsets.size() - 1] * self.width, row
        cdef int64_t here, end
        cdef Py_ssize_t word, count = 0
        for word in range(order.shape[0]):
            row, here, end = first, offsets[order[word]], offsets[order[word] + 1]
            self.steps -= here
            while row >= 0 and here < end:
                row = self.table[row + classes[here]]
                here += 1
            self.steps += here
            if row >= 0:
                lists[0, count], lists[1, count] = <int32_t>word, row
                count += 1
        if order.shape[0]:
            self.add_row(&lists[0, 0], &lists[1, 0], count)
        else:
            self.add_row(NULL, NULL, 0)
        return 0

    cdef int add_row(self, const int32_t* words, int32_t* rows, size_t count) except -1 nogil:
        """Keep a row: words, and the offset of the row of `table` that each leads to, which is overwritten. Numbers the
        states among them.
        """
        cdef int32_t last = DEAD, target = 0
        cdef size_t k
        for k in range(count):
            if rows[k] != last:
                last = rows[k]
                target = self.enter(last // self.width)
            rows[k] = target
        self.words.insert(self.words.end(), words, words + count)
        self.targets.insert(self.targets.end(), rows, rows + count)
        self.offsets.push_back(<int64_t>self.words.size())
        return 0

    cdef inline int32_t enter(self, int32_t state) except -1 nogil:
        """The row of a state, which gets one now if it has none."""
        if self.row_of[state] < 0:
            self.row_of[state] = <int32_t>self.state_of.size()
            self.state_of.push_back(state)
        return self.row_of[state]
