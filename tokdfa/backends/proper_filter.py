"""Proper sequences on top of any strategy: its mask, less what would not be properly spelled.

A strategy knows which tokens the text allows; `cartesian_merge` knows, for a regular language, which tokens are proper.
The filter runs matchers of both side by side and takes what both allow. What remains is liveness: a token that both
allow may lead to where nothing is allowed by both.

- If the language of the second matcher is the constraint's own (``lookahead=0``), there is nothing to do: its masks
  hold live tokens only, and the first one allows every spelling. So it is for regular constraints.
- If it is larger, as it must be for a context-free constraint (say, that of all texts: `all_texts`), a token is allowed
  only if tokens that both allow go on from it for `lookahead` tokens, or to an end on the way. A dead end that is
  further away is not seen. For a tokenizer without pre-tokenizer, whose pieces have no end, such a filter is refused:
  merges may reach back as far as they like.

Cost with `lookahead`: each token of a mask is stepped once on both sides, milliseconds for a wide mask, kept by state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import StateMatcher
from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.constraint import Regex
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: How many masks with look-ahead one filter keeps.
KEPT_MASKS = 1_000

#: A state of the strategy and one of the proper sequences.
Both = tuple[Any, Any]


class ProperFilter(StateMatcher[Both]):
    """What two matchers allow, the second of which allows proper sequences only. See the module's docstring."""

    def __init__(self, text: StateMatcher[Any], proper: StateMatcher[Any], lookahead: int = 0) -> None:
        super().__init__(text.vocab, (text.state, proper.state))
        self._text, self._proper, self._lookahead = text, proper, lookahead
        self._scratch = masks.allocate_mask(self.vocab.size)
        self._kept: dict[Both, Mask] = {}

    def _step(self, state: Both, token: int) -> Both | None:
        found = self._step_both(state, token)
        return found if found is not None and self._goes_on(found, self._lookahead) else None

    def _step_both(self, state: Both, token: int) -> Both | None:
        text = self._text._step(state[0], token)
        proper = None if text is None else self._proper._step(state[1], token)
        return None if proper is None else (text, proper)

    def _accepts(self, state: Both) -> bool:
        return self._text._accepts(state[0]) and self._proper._accepts(state[1])

    def _fill_both(self, state: Both, out: Mask) -> None:
        self._text._fill(state[0], out)
        self._proper._fill(state[1], self._scratch)
        np.bitwise_and(out, self._scratch, out=out)

    def _fill(self, state: Both, out: Mask) -> None:
        kept = self._kept.get(state)
        if kept is not None:
            np.copyto(out, kept)
            return
        self._fill_both(state, out)
        if not self._lookahead:
            return
        for token in masks.mask_to_ids(out).tolist():
            if token not in self.vocab.end_token_set and self._step(state, token) is None:
                masks.clear_token(out, token)
        if len(self._kept) >= KEPT_MASKS:
            self._kept.clear()
        self._kept[state] = out.copy()

    def _goes_on(self, state: Both, tokens: int) -> bool:
        """Whether the text may end, or go on for so many tokens or to an end before."""
        if tokens == 0 or self._accepts(state):
            return True
        allowed = masks.allocate_mask(self.vocab.size)
        self._fill_both(state, allowed)
        for token in masks.mask_to_ids(allowed).tolist():
            following = self._step_both(state, token)
            if following is not None and self._goes_on(following, tokens - 1):
                return True
        return False

    def _fork_empty(self) -> ProperFilter:
        return ProperFilter(self._text, self._proper, self._lookahead)


def all_texts(tokenizer: Tokenizer) -> Regex:
    """The constraint that any text meets, whose proper sequences are those of the tokenizer itself.

    Raises UnsupportedConstraint for a tokenizer without pre-tokenizer (see the module's docstring).
    """
    from tokdfa.bpe.piece_borders import load_marked_dfa
    from tokdfa.constraint import Regex

    if load_marked_dfa(tokenizer) is None:
        raise UnsupportedConstraint(
            f"{tokenizer.name} has no pre-tokenizer, so no look-ahead tells how far its merges reach: proper sequences "
            "of a context-free constraint are refused; turn it into a regex, or use another tokenizer"
        )
    return Regex(r"[\s\S]*", label="any text")
