"""How each token comes about: last merges, levels, what is still to come; and which tokens are not proper.

Merging the letters of a token's own bytes either ends in that token alone (it is *proper*) or in something else (it is
*improper*: the tokenizer never produces it inside a longer piece). The *last merge* of a proper token t joins left(t)
and right(t), both proper, by a rule of rank(t). The *right spine* of t is t, right(t), right(right(t)), ... down to a
letter; the *left spine* is the same with left(.).

*Levels.* Two stretches of text that do not touch merge independently; when both happen in one text, the next merge is
the one of lower rank among the two that come next, on equal ranks the left one. So a merge of low rank that has to wait
for one of high rank happens right after it, and what counts is the *level*: the greatest rank so far, level(t) =
max(rank(t), level(left(t)), level(right(t))), -1 for letters. A merge of the left stretch comes before one of the right
stretch iff its level is at most the other's. In an *irregular* token some part has a higher level than the token's own
rank. Real vocabularies have few.

*Still to come.* At the moment when left(t) is complete, the greatest rank that is still to come before t is complete is
rest_after_left(t) = max(rank(t), level(right(t)) if level(right(t)) >= level(left(t))). Likewise rest_after_right(t) =
max(rank(t), level(left(t)) if level(left(t)) > level(right(t))). For regular tokens both are rank(t) or less than it.

Source: 002, technical appendix, for proper sequences; levels are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.proper import bpe

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.proper.merge_rules import Int32, MergeRules


@dataclass(frozen=True, eq=False)
class Derivations:
    """The last merge of every token. All arrays have shape (V,), all but `is_proper` are int32. Immutable.

    `is_proper`: bool; the token is what merging makes of its letters (letters are). `left`, `right`, `rank`: its last
    merge, -1 for letters and for tokens that are not proper. `level`, `rest_after_left`, `rest_after_right`: see the
    module; -1 for letters.
    """

    is_proper: npt.NDArray[np.bool_]
    left: Int32
    right: Int32
    rank: Int32
    level: Int32
    rest_after_left: Int32
    rest_after_right: Int32

    def irregular_tokens(self) -> npt.NDArray[np.int64]:
        """The proper tokens with a part of higher level than their own rank, ascending."""
        return np.flatnonzero(self.level > self.rank)

    def right_spine(self, token: int) -> list[int]:
        """`token`, its right part, the right part of that, ..., down to a letter."""
        return _spine(token, self.right)

    def left_spine(self, token: int) -> list[int]:
        """`token`, its left part, the left part of that, ..., down to a letter."""
        return _spine(token, self.left)


def _spine(token: int, part: Int32) -> list[int]:
    spine = [int(token)]
    while part[spine[-1]] >= 0:
        spine.append(int(part[spine[-1]]))
    return spine


def derive_tokens(rules: MergeRules) -> Derivations:
    """Merge the letters of every token. O(total letters x log rules), and quadratic in the letters of one token.

    0.03 s for Mistral v1, 0.2 s for Llama 3.
    """
    is_proper, left, right, rank, level = bpe.derive_tokens(rules)
    left_level, right_level = np.where(left >= 0, level[left], -1), np.where(right >= 0, level[right], -1)
    rest_after_left = np.maximum(rank, np.where(right_level >= left_level, right_level, -1)).astype(np.int32)
    rest_after_right = np.maximum(rank, np.where(left_level > right_level, left_level, -1)).astype(np.int32)
    return Derivations(is_proper, left, right, rank, level, rest_after_left, rest_after_right)
