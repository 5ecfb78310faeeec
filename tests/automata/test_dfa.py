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


def test_steps_runs_and_acceptance():
    dfa = a_then_anything()
    assert (dfa.state_count, dfa.class_count) == (2, 2)
    assert [dfa.step(0, ord("a")), dfa.step(0, ord("b")), dfa.step(1, 0), dfa.step(-1, ord("a"))] == [1, -1, 1, -1]
    assert [dfa.run(b""), dfa.run(b"ab\xff"), dfa.run(b"ba"), dfa.run(b"b", state=1), dfa.run(b"a", state=-1)] == [
        0,
        1,
        -1,
        1,
        -1,
    ]
    assert [dfa.accepts(word) for word in (b"", b"a", b"a\x00\xff", b"ba")] == [False, True, True, False]
    assert repr(dfa) == "Dfa(2 states, 2 byte classes, 1 accepting, start=0)"
    assert dfa.nbytes == 4 * 4 + 256 + 2


@settings(deadline=None, derandomize=True, max_examples=100)
@given(dfas(), st.binary(max_size=6), st.lists(st.sampled_from(list(ALPHABET)), max_size=8))
def test_runs_equal_the_plain_ones(dfa, anything, letters):
    twin = plain(dfa)
    for word in (anything, bytes(letters)):
        expected = twin.run(word)
        assert dfa.run(word) == (-1 if expected is None else expected)
        assert dfa.accepts(word) == twin.accepts(word)


@settings(deadline=None, derandomize=True, max_examples=50)
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


def test_read_only_arrays_are_shared_not_copied():
    dfa = a_then_anything()
    assert Dfa(dfa.transitions, dfa.byte_class, dfa.accepting, 1).transitions is dfa.transitions


def test_equality_is_identity():
    dfa = a_then_anything()
    assert dfa != a_then_anything()
    assert len({dfa, dfa, a_then_anything()}) == 2


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
        ({"transitions": [[-1, 2], [1, 1]]}, "state 0 leads by class 1 to 2; targets are -1 .* or a state from 0 to 1"),
        ({"transitions": [[-1, 1], [-2, 1]]}, "state 1 leads by class 0 to -2"),
        ({"transitions": [[0.5, 1], [1, 1]]}, "transitions holds float64, not int32"),
        ({"transitions": [[2**40, 1], [1, 1]]}, "transitions holds numbers that do not fit int32"),
        ({"transitions": [0, 1]}, "transitions has 1 dimensions, not 2"),
        (
            {"transitions": [[-1, 1, 0], [1, 1, 0]]},
            r"3 columns, so byte_class must use exactly the classes 0..2.*\[0, 1\]",
        ),
        ({"byte_class": np.zeros(256, int)}, "2 columns, so byte_class must use exactly"),
        ({"byte_class": np.zeros(255, int)}, r"byte_class has shape \(256,\), not \(255,\)"),
        ({"byte_class": two_classes().astype(int) * 300}, "byte_class holds numbers that do not fit uint8"),
        ({"accepting": np.array([True])}, r"2 states, but accepting has shape \(1,\)"),
        ({"accepting": np.array([0, 1])}, "accepting holds int64, not bool"),
        ({"start": 2}, "start 2 is not one of 2 states"),
        ({"start": -1}, "start -1 is not one of 2 states"),
        ({"start": 0.5}, "start is the number of a state, not 0.5"),
        ({"transitions": np.zeros((0, 2), int), "accepting": np.zeros(0, bool)}, "start 0 is not one of 0 states"),
    ],
)
def test_parts_that_do_not_fit_are_refused(change, message):
    Dfa(**GOOD)
    with pytest.raises(AutomatonError, match=message):
        Dfa(**{**GOOD, **change})


def test_a_table_by_bytes_has_256_columns():
    with pytest.raises(AutomatonError, match=r"shape \(states, 256\), not \(2, 255\)"):
        Dfa.from_table(np.zeros((2, 255), int), np.array([True, True]), 0)
