"""The brute force of proper sequences: what it refuses, and that it does so soon. Its masks are in the laws."""

from __future__ import annotations

import pytest

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import UnsupportedConstraint
from tokdfa.vocabulary.tokenizers import load_tokenizer


def test_texts_are_listed_up_to_a_number_of_bytes() -> None:
    """``8+`` has one text of each length: 20,000 of them would be 200 MB."""
    vocab = load_tokenizer("bytes").vocabulary
    with pytest.raises(UnsupportedConstraint, match="more than 500000 bytes in its texts: use cartesian_merge"):
        create_backend("encoded_texts", vocab).compile(Regex("8+x"))
    with pytest.raises(UnsupportedConstraint, match="more than 20000 texts"):
        create_backend("encoded_texts", vocab).compile(Regex("[a-z]{4}"))


def test_the_limits_are_options() -> None:
    vocab = load_tokenizer("bytes").vocabulary
    texts = Choice(["ab", "cd", "efg"])
    assert create_backend("encoded_texts", vocab, max_bytes=7, max_texts=3).compile(texts).sizes["texts"] == 3
    for options in ({"max_bytes": 6}, {"max_texts": 2}):
        with pytest.raises(UnsupportedConstraint, match="more than"):
            create_backend("encoded_texts", vocab, **options).compile(texts)
