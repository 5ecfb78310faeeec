import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.closure import Closure
from tokdfa.backends.pushdown_trie.row_divisions import TrieParts
from tokdfa.backends.pushdown_trie.rows import Item
from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

class Steps(Closure):
    """Rows that are stepped when a byte is first read from them."""

    def run(self, row: int, data: npt.NDArray[np.uint8] | bytes, begin: int, end: int) -> int:
        """The row after the bytes ``data[begin:end]``, or -1. O(bytes) where they were read before."""
    def run_text(self, text: npt.NDArray[np.uint8] | bytes, row: int = 0) -> int:
        """The row after a text, or -1."""
    def step(self, row: int, byte: int) -> int:
        """The row after a byte, or -1."""
    def following_rows(self, row: int) -> Int32:
        """The rows after each byte, -1 where it is refused: int32, shape (256,)."""
    def targets(self, row: int, trie: TokenTrie | TrieParts) -> Int32:
        """int32, shape (V,): the row after each token, -1 where a token is not allowed. Special tokens are not.

        One walk over the token trie, 0.5 to 2 ms for Llama 3.
        """
    def border(self, row: int) -> int:
        """The row, closed, in which the next lexeme may begin: `row` itself, or in the middle of a lexeme what follows
        if it ends here; -1 if it may not.
        """
    def can_end(self, row: int) -> bool:
        """Whether the text so far is complete."""
    def items(self, row: int) -> list[Item]:
        """(place, state, stack) of each live item of a row."""
