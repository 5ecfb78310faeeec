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
    def nbytes(self) -> int:
        """Memory of the states in bytes."""
    def touch(self, states: int) -> None:
        """Write to the memory of so many states to come, so that no text waits for the system to hand out its pages."""
    def make_room(self, states: int) -> None:
        """Have room for so many states. Raises LimitExceeded."""
    def reserve(self) -> int:
        """The number of a new state whose row is UNKNOWN. Raises LimitExceeded."""
    def enter(
        self, table: Int32, byte_class: npt.NDArray[np.uint8], accepting: npt.NDArray[np.bool_], is_shortest: bool
    ) -> int:
        """Enter the states of an explicit automaton; the number of the first. Raises LimitExceeded.

        `table`: int32, shape (states, classes), -1 where nothing goes on.
        """
    def add_lazy(self, automaton: LazyDfa, shortest: bool) -> int:
        """Enter a lazy automaton; the state of the table that is its start. Raises LimitExceeded."""
    def fill_row(self, state: int) -> None:
        """Make the transitions of one state known. Raises LimitExceeded; it is UNKNOWN then."""
    def fill_lazy(self, states: Int32) -> None:
        """Make the transitions of those states that lazy automata own. Raises LimitExceeded; rows not made are
        UNKNOWN.
        """
