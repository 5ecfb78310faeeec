import numpy as np
import numpy.typing as npt

from tokdfa.proper.merge_rules import MergeRules

Int32 = npt.NDArray[np.int32]

def cut_tokens(
    name: str, byte_data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], tokens: Int32
) -> tuple[Int32, Int32, Int32]:
    """(left, right, result), int32: every way to cut one of `tokens` into two of them.

    Token t spells ``byte_data[offsets[t] : offsets[t + 1]]``. O(the sum of the squares of lengths). Raises
    TokenizerError, with the `name` of the tokenizer, if two of `tokens` spell the same.
    """

def merge_letters(rules: MergeRules, letters: npt.ArrayLike) -> Int32:
    """The tokens that merging makes of `letters` (token ids), int32. O(letters x (letters + log rules)).

    Raises IndexError for what is no token.
    """

def derive_tokens(rules: MergeRules) -> tuple[npt.NDArray[np.bool_], Int32, Int32, Int32, Int32]:
    """(is_proper, left, right, rank, level) of `tokdfa.proper.derivations.Derivations`."""

def number_tree(roots: Int32, parent: Int32, children: Int32, child_starts: Int32) -> tuple[Int32, Int32, Int32]:
    """(order, number, end) of a `tokdfa.proper.merge_tree.MergeTree`: int32. O(V).

    Raises ValueError if not all tokens can be reached from the roots.
    """
