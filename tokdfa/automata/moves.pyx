"""Automata as lists of moves: the live part, distances to acceptance, equivalent states.

A *move* is a transition that does not die. Moves are often a tenth of the table, if there are many byte classes, so the
table is read once, and a new one written once, at the end. A *label* stands for a byte class: its rank, classes ordered
by their smallest bytes.

Live states: a breadth-first search backwards from acceptance, then one forwards from the starts, which numbers them.

Equivalent states. Two states of a trim automaton are told apart by acceptance, and then by where their moves lead. Two
partitions refine each other: *blocks* of states, and *bundles* of moves that have one label and lead into one block.
States of a block of which only some have a move of some bundle are split, until nothing is left to split. This works on
partial transition functions as they are: O(states x classes) to list the moves, and O(m log m) for m of them.

Source: A. Valmari and P. Lehtinen, "Efficient minimization of DFAs with partial transition functions", STACS 2008; also
A. Valmari, "Fast brief practical DFA minimization", Information Processing Letters 112 (2012).
"""

cimport cython
from libc.stdint cimport int32_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, int32_array

import numpy as np


cdef extern from "tokdfa/automata/partition.hpp" namespace "tokdfa" nogil:
    cdef cppclass Partition:
        void assign(size_t size) except +
        void assign(const vector[int32_t]& offsets, const vector[int32_t]& items) except +
        int32_t size()
        int32_t set_of(int32_t item)
        int32_t first(int32_t number)
        int32_t past(int32_t number)
        int32_t item(int32_t place)
        void mark(int32_t item)
        void split()


@cython.final
cdef class LivePart:
    """The live states of an automaton, numbered breadth-first from its starts, and their moves.

    `table`: int32, shape (states, classes), -1 for dead; `byte_class`: uint8, shape (256,); `accepting`: bool, shape
    (states,); `starts`: states, -1 for none. O(states x classes).
    """

    # The moves of state s are offsets[s] .. offsets[s + 1] - 1, by ascending label.
    cdef vector[int32_t] offsets, sources, labels, targets
    cdef uint8_t[256] labels_of_bytes
    cdef size_t label_count
    cdef vector[uint8_t] accepting
    cdef vector[int32_t] old_states, new_starts

    def __cinit__(
        self, const int32_t[:, ::1] table, const uint8_t[::1] byte_class, const uint8_t[::1] accepting, starts
    ):
        cdef Py_ssize_t states = accepting.shape[0]
        if table.shape[0] != states or byte_class.shape[0] != 256:
            raise ValueError("table, byte_class and accepting do not belong together")
        for start in starts:
            if not -1 <= start < states:
                raise IndexError(f"there is no state {start}")
            self.new_starts.push_back(start)
        if table.shape[0] * table.shape[1] > HELD_WORK:
            with nogil:
                self._find(table, byte_class, accepting)
        else:
            self._find(table, byte_class, accepting)

    @property
    def state_count(self):
        return self.accepting.size()

    @property
    def move_count(self):
        return self.targets.size()

    @property
    def starts(self):
        """int32: the number of each start, -1 if nothing is accepted from there."""
        return int32_array(self.new_starts)

    @property
    def states(self):
        """int32, shape (state_count,): which state of the automaton each one is, of equivalent ones the first."""
        return int32_array(self.old_states)

    def merge_equivalent(self):
        """Keep one state of each block of equivalent ones."""
        if self.targets.size() > HELD_WORK:
            with nogil:
                self._merge_equivalent()
        else:
            self._merge_equivalent()

    def arrays(self):
        """(table, byte_class, accepting) of the automaton, equal columns merged. Columns ascend by first bytes."""
        cdef vector[uint8_t] column_of
        cdef vector[int32_t] kept  # the first label of each column
        cdef size_t move
        cdef Py_ssize_t byte, state
        self._merge_columns(column_of, kept)
        table = np.full((self.accepting.size(), kept.size()), -1, dtype=np.int32)
        byte_class, accepting = np.empty(256, dtype=np.uint8), np.empty(self.accepting.size(), dtype=np.bool_)
        cdef int32_t[:, ::1] entries = table
        cdef uint8_t[::1] classes = byte_class, ends = accepting
        for move in range(self.targets.size()):
            if kept[column_of[self.labels[move]]] == self.labels[move]:
                entries[self.sources[move], column_of[self.labels[move]]] = self.targets[move]
        for byte in range(256):
            classes[byte] = column_of[self.labels_of_bytes[byte]]
        for state in range(ends.shape[0]):
            ends[state] = self.accepting[state]
        return table, byte_class, accepting

    cdef int _find(
        self, const int32_t[:, ::1] table, const uint8_t[::1] byte_class, const uint8_t[::1] accepting
    ) except -1 nogil:
        cdef vector[int32_t] distances, number
        cdef size_t k
        self._list_moves(table, byte_class)
        set_distances(accepting, distances)
        measure_distances(self.sources.data(), self.targets.data(), self.targets.size(), distances)
        self._order_states(distances, number)
        for k in range(self.old_states.size()):
            self.accepting.push_back(accepting[self.old_states[k]])
        self._select(self.old_states, number)
        return 0

    cdef int _list_moves(self, const int32_t[:, ::1] table, const uint8_t[::1] byte_class) except -1 nogil:
        """Read the table."""
        cdef int32_t[256] label_of, columns
        cdef int32_t label, target
        cdef Py_ssize_t byte, state, column
        cdef size_t count = 0
        for byte in range(256):
            label_of[byte] = -1
        for byte in range(256):
            column = byte_class[byte]
            if label_of[column] < 0:
                label_of[column], columns[self.label_count] = <int32_t>self.label_count, <int32_t>column
                self.label_count += 1
            self.labels_of_bytes[byte] = <uint8_t>label_of[column]
        for state in range(table.shape[0]):
            for column in range(table.shape[1]):
                count += table[state, column] >= 0
        self.sources.reserve(count)
        self.labels.reserve(count)
        self.targets.reserve(count)
        self.offsets.reserve(table.shape[0] + 1)
        for state in range(table.shape[0]):
            self.offsets.push_back(<int32_t>self.targets.size())
            for label in range(<int32_t>self.label_count):
                target = table[state, columns[label]]
                if target >= 0:
                    self.sources.push_back(<int32_t>state)
                    self.labels.push_back(label)
                    self.targets.push_back(target)
        self.offsets.push_back(<int32_t>self.targets.size())
        return 0

    cdef int _order_states(self, vector[int32_t]& distances, vector[int32_t]& number) except -1 nogil:
        """List the states that can be reached from the starts, breadth-first, and their numbers (-1: none)."""
        cdef size_t head = 0, place
        cdef int32_t state, move
        number.assign(distances.size(), -1)
        for place in range(self.new_starts.size()):
            state = self.new_starts[place]
            if state >= 0:
                self._enter(state, distances, number)
                self.new_starts[place] = number[state]
        while head < self.old_states.size():
            state = self.old_states[head]
            head += 1
            for move in range(self.offsets[state], self.offsets[state + 1]):
                self._enter(self.targets[move], distances, number)
        return 0

    cdef inline int _enter(self, int32_t state, vector[int32_t]& distances, vector[int32_t]& number) except -1 nogil:
        """Number a state from which acceptance can be reached, unless it has a number."""
        if number[state] < 0 and distances[state] >= 0:
            number[state] = <int32_t>self.old_states.size()
            self.old_states.push_back(state)
        return 0

    cdef int _select(self, const vector[int32_t]& order, const vector[int32_t]& number) except -1 nogil:
        """Keep the moves of the states in `order`, which become 0, 1, ...; those to states without a number go."""
        cdef vector[int32_t] offsets, sources, labels, targets
        cdef size_t place
        cdef int32_t move, target
        offsets.reserve(order.size() + 1)
        for place in range(order.size()):
            offsets.push_back(<int32_t>targets.size())
            for move in range(self.offsets[order[place]], self.offsets[order[place] + 1]):
                target = number[self.targets[move]]
                if target >= 0:
                    sources.push_back(<int32_t>place)
                    labels.push_back(self.labels[move])
                    targets.push_back(target)
        offsets.push_back(<int32_t>targets.size())
        self.offsets.swap(offsets)
        self.sources.swap(sources)
        self.labels.swap(labels)
        self.targets.swap(targets)
        return 0

    cdef int _merge_equivalent(self) except -1 nogil:
        cdef vector[int32_t] block_of, firsts, old_states
        cdef vector[uint8_t] accepting
        cdef size_t state, place
        find_blocks(
            self.sources.data(), self.labels.data(), self.targets.data(), self.targets.size(), self.accepting, block_of
        )
        # States are in breadth-first order, and blocks numbered by their first states: so blocks are, too.
        for state in range(block_of.size()):
            if block_of[state] == <int32_t>firsts.size():
                firsts.push_back(<int32_t>state)
                accepting.push_back(self.accepting[state])
                old_states.push_back(self.old_states[state])
        if firsts.size() == block_of.size():
            return 0
        self._select(firsts, block_of)
        self.accepting.swap(accepting)
        self.old_states.swap(old_states)
        for place in range(self.new_starts.size()):
            if self.new_starts[place] >= 0:
                self.new_starts[place] = block_of[self.new_starts[place]]
        return 0

    cdef int _merge_columns(self, vector[uint8_t]& column_of, vector[int32_t]& kept) except -1 nogil:
        """The column of each label; the first label of each column."""
        cdef vector[int32_t] starts, moves
        cdef vector[uint64_t] hashes
        cdef size_t move, label, column
        sort_by_key(self.labels.data(), self.labels.size(), self.label_count, starts, moves)
        hashes.assign(self.label_count, 0)
        for move in range(self.labels.size()):
            label = self.labels[move]
            hashes[label] = hashes[label] * 1000003 ^ (<uint64_t>self.targets[move] * 8191 + self.sources[move])
        column_of.resize(self.label_count)
        for label in range(self.label_count):
            column = 0
            while column < kept.size() and not (
                hashes[kept[column]] == hashes[label] and self._are_equal(kept[column], label, starts, moves)
            ):
                column += 1
            if column == kept.size():
                kept.push_back(<int32_t>label)
            column_of[label] = <uint8_t>column
        return 0

    cdef bint _are_equal(
        self, size_t one, size_t other, const vector[int32_t]& starts, const vector[int32_t]& moves
    ) noexcept nogil:
        """Whether two labels have equal columns; those of label l are moves[starts[l]] .. moves[starts[l + 1] - 1]."""
        cdef int32_t first = starts[one], second = starts[other], end = starts[one + 1]
        if end - first != starts[other + 1] - second:
            return False
        while first < end:
            if (
                self.sources[moves[first]] != self.sources[moves[second]]
                or self.targets[moves[first]] != self.targets[moves[second]]
            ):
                return False
            first += 1
            second += 1
        return True


def distances_to_accept(const int32_t[:, ::1] table, const uint8_t[::1] accepting):
    """The fewest letters from each state to acceptance: int32, shape (states,), -1 where there is no way.

    `table`: int32, shape (states, letters), -1 for dead; `accepting`: bool, shape (states,). O(entries).
    """
    cdef vector[int32_t] sources, targets, distances
    cdef Py_ssize_t state, letter
    for state in range(table.shape[0]):
        for letter in range(table.shape[1]):
            if table[state, letter] >= 0:
                sources.push_back(<int32_t>state)
                targets.push_back(table[state, letter])
    set_distances(accepting, distances)
    measure_distances(sources.data(), targets.data(), targets.size(), distances)
    return int32_array(distances)


def distances_along(const int32_t[::1] sources, const int32_t[::1] targets, const uint8_t[::1] accepting):
    """The same for a graph: move k leads from ``sources[k]`` to ``targets[k]``, int32. O(moves)."""
    cdef vector[int32_t] distances
    set_distances(accepting, distances)
    if targets.shape[0]:
        measure_distances(&sources[0], &targets[0], targets.shape[0], distances)
    return int32_array(distances)


def blocks_of(
    const int32_t[::1] sources, const int32_t[::1] labels, const int32_t[::1] targets, const uint8_t[::1] accepting
):
    """The block of equivalent states that each state of a trim automaton is in: int32, shape (states,).

    `sources`, `labels`, `targets`: int32, one entry a move; `accepting`: bool, shape (states,). Blocks are numbered by
    their first states. O(m log m) for m moves.
    """
    cdef vector[int32_t] block_of
    cdef vector[uint8_t] ends
    cdef Py_ssize_t state, moves = targets.shape[0]
    for state in range(accepting.shape[0]):
        ends.push_back(accepting[state])
    with nogil:
        find_blocks(
            &sources[0] if moves else NULL, &labels[0] if moves else NULL, &targets[0] if moves else NULL, moves, ends,
            block_of,
        )
    return int32_array(block_of)


def part_from(const int32_t[:, ::1] table, int32_t start):
    """The part of a table of transitions that can be reached from `start`, which becomes its state 0, and which states
    of `table` it has, in breadth-first order. O(states of the table + entries of the part).
    """
    cdef vector[int32_t] number, order, rows
    cdef size_t head = 0
    cdef Py_ssize_t k
    cdef int32_t target
    number.assign(table.shape[0], -1)
    number[start] = 0
    order.push_back(start)
    while head < order.size():
        for k in range(table.shape[1]):
            target = table[order[head], k]
            if target >= 0:
                if number[target] < 0:
                    number[target] = <int32_t>order.size()
                    order.push_back(target)
                target = number[target]
            rows.push_back(target)
        head += 1
    return int32_array(rows).reshape(-1, table.shape[1]), int32_array(order)


cdef int sort_by_key(
    const int32_t* keys, size_t count, size_t key_count, vector[int32_t]& offsets, vector[int32_t]& places
) except -1 nogil:
    """Counting sort: ``places[offsets[k]] .. places[offsets[k + 1] - 1]`` are those of key k in `keys`, ascending."""
    cdef vector[int32_t] following
    cdef size_t k
    offsets.assign(key_count + 1, 0)
    for k in range(count):
        offsets[keys[k] + 1] += 1
    for k in range(key_count):
        offsets[k + 1] += offsets[k]
    following = offsets
    places.resize(count)
    for k in range(count):
        places[following[keys[k]]] = <int32_t>k
        following[keys[k]] += 1
    return 0


cdef int set_distances(const uint8_t[::1] accepting, vector[int32_t]& distances) except -1 nogil:
    """0 for the states that accept, -1 for the others."""
    cdef Py_ssize_t state
    distances.resize(accepting.shape[0])
    for state in range(accepting.shape[0]):
        distances[state] = (accepting[state] != 0) - 1
    return 0


cdef int measure_distances(
    const int32_t* sources, const int32_t* targets, size_t moves, vector[int32_t]& distances
) except -1 nogil:
    """Breadth-first search backwards. `distances`: 0 at accepting states, -1 elsewhere; filled in place."""
    cdef vector[int32_t] offsets, incoming, queue
    cdef size_t head = 0, k
    cdef int32_t state, source, place
    sort_by_key(targets, moves, distances.size(), offsets, incoming)
    for k in range(distances.size()):
        if distances[k] == 0:
            queue.push_back(<int32_t>k)
    while head < queue.size():
        state = queue[head]
        head += 1
        for place in range(offsets[state], offsets[state + 1]):
            source = sources[incoming[place]]
            if distances[source] < 0:
                distances[source] = distances[state] + 1
                queue.push_back(source)
    return 0


cdef int find_blocks(
    const int32_t* sources, const int32_t* labels, const int32_t* targets, size_t moves,
    const vector[uint8_t]& accepting, vector[int32_t]& block_of,
) except -1 nogil:
    """See `blocks_of`."""
    cdef Partition blocks, bundles
    cdef vector[int32_t] offsets, places, number
    cdef int32_t next_block = 1, next_bundle = 0, place, state, move, named = 0
    cdef size_t k, label_count = 0
    blocks.assign(accepting.size())
    for k in range(accepting.size()):
        if accepting[k]:
            blocks.mark(<int32_t>k)
    blocks.split()
    for k in range(moves):
        label_count = max(label_count, <size_t>labels[k] + 1)
    sort_by_key(labels, moves, label_count, offsets, places)
    bundles.assign(offsets, places)
    sort_by_key(targets, moves, accepting.size(), offsets, places)
    # block 0 splits no bundles: what leads elsewhere tells it apart
    while next_bundle < bundles.size():
        for place in range(bundles.first(next_bundle), bundles.past(next_bundle)):
            blocks.mark(sources[bundles.item(place)])
        blocks.split()
        next_bundle += 1
        while next_block < blocks.size():
            for place in range(blocks.first(next_block), blocks.past(next_block)):
                state = blocks.item(place)
                for move in range(offsets[state], offsets[state + 1]):
                    bundles.mark(places[move])
            bundles.split()
            next_block += 1
    number.assign(blocks.size(), -1)
    block_of.resize(accepting.size())
    for k in range(accepting.size()):
        state = blocks.set_of(<int32_t>k)
        if number[state] < 0:
            number[state] = named
            named += 1
        block_of[k] = number[state]
    return 0
