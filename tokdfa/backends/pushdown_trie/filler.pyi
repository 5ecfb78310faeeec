from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.mask import Mask
from tokdfa.vocabulary.mask_store import MaskStore

class Filler:
    """Makes the masks of rows in one way. Not thread-safe: the lock of the machine's pool is held.

    `divides`: use divisions of the vocabulary; `use_subtrees`: those of large subtrees, too.
    """

    def __init__(self, divides: bool = True, use_subtrees: bool = True) -> None: ...
    def fill(self, machine: Machine, row: int) -> npt.NDArray[np.int32]:
        """The tokens that may be read from a row, int32 words; no end or special tokens."""
    def keep(
        self, machine: Machine, kept: MaskStore, row: int, out: Mask, working: AbstractContextManager[Any], keeps: bool
    ) -> bool:
        """Write the mask of a row into `out`, end tokens included, and keep it if `keeps`; whether it had to be made.

        For constraints whose texts can be ended from wherever bytes lead to, and without special tokens. Rows that
        differ in what no token can tell share the mask of one of them. `working`: the budget. Raises MachineFull.
        """
