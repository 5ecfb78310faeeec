import threading
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from tokdfa.mask import Mask

Int32 = npt.NDArray[np.int32]

#: The most tokens of a mask that is kept as a list (2 kB).
NARROW: Final = 512
#: Packed masks whose memory is taken at once.
BLOCK_MASKS: Final = 32

class MaskStore:
    limit: int
    def __init__(
        self, limit: int, words: int, spare: list[Int32] | None = None, lock: threading.RLock | None = None
    ) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, state: int) -> bool: ...
    @property
    def lock(self) -> threading.RLock: ...
    @property
    def words(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def fill(self, state: int, out: Mask) -> bool: ...
    def place(self, state: int) -> tuple[int, int]:
        """(the address of the mask of `state`, how many tokens are listed there; -1 if it is packed), or KeyError."""
    def keep(self, state: int, mask: Mask, signature: int | None = None) -> None: ...
    def keep_all(self, packed: Mapping[int, Mask], narrow: Mapping[int, Int32], nbytes: int) -> None: ...
    def share(self, state: int, other: int) -> None: ...

def add_tokens(tokens: Int32, out: Mask) -> None: ...
def list_tokens(mask: Mask, tokens: Int32) -> int:
    """Write the tokens of a mask, ascending, to `tokens`; how many there are, or -1 if there are more than fit."""
