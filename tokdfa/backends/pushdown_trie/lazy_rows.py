"""States of lazy automata in the table of states: numbered when they are met, given rows when these are read.

Rows are made for many states at once, automaton by automaton: first in the automaton, then one kernel writes them to
the table and numbers what they lead to. Where a walk finds thousands of rows missing
(`tokdfa.backends.pushdown_trie.divide`), that is a few calls of kernels for each round of the walk.

``owner`` and ``place`` of the table say what a state is in its automaton; for each automaton an array, int32 by state
there, has the state of the table, or -1. Both directions are arrays, as kernels follow them.

Cost: 5 µs a call and 2-5 µs a row (memory that is touched first, 1 kB a state), beside what the automaton takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie import state_table
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS, SHORTEST, WIDE
from tokdfa.backends.pushdown_trie.state_table import StateTable
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.walk import DEAD, UNKNOWN

if TYPE_CHECKING:
    from tokdfa.regex.lazy_dfa import LazyDfa

Int32 = npt.NDArray[np.int32]


class LazyRows:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self) -> None:
        #: By number: the automaton, and whether its texts are the shortest.
        self.automata: list[tuple[LazyDfa, bool]] = []
        self._states: list[Int32] = []  # by number of the automaton: state there -> state of the table, or -1

    def add(self, table: StateTable, automaton: LazyDfa, shortest: bool) -> int:
        """Enter an automaton; the state of the table that is its start. Raises LimitExceeded."""
        state, number = table.state_count, len(self.automata)
        table.make_room(state + 1)
        known = np.full(len(automaton.accepting), -1, dtype=np.int32)
        self.automata.append((automaton, shortest))
        self._states.append(known)
        _enter_kernel(
            0, state, number, shortest, automaton.accepting, known, table.owner, table.place, table.transitions,
            table.flags,
        )  # fmt: skip
        table.state_count += 1
        return state

    def fill(self, table: StateTable, states: Int32) -> None:
        """Make the transitions of states of lazy automata; rows that are known stay as they are.

        Raises LimitExceeded; rows that were not made are UNKNOWN.
        """
        if len(states) == 1:
            self._fill_of(table, int(table.owner[states[0]]), states)
            return
        states = np.unique(states)
        owners = table.owner[states]
        for number in np.unique(owners).tolist():
            self._fill_of(table, number, states[owners == number])

    def _fill_of(self, table: StateTable, number: int, states: Int32) -> None:
        """Make the transitions of different states of one automaton."""
        automaton, shortest = self.automata[number]
        automaton.fill_rows(table.place[states])
        known, room = self._states[number], len(automaton.accepting)
        if len(known) < room:
            known = np.concatenate([known, np.full(room - len(known), -1, dtype=np.int32)])
            self._states[number] = known
        progress = np.array([0, table.state_count], dtype=np.int64)
        while True:
            is_done = _fill_kernel(
                states, number, shortest, state_table.WIDE_BYTES, table.room, progress, automaton.transitions,
                automaton.byte_class, automaton.class_count, automaton.accepting, known, table.owner, table.place,
                table.transitions, table.flags, table.reads,
            )  # fmt: skip
            table.state_count = int(progress[1])
            if is_done:
                return
            table.make_room(table.state_count + 1)


def warm_up() -> None:
    """Run both kernels once."""
    from tokdfa.regex.expression import ANY_BYTE, ExpressionStore
    from tokdfa.regex.lazy_dfa import LazyDfa

    store, table, rows = ExpressionStore(), StateTable(), LazyRows()
    start = rows.add(table, LazyDfa(store, store.repeat(ANY_BYTE, 1, 2)), False)
    rows.fill(table, np.array([start], dtype=np.int32))


@kernel
def _enter_kernel(  # type: ignore[no-untyped-def]
    there, state, number, shortest, accepting, known, owner, place, transitions, flags
):
    """Make a state of an automaton state `state` of the table; it has no row yet, unless it ends where it may."""
    known[there], owner[state], place[state] = state, number, there
    ends = shortest and accepting[there]
    transitions[state * 256 : state * 256 + 256] = DEAD if ends else UNKNOWN
    flags[state] = (ACCEPTS if accepting[there] else 0) | (SHORTEST if shortest else 0) | (ENDS if ends else 0)


@kernel
def _fill_kernel(  # type: ignore[no-untyped-def]
    states, number, shortest, wide, room, progress, table, byte_class, classes, accepting, known, owner, place,
    transitions, flags, reads,
):  # fmt: skip
    """Write the rows of `states`, from place ``progress[0]`` on, and number what they lead to; whether all are written.

    ``progress[1]``: how many states the table has, at most `room`. The automaton's rows are known in its `table`.
    """
    columns = np.empty(classes, dtype=np.int32)
    while progress[0] < len(states):
        state = np.int64(states[progress[0]])
        progress[0] += 1
        if transitions[state * 256] != UNKNOWN:
            continue
        row = np.int64(place[state]) * classes
        for k in range(classes):
            columns[k] = DEAD
            if table[row + k] < 0:
                continue
            there = np.int64(table[row + k]) // classes
            if known[there] < 0:
                if progress[1] >= room:
                    progress[0] -= 1
                    return False
                _enter_kernel(there, progress[1], number, shortest, accepting, known, owner, place, transitions, flags)
                progress[1] += 1
            columns[k] = known[there]
        count = 0
        for quarter in range(4):
            bits = np.uint64(0)
            for byte in range(64):
                target = columns[byte_class[64 * quarter + byte]]
                transitions[state * 256 + 64 * quarter + byte] = target
                if target >= 0:
                    bits |= np.uint64(1) << np.uint64(byte)
                    count += 1
            reads[state, quarter] = bits
        if count == 0:
            flags[state] |= ENDS
        if count >= wide:
            flags[state] |= WIDE
    return True
