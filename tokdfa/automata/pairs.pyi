from collections.abc import Callable
from typing import Final, NamedTuple, final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]

#: What a search ends with.
INSIDE: Final[int]
OUTSIDE: Final[int]
GIVEN_UP: Final[int]
#: `depth` of a search that ends with the pairs only.
ANY_DEPTH: Final[int]

class Table(NamedTuple):
    """Transitions of an automaton, and the place in a state's row of each common byte class.

    `transitions`: int32, flat, state x `width` + place -> state, negative for none; all of a row is UNKNOWN until it is
    made. `places`: int64, shape (common classes,).
    """

    transitions: Int32
    width: int
    places: npt.NDArray[np.int64]

class Limits(NamedTuple):
    """What an automaton must not come to on the way: states with one of the flags `refused`. `flags`: uint8, by
    state.
    """

    flags: npt.NDArray[np.uint8]
    refused: int

def explore_pairs(
    first: Int32, second: Int32, starts: tuple[int, int], needed: tuple[bool, bool], limit: int
) -> tuple[Int32, Int32]: ...

@final
class PairSearch:
    def __init__(self, budget: int) -> None: ...
    def search(
        self,
        state: int,
        start: int,
        tables: Callable[[], tuple[Table, Table, Limits]],
        make_row: Callable[[int], None],
        depth: int = ...,
    ) -> int: ...
