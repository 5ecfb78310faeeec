"""The algebra of byte automata: trim, minimise, combine, compare, list and count.

This module holds the Boolean operations and equality, and is the front door to `liveness` (trim), `minimize` and
`words`. All results are trim, start in state 0, are numbered breadth-first with the bytes in ascending order, and have
the coarsest byte classes. `minimize` gives a canonical form: two languages are equal iff the arrays are. Languages are
sets of byte strings, so `complement` contains byte strings that are not UTF-8.

What one automaton accepts and another does not is the product in which just one of them accepts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.byte_classes import common_classes
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import STATE_LIMIT, state_limit_exceeded
from tokdfa.automata.liveness import distance_to_accept, is_empty, live_states, trim, trim_table
from tokdfa.automata.minimize import minimize
from tokdfa.automata.words import shortest_word, words
from tokdfa.core.jit import kernel
from tokdfa.core.keys import longer_keys, number_key

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.automata.liveness import Table

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

# Which side of a pair of states must be alive for the pair to be worth visiting (`explore_pairs_kernel`).
BOTH, FIRST_SIDE, EITHER = 0, 1, 2


def intersection(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that both accept. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, BOTH, np.logical_and, limit)


def union(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that at least one accepts. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, EITHER, np.logical_or, limit)


def difference(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that `a` accepts and `b` does not. LimitExceeded if more than `limit` pairs can be reached."""
    return _combine(a, b, FIRST_SIDE, np.greater, limit)


def complement(a: Dfa) -> Dfa:
    """The byte strings that `a` does not accept, among them all that are not UTF-8 (if `a` accepts text)."""
    sink = a.state_count
    table = np.full((sink + 1, a.class_count), sink, dtype=np.int32)
    table[:sink] = np.where(a.transitions < 0, sink, a.transitions)
    return trim(Dfa(table, a.byte_class, np.append(~a.accepting, True), a.start if sink else 0))


def _combine(a: Dfa, b: Dfa, alive: int, accepts: np.ufunc, limit: int) -> Dfa:
    """The product of two automata; `accepts` decides on a pair from what its two states say, the dead saying no."""
    byte_class, representatives = common_classes(a.byte_class, b.byte_class)
    first = np.take(a.transitions, a.byte_class[representatives], axis=1)
    second = np.take(b.transitions, b.byte_class[representatives], axis=1)
    keys, table = explore_pairs_kernel(first, second, a.start, b.start, alive, limit)
    if len(keys) > limit:
        raise state_limit_exceeded(limit)
    width = b.state_count + 1
    by_first = np.append(a.accepting, False)[keys // width - 1]  # dead is -1, which looks up the last entry
    by_second = np.append(b.accepting, False)[keys % width - 1]
    return trim_table(table, byte_class, accepts(by_first, by_second), 0)


@kernel
def explore_pairs_kernel(
    first: Table, second: Table, first_start: int, second_start: int, alive: int, limit: int
) -> tuple[npt.NDArray[np.int64], Table]:
    """Breadth-first search of pairs of states, either of which may be dead (-1).

    Tables: int32, equal columns. Returns the key ``(p + 1) * width + q + 1`` of each pair, width being the number of
    second states + 1 (int64), and the transitions between pairs (int32). Stops soon after `limit` pairs.
    """
    classes = first.shape[1]
    width = second.shape[0] + 1
    keys, slots = longer_keys(1024, 0, np.empty(1, dtype=np.int64))
    table = np.empty((1024, classes), dtype=np.int32)
    _, count = number_key((first_start + 1) * width + second_start + 1, 0, keys, slots)
    head = 0
    while head < count <= limit:
        if count + classes > len(keys):  # make room for all successors of a pair
            keys, slots = longer_keys(count + classes, count, keys)
            more_rows = np.empty((len(keys), classes), dtype=np.int32)
            for row in range(head):
                for column in range(classes):
                    more_rows[row, column] = table[row, column]
            table = more_rows
        p = keys[head] // width - 1
        q = keys[head] % width - 1
        for column in range(classes):
            next_p = first[p, column] if p >= 0 else -1
            next_q = second[q, column] if q >= 0 else -1
            if (next_p < 0 and (alive != EITHER or next_q < 0)) or (next_q < 0 and alive == BOTH):
                table[head, column] = -1
                continue
            key = (np.int64(next_p) + 1) * width + next_q + 1
            number, count = number_key(key, count, keys, slots)
            table[head, column] = number
        head += 1
    return keys[:count].copy(), table[:head].copy()


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
    return shortest_word(_combine(a, b, EITHER, np.not_equal, limit))


def _warm_up() -> None:
    """Compile every kernel of the package, by using each function on a toy automaton."""
    # Any word over a, b that ends in b; states 0 and 2 are equivalent, so that minimising has something to merge.
    table = np.full((3, 256), -1, dtype=np.int32)
    table[:, ord("a")], table[:, ord("b")] = (2, 0, 0), 1
    toy = Dfa.from_table(table, np.array([False, True, False]), 0)
    live_states(toy)
    minimize(intersection(toy, complement(toy)))
