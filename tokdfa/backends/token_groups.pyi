from typing import final

import numpy as np
import numpy.typing as npt

from tokdfa.mask import Mask
from tokdfa.proper.adjacent_pairs import AdjacentPairs

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

def group_tokens(tokens: Int32, keys: Int32, targets: Int32) -> tuple[Int32, Int64, Int64]:
    """Sort the tokens that have a target by (target, key), pairs in the order of their first appearance.

    `keys`: int32, one for each of `tokens`; `targets`: int32, by token, negative for none. Returns the tokens, group
    after group, int32; where each group begins, and the last ends, int64; and the pair (target << 32 | key) of each,
    int64. O(tokens). Raises IndexError for a token that has no entry in `targets`.
    """

@final
class Followers:
    """The tokens that both allow after those of a group, in the same piece: known to go on, and not yet tried.

    What was tried in vain is in neither. Whoever has one calls it under a lock.
    """

    #: Why it stayed open whether one that was tried goes on, if it did.
    undecided: Exception | None

    def __init__(self, pairs: AdjacentPairs, live: Int32, untried: Int32) -> None: ...
    @property
    def nbytes(self) -> int:
        """Bytes that the tokens take."""
    @property
    def has_untried(self) -> bool: ...
    def may_follow(self, last: int) -> bool:
        """Whether a token that goes on may follow `last`. 0.2 us for each that may not."""
    def next_untried(self, last: int, first: int) -> tuple[int, int] | None:
        """(its place, the token) of the first one not tried, from the place `first` on, that may follow `last`."""
    def settle(self, place: int, goes_on: bool) -> None:
        """Note what became of the one at `place` among those not tried: it is no longer one of them."""
    def judge(self, members: Int32, out: Mask) -> Int32:
        """Set the bits of those `members` that a token which goes on may follow. Returns the others, int32."""
