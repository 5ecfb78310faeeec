"""Automata one after another, against sets of items in Python; and what of `Sequences` may go wrong."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.automata.strategies import dfas
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.sequences import END, Sequences
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded

#: An item: number of an automaton, its state, and the continuation; None: the text is complete.
Item = tuple[int, int, int] | None
CONTINUATIONS = 4


def explored(
    automata: list[Dfa], begins: list[list[Item]], limit: int
) -> tuple[list[dict[int, int]], list[bool]] | None:
    """Rows in the order in which they are met, as sets."""

    def after(row: frozenset[Item], byte: int) -> frozenset[Item]:
        found = set[Item]()
        for item in row:
            if item is None:
                continue
            number, state, following = item
            target = automata[number].step(state, byte)
            if target >= 0 and automata[number].transitions[target].max() >= 0:
                found.add((number, target, following))
            if target >= 0 and automata[number].accepting[target]:
                found.update(begins[following])
        return frozenset(found)

    rows = {frozenset(begins[0]): 0} if begins[0] else {}
    table, agenda = [], deque(rows)
    while agenda:
        row, targets = agenda.popleft(), {}
        for byte in range(256):
            if following := after(row, byte):
                if following not in rows:
                    rows[following] = len(rows)
                    agenda.append(following)
                targets[byte] = rows[following]
        if len(rows) > limit:
            return None
        table.append(targets)
    return table, [None in row for row in rows]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Dfa], list[list[Item]]]:
    automata = draw(st.lists(dfas().filter(lambda dfa: dfa.state_count > 0), min_size=1, max_size=3))
    states = [(number, state) for number, dfa in enumerate(automata) for state in range(dfa.state_count)]
    item = st.none() | st.tuples(st.sampled_from(states), st.integers(0, CONTINUATIONS - 1)).map(
        lambda given: (*given[0], given[1])
    )
    begins = draw(st.lists(st.lists(item, max_size=3), min_size=CONTINUATIONS, max_size=CONTINUATIONS))
    return automata, begins


@given(cases(), st.integers(0, 40))
def test_rows_are_those_of_sets(case: tuple[list[Dfa], list[list[Item]]], limit: int) -> None:
    automata, begins = case
    bases: dict[int, int] = {}

    def begin(number: int) -> list[int]:
        """Automata are added when they are first met."""
        found = []
        for item in begins[number]:
            if item is not None and item[0] not in bases:
                dfa = automata[item[0]]
                bases[item[0]] = sequences.add(dfa.transitions, dfa.byte_class, dfa.accepting)
            found.append(END if item is None else sequences.item(item[2], bases[item[0]] + item[1]))
        return found

    sequences = Sequences(begin)
    expected = explored(automata, begins, limit)
    found = sequences.explore(begin(0), limit)
    if expected is None or found is None:
        assert expected is found
        return
    table, complete = found
    assert complete.tolist() == expected[1]
    assert [{byte: int(row[byte]) for byte in np.flatnonzero(row >= 0)} for row in table] == expected[0]


def abc() -> Dfa:
    """One of the letters a to c."""
    table = np.full((2, 256), -1)
    table[0, [97, 98, 99]] = 1
    return Dfa.from_table(table, np.array([False, True]), 0)


def test_what_begin_raises_ends_the_exploration_and_it_may_be_begun_again() -> None:
    left = [LimitExceeded("no more", limit="max_states", value=1)]

    def begin(number: int) -> list[int]:
        if left:
            raise left.pop()
        return [END]

    sequences, dfa = Sequences(begin), abc()
    items = [sequences.item(7, sequences.add(dfa.transitions, dfa.byte_class, dfa.accepting))]
    with pytest.raises(LimitExceeded, match="no more"):
        sequences.explore(items, 9)
    found = sequences.explore(items, 9)
    assert found is not None
    table, complete = found
    assert complete.tolist() == [False, True]
    assert (np.flatnonzero(table[0] == 1).tolist(), set(table[1].tolist())) == ([97, 98, 99], {-1})


def test_rows_without_end_count_towards_the_budget() -> None:
    sequences, dfa = Sequences(lambda number: [sequences.item(number + 1, 0)]), abc()
    sequences.add(dfa.transitions, dfa.byte_class, dfa.accepting)
    for budget, reason in ((Budget(1e-3, 100), "compile_seconds"), (Budget(100, 1), "compile_mb")):
        with spending(budget, "a test"), pytest.raises(LimitExceeded, match=reason):
            sequences.explore([sequences.item(0, 0)], 10**9)


def test_wrong_arguments_are_refused() -> None:
    sequences, dfa = Sequences(lambda number: [9]), abc()
    base = sequences.add(dfa.transitions, dfa.byte_class, dfa.accepting)
    for continuation, state in ((-1, 0), (0, -1), (0, 2)):
        with pytest.raises(ValueError, match="no such item"):
            sequences.item(continuation, state)
    with pytest.raises(ValueError, match="no such item"):
        sequences.explore([9], 9)
    with pytest.raises(ValueError, match="no such item"):
        sequences.explore([sequences.item(0, base)], 9)  # of which `begin` says what follows
    for wrong in (dfa.transitions[:1], dfa.transitions[:, :1].copy(), dfa.transitions + 1):
        with pytest.raises(ValueError, match=r"belong together|leads to no state"):
            sequences.add(wrong, dfa.byte_class, dfa.accepting)
    with pytest.raises((IndexError, OverflowError)):
        sequences.accepts(2)
