from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
from tokdfa.backends.pushdown_trie.row_divisions import RowDivisions, TrieParts

SUBTREE: int

class PushdownMasks(RowDivisions):
    def __init__(self, trie: TrieParts, automata: AutomatonTable, end_tokens: tuple[int, ...]) -> None: ...
