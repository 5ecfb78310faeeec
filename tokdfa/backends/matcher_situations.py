"""The situations of matchers: see `tokdfa.backends.situation_source`.

The grammar engines find where all tokens lead by one walk over the token trie (`earley_trie.walks`,
`pushdown_trie.targets`), strategies whose states are numbers by their tables (`numbered_states`). Here are those of any
other matcher, a token at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.situation_source import SituationSource
from tokdfa.core.budget import spend

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.state_matcher import StateMatcher
    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]

#: What a step takes.
NS_PER_STEP = 3_000


class MatcherSituations(SituationSource):
    """The states of any matcher as situations, numbered as they are met. `targets` takes some us a token."""

    def __init__(self, matcher: StateMatcher[Any]) -> None:
        self._matcher = matcher
        self._numbers: dict[Any, int] = {}
        self._states: list[Any] = []

    def number(self, state: Any) -> int:
        """The number of a state, a new one if need be."""
        found = self._numbers.setdefault(state, len(self._states))
        if found == len(self._states):
            self._states.append(state)
        return found

    def step(self, situation: int, token: int) -> int:
        following = self._matcher._step(self._states[situation], token)
        return -1 if following is None else self.number(following)

    def targets(self, situation: int) -> Int32:
        """One token after another."""
        vocabulary = self._matcher.vocab
        allowed, found = masks.allocate_mask(vocabulary.size), np.full(vocabulary.size, -1, dtype=np.int32)
        self.fill(situation, allowed)
        tokens = masks.mask_to_ids(allowed).tolist()
        spend(NS_PER_STEP * len(tokens))
        for token in tokens:
            if token not in vocabulary.end_token_set:
                found[token] = self.step(situation, token)
        return found

    def fill(self, situation: int, out: Mask) -> None:
        self._matcher._fill(self._states[situation], out)

    def can_end(self, situation: int) -> bool:
        return self._matcher._accepts(self._states[situation])
