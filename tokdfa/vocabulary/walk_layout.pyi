import numpy as np
import numpy.typing as npt

from tokdfa.vocabulary.trie import TokenTrie

def source_nodes(trie: TokenTrie) -> npt.NDArray[np.uint64]:
    """The nodes of a trie in the layout of toktrie: uint64. VocabularyError for one that is too large."""

def walk_source(
    trie: TokenTrie,
    nodes: npt.NDArray[np.uint64],
    table: npt.NDArray[np.int32],
    alphabet: npt.NDArray[np.uint8] | None,
    state: int,
    words: npt.NDArray[np.uint32],
) -> tuple[int, int]:
    """OR the tokens allowed from `state` into `words` (uint32, V + 1 bits). Returns nodes visited, nodes survived.

    `nodes`: of `source_nodes`. `table`: int32, flat, row offset + column -> row offset, negative where no text goes on.
    """
