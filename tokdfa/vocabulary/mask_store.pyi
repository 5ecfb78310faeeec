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
    """State -> mask, emptied when it passes `limit` bytes. States are int64. `lock`: None for its own.

    `words`: int32 words of a mask. `spare`: memory of masks that nobody needs any more, int32, shape (BLOCK_MASKS,
    words) each; it is taken from there and given back at last, because a page that was touched before costs a tenth.
    """

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
    def fill(self, state: int, out: Mask) -> bool:
        """Write the mask of `state` into `out` (int32, shape (words,)); False if it is not kept."""
    def place(self, state: int) -> tuple[int, int]:
        """(the address of the mask of `state`, how many tokens are listed there; -1 if it is packed), or KeyError."""
    def keep(self, state: int, mask: Mask, signature: int | None = None) -> None:
        """Remember a mask, which is copied.

        `signature`: a hash; equal masks should have equal ones. Without one, narrow masks are told from wide ones.
        """
    def keep_tokens(self, state: int, tokens: Int32) -> None:
        """Remember the mask that holds exactly `tokens`, at most NARROW, which nobody may change any more."""
    def keep_all(self, packed: Mapping[int, Mask], narrow: Mapping[int, Int32], nbytes: int) -> None:
        """Take over masks that were made in advance and take `nbytes`, whatever the limit; nobody may change them.

        State -> mask, and state -> tokens; one object for several states is kept once.
        """
    def share(self, state: int, other: int) -> None:
        """Keep the mask of `state`, if it is kept, for a state that has the same."""

def add_tokens(tokens: Int32, out: Mask) -> None:
    """Set the bits of `tokens`, those that fit."""

def list_tokens(mask: Mask, tokens: Int32) -> int:
    """Write the tokens of a mask, ascending, to `tokens`; how many there are, or -1 if there are more than fit."""
