from tokdfa.automata.dfa import Dfa
from tokdfa.token_automata.columns import Columns
from tokdfa.vocabulary.trie import TokenTrie

def transformations(
    trie: TokenTrie, dfa: Dfa, *, byte_classes: bool = True, threads: int = 1, max_pairs: int = 30_000_000
) -> Columns:
    """The distinct transformations of the tokens in `trie`, in order of their first token.

    `byte_classes`: step by the automaton's byte classes; otherwise by bytes. Raises LimitExceeded past `max_pairs`.
    """
