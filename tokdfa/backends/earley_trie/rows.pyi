import numpy as np
import numpy.typing as npt

from tokdfa.grammar.cfg import Cfg

class Rows:
    """The rows of a grammar made so far. Row 0 is the one before the first lexeme. Not thread-safe.

    `max_rows` bounds their number, `max_items` the items of one row (core and predicted).
    """

    cfg: Cfg
    max_rows: int
    max_items: int

    def __init__(
        self, cfg: Cfg, max_rows: int = 1_000_000, max_items: int = 200_000, skip_wins: bool = False
    ) -> None: ...
    @property
    def row_count(self) -> int:
        """Rows made so far."""
    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
    @property
    def right_sides(self) -> npt.NDArray[np.int32]:
        """int32: the right sides of all rules, each closed by END, that of ``text -> start`` last. A copy."""
    def accepts(self, row: int) -> bool:
        """Whether the text may end in `row`."""
    def segments(self, row: int) -> list[tuple[int, int]]:
        """(symbol, segment) of all segments of a row, ascending."""
    def items_in(self, segment: int) -> list[tuple[int, int]]:
        """The items of a segment as (dot, origin point)."""
    def segment_of(self, origin: int) -> int:
        """The segment that an origin point stands for: its items wait for it."""
    def allowed(self, row: int) -> list[int]:
        """The lexemes that may come next, ascending; the skip lexeme is none of the grammar's business."""
    def core_of(self, row: int) -> list[tuple[int, int]]:
        """The items of a row's core as (dot, origin point), sorted."""
    def describe_dot(self, dot: int) -> str:
        """An item's rule with its dot, as ``name -> a • b``."""
