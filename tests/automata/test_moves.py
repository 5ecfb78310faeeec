"""Moves: blocks of equivalent states, and starts that are no states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.automata.strategies import dfas
from tokdfa.automata.minimize import minimize_from
from tokdfa.automata.moves import LivePart, blocks_of
from tokdfa.automata.pairs import explore_pairs

rows = st.integers(1, 10).flatmap(
    lambda states: st.tuples(
        st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, states - 1)), min_size=states, max_size=states),
        st.lists(st.booleans(), min_size=states, max_size=states),
    )
)


@given(rows)
def test_blocks_are_those_of_refining_until_nothing_changes(drawn: tuple[list[dict[int, int]], list[bool]]) -> None:
    """Every state leads by a letter to one that accepts, as in a trim automaton."""
    moves, accepting = [{**row, 11: len(drawn[0])} for row in drawn[0]] + [{}], [*drawn[1], True]
    block = [int(ends) for ends in accepting]
    while True:
        looks = [(block[s], frozenset((label, block[t]) for label, t in row.items())) for s, row in enumerate(moves)]
        names = list(dict.fromkeys(looks))
        finer = [names.index(look) for look in looks]
        if len(names) == len(set(block)):
            break
        block = finer
    sources, labels, targets = (
        np.array(column, dtype=np.int32)
        for column in zip(*((s, label, t) for s, row in enumerate(moves) for label, t in row.items()), strict=True)
    )
    assert blocks_of(sources, labels, targets, np.array(accepting)).tolist() == finer


@given(dfas(least_states=1))
def test_starts_share_a_minimal_automaton(dfa) -> None:
    starts = [-1, *range(dfa.state_count)]
    together, places = minimize_from(dfa, starts)
    assert places[0] == -1
    for start, place in zip(starts[1:], places[1:].tolist(), strict=True):
        for word in (b"", b"a", b"ab", b"\xff", b"z", b"aab"):
            there = dfa.run(word, start)
            accepted = there >= 0 and bool(dfa.accepting[there])
            reached = together.run(word, place)
            assert accepted == (reached >= 0 and bool(together.accepting[reached]))


def test_what_does_not_fit_is_refused() -> None:
    table, classes, accepting = np.zeros((2, 1), np.int32), np.zeros(256, np.uint8), np.ones(2, np.bool_)
    for start in (2, -2):
        with pytest.raises(IndexError):
            LivePart(table, classes, accepting, [start])
    with pytest.raises(ValueError, match="belong together"):
        LivePart(table, classes, accepting[:1], [0])
    with pytest.raises(ValueError, match="columns"):
        explore_pairs(table, np.zeros((2, 2), np.int32), (0, 0), (True, True), 10)
