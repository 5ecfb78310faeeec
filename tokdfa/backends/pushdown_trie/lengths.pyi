from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.row_divisions import TrieParts
from tokdfa.backends.pushdown_trie.state_table import StateTable
from tokdfa.core.locks import cached_property
from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

class States(NamedTuple):
    """Those columns of a `StateTable` by which characters are counted."""

    transitions: Int32
    flags: npt.NDArray[np.uint8]
    characters: Int32

class TokenLengths:
    """Not thread-safe: the pool's lock is held."""

    trie: TokenTrie | TrieParts
    #: Memory of what is kept in bytes.
    nbytes: int
    def __init__(self, trie: TokenTrie | TrieParts, automata: StateTable | States) -> None: ...
    @cached_property
    def levels(self) -> tuple[Int32, Int32]:
        """(least, most): which numbers of characters tokens tell apart, as arrays of int32.

        ``least[left]``: the least number that admits the same tokens as `left` characters do that may still be read;
        more than there are entries admit all. ``most[need]``: the greatest number that lets the same tokens close the
        string as `need` characters do that are still to be read; with more than there are entries none can.
        """
    def short_tokens(self, state: int, left: int) -> npt.NDArray[np.uint32]:
        """Mask of the tokens that, with an end, begin no more than `left` characters of the string from a state on.

        uint32, as many words as masks have with a spare token; tokens that leave the string are in it. O(trie) once a
        state, then O(vocabulary) once for each number that tokens tell apart.
        """
    def make_all(self) -> None:
        """Make the masks of `short_tokens` for every `left` that tokens tell apart, by the states asked for before.

        O(vocabulary x its longest token).
        """

def count_characters(
    trie: TokenTrie | TrieParts, start: int, states: StateTable | States, closing: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int16]:
    """How many characters each token begins from a state on, and an end needs then; 0 where the string is not open
    any more; the last entry means nothing: int16. `closing`: marked by how many stand before a quote.
    """

def mark_characters(
    trie: TokenTrie | TrieParts,
    start: int,
    states: StateTable | States,
    numbers: npt.NDArray[np.bool_],
    closing: npt.NDArray[np.bool_],
) -> None:
    """Mark the numbers that `count_characters` finds, without 0: bool, shape (longest token + 2,)."""
