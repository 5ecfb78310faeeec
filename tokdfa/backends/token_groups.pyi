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
    #: Why it stayed open whether one that was tried goes on, if it did.
    undecided: Exception | None

    def __init__(self, pairs: AdjacentPairs, live: Int32, untried: Int32) -> None: ...
    @property
    def nbytes(self) -> int:
        """Bytes that the tokens take."""
    @property
    def has_untried(self) -> bool: ...
    def may_follow(self, last: int) -> bool: ...
    def next_untried(self, last: int, first: int) -> tuple[int, int] | None: ...
    def settle(self, place: int, goes_on: bool) -> None: ...
    def judge(self, members: Int32, out: Mask) -> Int32: ...
