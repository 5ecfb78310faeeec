from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from tokdfa.mask import Mask
from tokdfa.proper.derivations import Derivations
from tokdfa.proper.merge_rules import MergeRules
from tokdfa.proper.merge_tree import MergeTree

Int32 = npt.NDArray[np.int32]

@final
class IntervalLists:
    __match_args__: ClassVar[tuple[str, ...]]
    def __init__(self, state_of: Int32, list_starts: Int32, starts: Int32, ends: Int32) -> None: ...
    @property
    def state_of(self) -> Int32: ...
    @property
    def list_starts(self) -> Int32: ...
    @property
    def starts(self) -> Int32: ...
    @property
    def ends(self) -> Int32: ...
    @property
    def state_count(self) -> int: ...
    def add_listed(self, state: int, order: Int32, mask: Mask) -> None:
        """Set the bits of the tokens in the list of a state, those that fit. `order`: of the merge tree. O(tokens set).

        Raises IndexError for what is no state, and ValueError for an `order` that is too short.
        """

@final
class BorderSide:
    """Which tokens cannot stand on the other side of a border, by the token on this side.

    `is_left`: whether this side is the left one. `merge_tree`: that of the other side, so of left parts if this is the
    left side, otherwise of right parts. About 60 bytes a token and 8 a rule. Immutable. 10 to 30 ms.
    """

    def __init__(self, rules: MergeRules, derivations: Derivations, merge_tree: MergeTree, is_left: bool) -> None: ...
    def forbidden(self, token: int) -> Int32:
        """The tokens that cannot stand beside `token` in one piece, each once, in the order of the merge tree: int32.

        Microseconds. Raises IndexError for what is no token.
        """

def build_lists(rules: MergeRules, derivations: Derivations, merge_tree: MergeTree) -> IntervalLists:
    """The lists of all tokens of the merge tree of left parts, equal lists once. 0.05 to 0.5 s."""
