"""The token table: DFA state x token -> state, for every state that tokens can reach, in compressed rows.

From each state every token is run through the DFA, either along the trie, so that shared prefixes are read once, or
token by token. States are numbered as they turn up, the start is 0. A row holds the allowed tokens as *ranks*: places
in the trie's byte order. The walk yields them ascending, so nothing is sorted, and a look-up is a binary search.

Source: Willard and Louf (arXiv 2307.09702); the baseline of 001. The compressed layout is ours.
Cost: one trie walk (or one run of all tokens) a state; 8 bytes an entry, 6 once targets fit 16 bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.token_automata.word_rows import WordRows

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.vocabulary.vocabulary import Vocabulary


class TokenTable(NamedTuple):
    """The rows: state s has the entries ``offsets[s] .. offsets[s + 1] - 1``.

    ``offsets``: int64, shape (states + 1,); ``ranks``: int32, ascending within a row; ``targets``: int32 or uint16, the
    state each leads to; ``dfa_states``: int32, shape (states,), the DFA state behind each.
    """

    offsets: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int32]
    targets: npt.NDArray[np.integer]
    dfa_states: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self)

    def keep(self, live: npt.NDArray[np.bool_]) -> TokenTable:
        """Without the entries that lead to states that are not `live` (bool, shape (states,))."""
        kept = live[self.targets]
        before = np.concatenate([[0], np.cumsum(kept)])
        return TokenTable(before[self.offsets], self.ranks[kept], self.targets[kept], self.dfa_states)

    def compact(self) -> TokenTable:
        """With targets in 16 bits where the states allow it."""
        return self._replace(targets=self.targets.astype(np.uint16)) if len(self.dfa_states) <= 1 << 16 else self


def build_token_table(
    vocab: Vocabulary, dfa: Dfa, *, by_trie: bool = True, max_entries: int = 30_000_000
) -> TokenTable:
    """The table of a DFA with only live states. LimitExceeded past `max_entries`."""
    trie = vocab.trie
    rows = WordRows(dfa.transitions, dfa.byte_class, dfa.start, max_entries)
    if by_trie:
        rows.fill_along(trie.ranked_nodes, trie.depth_limit, len(trie.order))
    else:
        rows.fill_by_word(vocab.byte_data, vocab.offsets, trie.order)
    return TokenTable(*rows.arrays(), rows.states)
