"""Relevant pairs: 002's own way to tell which tokens lead nowhere, by a search over pairs of states.

For pairs see `tokdfa.backends.proper_merge.pair_graph`, for the search `tokdfa.backends.proper_merge.pair_search`. It
is done once, for all that the start leads to. A mask is made anew at each request: the tokens that both automata allow
and that lead to a relevant pair. Compare `tokdfa.backends.proper_merge.proper_table`, where no pairs occur.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.proper_merge.marked_product import ENDS
from tokdfa.backends.proper_merge.pair_graph import list_rows, number_pairs
from tokdfa.backends.proper_merge.pair_search import MAX_PAIRS, search_pairs
from tokdfa.backends.proper_merge.proper_states import ProperStates, begin_state
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.mask import allocate_mask, set_token

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.backends.proper_merge.proper_states import State
    from tokdfa.mask import Mask
    from tokdfa.proper.canonical import Canonicity


class RelevantPairs(ProperTable):
    """The table of one constraint whose liveness comes from the search, made at once for all that `start` leads to.

    `start`: the last token (-1: none) and the keys the text may begin with; None: the text begins here. The last three
    are those of `search_pairs`. Raises LimitExceeded past `max_transitions` entries, and what `search_pairs` raises.
    """

    def __init__(
        self,
        automaton: PieceAutomaton,
        canonicity: Canonicity,
        start: State | None = None,
        max_transitions: int = 30_000_000,
        max_pairs: int = MAX_PAIRS,
        max_seconds: float | None = None,
        skip_visited: bool = False,
    ) -> None:
        super().__init__(automaton, canonicity, max_transitions)
        last, keys = begin_state(self) if start is None else start
        begin = np.array(keys, dtype=np.int64)
        text = list_rows(
            begin, self.node_count, self._reader, automaton.marker, self._stack, self._room, max_transitions
        )
        self.graph = number_pairs(text, begin, last, canonicity.lists)
        can_end = automaton.can_stop[text.keys // self.node_count] & ENDS != 0
        can_end &= ~canonicity.whole_pieces.terminal[text.keys % self.node_count]
        found = search_pairs(self.graph, canonicity, can_end, max_pairs, max_seconds, skip_visited)
        #: bool, shape (pairs,): which pairs the start leads to, and which of these are relevant.
        self.visited, self.relevant = found.visited, found.relevant
        #: How many edges of visited pairs the search forwards has looked at.
        self.edges = found.edges

    @property
    def settled_states(self) -> int:
        return len(self.graph.text.keys)

    @property
    def transitions(self) -> int:
        return len(self.graph.text.tokens)

    @property
    def dead_transitions(self) -> int:
        """How many entries lead to a pair that is not relevant, or that the start does not lead to."""
        return self.transitions - int(self.relevant[self.graph.pairs.of_entry].sum())

    @property
    def visited_pairs(self) -> int:
        """How many pairs the start leads to."""
        return int(self.visited.sum())

    @property
    def relevant_pairs(self) -> int:
        """How many of these are relevant."""
        return int(self.relevant.sum())

    @property
    def nbytes(self) -> int:
        return self.graph.nbytes + self.visited.nbytes + self.relevant.nbytes + self.automaton.nbytes

    def is_live(self, key: int, last: int) -> bool:
        """Whether the pair of a state and the last token is relevant. Pairs that the start does not lead to are not."""
        pair = self.graph.find(key, last)
        return pair >= 0 and bool(self.relevant[pair])

    def write_mask(self, key: int, forbidden: Mask, out: Mask) -> None:
        """Set the bits of the tokens that lead from a state to a relevant pair and are not `forbidden`. O(row)."""
        self.graph.write_mask(key, self.relevant, forbidden, out)

    def _read_row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        tokens, keys, pairs = self.graph.row(key)
        return tokens, keys, self.relevant[pairs]


class PairStates(ProperStates):
    """Masks over relevant pairs, each made when it is asked for. Immutable to its users, safe to share."""

    def __init__(self, table: RelevantPairs) -> None:
        super().__init__(table)
        self._pairs = table
        self._nothing = allocate_mask(table.canonicity.size)
        self._nothing.flags.writeable = False

    def prepare(self, state: State) -> None:
        """Nothing: the search has settled everything."""

    def settle_all(self, state: State) -> None:
        """Nothing: the search has settled everything."""

    def fill(self, state: State, out: Mask) -> None:
        last, keys = state
        forbidden = self._nothing if last < 0 else self.canonicity.forbidden_after(last)
        out.fill(0)
        for key in keys:
            self._pairs.write_mask(key, forbidden, out)
            border = -1 if last < 0 else self.behind_border(key)
            if border >= 0:
                self._pairs.write_mask(border, self._nothing, out)
        if self.can_end(state):
            for end in self.canonicity.vocabulary.end_tokens:
                set_token(out, end)
