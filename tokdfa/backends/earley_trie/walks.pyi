from typing import Any, final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.machine import Machine
from tokdfa.masks.builder import MaskBuilder
from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

@final
class EarleyMasks(MaskBuilder):
    machine: Machine
    #: How often a row was there.
    rows_reused: int

    def __init__(self, machine: Machine, trie: TokenTrie, *, row_stack: bool = False, **options: Any) -> None: ...
    def fill(self, situation: int, out: Int32) -> None: ...
    def walk(self, situation: int, out: Int32, trie: TokenTrie | None = None, known: Int32 | None = None) -> None: ...
    def targets(self, situation: int, trie: TokenTrie) -> Int32: ...
    def step(self, situation: int, token: int) -> int: ...
