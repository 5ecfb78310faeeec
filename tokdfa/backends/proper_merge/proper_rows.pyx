"""Rows for proper token masks: the tokens that go on from a state inside the piece, read from the piece automaton.

A *state* is a state of the piece automaton (`tokdfa.backends.proper_merge.marked_product`) with a node of the whole
pieces (`tokdfa.proper.whole_pieces`), written as one number, its *key*: state x nodes + node. Its *row* are the tokens
that can be read from it inside the piece, and where they lead: byte tokens one letter at a time, other tokens along the
trie, and at the beginning of a piece the improper tokens that are whole pieces.

`TokenReader` reads a row. `ProperRows` is a store of rows that only grows: states get numbers when something leads to
them, and rows in that order. Their liveness is found by `tokdfa.backends.proper_merge.proper_table`.

Cost of a row: one walk of the trie, and 5 ns a token.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, PAID_WORK, int32_array, int64_array, pay
from tokdfa.proper.bpe cimport int32_data
from tokdfa.proper.intervals cimport lower_bound
from tokdfa.vocabulary.byte_table cimport DEAD, WalkProgress
from tokdfa.vocabulary.trie_nodes cimport FlatTrie

import numpy as np

from tokdfa.core.budget import hold
from tokdfa.errors import LimitExceeded


cdef enum:
    NS_PER_NODE = 3
    NS_PER_ENTRY = 20
    WORK_PER_ROW = 20       # as much as so many entries
    BYTES_PER_ENTRY = 13    # with what is kept of its liveness
    BYTES_PER_STATE = 60
    LEAST_ROOM = 1024       # entries
    WALKS_AT_A_TIME = 64


# The walk along the trie: it writes pairs of a token and the row that it leads to, or marks the states on its way.

cdef struct Pairs:
    int32_t* tokens
    int32_t* rows
    uint64_t count
    uint64_t spare


cdef struct Marks:
    const int32_t* stack
    uint8_t* crossed
    uint64_t marked  # the states in stack[1] .. stack[marked] are marked
    uint64_t spare
    uint32_t classes


cdef struct ReaderView:
    const int32_t* table
    const uint8_t* byte_class


cdef inline ReaderView reader_view "reader_view" (TokenReader reader) noexcept nogil:
    return ReaderView(reader.table, reader.byte_class)


cdef inline int32_t reader_step "reader_step" (
    ReaderView view, int32_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int32_t target = view.table[<uint64_t><uint32_t>stack[depth] + view.byte_class[byte]]
    stack[depth + 1] = target
    return target


cdef inline int32_t depth_step "depth_step" (
    ReaderView view, int32_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    """The same, but it returns the depth."""
    return DEAD if reader_step(view, stack, depth, byte) < 0 else <int32_t>depth


cdef inline int no_mend "no_mend" (TokenReader reader, int32_t* stack, uint64_t depth, uint64_t byte) noexcept nogil:
    return -1  # nothing is lacking in a table that is complete


cdef inline void add_pair "add_pair" (Pairs& out, uint64_t token, int32_t row) noexcept nogil:
    # that of a node without a token is overwritten by the next one
    out.tokens[out.count] = <int32_t>token
    out.rows[out.count] = row
    out.count += token != out.spare


cdef inline void mark_path "mark_path" (Marks& out, uint64_t token, int32_t depth) noexcept nogil:
    """Mark the states before the last byte of a token, which are those of the node above and perhaps one more."""
    if out.marked > <uint64_t>depth:
        out.marked = depth
    if token != out.spare:
        while out.marked < <uint64_t>depth:
            out.marked += 1
            out.crossed[<uint32_t>out.stack[out.marked] // out.classes] = 1


cdef extern from "tokdfa/vocabulary/walker.hpp" nogil:
    # the walk with these holes: nodes, where it is, the most nodes, owner, stack, out
    int walk_pairs "tokdfa::walk<reader_view, reader_step, no_mend, add_pair>" (
        const uint64_t*, WalkProgress&, int64_t, TokenReader, int32_t*, Pairs&)
    int walk_marks "tokdfa::walk<reader_view, depth_step, no_mend, mark_path>" (
        const uint64_t*, WalkProgress&, int64_t, TokenReader, int32_t*, Marks&)


cdef const uint8_t* byte_data(const uint8_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


@cython.final
cdef class TokenReader:
    """What reads the tokens of `trie` along a piece automaton, and those of `whole_trie` as whole pieces.

    `automaton`: a `PieceAutomaton`; `fallback`: a `ByteFallback` or None; `whole`: the `WholePieces`; `rank_of`: the
    place of each token in the byte order of the vocabulary's trie, int32, shape (V,).
    """

    def __init__(self, automaton, fallback, trie, whole, whole_trie, rank_of):
        fallback_tokens = np.full(256, -1, dtype=np.int32) if fallback is None else fallback.tokens
        child_ranks = rank_of[whole.child_tokens]
        self.arrays = automaton, fallback_tokens, whole, child_ranks, rank_of
        self.trie, self.whole_trie = trie.flat, whole_trie.flat
        self.table, self.classes = int32_data(automaton.table, -1), automaton.classes
        self.byte_class, self.can_stop = byte_data(automaton.byte_class), byte_data(automaton.can_stop)
        self.fallback_class = int32_data(automaton.fallback_class, 256)
        self.fallback_tokens = int32_data(fallback_tokens, 256)
        self.marker, self.terminal = int32_data(automaton.marker, -1), byte_data(whole.terminal)
        self.child_starts, self.child_ranks = int32_data(whole.child_starts, -1), int32_data(child_ranks, -1)
        self.child_nodes, self.rank_of = int32_data(whole.child_nodes, -1), int32_data(rank_of, -1)
        self.node_count, self.root = whole.node_count, whole.root
        self.key_count = automaton.state_count * whole.node_count
        self.row_room = len(trie.order) + len(whole_trie.order) + 258
        self.stack.resize(max(trie.depth_limit, whole_trie.depth_limit) + 1)

    cdef int64_t read_row(self, uint32_t key, int32_t* tokens, int32_t* keys) noexcept nogil:
        cdef uint32_t state = key // self.node_count, node = key % self.node_count
        cdef int32_t byte, target, child
        cdef int64_t first = 0, k, end, past
        if node == WHOLE and self.node_count > 1:
            return 0
        for byte in range(256):  # byte tokens first: nothing merges with them, which soon clears all suspects
            if self.fallback_class[byte] >= 0:
                target = self.table[state * self.classes + self.fallback_class[byte]]
                if target >= 0:
                    tokens[first] = self.fallback_tokens[byte]
                    keys[first] = <uint32_t>target // self.classes * self.node_count
                    first += 1
        end = first + self.walk(self.trie, state, tokens + first, keys + first)
        for k in range(first, end):
            keys[k] = <uint32_t>keys[k] // self.classes * self.node_count
        k = first  # both are in the order of the trie
        for child in range(self.child_starts[node], self.child_starts[node + 1]):
            while k < end and self.rank_of[tokens[k]] < self.child_ranks[child]:
                k += 1
            if k < end and self.rank_of[tokens[k]] == self.child_ranks[child]:
                keys[k] += self.child_nodes[child]
        if <int32_t>node == self.root:
            past = end + self.walk(self.whole_trie, state, tokens + end, keys + end)
            for k in range(end, past):
                state = <uint32_t>keys[k] // self.classes
                if self.can_stop[state] & (ENDS | BORDERS):
                    tokens[end] = tokens[k]
                    keys[end] = state * self.node_count + WHOLE
                    end += 1
        return end

    cdef int64_t walk(self, FlatTrie trie, uint32_t state, int32_t* tokens, int32_t* rows) noexcept nogil:
        """Write the tokens of a trie and the offsets of the rows they lead to. Returns how many."""
        cdef WalkProgress progress = WalkProgress(0, trie.node_count, 0, 0)
        cdef Pairs out = Pairs(tokens, rows, 0, trie.size)
        self.stack[0] = state * self.classes
        walk_pairs(trie.nodes, progress, trie.node_count, self, self.stack.data(), out)
        return out.count

    cdef int32_t run(self, uint32_t state, int64_t token) noexcept nogil:
        cdef int32_t row = state * self.classes
        cdef int64_t place
        for place in range(self.trie.offsets[token], self.trie.offsets[token + 1]):
            row = self.table[row + self.byte_class[self.trie.data[place]]]
            if row < 0:
                break
        return row

    cdef int32_t node_after(self, uint32_t node, int64_t token) noexcept nogil:
        cdef const int32_t* end = self.child_ranks + self.child_starts[node + 1]
        cdef const int32_t* place = lower_bound(
            self.child_ranks + self.child_starts[node], end, self.rank_of[token]
        )
        return self.child_nodes[place - self.child_ranks] if place < end and place[0] == self.rank_of[token] else 0

    cdef bint may_stop(self, uint32_t key, uint8_t how) noexcept nogil:
        return self.can_stop[key // self.node_count] & how and not self.terminal[key % self.node_count]

    cdef bint is_full(self, uint32_t key) noexcept nogil:
        return self.can_stop[key // self.node_count] & INSIDE or self.may_stop(key, ENDS | BORDERS)

    cdef int32_t behind_border(self, uint32_t key) noexcept nogil:
        if not self.may_stop(key, BORDERS):
            return -1
        return self.marker[key // self.node_count] * self.node_count + self.root

    def mark_crossed(self, const int32_t[::1] sources, uint8_t[::1] crossed):
        """Mark the states that a token of the trie comes past strictly inside, if it is read from one of `sources`.

        `sources`: int32, states; `crossed`: bool, shape (states,). One walk of the trie a source.
        """
        cdef Py_ssize_t first, source
        cdef WalkProgress progress
        cdef Marks out
        if crossed.shape[0] * <int64_t>self.node_count != self.key_count:
            raise ValueError(f"crossed has shape ({self.key_count // self.node_count},), not ({crossed.shape[0]},)")
        for first in range(0, sources.shape[0], WALKS_AT_A_TIME):
            progress.visited = 0
            with nogil:
                for source in range(first, min(first + WALKS_AT_A_TIME, sources.shape[0])):
                    out = Marks(self.stack.data(), &crossed[0], 0, self.trie.size, self.classes)
                    progress.here, progress.end = 0, self.trie.node_count
                    self.stack[0] = <uint32_t>sources[source] * self.classes
                    walk_marks(self.trie.nodes, progress, self.trie.node_count, self, self.stack.data(), out)
            pay(NS_PER_NODE * progress.visited, 0)


@cython.final
cdef class ProperRows:
    """The rows made so far, those of the first `count` states. Not thread-safe.

    With `every_state` full states are numbered, too, and the states behind borders. `max_entries` bounds the entries of
    all rows.
    """

    def __init__(self, TokenReader reader not None, int64_t max_entries, bint every_state=False):
        cdef int32_t[:, ::1] scratch
        self.reader, self.max_entries, self.every_state = reader, max_entries, every_state
        self.scratch = scratch = np.empty((2, reader.row_room), dtype=np.int32)
        self.row_tokens, self.row_keys = &scratch[0, 0], &scratch[1, 0]
        self.clear()

    cdef int clear(self) except -1:
        """Forget all rows."""
        self.numbers.clear()
        self.tokens.clear()
        self.targets.clear()
        self.offsets.assign(1, 0)
        return 0

    cdef size_t row_count(self) noexcept nogil:
        return self.offsets.size() - 1

    @property
    def count(self):
        """How many states have rows."""
        return self.row_count()

    @property
    def entry_count(self):
        """How many entries the rows have."""
        return self.offsets.back()

    @property
    def nbytes(self):
        """Memory of the rows."""
        entries = self.tokens.capacity() + self.targets.capacity()
        return self.numbers.bytes() + 8 * self.offsets.capacity() + 4 * entries

    def keys(self):
        """The keys of the states that have rows: int32, shape (count,)."""
        cdef vector[int32_t] keys
        cdef size_t state
        for state in range(self.row_count()):
            keys.push_back(<int32_t>self.numbers.key(state))
        return int32_array(keys)

    def entries(self):
        """(offsets, tokens, targets): int64, shape (count + 1,), and int32, shape (entries,).

        State i has the entries ``offsets[i] .. offsets[i + 1] - 1``; a target is a state, -1 for a full one.
        """
        return int64_array(self.offsets), int32_array(self.tokens), int32_array(self.targets)

    def number(self, int64_t key):
        """The number of a state, a new one if need be."""
        return self.numbers.intern(key)

    def find(self, int64_t key):
        """The number of a state, -1 if it has none."""
        return self.numbers.find(key)

    def close(self):
        """Make the rows of all numbered states and of those that they lead to.

        Raises LimitExceeded past `max_entries`, and forgets all rows. If the budget is spent, the rows so far remain.
        """
        self.make_rows()

    cdef int32_t number_target(self, int32_t key) except? -2 nogil:
        if not self.every_state and self.reader.is_full(key):
            return -1
        return self.numbers.intern(key)

    cdef int make_rows(self) except -1:
        cdef int64_t work, most = HELD_WORK
        cdef size_t states = self.row_count()
        while self.row_count() < self.numbers.size():
            self.make_room()
            if most == HELD_WORK:
                work = self.add_rows(most)
            else:
                with nogil:
                    work = self.add_rows(most)
            if self.offsets.back() > self.max_entries:
                self.refuse()
            hold(BYTES_PER_STATE * (self.row_count() - states))
            states, most = self.row_count(), PAID_WORK
            if states < self.numbers.size():
                pay(NS_PER_ENTRY * work, 0)
        return 0

    def refuse(self):
        """Raise LimitExceeded, and forget all rows."""
        states = self.row_count()
        self.clear()  # what is half done cannot be gone on with
        remedy = 'use relevance="fixpoint", or raise' if self.every_state else "raise"
        raise LimitExceeded(
            f"the proper tokens have more than {self.max_entries} transitions ({states} states done): "
            f"{remedy} max_transitions",
            limit="max_transitions",
            value=self.max_entries,
        )

    cdef int make_room(self) except -1:
        """Room for one more row; it is counted before it is taken."""
        cdef size_t room = self.tokens.capacity(), wanted = self.tokens.size() + self.reader.row_room
        if wanted > room:
            wanted = max(2 * room, wanted, <size_t>LEAST_ROOM)
            hold(BYTES_PER_ENTRY * (wanted - room))
            self.tokens.reserve(wanted)
            self.targets.reserve(wanted)
        return 0

    cdef int64_t add_rows(self, int64_t most) except -1 nogil:
        """Make the next rows, until so much work is done, all are, or the next one might not fit. Returns the work."""
        cdef int64_t work = 0, found, k
        cdef uint32_t key
        cdef int32_t border
        while (
            work < most
            and self.row_count() < self.numbers.size()
            and self.offsets.back() <= self.max_entries
            and self.offsets.back() + self.reader.row_room <= <int64_t>self.tokens.capacity()
        ):
            key = <uint32_t>self.numbers.key(self.row_count())
            found = self.reader.read_row(key, self.row_tokens, self.row_keys)
            for k in range(found):
                self.row_keys[k] = self.number_target(self.row_keys[k])
            border = self.reader.behind_border(key) if self.every_state else -1
            if border >= 0:
                self.numbers.intern(border)
            # without what is left of a row for which there was no memory
            self.tokens.resize(self.offsets.back())
            self.targets.resize(self.offsets.back())
            self.tokens.insert(self.tokens.end(), self.row_tokens, self.row_tokens + found)
            self.targets.insert(self.targets.end(), self.row_keys, self.row_keys + found)
            self.offsets.push_back(self.offsets.back() + found)
            work += WORK_PER_ROW + found
        return work
