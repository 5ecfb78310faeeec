from collections.abc import Sequence
from typing import final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

@final
class LivePart:
    """The live states of an automaton, numbered breadth-first from its starts, and their moves.

    `table`: int32, shape (states, classes), -1 for dead; `byte_class`: uint8, shape (256,); `accepting`: bool, shape
    (states,); `starts`: states, -1 for none. O(states x classes).
    """

    def __init__(
        self, table: Int32, byte_class: npt.NDArray[np.uint8], accepting: Flags, starts: Sequence[int]
    ) -> None: ...
    @property
    def state_count(self) -> int: ...
    @property
    def move_count(self) -> int: ...
    @property
    def starts(self) -> Int32:
        """int32: the number of each start, -1 if nothing is accepted from there."""

    @property
    def states(self) -> Int32:
        """int32, shape (state_count,): which state of the automaton each one is, of equivalent ones the first."""

    def merge_equivalent(self) -> None:
        """Keep one state of each block of equivalent ones."""

    def arrays(self) -> tuple[Int32, npt.NDArray[np.uint8], Flags]:
        """(table, byte_class, accepting) of the automaton, equal columns merged. Columns ascend by first bytes."""

def distances_to_accept(table: Int32, accepting: Flags) -> Int32:
    """The fewest letters from each state to acceptance: int32, shape (states,), -1 where there is no way.

    `table`: int32, shape (states, letters), -1 for dead; `accepting`: bool, shape (states,). O(entries).
    """

def distances_along(sources: Int32, targets: Int32, accepting: Flags) -> Int32:
    """The same for a graph: move k leads from ``sources[k]`` to ``targets[k]``, int32. O(moves)."""

def blocks_of(sources: Int32, labels: Int32, targets: Int32, accepting: Flags) -> Int32:
    """The block of equivalent states that each state of a trim automaton is in: int32, shape (states,).

    `sources`, `labels`, `targets`: int32, one entry a move; `accepting`: bool, shape (states,). Blocks are numbered by
    their first states. O(m log m) for m moves.
    """

def group_by_key(keys: Int32, key_count: int) -> tuple[Int32, Int32]:
    """(offsets, places), int32: ``places[offsets[k] : offsets[k + 1]]`` are those of key k in `keys`, ascending.

    `keys`: int32, from 0 to `key_count` - 1. A counting sort: O(keys + key_count).
    """
