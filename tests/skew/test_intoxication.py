"""Respellings against enumeration, and distances and ratios against sums by hand."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.proper_oracle import merge_pairs
from tests.proper.small_tokenizers import merge_list, trained_byte_level
from tokdfa.errors import ModelError, OptionError, UnsupportedConstraint
from tokdfa.models.ngram import train_ngram
from tokdfa.models.table import random_table
from tokdfa.proper.explain_text import explain_tokens
from tokdfa.skew.intoxication import (
    MAX_SPAN_BYTES,
    intoxicate_texts,
    intoxication,
    reference_sentences,
    respellings,
    retokenize,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.models.ngram import NgramModel
    from tokdfa.vocabulary.tokenizers import Tokenizer


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokenizer, NgramModel]:
    tokenizer = load_tokenizer(trained_byte_level(tmp_path_factory.mktemp("t") / "t.json"))
    return tokenizer, train_ngram(tokenizer, order=3)


def all_spellings(tokenizer: Tokenizer, data: bytes) -> set[tuple[int, ...]]:
    """Every sequence that spells `data`, of tokens that are the encoding of their own text."""
    vocabulary = tokenizer.vocabulary
    usable = {
        token: spelled
        for token in range(vocabulary.size)
        if (spelled := vocabulary.token_bytes(token)) and tokenizer.encode(spelled.decode()) == [token]
    }
    found: list[list[tuple[int, ...]]] = [[()]]
    for end in range(1, len(data) + 1):
        found.append(
            [
                (*before, token)
                for token, spelled in usable.items()
                if data[:end].endswith(spelled)
                for before in found[end - len(spelled)]
            ]
        )
    return set(found[-1])


@settings(deadline=None, derandomize=True, max_examples=40)
@given(pairs=merge_pairs(longest=4), data=st.data(), text=st.text("ab", min_size=2, max_size=7))
def test_respellings_are_all_other_spellings(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], data: st.DataObject, text: str
) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("t") / "tokenizer.json", "ab", pairs))
    begin = data.draw(st.integers(0, len(text) - 1))
    span = (begin, data.draw(st.integers(begin + 1, len(text))))
    found = list(respellings(tokenizer, text, span))
    proper = tuple(tokenizer.encode(text))
    for one in found:
        first, last = one.span
        assert one.proper == proper
        assert one.improper != proper
        assert tokenizer.vocabulary.spell(one.improper) == text.encode()
        assert one.improper[:first] == proper[:first]
        assert one.improper[len(one.improper) - one.distance :] == proper[last:]
        # the span is the least stretch of tokens around the word
        assert len(tokenizer.spell(proper[:first])) <= span[0] < len(tokenizer.spell(proper[: first + 1]))
        assert len(tokenizer.spell(proper[: last - 1])) < span[1] <= len(tokenizer.spell(proper[:last]))
    lengths = [len(one.improper) for one in found]
    assert lengths == sorted(lengths)
    if found:
        first, last = found[0].span
        expected = all_spellings(tokenizer, tokenizer.spell(proper[first:last])) - {proper[first:last]}
        inner = [one.improper[first : len(one.improper) - one.distance] for one in found]
        assert len(inner) == len(expected)
        assert set(inner) == expected
        assert len(retokenize(tokenizer, text, span, "fewest").improper) == lengths[0]
        assert len(retokenize(tokenizer, text, span, "letters").improper) == lengths[-1]
    else:
        with pytest.raises(UnsupportedConstraint, match="one spelling only"):
            retokenize(tokenizer, text, span)


def test_random_respellings_are_uniform(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path / "t.json", "ab", [("a", "b"), ("ab", "ab"), ("b", "a")]))
    expected = {one.improper for one in respellings(tokenizer, "ababa", (0, 5))}
    drawn = Counter(retokenize(tokenizer, "ababa", (0, 5), "random", seed).improper for seed in range(1_500))
    assert set(drawn) == expected
    share = 1_500 / len(expected)
    assert sum((count - share) ** 2 / share for count in drawn.values()) < 3 * len(expected)  # chi-squared
    fewest = {retokenize(tokenizer, "ababa", (0, 5), "fewest", seed).improper for seed in range(100)}
    least = min(map(len, expected))
    assert fewest == {one for one in expected if len(one) == least}


def test_respellings_of_a_long_word_are_drawn_without_listing_them(trained: tuple[Tokenizer, NgramModel]) -> None:
    tokenizer, _ = trained
    text = "x " + "the" * 100
    found = retokenize(tokenizer, text, (1, len(text)), "random", 3)
    assert not explain_tokens(tokenizer, found.improper).is_proper
    with pytest.raises(OptionError, match="too long to respell"):
        retokenize(tokenizer, "x " + "the" * 200, (1, MAX_SPAN_BYTES + 3))


def test_byte_tokens_are_no_spelling() -> None:
    """Mistral writes a hieroglyph as four byte tokens, and nothing else spells it."""
    tokenizer = load_tokenizer("mistral-v1")
    with pytest.raises(UnsupportedConstraint, match="one spelling only"):
        retokenize(tokenizer, "a 𓂀", (2, 3))
    found = retokenize(tokenizer, "A whale shark", (7, 13), "letters")
    assert [tokenizer.vocabulary.token_bytes(token) for token in found.improper[-6:]] == [
        *(b" ", b"s", b"h", b"a", b"r", b"k")
    ]
    assert (found.distance, found.extra_tokens) == (0, 6 - (found.span[1] - found.span[0]))


def test_distances_and_ratios_are_those_of_the_rows(trained: tuple[Tokenizer, NgramModel]) -> None:
    tokenizer, model = trained
    found = intoxication(
        *(model, tokenizer, "A list of the", " remaining", ""), how="letters", continuations=(" list", " iterable")
    )
    proper, improper = (
        np.exp(model.log_probabilities([(*model.start_tokens, *tokens)])[0])
        for tokens in (found.respelled.proper, found.respelled.improper)
    )
    ok = proper > 0
    assert found.kl == pytest.approx(float((proper[ok] * np.log(proper[ok] / improper[ok])).sum()), abs=1e-9)
    assert found.total_variation == pytest.approx(float(np.abs(proper - improper).sum()) / 2, abs=1e-9)
    assert 0 <= found.jensen_shannon <= found.total_variation
    assert found.same_top == (proper.argmax() == improper.argmax())
    for text, pair in found.continuations.items():
        for start, expected in zip((found.respelled.proper, found.respelled.improper), pair, strict=True):
            so_far, total = (*model.start_tokens, *start), 0.0
            for token in tokenizer.encode(text):
                total += model.log_probabilities([so_far])[0][token]
                so_far = (*so_far, token)
            assert total == pytest.approx(expected, abs=1e-12)
    ratio = found.ratio(" list", " iterable")
    assert ratio[0] == pytest.approx(np.exp(found.continuations[" list"][0] - found.continuations[" iterable"][0]))
    assert ratio[1] == pytest.approx(np.exp(found.continuations[" list"][1] - found.continuations[" iterable"][1]))


def test_random_texts(trained: tuple[Tokenizer, NgramModel]) -> None:
    tokenizer, model = trained
    found = intoxicate_texts(model, tokenizer, count=30, seed=4)
    assert len({one.respelled.text for one in found}) == 30
    assert {one.respelled.text for one in found} <= set(reference_sentences())
    assert found == intoxicate_texts(model, tokenizer, count=30, seed=4)
    assert found != intoxicate_texts(model, tokenizer, count=30, seed=5)
    for one in found:
        assert not explain_tokens(tokenizer, one.respelled.improper).is_proper
        assert one.kl == 0 or one.respelled.distance < 2  # the model looks back two tokens
    assert any(one.respelled.distance > 5 for one in found)


def test_errors(trained: tuple[Tokenizer, NgramModel]) -> None:
    tokenizer, model = trained
    for span in ((0, 0), (2, 1), (-1, 2), (0, 9)):
        with pytest.raises(OptionError, match="is no part of a text of 4 characters"):
            retokenize(tokenizer, "text", span)
    with pytest.raises(OptionError, match="how is 'fewest', 'random', 'letters'"):
        retokenize(tokenizer, "the text", (3, 8), "worst")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="only 0 of 2 texts have a word to respell, not 2"):
        intoxicate_texts(model, tokenizer, ["1 2 3", "4 5"], count=2)
    plain = load_tokenizer("bytes")
    with pytest.raises(UnsupportedConstraint, match="one spelling only"):
        retokenize(plain, "the text", (3, 8))
    other = random_table(Vocabulary([b"a", b""], end_tokens=[1]), 0)
    with pytest.raises(ModelError, match=r"different vocabularies \(2 against"):
        intoxication(other, tokenizer, "the", " text", "")
