"""What interning rows by content is to bring: lists in few rows, and no row made twice."""

from __future__ import annotations

import pytest

from tests.grammar.lexed_cfgs import accepts, make_cfg, run
from tokdfa.backends.earley_trie.machine import Machine

OPEN, CLOSE = r"\(", r"\)"


LISTS = {
    "left": {"s": [("s", "a"), ("a",)]},
    "right": {"s": [("a", "s"), ("a",)]},
    "right, empty": {"s": [("a", "s"), ()]},
    "right, two rules": {"s": [("a", "t")], "t": [("s",), ()]},
    "right, through units": {"s": [("t",)], "t": [("u",)], "u": [("a", "s"), ("a",)]},
    "right, two ways": {"s": [("t",), ("u",)], "t": [("v",)], "u": [("v",)], "v": [("a", "s"), ("a",)]},
    "hidden left": {"s": [("e", "s", "a"), ("a",)], "e": [()]},
    "hidden left, perhaps": {"s": [("e", "s", "a"), ("a",)], "e": [(), ("b",)]},
    "unit cycle": {"s": [("t",), ("a", "s"), ("a",)], "t": [("s",)]},
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_run_in_few_rows(name):
    machine = Machine(make_cfg(("a", "b"), LISTS[name]))
    assert accepts(machine, b"a" * 12)
    rows = machine.rows.row_count
    assert rows <= 4
    assert accepts(machine, b"a" * 2000)
    assert machine.rows.row_count == rows


@pytest.mark.parametrize("separated", [{"s": [("s", "b", "a"), ("a",)]}, {"s": [("a", "b", "s"), ("a",)]}])
def test_separated_lists_come_back(separated):
    machine = Machine(make_cfg(("a", "b"), separated))
    assert accepts(machine, b"ababa")
    rows = machine.rows.row_count
    assert accepts(machine, b"ab" * 1000 + b"a")
    assert not accepts(machine, b"ab" * 1000)
    assert machine.rows.row_count == rows <= 5


def test_deep_nesting():
    """Rows grow with the depth, as they must, and are found again on the way back and at the second time."""
    machine = Machine(make_cfg((OPEN, CLOSE), {"s": [(OPEN, "s", CLOSE), ()]}))
    depth = 10_000
    assert accepts(machine, b"(" * depth + b")" * depth)
    rows = machine.rows.row_count
    assert rows == 2 * depth + 1
    assert accepts(machine, b"(" * depth + b")" * depth)
    assert not accepts(machine, b"(" * depth + b")" * (depth - 1))
    assert run(machine, machine.start, b"(" * 9 + b")" * 10) == -1
    assert machine.rows.row_count == rows


@pytest.mark.parametrize(
    "rules",
    [
        {"s": [("s", "s"), ("a",)]},
        {"s": [("s", "s", "s"), ("s", "s"), ("a",), ()]},
        {"s": [("t", "t"), ("s", "t"), ()], "t": [("s", "s"), ("a",), ()]},
    ],
)
def test_texts_with_exponentially_many_parses(rules):
    """At most a row for each lexeme, of at most so many items as there are dots and rows before."""
    machine = Machine(make_cfg(("a", "b"), rules))
    assert accepts(machine, b"a" * 120)
    assert run(machine, machine.start, b"a" * 120 + b"b") == -1
    assert machine.rows.row_count <= 122
    dots = len(machine.rows.right_sides)
    assert max(len(machine.rows.core_of(row)) for row in range(machine.rows.row_count)) <= dots * 122
