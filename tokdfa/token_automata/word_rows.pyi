from typing import final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]

@final
class WordRows:
    """The rows of a complete automaton, as far as they are filled.

    `transitions`: int32, shape (states, classes), -1 for dead; `class_of`: uint8, shape (256,), the class of each
    letter, None if letters are classes; `start`: the state that is row 0, None for the rows of all states, by their own
    numbers; `max_entries`: past it filling raises LimitExceeded.
    """

    def __init__(self, transitions: Int32, class_of: UInt8 | None, start: int | None, max_entries: int) -> None: ...
    @property
    def steps(self) -> int:
        """Steps of the automaton so far, each a look-up in its table."""

    @property
    def states(self) -> Int32:
        """int32: the state of each row."""

    def fill_along(self, nodes: npt.NDArray[np.uint64], depth_limit: int, word_count: int) -> None:
        """Fill all rows by walks along a trie: uint64, packed as in `tokdfa.vocabulary.trie`, with words for tokens.

        `depth_limit`: the most letters of a word. Raises LimitExceeded.
        """

    def fill_by_word(self, letters: UInt8, offsets: Int64, order: Int32) -> None:
        """Fill all rows by running each word by itself: word k is ``letters[offsets[i]:offsets[i + 1]]``, i being
        ``order[k]``. Raises LimitExceeded.
        """

    def arrays(self) -> tuple[Int64, Int32, Int32]:
        """The rows in compressed form: offsets, int64, shape (rows + 1,); words; the row that each leads to, int32."""
