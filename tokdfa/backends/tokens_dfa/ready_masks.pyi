from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
from tokdfa.mask import Mask

class ReadyMasks(NamedTuple):
    """State -> its mask, as a list of ids (int32) or packed (int32 words); equal masks are one object.

    A state whose mask is not made is in neither. ``mask_count``: distinct masks; ``nbytes``: what they take.
    """

    narrow: dict[int, npt.NDArray[np.int32]]
    packed: dict[int, Mask]
    mask_count: int
    nbytes: int

def make_masks(table: ReducedTable, size: int, end_tokens: npt.NDArray[np.int32], limit: int) -> ReadyMasks:
    """Masks for the states of `table`; `size`: V; `end_tokens`: int32; `limit`: bytes."""
