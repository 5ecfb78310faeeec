"""`RegexFsm`: its packed masks against one regex by the brute force, and against the naive product."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokdfa
from tests.walks import mask_of
from tokdfa import mask as masks
from tokdfa.backends.cfg_fsm.regex_fsm import RegexFsm
from tokdfa.errors import ArgumentError, EmptyLanguageError, LimitExceeded
from tokdfa.vocabulary.vocabulary import Vocabulary

LETTERS = [b"a", b"b", b"c", *b"ab ba aa abab bca cc caab ab aabba bcb abcabc".split()]
#: Letters, words of them, two ids for one text, an end token, padding.
PIECES = Vocabulary([*LETTERS, b""], end_tokens=[len(LETTERS)], size=70)

singles = st.sampled_from(["a", "b*", "(ab|c)+", "a?", "[ab]{1,3}", "abc", "(aab)*", "[abc]*", "ab|abca"])
#: A regex in brackets and the same as a RegexFsm.
trees = st.recursive(
    singles.map(lambda pattern: (f"(?:{pattern})", RegexFsm(pattern, PIECES))),
    lambda inner: st.tuples(inner, inner, st.booleans()).map(
        lambda three: (
            (f"(?:{three[0][0]}|{three[1][0]})", three[0][1] | three[1][1])
            if three[2]
            else (three[0][0] + three[1][0], three[0][1] + three[1][1])
        )
    ),
    max_leaves=5,
)


@given(trees, st.integers(0, 2**32))
@settings(deadline=None, derandomize=True, max_examples=80)
def test_masks_are_those_of_the_regex_written_out(tree: tuple[str, RegexFsm], seed: int) -> None:
    pattern, fsm = tree
    matcher = tokdfa.compile(tokdfa.Regex(pattern), PIECES, backend="brute_force").start()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        allowed = mask_of(matcher)
        assert masks.mask_to_ids(fsm.mask()).tolist() == masks.mask_to_ids(fsm.naive_mask()).tolist() == allowed
        tokens = [token for token in allowed if PIECES.token_bytes(token)]
        if not tokens:
            break
        token = int(rng.choice(tokens))
        matcher.advance(token)
        fsm = fsm.after(PIECES.token_bytes(token))


def test_the_prototype_of_the_issue() -> None:
    """ "Hap" + "py Ne" over Mistral's vocabulary: every tokenization of "Happy Ne" can be walked, and no other text."""
    vocab = tokdfa.load_tokenizer("mistral-v1").vocabulary
    both = RegexFsm("Hap", vocab) + RegexFsm("py Ne", vocab)
    text = b"Happy Ne"
    for place in range(len(text) + 1):
        allowed = masks.mask_to_ids(both.after(text[:place]).mask()).tolist()
        rest = text[place:]
        fits = [
            token
            for token in range(vocab.size)
            if vocab.token_bytes(token) and rest.startswith(vocab.token_bytes(token))
        ]
        assert allowed == (fits if rest else list(vocab.end_tokens))
    np.testing.assert_array_equal(both.mask(), both.naive_mask())
    assert repr(both) == "(/Hap/ + /py Ne/)"


def test_faults() -> None:
    one = RegexFsm("[abc]*", PIECES)
    with pytest.raises(ArgumentError, match="begins with b'd'"):
        one.after(b"d")
    with pytest.raises(ArgumentError, match="the same vocabulary"):
        one + RegexFsm("a", Vocabulary([b"a", b""], end_tokens=[1]))
    with pytest.raises(LimitExceeded, match="the naive product of"):
        (one + one + one).naive_mask(1000)
    with pytest.raises(EmptyLanguageError):
        RegexFsm("(?!a)a", PIECES)
