"""The brute force against definitions: Python's `re` over all short texts, and all spellings of finite languages."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import TEXT_ALPHABET, as_python, regex_patterns, short_texts
from tests.vocabulary.vocabularies import ODD, vocabularies
from tests.walks import mask_of as allowed
from tokdfa import load_tokenizer
from tokdfa.backends.brute_force import BruteForce
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Regex
from tokdfa.errors import EmptyLanguageError, OptionError, VocabularyCannotSpell
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = Vocabulary(
    [letter.encode() for letter in TEXT_ALPHABET] + [b"ab", b"\xc3", b"\xa9", b"a\n", "éé".encode(), b"-", b""],
    end_tokens=[len(TEXT_ALPHABET) + 6],
    name="letters",
)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(regex_patterns(boundaries=False), st.booleans())
def test_accepts_what_re_matches(pattern: str, search: bool) -> None:
    python = as_python(pattern)
    texts = {text for text in short_texts(3) if (python.search if search else python.fullmatch)(text)}
    try:
        compiled = BruteForce(LETTERS).compile(Regex(pattern, search=search, ascii_classes=True))
    except EmptyLanguageError:
        assert not texts
        return
    for text in short_texts(3):
        matcher = compiled.start()
        spelled = [TEXT_ALPHABET.index(letter) for letter in text]
        goes = True
        for token in spelled:
            goes = goes and matcher.allows(token)
            if goes:
                matcher.advance(token)
        assert (goes and matcher.can_end()) == (text in texts), (pattern, text)


@pytest.mark.parametrize("pattern", ["(ab|-)*", "a(b|é){2,3}", "[ab]{0,4}ab-", "ab-|ab|a", "(a|b)*é", "((ab)?-)+"])
def test_a_token_is_allowed_iff_some_text_goes_on_with_it(pattern: str) -> None:
    """Over all texts of at most seven letters, which complete every prefix of two tokens."""
    matching = [text.encode() for text in short_texts(7, "ab-é") if re.fullmatch(pattern, text)]
    prefixes = {text[:size] for text in matching for size in range(len(text) + 1)}
    compiled = BruteForce(LETTERS).compile(Regex(pattern))
    for sequence in itertools.chain.from_iterable(itertools.product(range(LETTERS.size), repeat=n) for n in range(3)):
        text = LETTERS.spell(sequence)
        if text not in prefixes or any(not LETTERS.token_bytes(token) for token in sequence):
            continue
        matcher = compiled.start()
        for token in sequence:
            matcher.advance(token)
        expected = {
            token
            for token in range(LETTERS.size)
            if LETTERS.token_bytes(token) and text + LETTERS.token_bytes(token) in prefixes
        }
        ends = set(LETTERS.end_tokens) if text in matching else set()
        assert set(allowed(matcher)) == expected | ends, (pattern, text)
        assert {token for token in range(LETTERS.size) if matcher.allows(token)} == expected | ends


#: Whoever reads off which states reach an end, and in how many ways.
ENGINES: list[tuple[str, dict[str, Any]]] = [
    ("brute_force", {}),
    ("token_index", {}),
    ("token_index", {"lazy": True}),
    ("tokens_dfa", {}),
    ("tokens_dfa", {"token_classes": "strings", "reduce": False, "ready_masks": False}),
    ("tokens_dfa", {"token_classes": "none", "byte_classes": False, "dead_bytes": False, "prefix_graphs": False}),
]


@given(
    vocabularies(b"ab\x00\xff", max_tokens=12),
    st.sets(st.lists(st.sampled_from(list(b"ab\x00\xff")), max_size=5).map(bytes), min_size=1, max_size=5),
)
def test_liveness_is_about_tokens(vocab: Vocabulary, texts: set[bytes]) -> None:
    """Token sequences that can be finished are exactly the prefixes of spellings, whoever makes the masks."""

    def spellings(text: bytes) -> set[tuple[int, ...]]:
        if not text:
            return {()}
        fitting = [t for t in range(vocab.size) if vocab.token_bytes(t) and text.startswith(vocab.token_bytes(t))]
        return {(t, *rest) for t in fitting for rest in spellings(text[len(vocab.token_bytes(t)) :])}

    complete = {sequence for text in texts for sequence in spellings(text)}
    if not complete:
        for name, options in ENGINES:
            with pytest.raises(VocabularyCannotSpell) as caught:
                create_backend(name, vocab, **options).compile(Choice(texts))
            assert caught.value.missing or name != "brute_force"
        return
    compiled = [create_backend(name, vocab, **options).compile(Choice(texts)) for name, options in ENGINES]
    prefixes = {sequence[:size] for sequence in complete for size in range(len(sequence) + 1)}
    for sequence in sorted(prefixes)[:40]:
        ends = set(vocab.end_tokens) if sequence in complete else set()
        expected = {t for t in range(vocab.size) if (*sequence, t) in prefixes} | ends
        for one, engine in zip(compiled, ENGINES, strict=True):
            matcher = one.start()
            for token in sequence:
                matcher.advance(token)
            assert set(allowed(matcher)) == expected, engine


def test_liveness_of_bytes_leaves_dead_ends() -> None:
    vocab = Vocabulary([b"a", b"ab", b"c", b""], end_tokens=[3])
    constraint = Regex("abd|ac")
    assert allowed(BruteForce(vocab).compile(constraint).start()) == [0]
    lax = BruteForce(vocab, liveness="bytes").compile(constraint).start()
    assert allowed(lax) == [0, 1]
    lax.advance(1)
    assert allowed(lax) == []
    assert not lax.can_end()
    assert BruteForce(vocab, liveness="bytes").compile(Regex("d")).start() is not None
    with pytest.raises(OptionError, match="must be one of tokens, bytes"):
        BruteForce(vocab, liveness="letters")


def test_missing_bytes_are_named() -> None:
    vocab = Vocabulary([b"a", b"xb", b""], end_tokens=[2], name="tiny")
    with pytest.raises(VocabularyCannotSpell) as caught:
        BruteForce(vocab).compile(Regex("a+d"))
    assert caught.value.missing == b"d"
    with pytest.raises(VocabularyCannotSpell, match="only inside longer tokens") as caught:
        BruteForce(vocab).compile(Regex("ab"))
    assert caught.value.missing == b"b"


def test_odd_vocabulary() -> None:
    """Duplicates, special and padding ids, two end tokens, split characters, zero bytes."""
    matcher = BruteForce(ODD).compile(Regex("(é|ab?|\x00)*")).start()
    assert allowed(matcher) == [0, 1, 3, 4, 5, 7, 8, 9, 12]
    matcher.advance(5)
    assert allowed(matcher) == [6]
    assert not any(matcher.allows(token) for token in (3, 12, 13, 39, 40, -1))


def test_a_large_vocabulary() -> None:
    """32,000 tokens: the mask is what Python says of each token's bytes."""
    tokenizer = load_tokenizer("mistral-v1")
    vocab = tokenizer.vocabulary
    matcher = BruteForce(vocab).compile(Regex("[0-9]+( [a-z]+)*")).start()
    pattern = re.compile(rb"[0-9]+( [a-z]+)*( |)")
    for text in ("", "19", "19 ", "19 months a"):
        expected = np.zeros(vocab.size, dtype=bool)
        for token in range(vocab.size):
            spelled = vocab.token_bytes(token)
            expected[token] = bool(spelled) and pattern.fullmatch(text.encode() + spelled) is not None
        expected[list(vocab.end_tokens)] = re.fullmatch("[0-9]+( [a-z]+)*", text) is not None
        here = matcher.fork()
        for token in tokenizer.encode(text):
            here.advance(token)
        assert allowed(here) == np.flatnonzero(expected).tolist(), text
