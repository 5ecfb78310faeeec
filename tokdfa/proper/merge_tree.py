"""The merge tree of left parts, numbered so that the tokens a rule forbids stand side by side.

left(.) (`tokdfa.proper.derivations`) makes a merge tree of the proper tokens: the children of y are the tokens whose
last merge has y on its left, the roots are letters. The subtree of y holds exactly the tokens that have y on their left
spine. Tokens are numbered in preorder, the children of one token by falling level, irregular ones last; a child u of y
is irregular here if the greatest rank still to come for u, once y is complete, is less than u's level.

So for regular children both bounds of the interval rule (`tokdfa.proper.intervals`) cut off a tail of the list of
children, and "y itself and the subtrees of its children of level at least r" is one interval of numbers.

The merge tree of right parts is the same from the other side: the subtree of x holds the tokens that have x on their
right spine. With it one reads off which tokens a given one may not follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from tokdfa.proper.bpe import number_tree

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.derivations import Derivations
    from tokdfa.proper.merge_rules import Int32


@dataclass(frozen=True, eq=False)
class MergeTree:
    """A merge tree of left parts, or of right parts. All arrays int32; n is the number of tokens in the merge tree.

    `order`: shape (n,), the tokens in preorder. `number`: shape (V,), the place of each token in `order`, -1 for the
    others. `end`: shape (V,), the first number after the token's subtree. `child_starts`: shape (V + 1,), the children
    of token y are ``children[child_starts[y] : child_starts[y + 1]]``, of which those before ``irregular_starts[y]``
    (shape (V,)) are regular.
    """

    order: Int32
    number: Int32
    end: Int32
    children: Int32
    child_starts: Int32
    irregular_starts: Int32


def build_merge_tree(
    derivations: Derivations, also: npt.NDArray[np.int32], side: Literal["left", "right"] = "left"
) -> MergeTree:
    """The merge tree of all proper tokens and of `also` (tokens that never merge), which become roots. O(V log V)."""
    size = len(derivations.left)
    tokens = np.flatnonzero(derivations.left >= 0)
    part, rest = derivations.left, derivations.rest_after_left
    if side == "right":
        part, rest = derivations.right, derivations.rest_after_right
    parent = part[tokens]
    level = derivations.level[tokens]
    irregular = rest[tokens] < level
    sorting = np.lexsort((tokens, -level, irregular, parent))
    children = tokens[sorting].astype(np.int32)
    child_starts = np.zeros(size + 1, dtype=np.int32)
    np.cumsum(np.bincount(parent, minlength=size), out=child_starts[1:])
    irregular_starts = (child_starts[1:] - np.bincount(parent[irregular], minlength=size)).astype(np.int32)
    is_root = derivations.is_proper & (derivations.left < 0)
    is_root[also] = True
    roots = np.flatnonzero(is_root).astype(np.int32)
    order, number, end = number_tree(roots, part, children, child_starts)
    return MergeTree(order, number, end, children, child_starts, irregular_starts)
