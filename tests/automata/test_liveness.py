from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.automata.strategies import ALPHABET, dfas, plain
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import coaccessible_states, distance_to_accept, is_empty, live_states, trim


@given(dfas())
def test_distances_and_live_states_equal_the_plain_ones(dfa):
    twin = plain(dfa)
    expected = twin.distance_to_accept()
    distances = distance_to_accept(dfa)
    assert distances.dtype == np.int32
    assert distances.tolist() == [expected.get(state, -1) for state in range(dfa.state_count)]
    assert set(np.flatnonzero(live_states(dfa)).tolist()) == twin.live()
    assert is_empty(dfa) == (not twin.live())


@given(dfas())
def test_trimming_keeps_the_language_and_the_live_states(dfa):
    trimmed = trim(dfa)
    assert plain(trimmed).language(ALPHABET, 4) == plain(dfa).language(ALPHABET, 4)
    assert trimmed.state_count == len(plain(dfa).live()) == live_states(trimmed).sum()


@given(dfas(least_states=1))
def test_trimming_numbers_breadth_first_by_ascending_bytes(dfa):
    trimmed = trim(dfa)
    met = [0] if trimmed.state_count else []
    for state in met:
        for target in trimmed.byte_table()[state].tolist():
            if target >= 0 and target not in met:
                met.append(target)
    assert met == list(range(trimmed.state_count))


@given(dfas())
def test_trimming_finds_the_coarsest_classes_and_settles(dfa):
    trimmed = trim(dfa)
    assert trimmed.class_count == max(len({column.tobytes() for column in np.array(trimmed.byte_table().T)}), 1)
    again = trim(trimmed)
    assert np.array_equal(again.transitions, trimmed.transitions)
    assert np.array_equal(again.byte_class, trimmed.byte_class)


def test_a_long_chain():
    length = 20_000
    table = np.arange(1, length + 1)[:, None].copy()
    table[-1] = -1
    accepting = np.zeros(length, bool)
    accepting[-1] = True
    chain = Dfa(table, np.zeros(256, int), accepting, 0)
    assert distance_to_accept(chain).tolist() == list(range(length - 1, -1, -1))
    assert trim(chain).state_count == length
    assert is_empty(Dfa(table, np.zeros(256, int), np.zeros(length, bool), 0))


graphs = st.integers(1, 12).flatmap(
    lambda states: st.tuples(
        st.lists(st.lists(st.integers(0, states - 1), max_size=4), min_size=states, max_size=states),
        st.lists(st.booleans(), min_size=states, max_size=states),
    )
)


@settings(max_examples=300)
@given(graphs)
def test_coaccessible_states_are_those_that_reach_acceptance(graph: tuple[list[list[int]], list[bool]]) -> None:
    rows, accepting = graph
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    targets = np.array([target for row in rows for target in row], dtype=np.int32)
    expected = set()
    for state in range(len(rows)):
        reached, agenda = {state}, [state]
        while agenda:
            for target in rows[agenda.pop()]:
                if target not in reached:
                    reached.add(target)
                    agenda.append(target)
        if any(accepting[other] for other in reached):
            expected.add(state)
    live = coaccessible_states(offsets, targets, np.array(accepting))
    assert set(np.flatnonzero(live).tolist()) == expected
