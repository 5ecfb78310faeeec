from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.small_regexes import small_regexes
from tests.strategies import examples
from tests.walks import mask_of
from tokdfa.backends.earley_trie.strategy import CompiledEarley, EarleyTrie
from tokdfa.constraint import Grammar, Regex
from tokdfa.errors import EmptyLanguageError, LimitExceeded, OptionError, RegexSyntaxError
from tokdfa.masks.slices import MAX_SLICES, NAMED_SETS, slice_set
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher
    from tokdfa.constraint import Constraint

FOLDER = Path(__file__).parents[2] / "experiments" / "inputs" / "grammars"
TOKENIZERS = ("mistral-v1", "llama3")
#: The example of the source, and the set that it calls equivalent.
CLAIMING = NAMED_SETS["json"]
DISJOINT = tuple(CLAIMING[0].replace("{1,10}", bounds) for bounds in ("{1,10}", "{11,30}", "{31,}"))
TEXT = r"([^\"\\\x00-\x1F\x7F]|\\([\"\\\/bfnrt]|u[a-fA-F0-9]{4}))"


@cache
def vocabulary(name: str) -> Vocabulary:
    return load_tokenizer(name).vocabulary


def compile_earley(vocab: Vocabulary, constraint: Constraint, **options: Any) -> CompiledEarley:
    compiled = EarleyTrie(vocab, memo=False, **options).compile(constraint)
    assert isinstance(compiled, CompiledEarley)
    return compiled


def applied_after(compiled: CompiledEarley, text: str) -> tuple[int, ...]:
    """The slices that are applied after `text`."""
    matcher = compiled.start()
    for byte in text.encode():
        matcher.advance(byte_token(compiled.vocab, byte))
    assert compiled.slicer is not None
    return compiled.slicer.plan(compiled.machine.view(matcher.state)[1]).applied


@cache
def byte_token(vocab: Vocabulary, byte: int) -> int:
    """The token of one byte."""
    return next(token for token in range(vocab.size) if vocab.token_bytes(token) == bytes([byte]))


def schema_string(bounds: str) -> Grammar:
    return Grammar(f'start: "\\"foo\\"" | "\\"bar\\"" | TEXT\nTEXT: /"{TEXT}{bounds}"/')


@pytest.mark.parametrize(
    ("bounds", "text", "applied"),
    [
        ("*", "", ()),  # because of the initial quote
        ("*", '"', (2,)),
        ("*", '"fo', (2,)),
        ("*", '"foo"', ()),
        ("*", '"\\', ()),  # within an escape
        ("*", '"é\\n', (2,)),
        ("{0,50}", '"', (1,)),
        ("{0,50}", '"' + 20 * "x", (1,)),
        ("{0,50}", '"' + 21 * "x", (0,)),
        ("{0,50}", '"' + 40 * "x", (0,)),
        ("{0,50}", '"' + 41 * "x", ()),
        ("{0,20}", '"', (0,)),
        ("{0,20}", '"' + 11 * "x", ()),
    ],
)
def test_the_examples_of_the_source(bounds: str, text: str, applied: tuple[int, ...]) -> None:
    compiled = compile_earley(vocabulary("mistral-v1"), schema_string(bounds), mask="slices")
    assert applied_after(compiled, text) == applied


@pytest.mark.parametrize("name", TOKENIZERS)
def test_equivalent_sets_divide_the_vocabulary_alike(name: str) -> None:
    """Each token belongs to the first slice that matches it; Python's `re` is the judge."""
    vocab = vocabulary(name)
    claiming, disjoint = slice_set(vocab, "json"), slice_set(vocab, "\n".join(DISJOINT))
    patterns = [re.compile(pattern) for pattern in CLAIMING]
    expected = np.full(vocab.size, len(patterns))
    for token in range(vocab.size):
        try:
            text = vocab.token_bytes(token).decode()
        except UnicodeDecodeError:
            continue
        expected[token] = next((k for k, found in enumerate(patterns) if found.fullmatch(text)), len(patterns))
    assert claiming.claims.tolist() == expected.tolist() == disjoint.claims.tolist()
    assert np.bincount(expected)[[0, 1, 3]].min() > 400
    assert disjoint.tokens.sum(axis=0).max() == 1


@pytest.mark.parametrize("bounds", ["{0,9}", "{0,10}", "{0,29}", "{0,30}", "{0,31}", "*"])
def test_equivalent_sets_apply_the_same_tokens(bounds: str) -> None:
    vocab = vocabulary("llama3")
    tokens = []
    for text in ("json", "\n".join(DISJOINT)):
        compiled = compile_earley(vocab, schema_string(bounds), mask="slices", slices=text)
        slices = slice_set(vocab, text)
        tokens.append(slices.tokens[list(applied_after(compiled, '"'))].any(axis=0))
    assert (tokens[0] == tokens[1]).all()
    assert tokens[0].any() == (bounds != "{0,9}")


def small_vocabulary(tokens: list[str]) -> Vocabulary:
    return Vocabulary([b"a", b"b", *(token.encode() for token in tokens), b""], end_tokens=[len(tokens) + 2])


@examples(150)
@given(
    st.lists(small_regexes(), min_size=1, max_size=5),
    small_regexes(),
    st.lists(st.text("ab", min_size=1, max_size=5), max_size=20),
)
def test_any_slices_give_the_masks_of_the_walk(slices: list[str], lexeme: str, tokens: list[str]) -> None:
    """Slices that overlap, include each other or are equal; those of the empty text may match no token."""
    vocab = small_vocabulary(tokens)
    constraint = Regex(lexeme)
    walking = compile_earley(vocab, constraint, mask="walk")
    slicing = compile_earley(vocab, constraint, mask="slices", slices="\n".join([*slices, "[ab]{1,3}"]))
    agenda: list[tuple[Matcher, Matcher]] = [(walking.start(), slicing.start())]
    for walked, sliced in agenda:
        expected = mask_of(walked)
        assert mask_of(sliced) == expected
        for token in (0, 1):
            if token in expected and len(agenda) < 12:
                following = walked.fork(), sliced.fork()
                for matcher in following:
                    matcher.advance(token)
                agenda.append(following)


def test_lazy_lexemes_switch_slices_off() -> None:
    """Otherwise the tag could end within a token, and the text that could read on with it."""
    vocab = vocabulary("mistral-v1")
    lazy = (FOLDER / "tool_call_lazy.lark").read_text()
    assert "[lazy]" in lazy
    text = "Some text <too"
    assert applied_after(compile_earley(vocab, Grammar(lazy), mask="slices"), text) == ()
    greedy = Grammar(lazy.replace("[lazy]", ""))
    assert applied_after(compile_earley(vocab, greedy, mask="slices"), text) == (2,)
    # after the lazy one, slices are back
    assert applied_after(compile_earley(vocab, Grammar(lazy), mask="slices"), '<tool>{"name":"x') == (2,)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("jsom", OptionError, "no token matches"),
        ("", OptionError, "1 to 64 slices"),
        ("\n".join(["a"] * (MAX_SLICES + 1)), OptionError, "1 to 64 slices"),
        ("a+\n(a", RegexSyntaxError, "at position"),
        ("[^\\s\\S]", EmptyLanguageError, "no text matches"),
        ("a\n[ab]{1,20000}", LimitExceeded, r"the slice '\[ab\]\{1,20000\}' needs more than 10000 states"),
    ],
)
def test_slices_that_cannot_be_used(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compile_earley(small_vocabulary(["aa"]), Regex("a+"), mask="slices", slices=text)
