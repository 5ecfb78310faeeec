from typing import final

import numpy as np
import numpy.typing as npt

from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
from tokdfa.proper.byte_fallback import ByteFallback
from tokdfa.proper.whole_pieces import WholePieces
from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]

@final
class TokenReader:
    """What reads the tokens of `trie` along a piece automaton, and those of `whole_trie` as whole pieces.

    `rank_of`: the place of each token in the byte order of the vocabulary's trie, int32, shape (V,).
    """

    def __init__(
        self,
        automaton: PieceAutomaton,
        fallback: ByteFallback | None,
        trie: TokenTrie,
        whole: WholePieces,
        whole_trie: TokenTrie,
        rank_of: Int32,
    ) -> None: ...
    def mark_crossed(self, sources: Int32, crossed: npt.NDArray[np.bool_]) -> None:
        """Mark the states that a token of the trie comes past strictly inside, if it is read from one of `sources`.

        `sources`: int32, states; `crossed`: bool, shape (states,). One walk of the trie a source.
        """

@final
class ProperRows:
    """The rows made so far, those of the first `count` states. Not thread-safe.

    With `every_state` full states are numbered, too, and the states behind borders. `max_entries` bounds the entries of
    all rows.
    """

    def __init__(self, reader: TokenReader, max_entries: int, every_state: bool = False) -> None: ...
    @property
    def count(self) -> int:
        """How many states have rows."""

    @property
    def entry_count(self) -> int:
        """How many entries the rows have."""

    @property
    def nbytes(self) -> int:
        """Memory of the rows."""

    def keys(self) -> Int32:
        """The keys of the states that have rows: int32, shape (count,)."""

    def entries(self) -> tuple[npt.NDArray[np.int64], Int32, Int32]:
        """(offsets, tokens, targets): int64, shape (count + 1,), and int32, shape (entries,).

        State i has the entries ``offsets[i] .. offsets[i + 1] - 1``; a target is a state, -1 for a full one.
        """

    def number(self, key: int) -> int:
        """The number of a state, a new one if need be."""

    def find(self, key: int) -> int:
        """The number of a state, -1 if it has none."""

    def close(self) -> None:
        """Make the rows of all numbered states and of those that they lead to.

        Raises LimitExceeded past `max_entries`, and forgets all rows. If the budget is spent, the rows so far remain.
        """
