from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.stacks import Stacks
from tokdfa.program.program import NameTable

Int32 = npt.NDArray[np.int32]

#: Columns of a node.
N_CHARACTER: Final[int]
N_PARENT: Final[int]
N_FIRST: Final[int]
N_PAST: Final[int]
N_LOW: Final[int]
N_HIGH: Final[int]
N_LEAST: Final[int]
N_MOST: Final[int]
N_NAME: Final[int]
NAME_COLUMNS: Final[int]
#: Columns of a table.
T_NODES: Final[int]
T_ORDER: Final[int]
T_NEEDED: Final[int]
TABLE_COLUMNS: Final[int]
MAX_NAME_NODES: int
#: States.
START: Final[int]
AT_ROOT: Final[int]
PHASES: Final[int]

def bind_code(code: Int32, starts: Sequence[int], tables: Sequence[NameTable]) -> tuple[bool, Int32, Int32, Int32]:
    """Put states in place of the numbers of terminals; (whether there is a COUNTED, names, order, tables), the last
    three of some tables, numbered from 0. Raises LimitExceeded for a table too large, before it changes `code`.

    `code`: int32, shape (instructions, 3); `starts`: by terminal.
    """

class Names(Stacks):
    """Rows, with items of NAMES."""
