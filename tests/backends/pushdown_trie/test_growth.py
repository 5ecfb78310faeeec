"""Tables grow from tiny rooms, one at a time, and the columns of one table always have the same room."""

from __future__ import annotations

import pytest

import tokdfa
from tests.walks import mask_of
from tokdfa.backends.pushdown_trie import machine_tables
from tokdfa.backends.pushdown_trie.arrays import NEEDS_ROWS, NEEDS_SCRATCH, NEEDS_STACKS
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


def rooms_agree(machine: machine_tables.MachineTables) -> bool:
    return len(machine.group_stack) == machine.groups.room and machine.rows.room <= len(machine.row_flags)


@pytest.mark.parametrize("first_room", [2, 4, 8, 16])  # powers of two, as hash tables have so many slots
def test_rows_of_one_table_have_the_same_room(monkeypatch, first_room):
    """From each room at first, and with so many groups that each table is full at some count of them."""
    monkeypatch.setattr(machine_tables, "FIRST_ROOM", first_room)
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
            assert rooms_agree(machine)
            matcher.advance(byte)
            other.advance(byte)
        assert machine.groups.count


@pytest.mark.parametrize("status", [NEEDS_STACKS, NEEDS_ROWS, NEEDS_SCRATCH])
def test_a_table_may_be_asked_to_grow_at_any_time(status):
    """Growing where nothing is full changes no mask, and leaves the rooms of each table equal."""
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b"", b"main() {", b"fn "], end_tokens=[256])
    grown, plain = (
        tokdfa.compile(tokdfa.Grammar(C_LIKE), vocab, backend="pushdown_trie", lexer="any", shared=False).start()
        for _ in range(2)
    )
    for count, byte in enumerate(b"fn main() { a = b(c, 1) * 2; { return a; } }"):
        if count % 3 == 0 and count < 30:
            grown._machine.supply(status)
        assert mask_of(grown) == mask_of(plain)
        assert rooms_agree(grown._machine)
        grown.advance(byte)
        plain.advance(byte)


@pytest.mark.parametrize("tokenizer", ["llama3", "mistral-v1"])
def test_a_c_like_grammar_of_touching_terminals(tokenizer):
    """This wrote past the end of a table."""
    loaded = tokdfa.load_tokenizer(tokenizer)
    vocab = loaded.vocabulary
    found = []
    for options in ({}, {"partition": False}):
        compiled = tokdfa.compile(tokdfa.Grammar(C_LIKE), vocab, backend="pushdown_trie", lexer="any", **options)
        matcher = compiled.start()
        for byte in b"fn main() { if a < b { return c(1, d) + 2; } }":
            matcher.advance(vocab.trie.prefixes_of(bytes([byte]))[0])
            found.append(mask_of(matcher))
        assert rooms_agree(compiled.generation.machine)
    assert found[: len(found) // 2] == found[len(found) // 2 :]
