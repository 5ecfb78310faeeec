from typing import Final

from tokdfa.backends.pushdown_trie.names import Names

#: Kinds of divisions, added to a state; what these are added to.
STRICT: Final[int]
ALONE: Final[int]
OWN: Final[int]
STATE_PART: Final[int]

class Items(Names):
    def representative(self, row: int) -> int: ...
