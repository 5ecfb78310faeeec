from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.automata.strategies import ALPHABET, dfas, plain
from tokdfa.automata.dfa import Dfa
from tokdfa.errors import AutomatonError


def two_classes() -> np.ndarray:
    byte_class = np.zeros(256, dtype=np.uint8)
    byte_class[ord("a")] = 1
    return byte_class


def a_then_anything() -> Dfa:
    return Dfa(np.array([[-1, 1], [1, 1]], np.int32), two_classes(), np.array([False, True]), 0)


@given(dfas(), st.binary(max_size=6), st.lists(st.sampled_from(list(ALPHABET)), max_size=8))
def test_runs_equal_the_plain_ones(dfa, anything, letters):
    twin = plain(dfa)
    for word in (anything, bytes(letters)):
        expected = twin.run(word)
        assert dfa.run(word) == (-1 if expected is None else expected)
        assert dfa.run(word, state=-1) == -1
        assert dfa.accepts(word) == twin.accepts(word)


@settings(max_examples=50)
@given(dfas())
def test_a_table_by_bytes_builds_the_same_automaton(dfa):
    table = dfa.byte_table()
    assert table.shape == (dfa.state_count, 256)
    again = Dfa.from_table(table, dfa.accepting, dfa.start)
    assert np.array_equal(again.byte_table(), table)
    assert again.class_count == len({column.tobytes() for column in np.ascontiguousarray(table.T)})


def test_arrays_are_frozen_and_the_givers_are_not():
    table, accepting = np.array([[0, 0]], np.int32), np.array([True])
    dfa = Dfa(table, two_classes(), accepting, 0)
    table[0, 0], accepting[0] = -1, False
    assert dfa.run(b"b") == 0
    assert dfa.accepts(b"")
    for array in (dfa.transitions, dfa.byte_class, dfa.accepting):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        dfa.start = 1


def test_pickles_and_stays_frozen():
    again = pickle.loads(pickle.dumps(a_then_anything()))
    assert np.array_equal(again.transitions, a_then_anything().transitions)
    assert again.accepts(b"ax")
    assert not again.transitions.flags.writeable


def test_the_empty_automaton():
    dfa = Dfa.empty()
    assert (dfa.state_count, dfa.start, dfa.run(b""), dfa.run(b"a"), dfa.accepts(b"")) == (0, -1, -1, -1, False)
    assert dfa.byte_table().shape == (0, 256)


GOOD = {"transitions": [[-1, 1], [1, 1]], "byte_class": two_classes(), "accepting": np.array([False, True]), "start": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"transitions": [[-1, 2], [1, 1]]}, "state 0"),
        ({"transitions": [[-1, 1], [-2, 1]]}, "state 1"),
        ({"transitions": [[0.5, 1], [1, 1]]}, "transitions"),
        ({"transitions": [[2**40, 1], [1, 1]]}, "transitions"),
        ({"transitions": [0, 1]}, "transitions"),
        ({"transitions": [[-1, 1, 0], [1, 1, 0]]}, "byte_class"),
        ({"byte_class": np.zeros(256, int)}, "byte_class"),
        ({"byte_class": np.zeros(255, int)}, "byte_class"),
        ({"byte_class": two_classes().astype(int) * 300}, "byte_class"),
        ({"accepting": np.array([True])}, "accepting"),
        ({"accepting": np.array([0, 1])}, "accepting"),
        ({"start": 2}, "start"),
        ({"start": -1}, "start"),
        ({"start": 0.5}, "start"),
        ({"transitions": np.zeros((0, 2), int), "accepting": np.zeros(0, bool)}, "start"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    Dfa(**GOOD)
    with pytest.raises(AutomatonError, match=message):
        Dfa(**{**GOOD, **change})
