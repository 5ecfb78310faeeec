from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.automata.byte_classes import byte_classes, classes_of_sets, common_classes, merge_equal_columns
from tokdfa.errors import AutomatonError

seeds = st.integers(0, 2**32 - 1)


def check_coarsest(byte_class, representatives, same):
    """`same(a, b)` says whether two bytes may share a class; they must share one exactly then."""
    for a in range(256):
        b = int(representatives[byte_class[a]])
        assert b <= a
        assert same(a, b), f"bytes {a} and {b} share a class and differ"
    for index, a in enumerate(representatives.tolist()):
        for b in representatives[:index].tolist():
            assert not same(a, b), f"bytes {a} and {b} are alike but have different classes"
    assert byte_class.dtype == representatives.dtype == np.uint8
    assert (np.diff(representatives.astype(int)) > 0).all()


@settings(max_examples=40)
@given(seeds, st.integers(0, 4), st.integers(1, 3))
def test_columns(seed, rows, values):
    table = np.random.default_rng(seed).integers(-1, values, size=(rows, 256))
    check_coarsest(*byte_classes(table), lambda a, b: (table[:, a] == table[:, b]).all())


@settings(max_examples=40)
@given(seeds, st.integers(0, 12))
def test_sets(seed, count):
    sets = np.random.default_rng(seed).random((count, 256)) < 0.1
    check_coarsest(*classes_of_sets(sets), lambda a, b: (sets[:, a] == sets[:, b]).all())


@settings(max_examples=40)
@given(seeds, st.integers(1, 6), st.integers(1, 6))
def test_common_refinement(seed, first_count, second_count):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, first_count, 256).astype(np.uint8)
    second = rng.integers(0, second_count, 256).astype(np.uint8)
    check_coarsest(*common_classes(first, second), lambda a, b: first[a] == first[b] and second[a] == second[b])


@settings(max_examples=40)
@given(seeds, st.integers(1, 20))
def test_merging_columns_is_the_same_as_starting_from_bytes(seed, classes):
    rng = np.random.default_rng(seed)
    table = rng.integers(-1, 2, size=(3, classes))
    byte_class = rng.permutation(np.arange(256) % classes).astype(np.uint8)
    for found, expected in zip(merge_equal_columns(table, byte_class), byte_classes(table[:, byte_class]), strict=True):
        assert np.array_equal(found, expected)


def test_as_many_classes_as_bytes():
    byte_class, representatives = byte_classes(np.arange(256)[None])
    assert byte_class.tolist() == representatives.tolist() == list(range(256))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: byte_classes(np.zeros((2, 3), int)), "shape"),
        (lambda: byte_classes(np.zeros(256, int)), "shape"),
        (lambda: classes_of_sets(np.zeros((2, 256), int)), "booleans"),
        (lambda: classes_of_sets(np.zeros((2, 255), bool)), "booleans"),
    ],
)
def test_wrong_shapes_are_refused(call, message):
    with pytest.raises(AutomatonError, match=message):
        call()
