"""What generate() of transformers is at when it calls a logits processor, read from the stack.

A processor is handed tokens and scores, and nothing else. Where another processor has left it nothing to choose from,
the message should name that one; and whether a row may die, as one of several beams, only generate() knows. Both are
looked up when something is wrong, never in an ordinary step.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tokdfa.models.gguf_weights import import_lm

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Option of generate() -> the class of transformers that it adds, for messages.
_OPTIONS = {
    "MinNewTokensLengthLogitsProcessor": "min_new_tokens",
    "MinLengthLogitsProcessor": "min_length",
    "NoBadWordsLogitsProcessor": "bad_words_ids",
    "NoRepeatNGramLogitsProcessor": "no_repeat_ngram_size",
    "EncoderNoRepeatNGramLogitsProcessor": "encoder_no_repeat_ngram_size",
    "SuppressTokensLogitsProcessor": "suppress_tokens",
    "SuppressTokensAtBeginLogitsProcessor": "begin_suppress_tokens",
    "ForcedBOSTokenLogitsProcessor": "forced_bos_token_id",
    "ForcedEOSTokenLogitsProcessor": "forced_eos_token_id",
    "PrefixConstrainedLogitsProcessor": "prefix_allowed_tokens_fn",
    "SequenceBiasLogitsProcessor": "sequence_bias",
    "ConstraintLogitsProcessor": "another constraint",
}


def is_beam_search() -> bool:
    """Whether a beam search is under way, whose rows of one prompt compete."""
    return any(frame.f_code.co_name == "_beam_search" for frame in _frames())


def who_masks(processor: Any, input_ids: Any, allowed: Any) -> str:
    """The other processors of this call that mask one of the tokens `allowed` of a row, by name.

    `input_ids`: tensor of shape (rows, width), the row first; `allowed`: bool tensor, shape (logits,). Each processor
    is asked again, with scores of zero, so this is for a call that is about to fail.
    """
    torch = import_lm("torch")
    found = []
    for other in _others(processor):
        name = type(other).__name__
        try:
            scores = other(input_ids, torch.zeros((len(input_ids), len(allowed)), device=input_ids.device))
            masks_some = bool((scores[0, : len(allowed)][allowed] <= torch.finfo(scores.dtype).min).any())
        except Exception:  # one that wants scores of its model, or rows that go on
            masks_some = name not in _OPTIONS
        if masks_some:
            found.append(f"{_OPTIONS[name]} ({name})" if name in _OPTIONS else name)
    return ", ".join(dict.fromkeys(found)) or "a processor that came before"


def _others(processor: Any) -> list[Any]:
    """The processors of the list that has called one, without it."""
    for frame in _frames():
        owner = frame.f_locals.get("self")
        if isinstance(owner, list) and any(one is processor for one in owner):
            return [one for one in owner if one is not processor]
    return []


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back
