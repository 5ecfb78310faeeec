from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.automata.strategies import byte_set, dfas
from tokdfa.automata.algebra import minimize
from tokdfa.automata.graph import byte_set_label, to_dot, to_networkx, token_automaton_to_networkx, token_label
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa

DIGITS, LOWER = b"0123456789", b"abcdefghijklmnopqrstuvwxyz"


def flags(members: bytes) -> np.ndarray:
    return byte_set(members)[1]


def ends_in_abb() -> Dfa:
    return minimize(compile_dfa(Regex("[ab]*abb")))


@given(dfas(), st.booleans())
def test_edges_hold_exactly_the_transitions(dfa, by_class):
    graph = to_networkx(dfa, by_class=by_class)
    assert dict(graph.nodes(data=True)) == {
        state: {"start": state == dfa.start, "accepting": dfa.accepting[state]} for state in range(dfa.state_count)
    }
    held = sorted((source, byte, target) for source, target, data in graph.edges(data=True) for byte in data["bytes"])
    table = dfa.byte_table()
    expected = sorted((int(s), int(b), int(table[s, b])) for s, b in np.argwhere(table >= 0))
    assert held == expected
    if not by_class:
        assert graph.number_of_edges() == len({(source, target) for source, _, target in expected})


@pytest.mark.parametrize(
    ("members", "label"),
    [
        (b"a", "a"),
        (b"[", "["),
        (b"\n", r"\n"),
        (b" ", "␣"),
        (b"\x00", r"\x00"),
        (b"\xe2", r"\xe2"),
        (b"ab", "[ab]"),
        (DIGITS, "[0-9]"),
        (LOWER + DIGITS, "[a-z0-9]"),
        (LOWER + LOWER.upper() + DIGITS + b"_", "[a-zA-Z0-9_]"),
        (b"019", "[019]"),
        (b"\t\n\r ", r"[\t\n\r␣]"),
        (b"-]^\\", r"[\-\\-\^]"),
        (bytes(range(0x80, 0xC0)), r"[\x80-\xbf]"),
        (bytes(set(range(256)) - {ord('"')}), '[^"]'),
        (bytes(set(range(256)) - set(b"\\\n")), r"[^\n\\]"),
        (bytes(range(256)), "·"),
        (b"", "[]"),
    ],
)
def test_labels_of_byte_sets(members, label):
    assert byte_set_label(flags(members)) == label


@given(st.sets(st.integers(0, 255), min_size=1, max_size=255))
def test_labels_of_byte_sets_mean_what_they_say_to_re(members):
    label = byte_set_label(flags(bytes(members)))
    if len(members) == 1:
        assert label in {chr(min(members)), "␣"} or re.fullmatch(r"\\(t|n|r|x[0-9a-f]{2})", label)
        return
    pattern = re.compile(label.replace("␣", " ").encode())
    assert {byte for byte in range(256) if pattern.fullmatch(bytes([byte]))} == members


@pytest.mark.parametrize(
    ("token", "label"),
    [
        (b" hello", "␣hello"),
        ("a b\n", r"a␣b\n"),
        ("héé", "héé"),
        ("é".encode(), "é"),
        (b"\xe2\x80", r"\xe2\x80"),
        (b"a\xff", r"a\xff"),
        (1234, "1234"),
        ("\u200b", r"\u200b"),
        (b"\x1b[0m", r"\x1b[0m"),
        (b"", ""),
    ],
)
def test_labels_of_tokens(token, label):
    assert token_label(token) == label


def test_dot_text():
    graph = token_automaton_to_networkx([(0, 'say "hi"\\', 1)], accepting=[1])
    assert to_dot(graph).splitlines() == [
        "digraph automaton {",
        "  rankdir=LR;",
        "  node [shape=circle];",
        "  0;",
        "  start [shape=point];",
        "  start -> 0;",
        "  1 [shape=doublecircle];",
        r'  0 -> 1 [label="say␣\"hi\"\\"];',
        "}",
    ]
