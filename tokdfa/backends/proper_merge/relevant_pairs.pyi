from typing import Final

from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
from tokdfa.backends.proper_merge.proper_states import State
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.proper.canonical import Canonicity

#: How many pairs are visited by default. A pair costs some 20 bytes, and a walk along a row.
MAX_PAIRS: Final = 5_000_000

class RelevantPairs(ProperTable):
    def __init__(
        self,
        automaton: PieceAutomaton,
        canonicity: Canonicity,
        start: State | None = None,
        max_transitions: int = 30_000_000,
        max_pairs: int = MAX_PAIRS,
        max_seconds: float | None = None,
        skip_visited: bool = False,
    ) -> None: ...
    @property
    def visited_pairs(self) -> int:
        """How many pairs the start leads to."""

    @property
    def relevant_pairs(self) -> int:
        """How many of these are relevant."""

    @property
    def edges(self) -> int:
        """How many edges of theirs the search forwards has looked at."""
