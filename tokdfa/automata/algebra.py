"""The algebra of byte automata: trim, minimise, combine, compare, list and count.

This module holds the Boolean operations and equality, and is the front door to `liveness` (trim), `minimize` and
`words`. All results are trim, start in state 0, are numbered breadth-first with the bytes in ascending order, and have
the coarsest byte classes. `minimize` gives a canonical form: two languages are equal iff the arrays are. Languages are
sets of byte strings, so `complement` contains byte strings that are not UTF-8.

What one automaton accepts and another does not is the product in which just one of them accepts.
"""

from __future__ import annotations

import numpy as np

from tokdfa.automata.byte_classes import common_classes
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import STATE_LIMIT, state_limit_exceeded
from tokdfa.automata.liveness import distance_to_accept, is_empty, live_states, trim, trim_table
from tokdfa.automata.minimize import minimize
from tokdfa.automata.pairs import explore_pairs
from tokdfa.automata.words import shortest_word, words

__all__ = [
    "complement",
    "difference",
    "distance_to_accept",
    "distinguishing_word",
    "intersection",
    "is_empty",
    "live_states",
    "minimize",
    "same_language",
    "shortest_word",
    "trim",
    "union",
    "words",
]


def intersection(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that both accept. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, (True, True), np.logical_and, limit)


def union(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that at least one accepts. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, (False, False), np.logical_or, limit)


def difference(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that `a` accepts and `b` does not. LimitExceeded if more than `limit` pairs can be reached."""
    return _combine(a, b, (True, False), np.greater, limit)


def complement(a: Dfa) -> Dfa:
    """The byte strings that `a` does not accept, among them all that are not UTF-8 (if `a` accepts text)."""
    sink = a.state_count
    table = np.full((sink + 1, a.class_count), sink, dtype=np.int32)
    table[:sink] = np.where(a.transitions < 0, sink, a.transitions)
    return trim(Dfa(table, a.byte_class, np.append(~a.accepting, True), a.start if sink else 0))


def _combine(a: Dfa, b: Dfa, needed: tuple[bool, bool], accepts: np.ufunc, limit: int) -> Dfa:
    """The product of two automata.

    `needed`: which of the two has to be alive where a word goes on; `accepts` decides on a pair from what its two
    states say, the dead saying no.
    """
    byte_class, representatives = common_classes(a.byte_class, b.byte_class)
    first = np.take(a.transitions, a.byte_class[representatives], axis=1)
    second = np.take(b.transitions, b.byte_class[representatives], axis=1)
    pairs, table = explore_pairs(first, second, (a.start, b.start), needed, limit)
    if len(pairs) > limit:
        raise state_limit_exceeded(limit)
    by_first = np.append(a.accepting, False)[pairs[:, 0]]  # dead is -1, which looks up the last entry
    by_second = np.append(b.accepting, False)[pairs[:, 1]]
    return trim_table(table, byte_class, accepts(by_first, by_second), 0)


def same_language(a: Dfa, b: Dfa) -> bool:
    """Whether both accept the same words: whether their canonical forms are the same arrays."""
    ours, theirs = minimize(a), minimize(b)
    return all(
        np.array_equal(getattr(ours, name), getattr(theirs, name))
        for name in ("transitions", "byte_class", "accepting")
    )


def distinguishing_word(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> bytes | None:
    """A shortest word that exactly one of the two accepts; None iff they have the same language.

    LimitExceeded if more than `limit` pairs of states can be reached; `same_language` needs no pairs.
    """
    return shortest_word(_combine(a, b, (False, False), np.not_equal, limit))
