from tokdfa.backends.pushdown_trie.items import Items

class Closure(Items):
    """Rows that are closed when they are first looked at."""
