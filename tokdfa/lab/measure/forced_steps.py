"""Steps at which a constraint leaves nothing to choose, along a given text and while a model writes.

A *step* appends one token, or ends the text. It is *forced* if one token only is allowed, or only end tokens, and then
no *call* of the model is needed: calls = steps - forced steps. Forced tokens go into the model with the next call.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.decoding.loop import generate
from tokdfa.errors import TokenizerError
from tokdfa.lab.measure.clock import time_call
from tokdfa.vocabulary.tokenizers import encode_exactly

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.sampling import Sampler
    from tokdfa.mask import Mask
    from tokdfa.models.base import LanguageModel
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
            return {"status": WRONG_REFUSAL, "message": f"token {token} {vocab.token_bytes(token)!r} {place}"}
        without_ends = mask & ~ends
        published = without_ends & ~fallback
        masks.set_token(published, token)
        forced += masks.count(mask) == 1
        forced_text += masks.count(without_ends) == 1
        forced_002 += masks.count(published) == 1
        matcher.advance(token)
    if not matcher.can_end():
        return {"status": WRONG_REFUSAL, "message": f"the end is refused after {len(tokens)} tokens"}
    matcher.fill_mask(mask)
    calls = len(tokens) + 1 - forced - (masks.count(mask & ~ends) == 0)
    counts = {"tokens": len(tokens), "steps": len(tokens) + 1, "calls": calls}
    return counts | {"forced_text": forced_text, "forced_002": forced_002}


def write_text(
    model: LanguageModel, compiled: CompiledConstraint, context: Sequence[int], sampler: Sampler, max_tokens: int
) -> dict[str, Any]:
    """The counts and seconds of a text that `model` writes after `context`.

    ``sequence``: the tokens and the end token, a JSON list; ``mask_seconds``: masks, advancing and starting a matcher.
    The prompt is run through the model beforehand (``prompt_seconds``) and is in none of the other seconds; a model
    that keeps states between calls forgets them before. Masks that are made when they are asked for are paid for here.
    """
    if (forget := getattr(model, "forget", None)) is not None:
        forget()
    prompt = (*model.start_tokens, *context)
    _, prompt_ns = time_call(partial(model.log_probabilities, [prompt]))
    found = generate(model, compiled, context, sampler, max_tokens)
    sequence = [*found.tokens, *([] if found.end_token is None else [found.end_token])]
    return {
        "tokens": len(found.tokens),
        "steps": len(sequence),
        "calls": found.model_calls,
        "finished": found.finished,
        "bytes": len(found.text),
        "text": found.text.decode(errors="backslashreplace"),
        "sequence": json.dumps(sequence),
        "model_seconds": found.model_seconds,
        "mask_seconds": found.mask_seconds,
        "sampling_seconds": found.sampling_seconds,
        "prompt_seconds": prompt_ns * 1e-9,
    }
