"""What matchers take and allow, as lists of tokens, and random walks along which they are compared."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tokdfa import mask as masks
from tokdfa.backends.laws.trial import advances

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.vocabulary.vocabulary import Vocabulary


def mask_of(matcher: Matcher) -> list[int]:
    """The tokens of a matcher's mask, end tokens among them."""
    mask = masks.allocate_mask(matcher.vocab.size)
    matcher.fill_mask(mask)
    return masks.mask_to_ids(mask).tolist()


def advance_all(matcher: Matcher, tokens: Iterable[int]) -> None:
    for token in tokens:
        matcher.advance(token)


def accepts(matcher: Matcher, text: str | bytes) -> bool:
    """Whether a new matcher on single bytes takes the text and may end there."""
    return takes(matcher, text) and matcher.can_end()


def takes(matcher: Matcher, text: str | bytes) -> bool:
    """Whether a matcher on single bytes takes the text; it is left behind its last byte, or before a refused one."""
    return all(advances(matcher, byte) for byte in (text.encode() if isinstance(text, str) else text))


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
