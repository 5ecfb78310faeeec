from typing import final

from tokdfa.proper.derivations import Derivations
from tokdfa.proper.merge_rules import MergeRules

@final
class AdjacentPairs:
    """Which pairs of tokens may stand side by side. 28 bytes a token. Immutable."""

    def __init__(self, rules: MergeRules, derivations: Derivations) -> None: ...
    def first_merge(self, left: int, right: int) -> int:
        """The index of the first rule that merges across the border of two proper tokens, or -1 if none does. 0.2 us.

        Raises IndexError for what is no token.
        """
