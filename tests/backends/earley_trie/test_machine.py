"""Texts whose fate is known by hand, and chains of fallbacks; the definitions are in `test_grammar_engines`."""

from __future__ import annotations

import pytest

from tests.grammar.lexed_cfgs import accepts, make_cfg, run
from tokdfa.backends.earley_trie.machine import MAX_CHAIN, Machine
from tokdfa.errors import LimitExceeded


def chain_of(machine, situation):
    """The links of a situation, outmost first."""
    links = []
    while situation >= 0:
        *link, situation = machine.view(situation)
        links.append(tuple(link))
    return links


# Texts whose fate is known.

LISTED = make_cfg(("list|listen", "ed"), {"s": [("list|listen", "ed")]})
NUMBERS = make_cfg(
    (r"[0-9]+(\.[0-9]+)?", r"\.", "[a-z]+"),
    {"s": [("s", "t"), ("t",)], "t": [(r"[0-9]+(\.[0-9]+)?",), (r"\.",), ("[a-z]+",)]},
)
THREE = make_cfg(("aaa", "a+b", "x"), {"s": [("aaa",), ("a+b", "x")]})


@pytest.mark.parametrize(
    ("cfg", "text", "longest", "one_byte"),
    [
        (LISTED, b"listened", True, True),
        (LISTED, b"listed", True, False),  # "liste" may become "listen"; only the longest match goes back
        (LISTED, b"listend", False, False),
        (THREE, b"aaa", True, True),
        (THREE, b"aaabx", True, True),
        (THREE, b"aabx", True, True),
        (THREE, b"aaaa", False, False),
        (NUMBERS, b"1.5", True, True),
        (NUMBERS, b"1.x", True, False),
        (NUMBERS, b"1..5", True, False),
        (NUMBERS, b"1.5.x", True, True),
        (NUMBERS, b"1.5.2", True, True),
    ],
)
def test_where_a_lexeme_ends(cfg, text, longest, one_byte):
    assert accepts(Machine(cfg, longest=True), text) == longest
    assert accepts(Machine(cfg, longest=False), text) == one_byte


def test_equal_links_are_one():
    """Each a of (a|a+b)* may be a lexeme, or all of them the beginning of one: two rows, three links."""
    pattern = "a|a+b"
    machine = Machine(make_cfg((pattern,), {"s": [("s", pattern), (pattern,)]}))
    for size in (10, 100, 5000):
        assert accepts(machine, b"a" * size)
        assert accepts(machine, b"a" * size + b"b" + b"a" * size)
    assert len(chain_of(machine, run(machine, machine.start, b"a" * 5000))) == 3


def nested_runs():
    """A row for each a, so a link for each a."""
    return Machine(make_cfg(("a|a+b", "c"), {"s": [("a|a+b", "s", "c"), ("a|a+b", "c")]}))


def test_long_chains():
    machine, size = nested_runs(), 200
    assert accepts(machine, b"a" * size + b"c" * size)
    assert not accepts(machine, b"a" * size + b"c" * (size - 1))
    assert accepts(machine, b"a" * size + b"bc")
    assert len(chain_of(machine, run(machine, machine.start, b"a" * size))) == size


def test_too_long_chains():
    machine = nested_runs()
    with pytest.raises(LimitExceeded, match="cut into lexemes") as caught:
        run(machine, machine.start, b"a" * (MAX_CHAIN + 1))
    assert (caught.value.limit, caught.value.value) == ("max_chain", MAX_CHAIN)
    assert accepts(machine, b"a" * 20 + b"c" * 20)
