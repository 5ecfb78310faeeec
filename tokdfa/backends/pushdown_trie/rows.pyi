from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.bound_program import BoundProgram
    from tokdfa.backends.pushdown_trie.pool import Pool

Int32 = npt.NDArray[np.int32]
Item = tuple[int, int, int]

STACK_BITS: Final[int]
STATE_BITS: Final[int]
PLACE_BITS: Final[int]
PLACE_SHIFT: Final[int]
STACK_MASK: Final[int]
STATE_MASK: Final[int]
#: Flags of a row.
ROW_ACCEPTS: Final[int]
ROW_COUNTED: Final[int]
ROW_MIDDLE: Final[int]
ROW_TOKENS: Final[int]
BIAS: Final[int]
#: The stack of the whole text; the place of an entry that goes on in a row.
ROOT: Final[int]
ROW_PLACE: Final[int]
ROW_BYTES: Final[int]

class MachineFull(LimitExceeded):
    """The machine has reached `max_bytes`; a matcher then moves to a new one, so users do not see it."""

    def __init__(self, max_bytes: int) -> None: ...

class RowTables:
    """The memory of a machine's rows and stacks, which is used again by another when the machine is gone."""

class SpareTables:
    """Tables of machines that are gone, for those to come. Not thread-safe."""

    def take(self, max_rows: int, max_bytes: int) -> RowTables: ...
    def give_back(self, tables: RowTables) -> None: ...

class Rows:
    """Rows and stacks of a program in a pool. See the module's docstring. Not thread-safe."""

    prunes: bool
    bound: BoundProgram
    pool: Pool
    def __init__(self, bound: BoundProgram, pool: Pool, max_items: int, max_bytes: int, first_bytes: bool) -> None: ...
    @property
    def t(self) -> RowTables: ...
    @property
    def code(self) -> Int32: ...
    @property
    def alternatives(self) -> Int32: ...
    @property
    def entries(self) -> Int32: ...
    @property
    def arguments(self) -> Int32: ...
    @property
    def tables(self) -> Int32: ...
    @property
    def names(self) -> Int32: ...
    @property
    def order(self) -> Int32: ...
    @property
    def max_items(self) -> int: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def longest(self) -> bool: ...
    @property
    def nodes_visited(self) -> int: ...
    @property
    def rows_closed(self) -> int: ...
    @property
    def row_count(self) -> int:
        """Rows made so far."""
    @property
    def stack_count(self) -> int:
        """Return stacks made so far."""
    @property
    def group_count(self) -> int:
        """Groups of stacks that contain each other, made so far."""
    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes, but for the pool's; tables used before count as large as they have grown."""
    def follow_program(self) -> None:
        """Take the program as it is now, if what outgrew its arrays is in others."""
    def row_content(self, row: int) -> list[Item]:
        """(place, state, stack) of each item of a row's core."""
    def row_kind(self, row: int) -> tuple[bool, int]:
        """(whether a row is in the middle of a lexeme, the row that it falls back on or -1)."""
    def row_flags(self, row: int) -> int:
        """The flags of a row."""
    def stack(self, stack: int) -> list[tuple[int, int]]:
        """(place to return to, rest) of each entry of a stack."""
    def make_stack(self, entries: Iterable[tuple[int, int]]) -> int:
        """The stack with these entries: (place, rest)."""
    def make_row(self, items: Iterable[Item], middle: bool = False, fallback: int = -1) -> int:
        """The row of these items: places, states, stacks; `middle`, `fallback`: as `row_kind` says them."""
    def checked(self, row: int) -> int:
        """`row`, if there is such a row; IndexError if not."""
    def too_many_items(self) -> LimitExceeded:
        """The error where a row has more than `max_items`."""
