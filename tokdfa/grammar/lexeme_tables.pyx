"""What `tokdfa.grammar.lexeme_automata` copies out of an automaton."""

from libc.stdint cimport int32_t
from libcpp.vector cimport vector

import numpy as np


def part_from(const int32_t[:, ::1] table, int32_t start):
    """See lexeme_tables.pyi."""
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
    part = np.asarray(<int32_t[:order.size(), :table.shape[1]]>rows.data()).copy()
    return part, np.asarray(<int32_t[:order.size()]>order.data()).copy()
