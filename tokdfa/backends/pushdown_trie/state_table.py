"""The states of all automata of a vocabulary, in arrays that kernels read; they grow together, and only here.

A state is a number; state 0 stands for "before the first byte" and is nowhere else. A full table of 256 columns costs
1 kB a state and saves the look-up of a byte class at each step.

Layout, by state: ``transitions`` int32, flat, state x 256 -> state, DEAD or UNKNOWN; ``flags`` uint8: may end
(ACCEPTS), cannot go on (ENDS), reads many bytes (WIDE), ends where it first may (SHORTEST), is read over and over
or leads there, but by few bytes (LOOPS); ``reads`` uint64, shape (states, 4): the bytes that lead on;
``partition_class`` int32: a state with the same partitions, -1 if that was not asked yet
(`tokdfa.backends.pushdown_trie.automaton_table`);
``characters`` int32, shape (states, 4), of automata of JSON strings whose characters are counted: whether one may begin
(BEGINS), how many begin at least before an end (LEAST), and in an automaton's first state how many states it has
(STATES) and the greatest LEAST of these (MOST);
``owner`` int32: the number of its lazy automaton, -1 for a state of an explicit one, and ``inner`` int32: the state
there (`LazyRows`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import zeros_by_page
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS, LOOPS, SHORTEST, WIDE
from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from tokdfa.regex.lazy_dfa import LazyDfa

Int32 = npt.NDArray[np.int32]

#: A state that reads at least so many different bytes is wide: its partition pays.
WIDE_BYTES = 24
#: A wide state that reads fewer is one of those with LOOPS, too: of a name, a number in hexadecimal. So is one that
#: does not read the blank, with which most tokens begin: then it is twice as many, and none reads more.
MOST_BYTES, BLANK = 128, 0x20
#: A state from which so many bytes lead to states that loop is treated as one of them.
LEAST_INTO_LOOPS = 8
#: Columns of ``characters``.
BEGINS, LEAST, STATES, MOST = range(4)
#: Items have 21 bits for a state.
MAX_STATES = (1 << 21) - 1
#: States that a new table has room for.
FIRST_ROOM = 65_536


class StateTable:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    flags: npt.NDArray[np.uint8]
    reads: npt.NDArray[np.uint64]
    partition_class: Int32
    characters: Int32
    owner: Int32
    inner: Int32

    def __init__(self) -> None:
        #: Rows of states that there are not yet hold anything; pages that no state uses are never touched.
        self.transitions: Int32 = zeros_by_page(FIRST_ROOM * 256)
        self.transitions[:256] = DEAD
        vars(self).update(_columns(FIRST_ROOM))
        self.state_count = 1
        #: Structs that were made of these arrays and others; emptied when the arrays are replaced.
        self.structs: list[Any] = []

    @property
    def nbytes(self) -> int:
        """Memory of the states in bytes."""
        return 1024 * self.state_count + self.flags.nbytes

    @property
    def room(self) -> int:
        """So many states there may be before `make_room` is asked."""
        return min(len(self.flags), MAX_STATES)

    def touch(self, states: int) -> None:
        """Write to the memory of so many states to come, so that no text waits for the system to hand out its pages."""
        self.transitions[256 * self.state_count : 256 * (self.state_count + states)] = 0

    def make_room(self, states: int) -> None:
        """Have room for so many states. Raises LimitExceeded."""
        if states > MAX_STATES:
            raise LimitExceeded(
                f"the automata of this vocabulary's constraints have more than {MAX_STATES} states; lower repeats",
                limit="max_states",
                value=MAX_STATES,
            )
        room = len(self.flags)
        if states > room:
            more = max(states, 2 * room) - room
            hold(1024 * (states - self.state_count))
            transitions = zeros_by_page((room + more) * 256)
            transitions[: room * 256] = self.transitions
            grown = {name: np.concatenate([getattr(self, name), empty]) for name, empty in _columns(more).items()}
            vars(self).update(grown, transitions=transitions)  # all at once, whatever is raised before
            self.structs.clear()

    def enter(
        self, table: Int32, byte_class: npt.NDArray[np.uint8], accepting: npt.NDArray[np.bool_], is_shortest: bool
    ) -> int:
        """Enter the states of an explicit automaton; the number of the first. There is room for them.

        `table`: int32, shape (states, classes), -1 where nothing goes on.
        """
        first = self.state_count
        # copies, since numba compiles a kernel once more for frozen arrays
        automaton = table.copy(), byte_class.copy(), accepting.copy(), is_shortest, first
        _enter_states_kernel(*automaton, self.transitions, self.flags, self.reads, WIDE_BYTES, MOST_BYTES)
        self.state_count += len(table)
        return first


class LazyRows:
    """States of lazy automata in the table of states: numbered when they are met, given rows when these are read.

    Rows are made for many states at once, automaton by automaton: first in the automaton, then one kernel writes them
    to the table and numbers what they lead to. Where a walk finds thousands of rows missing
    (`tokdfa.backends.pushdown_trie.divide`), that is a few calls of kernels for each round of the walk.

    ``owner`` and ``inner`` of the table say what a state is in its automaton; for each automaton an array, int32 by
    state there, has the state of the table, or -1. Both directions are arrays, as kernels follow them.

    Cost: 5 µs a call and 2-5 µs a row (memory that is touched first, 1 kB a state), beside what the automaton takes.

    Not thread-safe: the lock of the vocabulary's pool is held.
    """

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
            0, state, number, shortest, automaton.accepting, known, table.owner, table.inner, table.transitions,
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
        automaton.fill_rows(table.inner[states])
        known, room = self._states[number], len(automaton.accepting)
        if len(known) < room:
            known = np.concatenate([known, np.full(room - len(known), -1, dtype=np.int32)])
            self._states[number] = known
        progress = np.array([0, table.state_count], dtype=np.int64)
        while True:
            try:
                is_done = _fill_rows_kernel(
                    states, number, shortest, WIDE_BYTES, table.room, progress, automaton.transitions,
                    automaton.byte_class, automaton.class_count, automaton.accepting, known, table.owner, table.inner,
                    table.transitions, table.flags, table.reads,
                )  # fmt: skip
            finally:  # a KeyboardInterrupt that came meanwhile is raised here, and `known` has the new states
                table.state_count = int(progress[1])
            if is_done:
                return
            table.make_room(table.state_count + 1)


def _columns(states: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays with one entry a state, for so many states that there are not yet."""
    return {
        "flags": np.zeros(states, dtype=np.uint8),
        "reads": np.zeros((states, 4), dtype=np.uint64),
        "partition_class": np.full(states, -1, dtype=np.int32),
        "characters": np.zeros((states, 4), dtype=np.int32),
        "owner": np.full(states, -1, dtype=np.int32),
        "inner": np.zeros(states, dtype=np.int32),
    }


@kernel
def _enter_states_kernel(  # type: ignore[no-untyped-def]
    table, byte_class, accepting, is_shortest, first, transitions, flags, reads, wide_bytes, most_bytes
):
    """Write transitions, flags and reads of an automaton's states, which are to be `first` and those after it.

    `table`: int32, shape (states, classes), -1 where nothing goes on. What a state's flags say depends on its automaton
    alone, and no mask depends on LOOPS: it says where a partition pays, as it does for blanks and digits, which are
    read over and over.
    """
    states, classes = table.shape
    sizes, bytes_of = np.zeros(classes, dtype=np.int64), np.zeros((classes, 4), dtype=np.uint64)
    for byte in range(256):
        sizes[byte_class[byte]] += 1
        bytes_of[byte_class[byte], byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
    targets = np.empty(classes, dtype=np.int32)
    loops = np.zeros(states, dtype=np.bool_)
    for state in range(states):
        live, again = np.int64(0), False
        for column in range(classes):
            targets[column] = DEAD
            if table[state, column] >= 0:
                targets[column] = table[state, column] + first
                live += sizes[column]
                again |= table[state, column] == state
                for quarter in range(4):
                    reads[first + state, quarter] |= bytes_of[column, quarter]
        loops[state] = again and live < wide_bytes
        wide = ENDS if live == 0 else (WIDE if live >= wide_bytes else 0)
        most = most_bytes if table[state, byte_class[BLANK]] >= 0 else 2 * most_bytes
        wide |= LOOPS if wide_bytes <= live < most else 0
        flags[first + state] = (ACCEPTS if accepting[state] else 0) | wide | (SHORTEST if is_shortest else 0)
        begin = 256 * (first + state)
        for byte in range(256):
            transitions[begin + byte] = targets[byte_class[byte]]
    for state in range(states):
        into = np.int64(0)
        for column in range(classes):
            if table[state, column] >= 0 and loops[table[state, column]]:
                into += sizes[column]
        if flags[first + state] & WIDE == 0 and (loops[state] or into >= LEAST_INTO_LOOPS):
            flags[first + state] |= LOOPS


def warm_up() -> None:
    """Run both kernels once."""
    from tokdfa.regex.expression import ANY_BYTE, ExpressionStore
    from tokdfa.regex.lazy_dfa import LazyDfa

    store, table, rows = ExpressionStore(), StateTable(), LazyRows()
    start = rows.add(table, LazyDfa(store, store.repeat(ANY_BYTE, 1, 2)), False)
    rows.fill(table, np.array([start], dtype=np.int32))


@kernel
def _enter_kernel(  # type: ignore[no-untyped-def]
    there, state, number, shortest, accepting, known, owner, inner, transitions, flags
):
    """Make a state of an automaton state `state` of the table; it has no row yet, unless it ends where it may."""
    known[there], owner[state], inner[state] = state, number, there
    ends = shortest and accepting[there]
    transitions[state * 256 : state * 256 + 256] = DEAD if ends else UNKNOWN
    flags[state] = (ACCEPTS if accepting[there] else 0) | (SHORTEST if shortest else 0) | (ENDS if ends else 0)


@kernel
def _fill_rows_kernel(  # type: ignore[no-untyped-def]
    states, number, shortest, wide, room, progress, table, byte_class, classes, accepting, known, owner, inner,
    transitions, flags, reads,
):  # fmt: skip
    """Write the rows of `states`, from index ``progress[0]`` on, and number what they lead to; whether all are written.

    ``progress[1]``: how many states the table has, at most `room`. The automaton's rows are known in its `table`.
    """
    columns = np.empty(classes, dtype=np.int32)
    while progress[0] < len(states):
        state = np.int64(states[progress[0]])
        progress[0] += 1
        if transitions[state * 256] != UNKNOWN:
            continue
        row = np.int64(inner[state]) * classes
        for k in range(classes):
            columns[k] = DEAD
            if table[row + k] < 0:
                continue
            there = np.int64(table[row + k]) // classes
            if known[there] < 0:
                if progress[1] >= room:
                    progress[0] -= 1
                    return False
                _enter_kernel(there, progress[1], number, shortest, accepting, known, owner, inner, transitions, flags)
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
