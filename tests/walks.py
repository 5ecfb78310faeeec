"""Masks of matchers as lists of tokens, and random walks along which they are compared."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tokdfa import mask as masks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.vocabulary import Vocabulary


def mask_of(matcher: Matcher) -> list[int]:
    """The tokens of a matcher's mask, end tokens among them."""
    mask = masks.allocate_mask(matcher.vocab.size)
    matcher.fill_mask(mask)
    return masks.mask_to_ids(mask).tolist()


def masks_along(compiled: CompiledConstraint, seed: int, steps: int = 12) -> list[list[int]]:
    """The masks along a random walk."""
    matcher, rng, found = compiled.start(), random.Random(seed), []
    for _ in range(steps):
        found.append(mask_of(matcher))
        tokens = [token for token in found[-1] if token not in compiled.vocab.end_token_set]
        if not tokens:
            break
        matcher.advance(rng.choice(tokens))
    return found


def walk_along(
    matchers: Sequence[Matcher],
    vocab: Vocabulary,
    planned: Sequence[int],
    steps: int,
    rng: random.Random,
    stray: float = 0.0,
) -> int:
    """Equal masks along one walk by the `planned` tokens where they are allowed, else, and every `stray`, by any. How
    many masks there were.
    """
    for step in range(steps):
        found = [mask_of(matcher) for matcher in matchers]
        for other in found[1:]:
            assert found[0] == other, (step, vocab.spell(planned[:step]))
        tokens = [token for token in found[0] if token not in vocab.end_token_set]
        if not tokens:
            return step + 1
        strays = stray > 0 and rng.random() < stray
        follows = step < len(planned) and planned[step] in found[0] and not strays
        chosen = planned[step] if follows else rng.choice(tokens)
        for matcher in matchers:
            matcher.advance(chosen)
    return steps
