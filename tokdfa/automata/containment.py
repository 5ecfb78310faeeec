"""Can one automaton read every text of another without dying? Decided exactly, within a budget.

Words. A *slice* is a regular language of bytes, given by the start of an automaton whose states are all live. It is
*contained* in a state of some other automaton, live states only, if that state can read every text of the slice.

Theory. Each path of the slice's automaton is the beginning of a text of the slice. Hence the slice is contained iff no
pair (state, slice state) that can be reached from the two starts has a byte with which the slice goes on and the other
does not. That is a search over pairs of states: O(pairs x byte classes), each pair met once, breadth first. So it can
stop after as many bytes as the longest token has, where only tokens matter.

The budget is the number of pairs met. Past it the search is *given up*, and the slice counts as not contained: work is
then done that was not needed, and nothing else changes.

Source: 000 (llguidance) checks the same by an under-approximation on expressions: both slice and lexeme must be
repetitions, whose bounds are compared as numbers and whose bodies by an emptiness test. That costs nothing for large
bounds, where ours meets a pair or more for each repetition; ours needs no particular form, and is never wrong within
its budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.key_map import find_place, new_map
from tokdfa.vocabulary.byte_table import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

#: What a search ends with.
INSIDE, OUTSIDE, GIVEN_UP = -1, -2, -3
#: `depth` of a search that ends with the pairs only.
ANY_DEPTH = 1 << 40
#: What a pair takes.
NS_PER_PAIR = 50
#: Indices into `progress`: bytes read, the pair that is next, the end of those after so many bytes, how many there are.
_DEPTH, _NEXT, _LEVEL, _MET = range(4)


class Table(NamedTuple):
    """Transitions of an automaton, and the place in a state's row of each common byte class.

    `transitions`: int32, flat, state x `width` + place -> state, negative for none; all of a row is UNKNOWN until it is
    made. `places`: int64, shape (common classes,).
    """

    transitions: npt.NDArray[np.int32]
    width: int
    places: npt.NDArray[np.int64]


class Limits(NamedTuple):
    """What an automaton must not come to on the way: states with one of the flags `refused`. `flags`: uint8, by
    state.
    """

    flags: npt.NDArray[np.uint8]
    refused: int


class PairSearch:
    """Searches pairs of states, one search at a time. `budget`: pairs that one of them may meet."""

    def __init__(self, budget: int) -> None:
        self._met = new_map(budget, -1)[0]
        self._pairs = np.empty(budget, dtype=np.int64)
        self._progress = np.zeros(4, dtype=np.int64)

    def search(
        self,
        state: int,
        start: int,
        tables: Callable[[], tuple[Table, Table, Limits]],
        make_row: Callable[[int], None],
        depth: int = ANY_DEPTH,
    ) -> int:
        """INSIDE, OUTSIDE or GIVEN_UP: whether `state` reads all texts from `start`, of up to `depth` bytes.

        `tables`: (the state's, the slice's, limits of the state's automaton), asked for again after each `make_row`,
        which makes a row of the state's automaton. Raises what that raises.
        """
        spend(len(self._met))
        self._met.fill(-1)
        self._progress[:] = 0
        while True:
            table, other, limits = tables()
            found = int(
                _search_pairs_kernel(
                    *(state, start, table.transitions, table.width, table.places),
                    *(other.transitions, other.width, other.places, *limits),
                    *(depth, self._met, self._pairs, self._progress),
                )
            )
            if found < 0:
                spend(NS_PER_PAIR * int(self._progress[_MET]))
                return found
            make_row(found)


@kernel
def _search_pairs_kernel(  # type: ignore[no-untyped-def]
    state, start, table, width, places, other_table, other_width, other_places, flags, refused, depth, met, pairs,
    progress,
):  # fmt: skip
    """What a search ends with, or the state whose row has to be made; called again it goes on where `progress` says.

    `met`: the hash table of pairs met (-1 is free), which are keys ``state << 32 | slice state``; `pairs`: the same in
    the order in which they were met.
    """
    if progress[_MET] == 0:
        pairs[0] = np.int64(state) << 32 | start
        met[find_place(pairs[0], met)] = pairs[0]
        progress[_LEVEL] = progress[_MET] = 1
    while progress[_DEPTH] < depth and progress[_NEXT] < progress[_MET]:
        while progress[_NEXT] < progress[_LEVEL]:
            pair = pairs[progress[_NEXT]]
            row, other_row = (pair >> 32) * width, (pair & 0xFFFFFFFF) * other_width
            if table[row] == UNKNOWN:
                return pair >> 32
            last = np.int64(-1)
            for k in range(len(places)):
                follower = np.int64(other_table[other_row + other_places[k]])
                if follower < 0:
                    continue
                target = np.int64(table[row + places[k]])
                if target < 0:
                    return np.int64(OUTSIDE)
                if refused and flags[target] & refused:
                    return np.int64(OUTSIDE)
                key = target << 32 | follower
                if key == last:  # as mostly: what was done a byte before
                    continue
                last = key
                place = find_place(key, met)
                if met[place] >= 0:
                    continue
                if progress[_MET] == len(pairs):
                    return np.int64(GIVEN_UP)
                met[place] = pairs[progress[_MET]] = key
                progress[_MET] += 1
            progress[_NEXT] += 1
        progress[_DEPTH] += 1
        progress[_LEVEL] = progress[_MET]
    return np.int64(INSIDE)


def warm_up() -> None:
    """Compile the search."""
    table: Any = Table(np.full(2, -1, dtype=np.int32), 1, np.zeros(1, dtype=np.int64))
    PairSearch(1).search(0, 0, lambda: (table, table, Limits(np.zeros(1, dtype=np.uint8), 0)), lambda row: None)
