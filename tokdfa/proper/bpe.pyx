"""Byte-pair encoding: rules by concatenation, merging, the last merge of every token, the order of a merge tree.

These are the loops of `tokdfa.proper.merge_rules`, `tokdfa.proper.derivations` and `tokdfa.proper.merge_tree`, where
the theory stands. Rules are sorted by left and then right token, so a rule is found by bisection of the row of its left
token. To merge, all adjacent pairs are scanned for the lowest rank, again and again. That is quadratic, and the fastest
way for the few letters that tokens have.
"""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, int32_array, pay

import numpy as np

from tokdfa.errors import TokenizerError


cdef extern from "tokdfa/core/interning.hpp" namespace "tokdfa" nogil:
    cdef cppclass Contents[Word]:
        int32_t find(const Word* content, size_t size)
        int32_t intern(const Word* content, size_t size) except +


cdef struct Rules:
    const int32_t* row_starts
    const int32_t* right
    const int32_t* result
    const int32_t* rank


cdef struct Pair:  # of adjacent symbols
    int32_t rule  # -1 without one
    int64_t rank  # INT64_MAX then


cdef struct LastMerge:
    int32_t rule   # -1: none
    int32_t level  # the greatest rank of all merges


cdef const int32_t* int32_data(object array, Py_ssize_t size) except? NULL:
    cdef const int32_t[::1] view = array
    if size >= 0 and view.shape[0] != size:
        raise ValueError(f"an array has {view.shape[0]} entries, not {size}")
    return &view[0] if view.shape[0] else NULL


cdef Rules rules_of(object rules):
    """The arrays of `MergeRules`, which the caller keeps."""
    cdef Py_ssize_t count = len(rules)
    return Rules(
        int32_data(rules.row_starts, rules.size + 1),
        int32_data(rules.right, count),
        int32_data(rules.result, count),
        int32_data(rules.rank, count),
    )


def cut_tokens(str name, const uint8_t[::1] byte_data, const int64_t[::1] offsets, const int32_t[::1] tokens):
    """See bpe.pyi."""
    cdef Contents[uint8_t] spelled
    cdef vector[int32_t] left, right, result
    cdef const uint8_t* data = &byte_data[0] if byte_data.shape[0] else NULL
    cdef int64_t begin, end, cut
    cdef int32_t first, second
    cdef Py_ssize_t k
    for k in range(tokens.shape[0]):
        begin, end = offsets[tokens[k]], offsets[tokens[k] + 1]
        if spelled.intern(data + begin, end - begin) != k:
            text = bytes(byte_data[begin:end])
            raise TokenizerError(
                f"{name}: two mergeable tokens spell {text!r}, so it is open which one a merge gives"
            )
    with nogil:
        for k in range(tokens.shape[0]):
            begin, end = offsets[tokens[k]], offsets[tokens[k] + 1]
            for cut in range(begin + 1, end):
                first = spelled.find(data + begin, cut - begin)
                if first < 0:
                    continue
                second = spelled.find(data + cut, end - cut)
                if second >= 0:
                    left.push_back(tokens[first])
                    right.push_back(tokens[second])
                    result.push_back(tokens[k])
    return int32_array(left), int32_array(right), int32_array(result)


def merge_letters(rules, letters):
    """See bpe.pyi."""
    cdef const int32_t[::1] given = np.ascontiguousarray(letters, dtype=np.int32)
    cdef vector[int32_t] symbols
    cdef vector[Pair] pairs
    cdef LastMerge last
    cdef Py_ssize_t k
    for k in range(given.shape[0]):
        if not 0 <= given[k] < rules.size:
            raise IndexError(f"there is no token {given[k]}")
        symbols.push_back(given[k])
    merge_symbols(rules_of(rules), symbols, pairs, last)
    return int32_array(symbols)


def derive_tokens(rules):
    """(is_proper, left, right, rank, level) of `Derivations`, by merging the letters of every token."""
    cdef int32_t size = rules.size, token
    cdef Rules of_rules = rules_of(rules)
    cdef const int32_t* rule_left = int32_data(rules.left, len(rules))
    cdef const int32_t* letters = int32_data(rules.spelling, len(rules.spelling))
    cdef const int32_t* starts = int32_data(rules.spelling_starts, size + 1)
    proper, columns = np.zeros(size, dtype=np.bool_), np.full((4, size), -1, dtype=np.int32)
    cdef uint8_t[::1] is_proper = proper
    cdef int32_t[:, ::1] found = columns
    cdef vector[int32_t] symbols
    cdef vector[Pair] pairs
    cdef LastMerge last
    with nogil:
        for token in range(size):
            if token % HELD_WORK == 0:
                pay(0, 0)  # signals
            symbols.assign(letters + starts[token], letters + starts[token + 1])
            merge_symbols(of_rules, symbols, pairs, last)
            if symbols.size() != 1 or symbols[0] != token:
                continue
            is_proper[token] = True
            if last.rule >= 0:
                found[0, token], found[1, token] = rule_left[last.rule], of_rules.right[last.rule]
                found[2, token], found[3, token] = of_rules.rank[last.rule], last.level
    return proper, *(column.copy() for column in columns)


cdef int merge_symbols(
    const Rules& rules, vector[int32_t]& symbols, vector[Pair]& pairs, LastMerge& last
) except -1 nogil:
    """Merge `symbols` in place. `pairs`: scratch."""
    cdef size_t k, best
    last.rule, last.level = -1, -1
    pairs.clear()
    for k in range(1, symbols.size()):
        pairs.push_back(pair_of(rules, symbols[k - 1], symbols[k]))
    while pairs.size():
        best = 0
        for k in range(1, pairs.size()):
            if pairs[k].rank < pairs[best].rank:
                best = k
        if pairs[best].rule < 0:
            break
        last.rule, last.level = pairs[best].rule, max(last.level, <int32_t>pairs[best].rank)
        symbols[best] = rules.result[last.rule]
        symbols.erase(symbols.begin() + best + 1)
        pairs.erase(pairs.begin() + best)
        if best > 0:
            pairs[best - 1] = pair_of(rules, symbols[best - 1], symbols[best])
        if best < pairs.size():
            pairs[best] = pair_of(rules, symbols[best], symbols[best + 1])
    return 0


cdef inline Pair pair_of(const Rules& rules, int32_t left, int32_t right) noexcept nogil:
    cdef int32_t rule = find_rule(rules.right, rules.row_starts[left], rules.row_starts[left + 1], right)
    return Pair(rule, INT64_MAX if rule < 0 else rules.rank[rule])


def number_tree(const int32_t[::1] roots, const int32_t[::1] parent, const int32_t[::1] children,
                const int32_t[::1] child_starts):
    """(order, number, end) of `MergeTree`, from its roots, the parent and the children of every token.

    Depth-first without a stack: the next child of the parent follows the subtree that has just been left. O(V).
    """
    cdef Py_ssize_t size = parent.shape[0]
    order_array = np.empty(roots.shape[0] + children.shape[0], dtype=np.int32)
    number_array, end_array = np.full(size, -1, dtype=np.int32), np.zeros(size, dtype=np.int32)
    cdef int32_t[::1] order = order_array, number = number_array, end = end_array
    cdef vector[int32_t] following
    cdef int32_t token, count = 0
    cdef Py_ssize_t k
    following.assign(&child_starts[0], &child_starts[0] + size)
    for k in range(roots.shape[0]):
        token = roots[k]
        order[count], number[token] = token, count
        count += 1
        while True:
            if following[token] < child_starts[token + 1]:
                following[token] += 1
                token = children[following[token] - 1]
                order[count], number[token] = token, count
                count += 1
            else:
                end[token] = count
                if token == roots[k]:
                    break
                token = parent[token]
    if count != order.shape[0]:
        raise ValueError(f"{count} of {order.shape[0]} tokens can be reached from the roots")
    return order_array, number_array, end_array
