from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vocabulary.vocabularies import ODD, vocabularies
from tokdfa.backends.tokens_dfa.fewest_tokens import spell_in_fewest_tokens
from tokdfa.vocabulary.vocabulary import Vocabulary


def all_spellings(text: bytes, vocab: Vocabulary) -> list[tuple[int, ...]]:
    if not text:
        return [()]
    found = []
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if spelled and text.startswith(spelled):
            found += [(token, *rest) for rest in all_spellings(text[len(spelled) :], vocab)]
    return found


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    vocabularies(b"ab", max_tokens=12),
    st.lists(st.lists(st.sampled_from(list(b"ab")), max_size=7).map(bytes), max_size=4),
)
def test_best_of_all_spellings(vocab: Vocabulary, texts: list[bytes]) -> None:
    def rank(tokens: tuple[int, ...]) -> tuple:
        return len(tokens), [-len(vocab.token_bytes(token)) for token in tokens], [-token for token in tokens]

    expected = [min(all_spellings(text, vocab), key=rank, default=None) for text in texts]
    assert spell_in_fewest_tokens(texts, vocab) == expected


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        (b"filename", [b"file", b"name"]),
        (b"lename", [b"l", b"ename"]),  # not l, e, name
        (b"filefile", [b"file", b"file"]),
        (b"filenam", [b"file", b"n", b"am"]),  # not n, a, m
        (b"", []),
        (b"files", None),
    ],
)
def test_examples(text: bytes, spelling: list[bytes] | None) -> None:
    tokens = [b"f", b"i", b"l", b"e", b"n", b"a", b"m", b"file", b"name", b"ename", b"am", b""]
    vocab = Vocabulary(tokens, end_tokens=[11])
    (found,) = spell_in_fewest_tokens([text], vocab)
    assert found == (None if spelling is None else tuple(tokens.index(token) for token in spelling))


def test_the_longest_first_token_wins() -> None:
    vocab = Vocabulary([b"a", b"bcd", b"ab", b"cd", b"abc", b"d", b""], end_tokens=[6])
    assert spell_in_fewest_tokens([b"abcd", b"abcda"], vocab) == [(4, 5), (4, 5, 0)]


def test_the_largest_of_equal_ids() -> None:
    assert spell_in_fewest_tokens([b"ab", b"abc", b"ba"], ODD) == [(4,), (2,), (10, 0)]


def test_no_text_at_all() -> None:
    assert spell_in_fewest_tokens([], ODD) == []


def test_a_long_text() -> None:
    vocab = Vocabulary([b"a", b"a" * 30, b""], end_tokens=[2])
    (found,) = spell_in_fewest_tokens([b"a" * 100_000], vocab)
    assert found == (1,) * 3333 + (0,) * 10
