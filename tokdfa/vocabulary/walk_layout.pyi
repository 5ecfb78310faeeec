import numpy as np
import numpy.typing as npt

from tokdfa.vocabulary.trie import TokenTrie

def source_nodes(trie: TokenTrie) -> npt.NDArray[np.uint64]: ...
def walk_source(
    trie: TokenTrie,
    nodes: npt.NDArray[np.uint64],
    table: npt.NDArray[np.int32],
    alphabet: npt.NDArray[np.uint8] | None,
    state: int,
    words: npt.NDArray[np.uint32],
) -> tuple[int, int]: ...
