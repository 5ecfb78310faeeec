"""Loops over the cuts and rests of a vocabulary: `run_rests` makes vectors of a lexer state (see
`tokdfa.backends.cfg_fsm.splits`), `join_pairs` applies them to some pairs (see `tokdfa.backends.cfg_fsm.speculation`),
`multiply` joins two vectors over cuts.

A *packed* vector has one bit a cut: uint64, shape (ceil(cuts / 64),). The product of two marks the tokens that have a
cut in both: where the first says which prefixes end a terminal, and the second which suffixes the next terminal takes,
these are the tokens that may run from one into the other.

Source: 003, "RegexFSM concatenation".
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport int32_array

import numpy as np


# the place of a lone bit, by the upper six bits of its product with this number (a de Bruijn sequence)
cdef uint64_t DE_BRUIJN = 0x03F79D71B4CB0A89
cdef uint8_t[64] PLACES
cdef int _place
for _place in range(64):
    PLACES[DE_BRUIJN << _place >> 58] = <uint8_t>_place


def multiply(const uint64_t[::1] prefixes, const uint64_t[::1] suffixes, const int32_t[::1] labels, uint64_t[::1] out):
    """See cuts.pyi."""
    cdef uint64_t both, label
    cdef Py_ssize_t word
    if suffixes.shape[0] != prefixes.shape[0]:
        raise ValueError("suffixes: not as long as prefixes")
    for word in range(prefixes.shape[0]):
        both = prefixes[word] & suffixes[word]
        while both:
            label = labels[64 * word + PLACES[(both & -both) * DE_BRUIJN >> 58]]
            out[label >> 6] |= <uint64_t>1 << (label & 63)
            both &= both - 1


def run_rests(table, lexer, int32_t state):
    """See cuts.pyi. ``states[d]`` is the state after d bytes of the current rest."""
    cdef const int32_t[:, ::1] transitions = lexer.transitions
    cdef const uint8_t[::1] byte_class = lexer.byte_class, data = table.byte_data
    cdef const int32_t[::1] outcome_of = lexer.outcome_of, lengths = table.lengths
    cdef const int32_t[::1] shared = table.shared, rest_at = table.rest_at
    cdef const int64_t[::1] where = table.where
    cdef Py_ssize_t count = where.shape[0], rest
    after, begins = np.full(count, -1, dtype=np.int32), np.zeros(count + 1, dtype=np.int32)
    cdef int32_t[::1] after_of = after, begin_of = begins
    cdef vector[int32_t] states, outcomes, rests
    cdef int32_t alive = 0, target, passed  # alive: how many bytes of the current rest have a state
    states.resize(table.lengths.max(initial=0) + 1)
    states[0] = state
    with nogil:
        for rest in range(count):
            if alive >= shared[rest]:
                alive = shared[rest]
                while alive < lengths[rest]:
                    target = transitions[states[alive], byte_class[data[where[rest] + alive]]]
                    if target < 0:
                        break
                    alive += 1
                    states[alive] = target
            if alive == lengths[rest]:
                after_of[rest] = states[alive]
            for passed in range(1, min(alive, lengths[rest] - 1) + 1):
                if outcome_of[states[passed]] >= 0:
                    outcomes.push_back(outcome_of[states[passed]])
                    rests.push_back(rest_at[where[rest] + passed])
            begin_of[rest + 1] = <int32_t>outcomes.size()
    return after, begins, int32_array(outcomes), int32_array(rests)


def join_pairs(
    vectors, const uint16_t[::1] class_of, class_count, outcome_count,
    const int32_t[::1] tokens, const int32_t[::1] rests,
):
    """See cuts.pyi."""
    cdef const int32_t[::1] after, begins, outcomes, exit_rests
    after, begins, outcomes, exit_rests = vectors
    class_ends, outcome_ends = np.zeros(class_count, dtype=np.int64), np.zeros(outcome_count, dtype=np.int64)
    cdef int64_t[::1] end_of_class = class_ends, end_of_outcome = outcome_ends
    cdef Py_ssize_t pair, place
    cdef int64_t* end
    for pair in range(rests.shape[0]):
        if after[rests[pair]] >= 0:
            end_of_class[class_of[after[rests[pair]]]] += 1
        for place in range(begins[rests[pair]], begins[rests[pair] + 1]):
            end_of_outcome[outcomes[place]] += 1
    staying = np.empty(class_ends.sum(), dtype=np.int32)
    leaving, left = np.empty((2, outcome_ends.sum()), dtype=np.int32)
    cdef int32_t[::1] stays = staying, leaves = leaving, remains = left
    # first where each begins; each entry made moves it on, so that at last it is where it ends
    class_ends[:] = np.cumsum(class_ends) - class_ends
    outcome_ends[:] = np.cumsum(outcome_ends) - outcome_ends
    for pair in range(rests.shape[0]):
        if after[rests[pair]] >= 0:
            end = &end_of_class[class_of[after[rests[pair]]]]
            stays[end[0]] = tokens[pair]
            end[0] += 1
        for place in range(begins[rests[pair]], begins[rests[pair] + 1]):
            end = &end_of_outcome[outcomes[place]]
            leaves[end[0]], remains[end[0]] = tokens[pair], exit_rests[place]
            end[0] += 1
    return class_ends, staying, outcome_ends, leaving, left
