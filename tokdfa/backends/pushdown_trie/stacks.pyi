from tokdfa.backends.pushdown_trie.rows import Rows

class Stacks(Rows):
    """Rows, with the stacks of what a closure calls."""
