from typing import Final

from tokdfa.backends.pushdown_trie.stacks import Stacks

#: States.
START: Final[int]
AT_ROOT: Final[int]
PHASES: Final[int]

class Names(Stacks): ...
