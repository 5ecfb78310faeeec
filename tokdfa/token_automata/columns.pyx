"""What tokens do to automaton states: partial maps, kept as columns, each distinct one once.

Words. Reading a token takes every state to at most one state: the token's *transformation*, a partial map of the
states. In the table states x tokens it is the token's column, so we call the stored form a *column*: the pairs
(source, target), sources ascending. Tokens with equal columns need only one, as bytes with equal columns form one byte
class: the partition of the tokens by their columns is the coarsest that no state can tell apart.

Equal columns are found by interning (`ColumnStore`), a pair a word. Numbers are given in order of arrival.

The rest is about sparse tables in compressed rows, of which columns are one kind: row k has the entries
``offsets[k] .. offsets[k + 1] - 1``.

Source: 001, part 6 ("minimise transitions table"), does the merging after the table is built; merging while tokens are
still being read, and the name, are ours (transformation monoid: Eilenberg, "Automata, Languages, and Machines", B).
"""

from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.vector cimport vector

from tokdfa.automata.moves cimport sort_by_key
from tokdfa.core.border cimport HELD_WORK, int32_array, int64_array
from tokdfa.core.interning cimport pair_key

from collections import namedtuple

import numpy as np


class Columns(namedtuple("Columns", "ranks class_of offsets sources targets in_order", defaults=[False])):
    """Token classes and what they do: class k has the pairs ``offsets[k] .. offsets[k + 1] - 1``.

    ``ranks``: int32, ascending, the tokens that have a class, by rank (place in the trie's order); ``class_of``: int32,
    the class of each of them; ``offsets``: int64, shape (classes + 1,); ``sources``, ``targets``: int32, states;
    sources ascend within a class; ``in_order``: whether classes are known to be numbered in the order of their first
    token, none with an empty column.
    """

    __slots__ = ()

    @property
    def class_count(self):
        """How many token classes there are."""
        return len(self.offsets) - 1


cdef class ColumnStore:
    """Distinct columns, numbered in order of arrival."""

    cdef int add_all(
        self, const int64_t[::1] offsets, const int32_t[::1] sources, const int32_t[::1] targets, int32_t[::1] number,
        bint empty_too,
    ) except -1 nogil:
        cdef vector[int64_t] pairs
        cdef Py_ssize_t row
        cdef int64_t k
        for row in range(number.shape[0]):
            number[row] = -1
            if offsets[row] < offsets[row + 1] or empty_too:
                pairs.clear()
                for k in range(offsets[row], offsets[row + 1]):
                    pairs.push_back(pair_key(sources[k], targets[k]))
                number[row] = self.columns.intern(pairs.data(), pairs.size())
        return 0

    cdef object columns_of(self, object ranks, object column_of, uint32_t scale):
        cdef int32_t[::1] classes = column_of
        cdef vector[int32_t] used
        with nogil:
            self.renumber(classes, scale, used)
        return Columns(ranks, column_of, *self.spell(used), True)

    cdef int renumber(self, int32_t[::1] column_of, uint32_t scale, vector[int32_t]& used) except -1 nogil:
        cdef vector[int32_t] number
        cdef Py_ssize_t k
        cdef int32_t column
        number.assign(self.columns.size(), -1)
        for k in range(column_of.shape[0]):
            column = <int32_t>(<uint32_t>column_of[k] // scale)
            if number[column] < 0:
                number[column] = <int32_t>used.size()
                used.push_back(column)
            column_of[k] = number[column]
        return 0

    cdef tuple spell(self, const vector[int32_t]& used):
        cdef const int64_t* pairs
        cdef int64_t end = 0
        cdef size_t place, k
        bounds = np.zeros(used.size() + 1, dtype=np.int64)
        cdef int64_t[::1] offsets = bounds
        for place in range(used.size()):
            end += self.columns.length(used[place])
            offsets[place + 1] = end
        firsts, seconds = np.empty((2, end), dtype=np.int32)
        cdef int32_t[::1] sources = firsts, targets = seconds
        with nogil:
            end = 0
            for place in range(used.size()):
                pairs = self.columns.content_of(used[place])
                for k in range(self.columns.length(used[place])):
                    sources[end], targets[end] = <int32_t>(pairs[k] >> 32), <int32_t>pairs[k]
                    end += 1
        return bounds, firsts, seconds


def unite(parts):
    """Columns of several runs of tokens as one: equal columns are one class, in order of their first token.

    Tokens with empty columns are left out. The parts' tokens follow one another. O(pairs + tokens).
    """
    cdef ColumnStore store = ColumnStore()
    ranks, column_of = [], []
    for part in parts:
        found = _add_rows(store, part.offsets, part.sources, part.targets, False)[part.class_of]
        ranks.append(part.ranks[found >= 0])
        column_of.append(found[found >= 0])
    return store.columns_of(np.concatenate(ranks), np.concatenate(column_of), 1)


def join(parts):
    """Columns of several runs of tokens one behind the other, equal ones apart."""
    counts = [part.class_count for part in parts]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Columns(
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.class_of + np.int32(sum(counts[:k])) for k, part in enumerate(parts)]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


def distinct_rows(offsets, keys, values):
    """Equal rows of a sparse table once, in order of arrival: (number of each row, offsets, keys, values).

    O(entries).
    """
    cdef ColumnStore store = ColumnStore()
    cdef vector[int32_t] every
    cdef size_t row
    number = _add_rows(
        store, np.asarray(offsets, np.int64), np.asarray(keys, np.int32), np.asarray(values, np.int32), True
    )
    for row in range(store.columns.size()):
        every.push_back(<int32_t>row)
    return number, *store.spell(every)


cdef object _add_rows(ColumnStore store, object offsets, object sources, object targets, bint empty_too):
    """Where each row went: int32, -1 for one that is left out."""
    number = np.empty(len(offsets) - 1, dtype=np.int32)
    cdef const int64_t[::1] bounds = offsets
    cdef const int32_t[::1] firsts = sources, seconds = targets
    cdef int32_t[::1] numbers = number
    if firsts.shape[0] > HELD_WORK:
        with nogil:
            store.add_all(bounds, firsts, seconds, numbers, empty_too)
    else:
        store.add_all(bounds, firsts, seconds, numbers, empty_too)
    return number


def places_of(offsets, rows):
    """Where the entries of the chosen rows lie, one row after another; and the offsets of the rows put together so."""
    lengths = offsets[rows + 1] - offsets[rows]
    together = np.append(0, np.cumsum(lengths))
    count = len(rows)
    return np.repeat(offsets[rows] - together[:count], lengths) + np.arange(together[count]), together


def transpose(
    Py_ssize_t row_count, const int64_t[::1] offsets, const int32_t[::1] columns, const int32_t[::1] values
):
    """A sparse table by its other index: entries (k, columns[i], values[i]) for i in ``offsets[k]..offsets[k+1]-1``.

    Returns (offsets, ks, values) by column, 0..row_count-1; ks ascend within each. Counting sort: O(entries).
    """
    bounds = np.zeros(row_count + 1, dtype=np.int64)
    rows, moved = np.empty((2, columns.shape[0]), dtype=np.int32)
    cdef int64_t[::1] turned = bounds
    cdef int32_t[::1] ks = rows, turned_values = moved
    if columns.shape[0] > HELD_WORK:
        with nogil:
            _transpose(offsets, columns, values, turned, ks, turned_values)
    else:
        _transpose(offsets, columns, values, turned, ks, turned_values)
    return bounds, rows, moved


cdef int _transpose(
    const int64_t[::1] offsets, const int32_t[::1] columns, const int32_t[::1] values, int64_t[::1] turned,
    int32_t[::1] ks, int32_t[::1] turned_values,
) except -1 nogil:
    cdef vector[int64_t] following
    cdef Py_ssize_t i, k
    cdef int64_t place, total = 0
    for i in range(columns.shape[0]):
        turned[columns[i] + 1] += 1
    for i in range(turned.shape[0]):
        total += turned[i]
        turned[i] = total
        following.push_back(total)
    for k in range(offsets.shape[0] - 1):
        for i in range(offsets[k], offsets[k + 1]):
            place = following[columns[i]]
            following[columns[i]] += 1
            ks[place], turned_values[place] = <int32_t>k, values[i]
    return 0


def list_members(
    const int32_t[::1] ranks, const int32_t[::1] class_of, const int32_t[::1] order, Py_ssize_t class_count,
    int32_t[::1] dense,
):
    """(offsets, members), int32: ``members[offsets[k] : offsets[k + 1]]`` are the tokens of class k.

    `dense`: int32, the class of each rank, written where there is one; or empty.
    """
    cdef vector[int32_t] offsets, places
    cdef size_t k
    sort_by_key(&class_of[0] if class_of.shape[0] else NULL, class_of.shape[0], class_count, offsets, places)
    for k in range(places.size() if dense.shape[0] else 0):
        dense[ranks[k]] = class_of[k]
    for k in range(places.size()):
        places[k] = order[ranks[places[k]]]
    return int32_array(offsets), int32_array(places)


def reached_states(Py_ssize_t start, const int64_t[::1] offsets, const int32_t[::1] targets):
    """The states that can be reached from `start` along ``targets[offsets[s]:offsets[s+1]]``, breadth-first.

    Returns them, int32; the place of each state among them, -1 for the others; and where their rows begin if they are
    put in this order, int64.
    """
    cdef vector[int32_t] order
    cdef vector[int64_t] bounds
    cdef size_t done = 0
    cdef int64_t k
    cdef int32_t state
    number = np.full(offsets.shape[0] - 1, -1, dtype=np.int32)
    cdef int32_t[::1] places = number
    places[start] = 0
    order.push_back(<int32_t>start)
    bounds.push_back(0)
    while done < order.size():
        state = order[done]
        done += 1
        bounds.push_back(bounds.back() + offsets[state + 1] - offsets[state])
        for k in range(offsets[state], offsets[state + 1]):
            if places[targets[k]] < 0:
                places[targets[k]] = <int32_t>order.size()
                order.push_back(targets[k])
    return int32_array(order), number, int64_array(bounds)
