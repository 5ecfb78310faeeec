"""Steps along a given text: is it taken, and at how many is there nothing to choose?

A *step* appends one token, or ends the text. It is *forced* if only one token is allowed, or only end tokens, and then
no *call* of the model is needed: calls = steps - forced steps. Forced tokens go into the model with the next call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: The tokenizer's tokens spell another text; a token of the proper sequence, or its end, is refused.
CHANGED, WRONG_REFUSAL = "changed", "wrong_refusal"


def fallback_mask(tokenizer: Tokenizer) -> Mask:
    """The tokens of the byte fallback; none for a tokenizer that does not merge, of which nothing is known."""
    try:
        tokens = tokenizer.merges.byte_tokens
    except TokenizerError:
        tokens = None
    ids = np.zeros(0, dtype=np.int32) if tokens is None else tokens[tokens >= 0]
    return masks.mask_from_ids(ids, tokenizer.vocabulary.size)


def follow_text(compiled: CompiledConstraint, text: str, tokenizer: Tokenizer) -> dict[str, Any]:
    """The counts along the proper sequence of `text`, one mask a step; or a ``status`` with its ``message``.

    ``positions``: how many were reached, those before or at the first token that is refused; the end is one, too.
    ``tokens``, ``steps``, ``calls``; ``forced_text``: tokens that are the only ones allowed beside end tokens;
    ``forced_002``: the same with the byte fallback's tokens left out too (unless it is the one of the sequence), as
    published.
    """
    vocab = compiled.vocab
    tokens = encode_exactly(tokenizer, vocab, text)
    if tokens is None:
        return {"status": CHANGED, "message": "the tokenizer's tokens spell another text"}
    ends, fallback = masks.mask_from_ids(vocab.end_tokens, vocab.size), fallback_mask(tokenizer)
    matcher, mask = compiled.start(), masks.allocate_mask(vocab.size)
    forced = forced_text = forced_002 = 0
    for position, token in enumerate(tokens):
        matcher.fill_mask(mask)
        if not masks.contains(mask, token):
            place = f"is refused at position {position} of {len(tokens)}"
            message = f"token {token} {vocab.token_bytes(token)!r} {place}"
            return {"status": WRONG_REFUSAL, "message": message, "positions": position + 1}
        without_ends = mask & ~ends
        published = without_ends & ~fallback
        masks.set_token(published, token)
        forced += masks.count(mask) == 1
        forced_text += masks.count(without_ends) == 1
        forced_002 += masks.count(published) == 1
        matcher.advance(token)
    if not matcher.can_end():
        message = f"the end is refused after {len(tokens)} tokens"
        return {"status": WRONG_REFUSAL, "message": message, "positions": len(tokens) + 1}
    matcher.fill_mask(mask)
    calls = len(tokens) + 1 - forced - (masks.count(mask & ~ends) == 0)
    counts = {"tokens": len(tokens), "steps": len(tokens) + 1, "calls": calls, "positions": len(tokens) + 1}
    return counts | {"forced_text": forced_text, "forced_002": forced_002}
