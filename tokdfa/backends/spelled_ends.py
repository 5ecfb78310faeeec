"""Ends of texts as tokens spell them: the fewest tokens of a text, and ends of tokens that are none."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.some_end import FAR
from tokdfa.core.budget import spend

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: What a place of a text takes, for each length that a token may have.
NS_PER_LENGTH = 100
#: By vocabulary: the texts of tokens with the lowest token of each, the length of the longest, and by byte the ends
#: that are none.
_spelling: weakref.WeakKeyDictionary[Vocabulary, tuple[dict[bytes, int], int, dict[int, list[bytes]]]]
_spelling = weakref.WeakKeyDictionary()


def _spelling_of(vocab: Vocabulary) -> tuple[dict[bytes, int], int, dict[int, list[bytes]]]:
    """See `_spelling`."""
    if vocab not in _spelling:
        texts = {vocab.token_bytes(token): token for token in reversed(range(vocab.size))}
        _spelling[vocab] = texts, max(map(len, texts)), {}
    return _spelling[vocab]


def unspelled_ends(vocab: Vocabulary, byte: int) -> list[bytes]:
    """The ends of tokens that begin with a byte and are no tokens themselves, sorted. Kept for the vocabulary."""
    spelled, _, known = _spelling_of(vocab)
    if byte not in known:
        data, places = vocab.byte_data.tobytes(), np.flatnonzero(vocab.byte_data == byte)
        stops = vocab.offsets[np.searchsorted(vocab.offsets, places, side="right")]
        ends = {data[place:stop] for place, stop in zip(places.tolist(), stops.tolist(), strict=True)}
        known[byte] = sorted(ends.difference(spelled))
    return known[byte]


def fewest_tokens(vocab: Vocabulary, text: bytes) -> list[int]:
    """The fewest tokens that spell what is left of a text from each place on, its end included; FAR if none do."""
    spelled, longest, _ = _spelling_of(vocab)
    fewest = [FAR] * len(text) + [0]
    for begin in reversed(range(len(text))):
        spend(NS_PER_LENGTH * min(longest, len(text) - begin))
        for end in range(begin + 1, min(begin + longest, len(text)) + 1):
            if fewest[end] + 1 < fewest[begin] and text[begin:end] in spelled:
                fewest[begin] = fewest[end] + 1
    return fewest


def spell(vocab: Vocabulary, text: bytes) -> list[int] | None:
    """These tokens, of several ways the one whose tokens are the longest first; None if no tokens spell the text."""
    spelled, longest, _ = _spelling_of(vocab)
    fewest, begin, found = fewest_tokens(vocab, text), 0, list[int]()
    if fewest[0] >= FAR:
        return None
    while begin < len(text):
        ends = reversed(range(begin + 1, min(begin + longest, len(text)) + 1))
        end = next(end for end in ends if fewest[end] == fewest[begin] - 1 and text[begin:end] in spelled)
        found.append(spelled[text[begin:end]])
        begin = end
    return found
