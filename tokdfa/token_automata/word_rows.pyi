from typing import final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]

@final
class WordRows:
    def __init__(self, transitions: Int32, class_of: UInt8 | None, start: int | None, max_entries: int) -> None: ...
    @property
    def steps(self) -> int:
        """Steps of the automaton so far, each a look-up in its table."""

    @property
    def states(self) -> Int32: ...
    def fill_along(self, nodes: npt.NDArray[np.uint64], depth_limit: int, word_count: int) -> None:
        """Fill all rows by walks along a trie: uint64, packed as in `tokdfa.vocabulary.trie`, with words for tokens.

        `depth_limit`: the most letters of a word. Raises LimitExceeded.
        """

    def fill_by_word(self, letters: UInt8, offsets: Int64, order: Int32) -> None:
        """Fill all rows by running each word by itself: word k is ``letters[offsets[i]:offsets[i + 1]]``, i being
        ``order[k]``. Raises LimitExceeded.
        """

    def arrays(self) -> tuple[Int64, Int32, Int32]: ...
