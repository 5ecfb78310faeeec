from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.rows import Rows
from tokdfa.grammar.cfg import Cfg
from tokdfa.grammar.lexer import Lexer

#: Links of a chain at most.
MAX_CHAIN: Final[int]

class Machine:
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
    def nbytes(self) -> int: ...
    def start_state(self, row: int) -> int: ...
    def next_row(self, row: int, accepting_set: int) -> int: ...
    def intern(self, row: int, state: int, fallback: int) -> int: ...
    def view(self, situation: int) -> tuple[int, int, int]: ...
    def run(self, situation: int, data: npt.NDArray[np.uint8], begin: int, end: int) -> int: ...
    def can_end(self, situation: int) -> bool: ...
    def row_at_border(self, situation: int) -> int: ...
