"""Forced bytes: masks against a machine, against brute force over words and over proper sequences."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.backends.grammar_walks import grammar_of
from tests.proper.toy_tokenizers import toy_with_pieces
from tests.vocabulary.vocabularies import vocabularies
from tests.walks import mask_of
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Choice, Grammar, Regex
from tokdfa.errors import VocabularyCannotSpell
from tokdfa.vocabulary.tokenizers import load_tokenizer

#: An object with the keys that a schema would fix, and values of every kind.
FIXED_KEYS = Grammar(
    r"""
    start: "{\"name\": " STRING ", \"age\": " NUMBER ", \"address\": {\"street\": " STRING ", \"kind\": " kind "}}"
    kind: "\"residential\"" | "\"residence of a company\"" | "\"other\""
    STRING: /"[^"\\\x00-\x1f]*"/
    NUMBER: /[1-9][0-9]*/
    """,
    label="fixed keys",
)
#: What follows a forced stretch begins where a token may go on: with a blank, a letter, a character of three bytes.
ENDS = Grammar(
    'start: "The answer is" (" yes" | " no, " /[a-z]+/ | "€" | "₤") ", as it was said" /[a-z]/\n', label="ends"
)


def compile_on(vocab, constraint, backend="earley_trie", **options):
    return create_backend(backend, vocab, **options).compile(constraint)


@pytest.mark.parametrize("grammar", [FIXED_KEYS, ENDS, grammar_of("json")], ids=lambda grammar: grammar.label)
def test_masks_force_what_the_machine_forces(grammar):
    """Every byte is a token, so tokens can spell what the grammar allows; `pushdown_trie` asks its machine."""
    vocab, rng = load_tokenizer("mistral-v1").vocabulary, random.Random(0)
    compiled, other = compile_on(vocab, grammar), compile_on(vocab, grammar, "pushdown_trie")
    forced = 0
    for _ in range(3):
        matcher, machine = compiled.start(), other.start()
        for _ in range(12):
            expected = machine.forced_bytes(40)
            assert matcher.forced_bytes(40) == expected
            assert matcher.forced_bytes(3) == expected[:3]
            forced += len(expected) > 1
            tokens = [token for token in mask_of(matcher) if token not in vocab.end_token_set]
            if not tokens:
                break
            token = rng.choice(tokens)
            matcher.advance(token)
            machine.advance(token)
    assert forced > 0


WORDS = st.lists(st.text("ab", min_size=1, max_size=8), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("backend", ["token_index", "pushdown_trie"])
def test_masks_force_what_words_have_in_common(backend):
    """Vocabularies with gaps, in which not every word can be spelled, nor every beginning be gone on from."""
    found = set()

    @given(WORDS, vocabularies(b"ab", 8), st.integers(0, 100))
    def check(words, vocab, seed):
        try:
            matcher = compile_on(vocab, Choice(words), backend).start()
        except VocabularyCannotSpell:
            return
        spelled = [vocab.token_bytes(token) for token in range(vocab.size)]
        rng, text = random.Random(seed), b""
        for _ in range(3):
            rests = [word.encode()[len(text) :] for word in words if word.encode().startswith(text)]
            expected = os.path.commonprefix([rest for rest in rests if _can_spell(rest, spelled)])  # noqa: RUF071
            assert matcher.forced_bytes() == expected
            found.add(expected)
            tokens = [token for token in mask_of(matcher) if spelled[token]]
            if not tokens:
                break
            token = rng.choice(tokens)
            matcher.advance(token)
            text += spelled[token]

    check()
    assert len(found) > 5


def _can_spell(text, spelled):
    return not text or any(
        part and text.startswith(part) and _can_spell(text[len(part) :], spelled) for part in spelled
    )


def test_masks_of_proper_sequences_force_what_they_have_in_common():
    """A token that can only be a whole piece: what was spelled does not say which state it is."""
    vocab = toy_with_pieces().vocabulary
    for pattern in ("aab\\.(ab\\.)*b", "(ab\\.)?aab+\\.b", "a{3}b?\\.", "(aab\\.){3}|(aab\\.){2}ab\\."):
        compiled = compile_on(vocab, Regex(pattern), "cartesian_merge")
        agenda = [compiled.start()]
        for matcher in agenda:
            found = _texts_from(matcher)
            assert matcher.forced_bytes() == os.path.commonprefix(found)[:30]  # noqa: RUF071
            if len(agenda) < 10:
                agenda += _after_each_token(matcher)


def _after_each_token(matcher):
    after = []
    for token in mask_of(matcher):
        if matcher.vocab.token_bytes(token):
            after.append(matcher.fork())
            after[-1].advance(token)
    return after


def _texts_from(matcher, text=b"", limit=30):
    """What sequences of tokens go on with, up to `limit` bytes."""
    if len(text) >= limit or matcher.can_end():
        return [text]
    return [
        found
        for token in mask_of(matcher)
        for following in [matcher.fork()]
        for _ in [following.advance(token)]
        for found in _texts_from(following, text + matcher.vocab.token_bytes(token), limit)
    ]
