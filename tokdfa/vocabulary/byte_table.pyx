"""Byte tables, and the plain walk with one: which tokens does a recogniser of bytes allow?

Theory. A recogniser reads a text byte by byte; a token is allowed iff the recogniser survives all its bytes. Tokens
share prefixes, so we walk the trie: at a node, try the node's byte from the state reached at its parent; if it
survives, allow the node's token and go on to the next node in depth-first order (the first child, if there is one); if
not, skip the node's subtree. The states on the way from the root lie in a stack indexed by depth, so nothing is popped:
a node of depth d reads ``stack[d]`` and writes ``stack[d + 1]``. `tokdfa.vocabulary.walk_forms` derives this from the
plain recursive walk in three steps, and keeps each; the loop is ``walker.hpp``.

Three recognisers:

(a) A `ByteTable`: flat int32 ``transitions``, one row of ``class_count`` entries a state. A state is named by the
    offset of its row, and entries are such offsets (no multiplication in the loop), DEAD or UNKNOWN. A walk that meets
    UNKNOWN calls `ByteTable.fill` and goes on at the same node, so a complete table and a lazy one run at the same
    speed once filled. What `fill` raises ends the walk; the table stays usable.
(b) Any Python object with ``step(state, byte) -> state or None`` (`ByteRecognizer`): a prototype in ten lines. It runs
    through (a) by naming its states with numbers (`RecognizerTable`), so each (state, byte) is stepped at most once.
(c) A compiled function, given as an address (`walk_with_address`).

Cost, Llama 3 vocabulary, wide state: 267,296 nodes at 1.6 to 2.5 ns (``tokdfa run experiments/trie_walk.yaml``;
`papers/reports/trie-walk.md`). The mask is written without a branch: nodes that end no token set the spare bit V, which
is cleared at the end.

The interpreter's lock is held for the first HELD_NODES nodes and let go after them: beside a thread that runs Python it
takes up to 5 ms to come back, too long for a walk of a few microseconds. Signals are handled every LOOK_NODES nodes. A
table that is not complete belongs to one thread at a time.

Sources: toktrie, llguidance. Both push and pop the recogniser's own stack; the stack indexed by depth, one packed word
a node, row offsets as states and unsigned arithmetic are ours.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.vocabulary.mask_store cimport set_bits
from tokdfa.vocabulary.trie_nodes cimport FlatTrie

from collections import namedtuple
from typing import Protocol

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.errors import ArgumentError, LimitExceeded, TokdfaError

# The names of the C constants, for Python.
globals().update(DEAD=DEAD, UNKNOWN=UNKNOWN)

WalkCounters = namedtuple("WalkCounters", ["nodes_visited", "nodes_skipped", "rows_filled"], module=__name__)
WalkCounters.__doc__ = "Work done by one walk: nodes visited, nodes skipped unseen, stops to fill the table."


cdef enum:
    LOOK_NODES = 1 << 22
    NS_PER_NODE = 3  # of the budget (`tokdfa.core.budget`); it takes less


cdef struct Taken:  # what is done with tokens: bits set, of V + 1; tokens listed; or pairs written
    uint32_t* words
    int32_t* tokens
    int32_t* targets
    uint64_t count
    uint64_t spare


cdef inline void set_bit "set_bit" (Taken& out, uint64_t token, int64_t target) noexcept nogil:
    out.words[token >> 5] |= <uint32_t>1 << (token & 31)


cdef inline void write_pair "write_pair" (Taken& out, uint64_t token, int64_t target) noexcept nogil:
    # that of a node without a token is overwritten by the next one
    out.tokens[out.count] = <int32_t>token
    out.targets[out.count] = <int32_t>target
    out.count += token != out.spare


cdef inline void write_token "write_token" (Taken& out, uint64_t token, int64_t target) noexcept nogil:
    out.tokens[out.count] = <int32_t>token
    out.count += token != out.spare


cdef struct TableView:
    const int32_t* entries
    const uint8_t* byte_class_of


cdef inline TableView table_view "table_view" (TableWalk walk) noexcept nogil:
    return TableView(walk.entries, walk.byte_class_of)


cdef inline int32_t table_step "table_step" (
    TableView view, int32_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int32_t target = view.entries[<uint64_t><uint32_t>stack[depth] + view.byte_class_of[byte]]
    stack[depth + 1] = target
    return target


cdef int table_mend "table_mend" (TableWalk walk, int32_t* stack, uint64_t depth, uint64_t byte) except -1 nogil:
    with gil:
        walk.table.make_known(stack[depth], byte)
        walk.array, walk.entries = walk.table.array, walk.table.entries
        walk.rows_filled += 1
    return 0


ctypedef int64_t (*Step)(void* user, int64_t state, int64_t byte) noexcept nogil


cdef struct AddressView:
    Step step
    void* user


cdef inline AddressView address_view "address_view" (AddressView* owner) noexcept nogil:
    return owner[0]


cdef inline int64_t address_step "address_step" (
    AddressView view, int64_t* stack, uint64_t depth, uint64_t byte
) noexcept nogil:
    cdef int64_t target = view.step(view.user, stack[depth], byte)
    stack[depth + 1] = target
    return target


cdef int address_mend "address_mend" (
    AddressView* owner, int64_t* stack, uint64_t depth, uint64_t byte
) except -1 nogil:
    with gil:
        raise TokdfaError(
            f"step(user, {stack[depth]}, {byte}) returned {stack[depth + 1]}; where no text goes on, that is -1"
        )


cdef extern from "tokdfa/vocabulary/walker.hpp" nogil:
    # the walk with these holes: nodes, where it is, the most nodes, owner, stack, out
    int walk_bits "tokdfa::walk<table_view, table_step, table_mend, set_bit>" (
        const uint64_t*, WalkProgress&, int64_t, TableWalk, int32_t*, Taken&) except -1
    int walk_tokens "tokdfa::walk<table_view, table_step, table_mend, write_token>" (
        const uint64_t*, WalkProgress&, int64_t, TableWalk, int32_t*, Taken&) except -1
    int walk_pairs "tokdfa::walk<table_view, table_step, table_mend, write_pair>" (
        const uint64_t*, WalkProgress&, int64_t, TableWalk, int32_t*, Taken&) except -1
    int walk_address "tokdfa::walk<address_view, address_step, address_mend, set_bit>" (
        const uint64_t*, WalkProgress&, int64_t, AddressView*, int64_t*, Taken&) except -1


@cython.final
@cython.freelist(8)
cdef class TableWalk:
    def __cinit__(self, FlatTrie trie, ByteTable table, int32_t row):
        if not 0 <= row <= table.entry_count - table.class_count:
            raise ArgumentError(f"state {row} is no row of a table of {table.entry_count} entries")
        self.table, self.array = table, table.array
        self.entries, self.byte_class_of = table.entries, &table.byte_class_of[0]
        self.progress = WalkProgress(0, trie.node_count, 0, 0)
        self.stack.resize(trie.depth_limit + 1)
        self.stack[0] = row


cdef int walk_on(TableWalk walk, FlatTrie trie, Taken& out) except -1:
    """Pay for the nodes visited so far, and walk to the end, without the interpreter's lock."""
    cdef int64_t paid = 0
    while True:
        spend(NS_PER_NODE * (walk.progress.visited - paid))
        paid = walk.progress.visited
        if walk.progress.here >= walk.progress.end:
            return 0
        with nogil:
            if out.words is NULL:
                walk_pairs(trie.nodes, walk.progress, LOOK_NODES, walk, walk.stack.data(), out)
            else:
                walk_bits(trie.nodes, walk.progress, LOOK_NODES, walk, walk.stack.data(), out)
        PyErr_CheckSignals()


cdef object counters_of(TableWalk walk):
    return WalkCounters(walk.progress.visited, walk.progress.skipped, walk.rows_filled)


cdef int walk_roots(TableWalk walk, FlatTrie trie, Taken& out) except -1:
    """List the tokens of the first nodes; at depth 0, nodes whose byte leads nowhere are not even read."""
    cdef WalkProgress* at = &walk.progress
    cdef size_t k
    for k in range(trie.roots.size()):
        if at.visited >= HELD_NODES:
            break
        at.here, at.end = trie.roots[k].here, trie.roots[k].end
        if walk.entries[walk.stack[0] + walk.byte_class_of[trie.roots[k].byte]] == DEAD:
            at.visited += 1
            at.skipped += at.end - at.here - 1
            at.here = at.end
            continue
        walk_tokens(trie.nodes, at[0], HELD_NODES - at.visited, walk, walk.stack.data(), out)
        if at.here < at.end:
            break
    at.end = trie.node_count
    return 0


cdef TableWalk walk_into(FlatTrie trie, ByteTable table, int32_t row, uint32_t* mask, FirstTokens& first):
    cdef TableWalk walk = TableWalk.__new__(TableWalk, trie, table, row)
    cdef vector[uint32_t] words
    cdef Taken out = Taken(NULL, &first.tokens[0], NULL, 0, trie.size)
    walk_roots(walk, trie, out)
    first.count = out.count
    first.is_all = walk.progress.here >= walk.progress.end
    if not first.is_all:
        words.resize(trie.size // 32 + 1)
        out.words = words.data()
    walk_on(walk, trie, out)
    set_bits(&first.tokens[0], first.count, <int32_t*>mask, (trie.size + 31) >> 5)
    if not first.is_all:
        add_words(words, trie.size, mask)
    return walk


cdef void add_words(vector[uint32_t]& words, int64_t size, uint32_t* mask) noexcept:
    """OR V + 1 bits into a mask, without the spare bit."""
    cdef int64_t k
    words[size >> 5] &= ~(<uint32_t>1 << (size & 31))
    for k in range((size + 31) >> 5):
        mask[k] |= words[k]


cdef uint32_t* words_of(int32_t[::1] mask, int64_t size) except NULL:
    """The words of a mask, of which there must be enough."""
    if mask.shape[0] < (size + 31) // 32 or mask.shape[0] == 0:
        raise ArgumentError(f"mask has {mask.shape[0]} words; {(size + 31) // 32} are needed for {size} tokens")
    return <uint32_t*>&mask[0]


def walk(trie, ByteTable table not None, int32_t state, int32_t[::1] mask not None):
    """OR the tokens that `table` allows from `state` into `mask`; the counters."""
    cdef FlatTrie flat = trie.flat
    cdef FirstTokens first
    return counters_of(walk_into(flat, table, state, words_of(mask, flat.size), first))


def walk_collect(
    trie, ByteTable table not None, int32_t state, int32_t[::1] tokens not None, int32_t[::1] targets not None
):
    """Write the allowed tokens, in trie order, and the row each leads to; (how many there are, the counters)."""
    cdef FlatTrie flat = trie.flat
    cdef TableWalk walk = TableWalk.__new__(TableWalk, flat, table, state)
    if min(tokens.shape[0], targets.shape[0]) <= flat.size:
        raise ArgumentError(f"tokens and targets need room for {flat.size + 1} entries each")
    cdef Taken out = Taken(NULL, &tokens[0], &targets[0], 0, flat.size)
    walk_pairs(flat.nodes, walk.progress, HELD_NODES, walk, walk.stack.data(), out)
    walk_on(walk, flat, out)
    return out.count, counters_of(walk)


def walk_with_address(trie, size_t step, int64_t state, int32_t[::1] mask not None, size_t user=0):
    """OR the tokens that a compiled step allows from `state` into `mask`; the counters."""
    cdef FlatTrie flat = trie.flat
    cdef uint32_t* found = words_of(mask, flat.size)
    cdef WalkProgress progress = WalkProgress(0, flat.node_count, 0, 0)
    cdef AddressView view = AddressView(<Step><void*>step, <void*>user)
    cdef vector[int64_t] stack
    cdef vector[uint32_t] words
    if not step or state < 0:
        raise ArgumentError("step is the address of a function, and state a number from 0 on")
    stack.resize(flat.depth_limit + 1)
    stack[0] = state
    words.resize(flat.size // 32 + 1)
    cdef Taken out = Taken(words.data(), NULL, NULL, 0, 0)
    walk_address(flat.nodes, progress, HELD_NODES, &view, stack.data(), out)
    while progress.here < progress.end:
        with nogil:
            walk_address(flat.nodes, progress, LOOK_NODES, &view, stack.data(), out)
        PyErr_CheckSignals()
    spend(NS_PER_NODE * progress.visited)
    add_words(words, flat.size, found)
    return WalkCounters(progress.visited, progress.skipped, 0)


cdef class ByteTable:
    """A recogniser of bytes as a table: (a) above. States are named by the offsets of their rows."""

    def __cinit__(self, *args, **kwargs):
        self.class_count = 1  # so that a table without entries has no row

    def __init__(self, transitions, byte_class, class_count=None):
        cdef const uint8_t[::1] classes = byte_class
        cdef int32_t highest = 0
        cdef Py_ssize_t k
        if classes.shape[0] != 256:
            raise ArgumentError(f"byte_class has shape (256,), not ({classes.shape[0]},)")
        for k in range(256):
            self.byte_class_of[k] = classes[k]
            highest = max(highest, classes[k])
        self.class_count = highest + 1 if class_count is None else class_count
        if self.class_count <= highest:
            raise ArgumentError(f"byte_class has class {highest}, and there are {class_count}")
        self.classes = byte_class
        self.set_transitions(transitions)

    @staticmethod
    def of_states(transitions, byte_class):
        """The complete table of state numbers."""
        numbers = np.asarray(transitions)
        if numbers.ndim != 2 or numbers.shape[1] == 0 or not (numbers < len(numbers)).all():
            raise ArgumentError("transitions have shape (states, classes), and lead to states or to a negative number")
        if numbers.size >= 1 << 31:
            raise LimitExceeded("the table has 2**31 entries or more", limit="max_states", value=1 << 31)
        rows = np.where(numbers < 0, DEAD, numbers.astype(np.int32) * np.int32(numbers.shape[1]))
        return ByteTable(rows.astype(np.int32, copy=False).ravel(), byte_class, numbers.shape[1])

    @property
    def transitions(self):
        """int32, flat: row offset + class -> row offset, DEAD or UNKNOWN. May be replaced by a longer one."""
        return self.array

    @transitions.setter
    def transitions(self, array):
        self.set_transitions(array)

    @property
    def byte_class(self):
        """uint8, shape (256,): byte -> class."""
        return self.classes

    cdef int set_transitions(self, object array) except -1:
        cdef const int32_t[::1] view = array
        if view.shape[0] < self.entry_count:
            raise ArgumentError(f"transitions only grow, from {self.entry_count} entries, not to {view.shape[0]}")
        self.array, self.entry_count = array, view.shape[0]
        self.entries = &view[0] if view.shape[0] else NULL
        return 0

    cpdef fill(self, int32_t row, int32_t byte):
        """Make the UNKNOWN entry of a byte known, and others as far as that is cheap; the whole row here."""
        self.fill_row(row)

    cpdef fill_row(self, int32_t row):
        """Make every entry of a row known. May raise LimitExceeded."""
        raise NotImplementedError(f"{type(self).__name__} has an UNKNOWN entry and no way to fill it")

    cdef int make_known(self, int32_t row, int32_t byte) except -1:
        cdef int64_t last
        cdef int32_t k, entry
        self.fill(row, byte)
        last = self.entry_count - self.class_count  # may be more than before
        for k in range(self.class_count):
            entry = self.entries[row + k]
            if entry < UNKNOWN or entry > last or (entry == UNKNOWN and k == self.byte_class_of[byte]):
                raise TokdfaError(f"filling row {row} has left {entry} as its entry of class {k}")
        return 0

    cdef int32_t peek_token(self, int32_t row, FlatTrie trie, int64_t token) noexcept nogil:
        cdef int64_t here, end
        if not (0 <= token < trie.size and 0 <= row <= self.entry_count - self.class_count):
            return DEAD
        here, end = trie.offsets[token], trie.offsets[token + 1]
        if here == end:
            return DEAD
        while here < end and row >= 0:
            row = self.entries[row + self.byte_class_of[trie.data[here]]]
            here += 1
        return row

    cdef int32_t step_token(self, int32_t row, FlatTrie trie, int64_t token) except? -3:
        cdef int64_t here, end
        cdef int32_t target
        if not (0 <= token < trie.size and 0 <= row <= self.entry_count - self.class_count):
            return DEAD
        here, end = trie.offsets[token], trie.offsets[token + 1]
        if here == end:
            return DEAD
        while here < end:
            target = self.entries[row + self.byte_class_of[trie.data[here]]]
            if target == UNKNOWN:
                self.make_known(row, trie.data[here])
                continue
            if target == DEAD:
                return DEAD
            row = target
            here += 1
        return row

    def row_after(self, int32_t row, FlatTrie trie not None, int64_t token):
        """The row after a token, DEAD if it may not come or spells nothing. Fills the rows on the way."""
        return self.step_token(row, trie, token)


class ByteRecognizer(Protocol):
    """Any byte recogniser in Python: `step` returns the next state, or None where no text goes on."""

    def step(self, state, byte):
        """The state after `byte`, or None."""


class RecognizerTable(ByteTable):
    """A lazily filled byte table over any Python recogniser whose states can be hashed: recogniser (b) through (a)."""

    def __init__(self, recognizer):
        super().__init__(np.full(16 * 256, UNKNOWN, dtype=np.int32), np.arange(256, dtype=np.uint8))
        self.recognizer = recognizer
        self._rows, self._states = {}, []

    def row(self, state):
        """The row offset that names `state`, a new one if need be."""
        row = self._rows.get(state)
        if row is None:
            row = self._rows[state] = 256 * len(self._states)
            self._states.append(state)
            if row == len(self.transitions):
                self.transitions = np.concatenate([self.transitions, np.full_like(self.transitions, UNKNOWN)])
        return row

    def state(self, row):
        """The recogniser's state that `row` names."""
        return self._states[row // 256]

    def fill_row(self, row):
        """Step the row's state with each byte."""
        state = self.state(row)
        following = [self.recognizer.step(state, one) for one in range(256)]
        rows = [DEAD if after is None else self.row(after) for after in following]
        self.transitions[row : row + 256] = rows
