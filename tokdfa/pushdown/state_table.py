"""The states of all automata of a vocabulary, in arrays that kernels read; they grow together, and only here.

A state is a number; state 0 stands for "before the first byte" and is nowhere else. A full table of 256 columns costs
1 kB a state and saves the look-up of a byte class at each step.

Layout, by state: ``transitions`` int32, flat, state x 256 -> state, DEAD or UNKNOWN; ``flags`` uint8: may end
(ACCEPTS), cannot go on (ENDS), reads many bytes (WIDE), ends where it first may (SHORTEST), reads few bytes, but some
over and over, or leads there (LOOPS); ``reads`` uint64, shape (states, 4): the bytes that lead on; ``alike`` int32: a
state with the same partitions, -1 if that was not asked yet (`tokdfa.pushdown.automaton_table`); ``owner`` int32: the
number of its lazy automaton, -1 for a state of an explicit one, and ``place`` int32: the state there
(`tokdfa.pushdown.lazy_rows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.budget import hold
from tokdfa.errors import LimitExceeded
from tokdfa.pushdown.arrays import zeros_by_page
from tokdfa.pushdown.rows import ACCEPTS, ENDS, LOOPS, WIDE
from tokdfa.vocabulary.walk import DEAD

Int32 = npt.NDArray[np.int32]

#: A state that reads at least so many different bytes is wide: its partition pays.
WIDE_BYTES = 24
#: A state from which so many bytes lead to states that loop is treated as one of them.
LEAST_INTO_LOOPS = 8
#: Items have 21 bits for a state.
MAX_STATES = (1 << 21) - 1
#: States that a new table has room for.
FIRST_ROOM = 65_536


class StateTable:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    flags: npt.NDArray[np.uint8]
    reads: npt.NDArray[np.uint64]
    alike: Int32
    owner: Int32
    place: Int32

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


def _columns(states: int) -> dict[str, npt.NDArray[Any]]:
    """The arrays with one entry a state, for so many states that there are not yet."""
    return {
        "flags": np.zeros(states, dtype=np.uint8),
        "reads": np.zeros((states, 4), dtype=np.uint64),
        "alike": np.full(states, -1, dtype=np.int32),
        "owner": np.full(states, -1, dtype=np.int32),
        "place": np.zeros(states, dtype=np.int32),
    }


def pack_bytes(live: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """``reads`` of states: uint64, shape (states, 4). `live`: bool, shape (states, 256), which bytes lead on."""
    return np.ascontiguousarray(np.packbits(live, axis=1, bitorder="little")).view(np.uint64)


def state_flags(
    table: Int32, class_sizes: npt.NDArray[np.int64], accepting: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint8]:
    """``flags`` of the states of an automaton but for SHORTEST: uint8, shape (states,).

    `table`: int32, shape (states, classes); `class_sizes`: bytes of each class. What a state's flags say depends on its
    automaton alone, and no mask depends on LOOPS: it says where a partition pays, as it does for blanks and digits,
    which are read over and over.
    """
    live = table >= 0
    counts = live @ class_sizes
    few = counts < WIDE_BYTES
    loops = (table == np.arange(len(table))[:, None]).any(axis=1) & few
    into = (live & loops[np.maximum(table, 0)]) @ class_sizes >= LEAST_INTO_LOOPS
    flags = np.where(accepting, ACCEPTS, 0) | np.where(counts == 0, ENDS, 0) | np.where(few, 0, WIDE)
    return (flags | np.where((loops | into) & few, LOOPS, 0)).astype(np.uint8)
