"""Two tokenizers of a few tokens, made by hand, without files and libraries.

Between them they have what real tokenizers have: characters that fall back to bytes, pieces with borders, and a token
that merging does not make but that is proper as a whole piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.proper.pretokenizer_dfa import MarkedDfa
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.loading import LoadedTokenizer
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.tokenizers import Tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence


def toy_with_byte_fallback() -> Tokenizer:
    """Letters are the characters a and b, which merge; é becomes two byte tokens. No pre-tokenizer."""
    byte_tokens = np.full(256, -1, dtype=np.int32)
    byte_tokens[[0xC3, 0xA9]] = [3, 4]
    ranks = np.array([0, 0, 1, -1, -1, -1], dtype=np.int32)
    letters = np.arange(2, dtype=np.int32)
    source = MergeSource("pieces", "character", letters, list, ranks, byte_tokens=byte_tokens)
    return _tokenizer([b"a", b"b", b"ab", b"\xc3", b"\xa9"], source, None)


def toy_with_pieces() -> Tokenizer:
    """Letters are the bytes a, b and the full stop, which ends a piece; token ``aab.`` can only be a whole piece."""
    spelled = [b"a", b"b", b".", b"ba", b"b.", b"aab."]
    ranks = np.array([0, 1, 2, 3, 4, 5, -1], dtype=np.int32)
    letters = np.arange(3, dtype=np.int32)
    source = MergeSource(*("pieces", "byte", letters, lambda piece: [spelled.index(piece)], ranks), whole_pieces=True)
    byte_class = np.full(256, 2, dtype=np.uint8)
    byte_class[[ord("a"), ord("b"), ord(".")]] = [0, 0, 1]
    # inside a piece; after a full stop; behind a border
    transitions = np.array([[0, 1, -1], [-1, -1, -1], [0, 1, -1]], dtype=np.int32)
    accepting = np.array([True, True, False])
    return _tokenizer(spelled, source, MarkedDfa(transitions, byte_class, accepting, 0, np.array([-1, 2, -1])))


def _tokenizer(spelled: Sequence[bytes], source: MergeSource, marked: MarkedDfa | None) -> Tokenizer:
    vocabulary = Vocabulary([*spelled, b""], end_tokens=[len(spelled)])
    loaded = LoadedTokenizer(vocabulary, lambda text: list(text.encode()), str, b"", lambda: source)
    tokenizer = Tokenizer("toy", loaded)
    tokenizer.keep("canonicity", lambda: build_canonicity(tokenizer))
    tokenizer.keep("marked_dfa", lambda: marked)
    return tokenizer
