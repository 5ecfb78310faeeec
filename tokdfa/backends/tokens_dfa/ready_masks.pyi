from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.tokens_dfa.reduced_table import ReducedTable
from tokdfa.mask import Mask

class ReadyMasks(NamedTuple):
    narrow: dict[int, npt.NDArray[np.int32]]
    packed: dict[int, Mask]
    mask_count: int
    nbytes: int

def make_masks(table: ReducedTable, size: int, end_tokens: npt.NDArray[np.int32], limit: int) -> ReadyMasks: ...
