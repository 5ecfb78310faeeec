# cython: auto_pickle=False
"""How the states of a tokens DFA read a token: its class, and a binary search in the state's row.

A mask that is not ready (`tokdfa.backends.tokens_dfa.ready_masks`) is put together from the members of the row's
classes: O(words + tokens).
"""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.backends.numbered_states cimport NumberedStates, Numbers, add
from tokdfa.vocabulary.byte_table cimport DEAD
from tokdfa.vocabulary.mask_store cimport clear_words, set_bits


cdef class ReducedStates(NumberedStates):
    """The states of a `ReducedTable` over the tokens of `vocab`."""

    cdef readonly object table
    cdef Numbers rank_of, ranks, class_of, row_of, offsets, classes, target_of, member_offsets
    cdef const int32_t[::1] members
    cdef vector[int32_t] ends
    cdef bint is_dense

    def __init__(self, vocab, table):
        self.vocab, self.table, self.is_dense = vocab, table, table.is_dense
        self.rank_of, self.ranks, self.class_of = map(Numbers, (vocab.trie.rank_of, table.ranks, table.class_of))
        self.row_of, self.offsets = Numbers(table.row_of), Numbers(table.offsets)
        self.classes, self.target_of = Numbers(table.classes), Numbers(table.targets)
        self.member_offsets, self.members = Numbers(table.member_offsets), table.members
        self.ends = vocab.end_tokens

    cdef int64_t known_step(self, int64_t state, int64_t token) noexcept:
        cdef int64_t place, row
        if not (0 <= token < self.rank_of.size and 0 <= state < self.row_of.size):
            return DEAD
        place = self.rank_of.at(token)
        if not self.is_dense:
            place = self.ranks.find(place, 0, self.ranks.size)
        if place < 0:
            return DEAD
        row = self.row_of.at(state)
        place = self.classes.find(self.class_of.at(place), self.offsets.at(row), self.offsets.at(row + 1))
        return DEAD if place < 0 else self.target_of.at(place)

    def step(self, state, token):
        return self.known_step(state, token)

    def accepts(self, state):
        return bool(self.table.accepting[state])

    cdef int write_new(self, int64_t state, object out, int32_t* words, object counters) except -1:
        cdef int64_t row, k, first, past
        if not 0 <= state < self.row_of.size:
            raise IndexError(f"there is no state {state}")
        clear_words(words, self.masks.words)
        row = self.row_of.at(state)
        for k in range(self.offsets.at(row), self.offsets.at(row + 1)):
            first = self.member_offsets.at(self.classes.at(k))
            past = self.member_offsets.at(self.classes.at(k) + 1)
            set_bits(&self.members[first], past - first, words, self.masks.words)
        if self.table.accepting[state]:
            set_bits(self.ends.data(), self.ends.size(), words, self.masks.words)
        return add(counters, "masks_made", 1)
