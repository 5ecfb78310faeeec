from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.rows import Rows
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.lexer import Lexer

#: Links of a chain at most.
MAX_CHAIN: Final[int]

class Machine:
    """The recogniser of a grammar. Not thread-safe: see `tokdfa.backends.earley_trie.strategy`, which holds a lock."""

    cfg: Cfg
    lexer: Lexer
    rows: Rows
    longest: bool
    skip_at_ends: bool
    #: The situation before the first byte.
    start: int
    #: Lexemes that the parser had to read.
    scans: int

    def __init__(
        self,
        cfg: Cfg,
        *,
        longest: bool = True,
        skip_at_ends: bool = True,
        max_rows: int = 1_000_000,
        max_row_items: int = 200_000,
        max_lexer_states: int = 250_000,
    ) -> None: ...
    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
    @property
    def situation_count(self) -> int:
        """Situations met so far."""
    def start_state(self, row: int) -> int:
        """The lexer state in which the lexemes that `row` allows may begin."""
    def next_row(self, row: int, accepting_set: int) -> int:
        """The row after one of the lexemes of the set, -1 if none may stand there."""
    def intern(self, row: int, state: int, fallback: int) -> int:
        """The number of a situation."""
    def view(self, situation: int) -> tuple[int, int, int]:
        """(row, lexer state, fallback) of a situation."""
    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int:
        """The situation after the bytes ``data[begin:end]``, or -1. O(bytes). Raises LimitExceeded."""
    def can_end(self, situation: int) -> bool:
        """Whether the text so far is complete."""
    def row_at_border(self, situation: int) -> int:
        """The row after the lexeme being read, if it may end here; the row itself if none was begun; else -1."""
