"""Proper sequences on top of any strategy: its mask, less what would not be properly spelled.

A strategy knows which tokens the text allows; `cartesian_merge` knows, for a regular language, which tokens are proper.
The filter runs matchers of both side by side and takes what both allow. What remains is liveness: a token that both
allow may lead to where nothing is allowed by both.

- If the language of the second matcher is the constraint's own (``lookahead=0``), there is nothing to do: its masks
  hold live tokens only, and the first one allows every spelling. So it is for regular constraints.
- If it is larger, as it must be for a context-free constraint (say, that of all texts: `all_texts`), a token is allowed
  only if tokens that both allow go on from it for `lookahead` tokens, or to an end on the way. A dead end that is
  further away is not seen: with a look-ahead of one token, Llama 3's " DE" looks like a beginning of SQL's DELETE,
  though no proper sequence gets from it to the end of that word. For a tokenizer without pre-tokenizer, whose pieces
  have no end, such a filter is refused: merges may reach back as far as they like.

Cost with `lookahead`: see `tokdfa.backends.proper_liveness`, which decides for all tokens at once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.base import StateMatcher
from tokdfa.backends.matcher_texts import MatcherTexts
from tokdfa.backends.proper_liveness import ProperLiveness
from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.backends.proper_merge.cartesian_merge import CartesianMergeMatcher, CompiledCartesianMerge
    from tokdfa.constraint import Regex
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: For how many vocabularies the proper sequences of any text are kept.
KEPT_VOCABULARIES = 4

#: A state of the strategy and one of the proper sequences.
Both = tuple[Any, Any]


class ProperFilter(StateMatcher[Both]):
    """What two matchers allow, the second of which allows proper sequences only. See the module's docstring.

    `liveness`: what the matchers of one compiled constraint share if there is a look-ahead; made here by default.
    """

    def __init__(
        self,
        text: StateMatcher[Any],
        proper: CartesianMergeMatcher,
        lookahead: int = 0,
        liveness: ProperLiveness | None = None,
    ) -> None:
        super().__init__(text.vocab, (text.state, proper.state))
        self._text, self._proper, self._lookahead = text, proper, lookahead
        self._scratch = masks.allocate_mask(self.vocab.size)
        if lookahead and liveness is None:
            liveness = ProperLiveness(MatcherTexts(text), proper.states, lookahead)
        self._liveness = liveness

    def _step(self, state: Both, token: int) -> Both | None:
        text = self._text._step(state[0], token)
        proper = None if text is None else self._proper._step(state[1], token)
        if proper is None or not (
            self._liveness is None or self._liveness.goes_on(self._liveness.texts.number(text), proper)
        ):
            return None
        return text, proper

    def _accepts(self, state: Both) -> bool:
        return self._text._accepts(state[0]) and self._proper._accepts(state[1])

    def _fill(self, state: Both, out: Mask) -> None:
        if self._liveness is not None:
            self._liveness.fill(self._liveness.texts.number(state[0]), state[1], out)
            return
        self._text._fill(state[0], out)
        self._proper._fill(state[1], self._scratch)
        np.bitwise_and(out, self._scratch, out=out)

    def _fork_empty(self) -> ProperFilter:
        return ProperFilter(self._text, self._proper, self._lookahead, self._liveness)


def all_texts(tokenizer: Tokenizer) -> Regex:
    """The constraint that any text meets, whose proper sequences are those of the tokenizer itself.

    Raises UnsupportedConstraint for a tokenizer without pre-tokenizer (see the module's docstring).
    """
    from tokdfa.constraint import Regex
    from tokdfa.proper.piece_borders import load_marked_dfa

    if load_marked_dfa(tokenizer) is None:
        raise UnsupportedConstraint(
            f"{tokenizer.name} has no pre-tokenizer, so no look-ahead tells how far its merges reach: proper sequences "
            "of a context-free constraint are refused; turn it into a regex, bound a schema by max_nesting, or use "
            "another tokenizer"
        )
    return Regex(r"[\s\S]*", label="any text")


@lru_cache(KEPT_VOCABULARIES)
def proper_texts(vocab: Vocabulary) -> CompiledCartesianMerge:
    """The proper sequences of any text, compiled: half a second, and kept, with all that is learned about them.

    The vocabulary must have its tokenizer. Raises as `all_texts` does.
    """
    from tokdfa.backends.proper_merge.cartesian_merge import CartesianMerge, CompiledCartesianMerge

    assert vocab.tokenizer is not None
    compiled = CartesianMerge(vocab).compile(all_texts(vocab.tokenizer))
    assert isinstance(compiled, CompiledCartesianMerge)
    return compiled
