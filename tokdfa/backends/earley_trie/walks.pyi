from typing import Any, final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.masks.builder import MaskBuilder
from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

@final
class EarleyMasks(MaskBuilder):
    """Makes the masks of a machine over a trie, by divisions (`fill`) or by walks (`walk`). Not thread-safe.

    `row_stack`: walks look for the row after a lexeme first where one was pushed last at that height. Others as
    `tokdfa.masks.builder` has them.
    """

    machine: Machine
    #: How often a row was there.
    rows_reused: int

    def __init__(self, machine: Machine, trie: TokenTrie, *, row_stack: bool = False, **options: Any) -> None: ...
    def fill(self, situation: int, out: Int32) -> None:
        """Write the tokens allowed in a situation, by divisions: int32, shape ((V + 31) // 32,)."""
    def walk(self, situation: int, out: Int32, trie: TokenTrie | None = None, known: Int32 | None = None) -> None:
        """Write the tokens allowed in a situation, by a walk of the trie, or of one of a part of the vocabulary.

        `known`: tokens that are allowed at any rate, as a mask.
        """
    def targets(self, situation: int, trie: TokenTrie) -> Int32:
        """int32, shape (V,): the situation after each token of a trie, -1 where a token is not allowed.

        Special tokens are not. Cost: 3 ns a node, 0.1 us where a lexeme ends, and 20 ns for each change of the
        situation from one token to the next.
        """
    def step(self, situation: int, token: int) -> int:
        """The situation after the bytes of a token, -1 if they are not allowed."""
