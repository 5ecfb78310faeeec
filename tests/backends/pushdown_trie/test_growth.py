"""Grammars whose closures make many stacks, rows and groups of stacks that contain each other."""

from __future__ import annotations

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.vocabulary.vocabulary import Vocabulary

#: Terminals that touch each other, and frames that call each other before anything was read.
C_LIKE = r"""
start: function+
function: "fn " NAME "(" [NAME ("," NAME)*] ")" block
block: "{" statement* "}"
statement: NAME "=" expression ";" | "if" expression block | "return" expression ";" | expression ";" | block
expression: expression "+" term | expression "<" term | term
term: term "*" factor | factor
factor: NAME | NUMBER | call | "(" expression ")" | "-" factor
call: factor "(" [expression ("," expression)*] ")"
NAME: /[a-z_]+/
NUMBER: /[0-9]+/
%ignore /[ \n]+/
"""


def left_recursive(depth: int) -> str:
    """A grammar whose closures make a group of stacks for each level."""
    rules = [f'e{k}: e{k} "{chr(97 + k % 26)}" | e{k + 1} | "(" e{k} ")"' for k in range(depth)]
    return "\n".join([f"start: e0\n{rules[0]}", *rules[1:], f'e{depth}: "x" | "[" e0 "]"']) + "\n"


def test_groups_of_stacks_that_contain_each_other():
    """So many that each table grows at some count of them."""
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
    for depth in range(1, 12):
        compiled = tokdfa.compile(
            tokdfa.Grammar(left_recursive(depth)), vocab, backend="pushdown_trie", lexer="any", shared=False
        )
        wanted = tokdfa.compile(
            tokdfa.Grammar(left_recursive(depth)), vocab, backend="earley_trie", lexer="longest", mask="walk"
        )
        matcher, other = compiled.start(), wanted.start()
        machine = compiled.generation.machine
        for byte in b"([([x" + b"])" * 2:
            assert mask_of(matcher) == mask_of(other)
            matcher.advance(byte)
            other.advance(byte)
        assert machine.stack_count > depth


@pytest.mark.parametrize("tokenizer", ["llama3", "mistral-v1"])
def test_a_c_like_grammar_of_touching_terminals(tokenizer):
    """Once this wrote past the end of a table."""
    loaded = tokdfa.load_tokenizer(tokenizer)
    vocab = loaded.vocabulary
    found = []
    for options in ({}, {"partition": False}):
        compiled = tokdfa.compile(tokdfa.Grammar(C_LIKE), vocab, backend="pushdown_trie", lexer="any", **options)
        matcher = compiled.start()
        for byte in b"fn main() { if a < b { return c(1, d) + 2; } }":
            matcher.advance(vocab.trie.prefixes_of(bytes([byte]))[0])
            found.append(mask_of(matcher))
    assert found[: len(found) // 2] == found[len(found) // 2 :]
