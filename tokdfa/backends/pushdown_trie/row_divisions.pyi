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
    nodes: npt.NDArray[np.uint64]
    flat: FlatTrie
    size: int
    depth_limit: int

class RowDivisions(MaskBuilder):
    def __init__(self, trie: TrieParts, automata: AutomatonTable) -> None: ...
    @property
    def slices(self) -> Slices: ...
    @property
    def is_large(self) -> bool: ...
    def divide_now(self, state: int) -> int: ...
    def divide_within(self, state: int, within: int) -> int: ...
    def divide_due(self) -> None: ...
