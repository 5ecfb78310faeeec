"""A ready mask for every state of a tokens DFA, each distinct one once.

States that allow the same token classes and agree on whether the text may end have the same mask. A mask of few tokens
is kept as a list of ids, any other packed (see `tokdfa.vocabulary.mask_store` for why); so handing one out is one
copy, or a few hundred bits written. Masks are made in the order of the states until `limit` bytes are used up; those of
later states are then put together when asked for (`tokdfa.backends.tokens_dfa.reduced_states`).

Source: 001, part 6 ("bitset masks of allowed tokens for every state").
Cost: about 1 ns for each token of each distinct mask. A class with more tokens than a mask has words is packed once,
and then taken word by word.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from tokdfa.vocabulary.mask_store cimport set_bits

from collections import namedtuple

import numpy as np

from tokdfa.mask import mask_words
from tokdfa.token_automata.columns import distinct_rows
from tokdfa.vocabulary.mask_store import NARROW


class ReadyMasks(namedtuple("ReadyMasks", "narrow packed mask_count nbytes")):
    """State -> its mask, as a list of ids (int32) or packed (int32 words); equal masks are one object.

    A state whose mask is not made is in neither. ``mask_count``: distinct masks; ``nbytes``: what they take.
    """

    __slots__ = ()


def make_masks(table, size, end_tokens, limit):
    """Masks for the states of `table`; `size`: V; `end_tokens`: int32; `limit`: bytes."""
    cdef MaskMaker maker = MaskMaker(table, end_tokens, mask_words(size), NARROW)
    cdef dict narrow = {}, packed = {}
    cdef list masks = []
    cdef size_t state, k
    maker.plan_all(limit // 4)
    data = np.zeros(maker.room, dtype=np.int32)
    maker.fill(data)
    for k in range(maker.plans.size()):
        masks.append(data[maker.plans[k].place : maker.plans[k].place + maker.plans[k].size])
    for state in range(maker.mask_of.size()):
        if maker.mask_of[state] >= 0:
            k = maker.mask_of[state]
            (narrow if maker.plans[k].is_narrow else packed)[state] = masks[k]
    return ReadyMasks(narrow, packed, len(masks), data.nbytes)


cdef struct Plan:  # of one mask
    int32_t allowed  # its list of classes
    bint may_end
    bint is_narrow
    size_t place     # where it lies
    size_t size      # ids or words


cdef class MaskMaker:
    """The distinct masks that lists of classes make, with the end tokens or without."""

    cdef const int32_t[::1] allowed_of           # by state, a list of classes
    cdef const uint8_t[::1] accepting
    cdef const int64_t[::1] offsets              # list k is classes[offsets[k] : offsets[k + 1]]
    cdef const int32_t[::1] classes, member_offsets, members, end_tokens
    cdef size_t words, most_listed, room
    cdef vector[Plan] plans
    cdef vector[int32_t] mask_of                 # by state, -1 if it is not made
    cdef vector[vector[int32_t]] packed_classes  # of those with more tokens than a mask has words, once one is needed

    def __init__(self, table, end_tokens, words, most_listed):
        no_values = np.zeros(len(table.classes), dtype=np.int32)
        allowed_of, self.offsets, self.classes, _ = distinct_rows(table.offsets, table.classes, no_values)
        self.allowed_of, self.accepting, self.end_tokens = allowed_of[table.row_of], table.accepting, end_tokens
        self.member_offsets, self.members = table.member_offsets, table.members
        self.words, self.most_listed = words, most_listed
        self.packed_classes.resize(table.class_count)

    cdef int plan_all(self, size_t limit) except -1:
        """Number the masks in the order of the states, until they take `limit` words."""
        cdef vector[int32_t] number
        cdef Plan plan
        cdef bint is_full = False
        cdef size_t key
        cdef Py_ssize_t state
        number.assign(2 * self.offsets.shape[0], -1)
        for state in range(self.allowed_of.shape[0]):
            key = 2 * self.allowed_of[state] + self.accepting[state]
            if number[key] < 0 and not is_full:
                plan = Plan(self.allowed_of[state], self.accepting[state], True, self.room, 0)
                self.measure(plan)
                is_full = self.room + plan.size > limit
                if not is_full:
                    number[key] = <int32_t>self.plans.size()
                    self.plans.push_back(plan)
                    self.room += plan.size
            self.mask_of.push_back(number[key])
        return 0

    cdef int measure(self, Plan& plan) noexcept:
        """Say which form a mask has, and how much room it takes."""
        cdef int64_t k
        if plan.may_end:
            plan.size = self.end_tokens.shape[0]
        for k in range(self.offsets[plan.allowed], self.offsets[plan.allowed + 1]):
            plan.size += self.member_offsets[self.classes[k] + 1] - self.member_offsets[self.classes[k]]
        if plan.size > self.most_listed:
            plan.is_narrow, plan.size = False, self.words
        return 0

    cdef int fill(self, int32_t[::1] data) except -1:
        """Write all masks, one behind the other, into zeros."""
        cdef size_t k
        if data.shape[0]:
            with nogil:
                for k in range(self.plans.size()):
                    self.write(self.plans[k], &data[0] + self.plans[k].place)
        return 0

    cdef int write(self, Plan plan, int32_t* out) except -1 nogil:
        cdef int64_t k, first, count
        for k in range(self.offsets[plan.allowed], self.offsets[plan.allowed + 1]):
            first = self.member_offsets[self.classes[k]]
            count = self.member_offsets[self.classes[k] + 1] - first
            if plan.is_narrow:
                memcpy(out, &self.members[first], 4 * count)
                out += count
            elif count <= <int64_t>self.words:
                set_bits(&self.members[first], count, out, self.words)
            else:
                self.add_packed(self.classes[k], out)
        if plan.may_end and self.end_tokens.shape[0]:
            if plan.is_narrow:
                memcpy(out, &self.end_tokens[0], 4 * self.end_tokens.shape[0])
            else:
                set_bits(&self.end_tokens[0], self.end_tokens.shape[0], out, self.words)
        return 0

    cdef int add_packed(self, int32_t token_class, int32_t* out) except -1 nogil:
        """OR the tokens of a large class into a mask."""
        cdef vector[int32_t]* packed = &self.packed_classes[token_class]
        cdef int64_t first = self.member_offsets[token_class], count = self.member_offsets[token_class + 1] - first
        cdef const int32_t* words
        cdef size_t k
        if packed.empty():
            packed.resize(self.words)
            set_bits(&self.members[first], count, packed.data(), self.words)
        words = packed.data()
        for k in range(self.words):
            out[k] |= words[k]
        return 0
