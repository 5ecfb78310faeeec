from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.slices import Slices
from tokdfa.masks.builder import MaskBuilder
from tokdfa.vocabulary.trie_nodes import FlatTrie

LEAST_NODES: int
DIVISION_WORK: int
MOST_DUE: int
LIMIT: int

class TrieParts(NamedTuple):
    """What is needed of a token trie, without its vocabulary, which would keep itself alive through its pool."""

    nodes: npt.NDArray[np.uint64]
    flat: FlatTrie
    size: int
    depth_limit: int

class RowDivisions(MaskBuilder):
    """Divisions, and the row that they serve. Not thread-safe: the lock of the vocabulary's pool is held."""

    def __init__(self, trie: TrieParts, automata: AutomatonTable) -> None: ...
    @property
    def slices(self) -> Slices: ...
    @property
    def is_large(self) -> bool:
        """Whether slices pay, and are used."""
    def divide_now(self, state: int) -> int:
        """Make the division of whole tokens by a state with its kind, unless it is there; its number.

        -1: there is no room. Raises what making the row of a state raises.
        """
    def divide_within(self, state: int, within: int) -> int:
        """`divide_now`, where all that is inside of another division of whole tokens, `within`, is inside, too."""
    def divide_due(self) -> None:
        """Make the divisions that are due, for the masks to come; what takes too much is not made."""
