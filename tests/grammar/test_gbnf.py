"""GBNF read into our grammar, against `re` on all short texts; errors at their place."""

from __future__ import annotations

import itertools
import re

import pytest

from tests.backends.grammar_walks import compile_with, tokenizer_of
from tests.walks import accepts
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, UnknownNameError
from tokdfa.grammar.gbnf import read_gbnf

LISTS = r"""
# from llama.cpp's notation
root ::= "[" (Item ("," ws Item)*)? "]" # a list
Item ::= [a-b]+ | "\"" [^"\\] "\"" |
  "\x61c"
ws ::= " "{0,1}
"""


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie"])
@pytest.mark.parametrize(
    ("grammar", "judge"),
    [
        ('root ::= "ab" [ab] | "a" "b"? .', r"(?s)ab[ab]|ab?."),
        ('root ::= ("a" | "ab")+ "b"', r"(a|ab)+b"),
        ('root ::= x{2} y{1,} "" \nx ::= [^b\\]]\ny::="b"', r"[^b\]]{2}b+"),
        ("root ::= [a\\-\\]]* [a^-]", r"[a\-\]]*[a^-]"),
        (LISTS, r'\[(([ab]+|"[^"\\]"|ac)(, ?([ab]+|"[^"\\]"|ac))*)?\]'),
    ],
)
def test_texts_are_those_of_a_regex(engine, grammar, judge):
    compiled, found = compile_with(read_gbnf(grammar), tokenizer_of("bytes").vocabulary, engine), 0
    for length in range(5):
        for letters in itertools.product('ab]["-, ^c'[: 10 if length < 4 else 4], repeat=length):
            text = "".join(letters)
            assert accepts(compiled.start(), text) == bool(re.fullmatch(judge, text)), text
            found += bool(re.fullmatch(judge, text))
    assert found


def test_lists_and_other_characters():
    start = compile_with(read_gbnf(LISTS), tokenizer_of("bytes").vocabulary).start
    assert all(accepts(start(), text) for text in ("[]", "[ab, ac,b]", '["é","\n"]'))
    assert not any(accepts(start(), text) for text in ("[a,]", '["ab"]', "[a,  b]"))


@pytest.mark.parametrize(
    ("grammar", "kind", "place", "message"),
    [
        ('root ::= "a', GrammarSyntaxError, (1, 10), "cannot stand here"),
        ('root ::= ("a"\nb ::= "b"', GrammarSyntaxError, (1, 10), "not closed"),
        ('root ::= "a")', GrammarSyntaxError, (1, 13), "no bracket"),
        ("root ::= * b", GrammarSyntaxError, (1, 10), "nothing to repeat"),
        ('root ::= "a"\n  | iten\nitem ::= "b"', GrammarSyntaxError, (2, 5), "did you mean 'item'"),
        ('root ::= "a"\nroot ::= "b"', GrammarSyntaxError, (2, 1), "twice"),
        ('"a" root ::= "b"', GrammarSyntaxError, (1, 1), "begins with name"),
        ('root ::= "a\\q"', GrammarSyntaxError, (1, 12), "unknown escape"),
        ('root ::= "\\uD800"', GrammarSyntaxError, (1, 11), "UTF-8"),
        ("root ::= [z-a]", GrammarSyntaxError, (1, 10), "empty"),
        ("root ::= []", GrammarSyntaxError, (1, 10), "no character"),
        ('root ::= "a" (= "b")', GrammarUnsupported, (1, 14), "look-ahead"),
        ('root ::= TagDispatch(("a", b))', GrammarUnsupported, (1, 10), "functions"),
    ],
)
def test_errors_have_their_place(grammar, kind, place, message):
    with pytest.raises(kind, match=re.escape(message)) as caught:
        read_gbnf(grammar)
    assert (caught.value.line, caught.value.column) == place


def test_there_must_be_a_root():
    with pytest.raises(UnknownNameError, match="root"):
        read_gbnf('start ::= "a"')
