from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.regex.lazy_dfa import LazyDfa

Int32 = npt.NDArray[np.int32]

#: Flags of a state.
ACCEPTS: Final[int]
ENDS: Final[int]
WIDE: Final[int]
SHORTEST: Final[int]
LOOPS: Final[int]
#: Columns of `characters`.
BEGINS: Final[int]
LEAST: Final[int]
STATES: Final[int]
MOST: Final[int]
WIDE_BYTES: int
MOST_BYTES: int
MAX_STATES: int
FIRST_ROOM: int

class StateTable:
    """See the module's docstring. Not thread-safe: the lock of the vocabulary's pool is held."""

    #: By number: a lazy automaton, and whether its texts are the shortest.
    @property
    def lazy_automata(self) -> list[tuple[LazyDfa, bool]]: ...
    @property
    def transitions(self) -> Int32: ...
    @property
    def flags(self) -> npt.NDArray[np.uint8]: ...
    @property
    def reads(self) -> npt.NDArray[np.uint64]: ...
    @property
    def division_class(self) -> Int32: ...
    @property
    def characters(self) -> Int32: ...
    @property
    def owner(self) -> Int32: ...
    @property
    def inner(self) -> Int32: ...
    @property
    def state_count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def touch(self, states: int) -> None: ...
    def reserve(self) -> int: ...
    def enter(
        self, table: Int32, byte_class: npt.NDArray[np.uint8], accepting: npt.NDArray[np.bool_], is_shortest: bool
    ) -> int: ...
    def add_lazy(self, automaton: LazyDfa, shortest: bool) -> int: ...
    def fill_row(self, state: int) -> None: ...
    def fill_lazy(self, states: Sequence[int]) -> None: ...
