"""Rows: interned by content, closed once, and how many a text makes: the numbers are part of what is promised."""

from __future__ import annotations

import pytest

from tests.backends.pushdown_trie import LEXERS, accepts, machine_of
from tests.grammar.lexed_cfgs import make_cfg

# What comes back: (grammar, first text, what is repeated, rows and stacks in the end).

LOOPS = [
    ('start: ("a" | "bc")*\n', b"abc", b"abc", 3, 3),
    ('start: start "+" "a" | "a"\n', b"a", b"+a", 3, 2),
    ('start: "a" "+" start | "a"\n', b"a", b"+a", 2, 1),
    ('start: x "a" | "a"\nx: y "b"\ny: start | x "c"\n', b"a", b"bcba", 4, 4),
    ('start: e start "a" | "b"\ne: | e e\n', b"b", b"a", 2, 2),
    ('start: "b" | e "a" start\ne: | e e\n', b"", b"a", 1, 1),
]


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize(("grammar", "first", "repeated", "rows", "stacks"), LOOPS)
def test_loops_run_in_a_constant_number_of_rows(grammar, first, repeated, rows, stacks, lexer):
    machine = machine_of(grammar, lexer)
    row = machine.run_text(first)
    made = set()
    for _ in range(1000):
        row = machine.run_text(repeated, row)
        assert row >= 0
        made.add(row)
    assert len(made) <= 3
    assert (machine.row_count, machine.stack_count) == (rows, stacks)


@pytest.mark.parametrize("lexer", LEXERS)
def test_nesting_takes_a_row_a_level(lexer):
    """And back through as many more; the second time nothing is made."""
    machine, depth = machine_of('start: "(" start ")" | "x"\n', lexer), 1000
    row = machine.run_text(b"(" * depth)
    assert (machine.row_count, machine.stack_count) == (depth + 1, depth)
    assert accepts(machine, b"x" + b")" * depth, row)
    assert (machine.row_count, machine.stack_count) == (2 * depth + 2, depth + 1)
    assert accepts(machine, b"(" * depth + b"x" + b")" * depth)
    assert machine.row_count == 2 * depth + 2


def links(machine, row):
    """The links of the chain of fallbacks that a row begins."""
    found = []
    while row >= 0:
        found.append(row)
        row = machine.row_kind(row)[1]
    return found


def test_equal_fallbacks_are_left_out():
    """(a|a+b)*: each a may be a lexeme, or all of them the beginning of one; the chain stays short, rows come back."""
    machine = machine_of(make_cfg(("a|a+b",), {"s": [("s", "a|a+b"), ("a|a+b",)]}), "longest")
    lengths, counts = set(), []
    for size in (10, 100, 5000):
        row = machine.run_text(b"a" * size)
        assert accepts(machine, b"a" * size)
        assert accepts(machine, b"a" * size + b"b" + b"a" * size)
        lengths.add(len(links(machine, row)))
        counts.append(machine.row_count)
    assert max(lengths) <= 3
    assert counts[0] == counts[-1] <= 8
