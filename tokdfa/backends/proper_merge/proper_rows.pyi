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
    def mark_crossed(self, sources: Int32, crossed: npt.NDArray[np.bool_]) -> None: ...

@final
class ProperRows:
    def __init__(self, reader: TokenReader, max_entries: int, every_state: bool = False) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def entry_count(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def keys(self) -> Int32: ...
    def entries(self) -> tuple[npt.NDArray[np.int64], Int32, Int32]: ...
    def number(self, key: int) -> int: ...
    def find(self, key: int) -> int: ...
    def close(self) -> None: ...
