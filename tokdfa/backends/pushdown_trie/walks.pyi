from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.backends.pushdown_trie.row_divisions import RowDivisions, TrieParts
from tokdfa.backends.pushdown_trie.steps import Steps
from tokdfa.mask import Mask

SUBTREE: int

class PushdownMasks(RowDivisions):
    """Makes masks over one vocabulary, one at a time: under the lock of the vocabulary's pool."""

    def __init__(self, trie: TrieParts, automata: AutomatonTable, end_tokens: tuple[int, ...]) -> None: ...
    @property
    def signature(self) -> int: ...
    @property
    def bound_left(self) -> int: ...
    @property
    def bound_state(self) -> int: ...
    def listed_tokens(self, count: int) -> npt.NDArray[np.int32]:
        """The tokens of the last mask, in any order, if it has said that so many are listed: int32."""
    def write(self, machine: Steps, row: int, out: Mask, divides: bool, subtrees: int, with_ends: bool) -> int:
        """Write the tokens that may be read from a row into `out`. `with_ends`: end tokens, too, if the text may end.

        `divides`: use divisions; `subtrees`: those of nodes with more descendants than this. Returns how many tokens
        the mask has, or -1: it is not narrow, or nobody has listed them.
        """

class Filler:
    """Fills masks for machines in one way. Not thread-safe: the lock of the machine's pool is held."""

    def __init__(self, divides: bool = True, use_subtrees: bool = True) -> None: ...
    def fill(self, machine: Machine, row: int) -> npt.NDArray[np.int32]:
        """The tokens that may be read from a row, int32 words; no end or special tokens."""
    def write(
        self, machine: Machine, row: int, out: Mask, working: AbstractContextManager[Any], with_ends: bool = True
    ) -> tuple[int, int]:
        """Write the tokens that may be read from a row into `out`, which fits.

        `working`: the budget. `with_ends`: end tokens, too, if the text may end. Returns (how many tokens the mask has,
        or -1: it is not narrow, or nobody has listed them; its signature). If they are listed, the pool's builder has
        them until the next mask.
        """
