"""Where the texts of an automaton of JSON strings have characters: see `tokdfa.program.json_text.read_characters`."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int32_t, uint8_t
from libcpp.vector cimport vector

import numpy as np

from tokdfa.core.budget import spend


def find_begins(dfa, const int32_t[:, ::1] strings, int32_t body):
    """See characters.pyi."""
    cdef const int32_t[:, ::1] table = dfa.transitions
    cdef const uint8_t[::1] byte_class = dfa.byte_class
    cdef int32_t width = <int32_t>strings.shape[0], pair, state, target, following
    cdef int byte
    cdef size_t head = 0
    cdef vector[int32_t] pairs  # of a state here and one of any string, in the order in which they are met
    cdef vector[uint8_t] met
    begins = np.zeros(table.shape[0], dtype=np.int32)
    cdef int32_t[::1] kinds = begins  # 1: a character begins here, 2: none does, 3: it depends on the text
    met.assign(table.shape[0] * width, False)
    met[0] = True
    pairs.push_back(0)
    while head < pairs.size():
        pair, head = pairs[head], head + 1
        state = pair // width
        kinds[state] |= 1 if pair % width == body else 2
        for byte in range(256):
            target, following = table[state, byte_class[byte]], strings[pair % width, byte]
            if target >= 0 and following < 0:
                return None
            if target >= 0 and not met[target * width + following]:
                met[target * width + following] = True
                pairs.push_back(target * width + following)
    return None if (begins == 3).any() else begins & 1


def count_least(dfa, const int32_t[::1] begins):
    """See characters.pyi."""
    cdef const int32_t[:, ::1] table = dfa.transitions
    cdef const uint8_t[::1] accepting = dfa.accepting.view(np.uint8)
    cdef Py_ssize_t states = table.shape[0], classes = table.shape[1], state, column
    cdef int32_t target, here
    cdef bint changed = True, has_more
    least = np.where(dfa.accepting, np.int32(0), np.int32(states))
    cdef int32_t[::1] found = least
    while changed:
        spend(states * classes)
        PyErr_CheckSignals()
        changed = False
        for state in range(states - 1, -1, -1):
            for column in range(classes):
                target = table[state, column]
                if target >= 0:
                    here = found[target] + (0 if accepting[target] else begins[state])
                    if here < found[state]:
                        found[state], changed = here, True
    for state in range(states):
        has_more = not begins[state]
        for column in range(classes):
            target = table[state, column]
            has_more |= target >= 0 and not accepting[target] and found[target] <= found[state]
        if not has_more:
            return least, False
    return least, True
