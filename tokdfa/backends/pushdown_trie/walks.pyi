from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.row_divisions import RowDivisions
from tokdfa.vocabulary.trie_nodes import FlatTrie

SUBTREE: int

class PushdownMasks(RowDivisions):
    def __init__(self, flat: FlatTrie, automata: AutomatonTable, end_tokens: tuple[int, ...]) -> None: ...
