import numpy as np
import numpy.typing as npt

from tokdfa.token_automata.parallel import TriePart

Int32 = npt.NDArray[np.int32]
UInt64 = npt.NDArray[np.uint64]

class ClassStrings:
    def __init__(self, letters: npt.NDArray[np.uint8], skip: npt.NDArray[np.bool_], merge: bool) -> None: ...
    @property
    def class_count(self) -> int:
        """Token classes so far."""

    def read(self, nodes: UInt64, part: TriePart, depth_limit: int, token_count: int) -> None:
        """Enter the tokens of a part of a trie with ranks for tokens, after the ancestors of its first node.

        `nodes`: uint64, packed as in `tokdfa.vocabulary.trie`; `depth_limit`: the longest token in bytes;
        `token_count`: how many ranks there are.
        """

    def lay_out(self) -> tuple[UInt64, Int32, Int32]: ...
