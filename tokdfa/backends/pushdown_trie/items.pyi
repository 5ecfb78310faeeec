from typing import Final

from tokdfa.backends.pushdown_trie.names import Names

#: Kinds of divisions, added to a state; what these are added to.
STRICT: Final[int]
ALONE: Final[int]
OWN: Final[int]
STATE_PART: Final[int]

class Items(Names):
    """Rows, with items of NAMES and COUNTED."""

    def representative(self, row: int) -> int:
        """A row with the same mask as `row`: the one in which counts of characters say no more than a mask depends on.

        O(items). Rows without counted strings represent themselves.
        """
