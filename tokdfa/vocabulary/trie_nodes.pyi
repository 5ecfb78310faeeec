from typing import final

import numpy as np
import numpy.typing as npt

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

@final
class FlatTrie:
    """A trie and what its tokens spell, as pointers; the arrays are kept, and nobody may write to them."""

    def __init__(self, nodes: UInt64, offsets: Int64, data: npt.NDArray[np.uint8], depth_limit: int) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def depth_limit(self) -> int: ...

def write_nodes(byte_data: npt.NDArray[np.uint8], offsets: Int64, order: npt.NDArray[np.int32]) -> UInt64:
    """The packed nodes of the tokens in `order`, which is by bytes; uint64. O(total bytes)."""

def cut_ranges(nodes: UInt64, begin: int, ranges: Int64, spare: int, rest: UInt64, number: int = 0) -> int:
    """Write the trie of the nodes in `ranges` and of those above them to `rest`; how many nodes it has.

    `ranges`: a first node and the one after the last in each row, ascending, each of whole subtrees below the node
    before `begin`, whose depth is counted as 0 in `rest`. Nodes above a range end no token in `rest`; `spare` is their
    id. `number`: of the first node written, for ``next``. ValueError if there is no room. O(nodes written and passed).
    """

def join_ranges(nodes: UInt64, ranges: Int64, spare: int, joined: UInt64, number: int = 0) -> int:
    """Write the trie of the nodes in `ranges`, as if all were children of one node, to `joined`; how many nodes it has.

    No more than the ranges have; ValueError if there is no room for these. `ranges`, `number`: as in `cut_ranges`.
    O(nodes x children).
    """
