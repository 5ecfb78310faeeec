"""Which states of an automaton matter, and `trim`, which keeps only those.

A state is *live* iff it can be reached from the start and acceptance can be reached from it. The searches are in
`tokdfa.automata.moves`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.moves import LivePart, distances_along, distances_to_accept
from tokdfa.core.budget import spend

if TYPE_CHECKING:
    from collections.abc import Sequence

Table = npt.NDArray[np.int32]
States = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

#: Work (`tokdfa.core.budget`) of an entry of a table, in nanoseconds.
NS_PER_ENTRY = 10


def distance_to_accept(dfa: Dfa) -> States:
    """The smallest number of bytes from each state to acceptance: int32, shape (states,), -1 where there is no way."""
    spend(NS_PER_ENTRY * dfa.transitions.size)
    return distances_to_accept(dfa.transitions, dfa.accepting)


def live_states(dfa: Dfa) -> Flags:
    """Which states can be reached from the start and reach acceptance: bool, shape (states,)."""
    live = np.zeros(dfa.state_count, dtype=np.bool_)
    live[live_part(dfa.transitions, dfa.byte_class, dfa.accepting, [dfa.start]).states] = True
    return live


def coaccessible_states(offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], accepting: Flags) -> Flags:
    """bool, shape (states,): from which states acceptance can be reached along ``targets[offsets[s]:offsets[s + 1]]``.

    O(transitions), of any automaton, whatever its letters are.
    """
    sources = np.repeat(np.arange(len(accepting), dtype=np.int32), np.diff(offsets))
    return distances_along(sources, targets.astype(np.int32), accepting) >= 0


def leading_to(table: Table, wanted: Flags) -> Flags:
    """bool, shape (states,): the states that lead to those that are wanted, these included. O(entries).

    `table`: int32, shape (states, letters), -1 where nothing goes on.
    """
    return distances_to_accept(np.ascontiguousarray(table, dtype=np.int32), wanted) >= 0


def trim(dfa: Dfa) -> Dfa:
    """The live part of `dfa`: same language, states numbered breadth-first from start 0, coarsest byte classes.

    O(states x classes).
    """
    return trim_table(dfa.transitions, dfa.byte_class, dfa.accepting, dfa.start)


def is_empty(dfa: Dfa) -> bool:
    """Whether no word at all is accepted."""
    return dfa.state_count == 0 or bool(distance_to_accept(dfa)[dfa.start] < 0)


def trim_table(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, start: int) -> Dfa:
    """`trim` for bare arrays; `start` -1 stands for no state."""
    return dfa_of(live_part(table, byte_class, accepting, [start]))


def live_part(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, starts: Sequence[int]) -> LivePart:
    """What of an automaton is live for one of `starts` (-1: for none). O(states x classes)."""
    spend(NS_PER_ENTRY * table.size)
    return LivePart(table, byte_class, accepting, starts)


def dfa_of(live: LivePart) -> Dfa:
    """The automaton that starts in the first of its states."""
    return Dfa.trusted(*live.arrays(), 0) if live.state_count else Dfa.empty()
