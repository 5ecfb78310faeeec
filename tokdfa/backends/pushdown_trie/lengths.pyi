import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.state_table import StateTable
from tokdfa.core.locks import cached_property
from tokdfa.vocabulary.trie_nodes import FlatTrie

Int32 = npt.NDArray[np.int32]

class TokenLengths:
    trie: FlatTrie
    #: Memory of what is kept in bytes.
    nbytes: int
    def __init__(self, trie: FlatTrie, automata: StateTable) -> None: ...
    @cached_property
    def levels(self) -> tuple[Int32, Int32]: ...
    def short_tokens(self, state: int, left: int) -> npt.NDArray[np.uint32]: ...
    def make_all(self) -> None: ...
