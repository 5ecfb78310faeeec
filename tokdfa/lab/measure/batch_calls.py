"""Calls that fill the masks of many matchers: a loop over ``fill_mask``, and the engines' own calls for batches."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING, Any

from tokdfa.backends.batch import fill_masks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from tokdfa.backends.base import Matcher

    #: int32, shape (matchers, words), C-contiguous.
    Masks = npt.NDArray[np.int32]

#: Stands for the number of threads where masks are filled one after another.
LOOP = 0


def fill_batch(backend: str, matchers: Sequence[Matcher], out: Masks, threads: int) -> None:
    """Write the masks of a backend's matchers into the rows of `out`: by its call for batches, with `threads` of
    `BATCH_CALLS`, or one after another (LOOP).
    """
    if threads != LOOP:
        BATCH_CALLS[backend](matchers, out, threads)
        return
    for matcher, row in zip(matchers, out, strict=True):
        matcher.fill_mask(row)


def _fill_llguidance(matchers: Sequence[Any], out: Masks, threads: int) -> None:
    """All masks by llguidance's executor; those at the end of a text once more, as its adapter does it."""
    from llguidance.numpy import fill_next_token_bitmask_par

    peers = [matcher.peer for matcher in matchers]
    fill_next_token_bitmask_par(_executor(threads), list(zip(peers, itertools.count(), strict=False)), out)
    for peer, matcher, row in zip(peers, matchers, out, strict=True):
        if peer.is_stopped():
            matcher.fill_mask(row)


@cache
def _executor(threads: int) -> Any:
    """llguidance's threads, kept for the next batch."""
    from llguidance import LLExecutor

    return LLExecutor(threads)


def _fill_xgrammar(matchers: Sequence[Any], out: Masks, threads: int) -> None:
    """All masks by xgrammar's matcher of batches, without what lies past the vocabulary."""
    _batch_matcher(threads).batch_fill_next_token_bitmask([matcher.peer for matcher in matchers], out)
    for matcher, row in zip(matchers, out, strict=True):
        matcher.clear_padding(row)


@cache
def _batch_matcher(threads: int) -> Any:
    """xgrammar's threads, kept for the next batch."""
    from xgrammar import BatchGrammarMatcher

    return BatchGrammarMatcher(threads)


#: Backend -> its call for many matchers: (matchers, none of them finished; out; threads).
BATCH_CALLS: dict[str, Callable[[Sequence[Matcher], Masks, int], None]] = {
    **dict.fromkeys(("pushdown_trie", "earley_trie", "token_index", "tokens_dfa"), fill_masks),
    "llguidance": _fill_llguidance,
    "xgrammar": _fill_xgrammar,
}
