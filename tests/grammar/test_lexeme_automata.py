"""Chains of byte sets and parts of automata, against their definitions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.automata.moves import part_from
from tokdfa.grammar.lexeme_automata import read_chain
from tokdfa.regex.expression import ExpressionStore


@given(st.data())
def test_a_part_moves_as_the_whole_does(data) -> None:
    states, classes = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    row = st.lists(st.integers(-1, states - 1), min_size=classes, max_size=classes)
    table = np.array(data.draw(st.lists(row, min_size=states, max_size=states)), dtype=np.int32)
    start = data.draw(st.integers(0, states - 1))
    rows, order = part_from(table, start)
    expected = [start]  # breadth-first
    for state in expected:
        expected += [
            target for target in dict.fromkeys(table[state].tolist()) if target >= 0 and target not in expected
        ]
    assert order.tolist() == expected
    for state, moves in zip(expected, rows.tolist(), strict=True):
        assert [expected[target] if target >= 0 else -1 for target in moves] == table[state].tolist()


@given(st.binary(max_size=12), st.integers(-2, 14))
def test_literals_are_chains_of_their_bytes(text: bytes, longest: int) -> None:
    store = ExpressionStore()
    chain = read_chain(store, store.literal(text), longest)
    if not text or len(text) > longest:
        assert chain is None
    else:
        assert chain is not None
        assert chain.tolist() == [store.literal(bytes([byte])) for byte in text]


def test_what_is_no_chain() -> None:
    store = ExpressionStore()
    one, other = store.literal(b"ab"), store.literal(b"xyz")
    for expression in (store.union([one, other]), store.concat(store.union([one, other]), one)):
        assert read_chain(store, expression, 100) is None
