"""Explicit and random distributions: what is looked up, what is refused, and that drawing is uniform and repeatable."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import ModelError, OptionError
from tokdfa.models.table import TableModel, random_table
from tokdfa.vocabulary.vocabulary import Vocabulary

#: Two letters, two end tokens, a special token, one of padding.
VOCABULARY = Vocabulary([b"a", b"", b"b", b""], [1, 3], {4: "<begin>"}, size=6)
POSSIBLE = [0, 1, 2, 3]
FIRST = [0.5, 0.125, 0.25, 0.125, 0, 0]


def test_a_mapping() -> None:
    model = TableModel(VOCABULARY, {(): FIRST, (0,): np.eye(6, dtype=np.float32)[1]})
    rows = model.log_probabilities([[0], [], [0]])
    np.testing.assert_array_equal(np.exp(rows[0]), np.eye(6)[1])
    np.testing.assert_allclose(np.exp(rows[1]), FIRST, rtol=1e-15)
    assert np.isneginf(rows[1, 4:]).all()
    with pytest.raises(ModelError, match=r"table has no row for the prefix \[0, 2\]; it has 2 rows"):
        model.log_probabilities([[0, 2]])
    with pytest.raises(ModelError, match=r"no row for the prefix \[\.\.\. 3 tokens, 0, 0, 0, 0, 0, 0, 0, 0\]"):
        model.log_probabilities([[0] * 11])


def test_a_mapping_is_copied() -> None:
    row = np.array(FIRST)
    rows = {(): row}
    model = TableModel(VOCABULARY, rows)
    row[:] = 7
    rows.clear()
    model.log_probabilities([[]])[:] = 0
    np.testing.assert_allclose(np.exp(model.log_probabilities([[]])[0]), FIRST, rtol=1e-15)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, 0.5], r"a row has 6 probabilities, not the shape \(2,\)"),
        (np.ones((1, 6)) / 6, r"not the shape \(1, 6\)"),
        ([0.5, 0.7, -0.2, 0, 0, 0], "token 2 has -0.2; a row holds probabilities, not logarithms"),
        ([1, np.nan, 0, 0, 0, 0], "token 1 has nan"),
        ([1, "half", 0, 0, 0, 0], "the row holds no numbers"),
    ],
)
def test_rows_that_are_refused(row: object, message: str) -> None:
    with pytest.raises(ModelError, match=r"prefix \[0\]: .*" + message):
        TableModel(VOCABULARY, {(0,): row})  # type: ignore[dict-item]
    with pytest.raises(ModelError, match=r"prefix \[0\]: .*" + message):
        TableModel(VOCABULARY, lambda _: row).log_probabilities([[0]])  # type: ignore[arg-type,return-value]


def test_fingerprints() -> None:
    second = np.eye(6)[1]
    model = TableModel(VOCABULARY, {(): FIRST, (0,): second})
    assert model.fingerprint == TableModel(VOCABULARY, {(0,): second, (): np.array(FIRST)}).fingerprint
    assert len(model.fingerprint) == 32
    other = Vocabulary([b"a", b"", b"c", b""], [1, 3], {4: "<begin>"}, size=6)
    functions = [TableModel(VOCABULARY, lambda _: FIRST) for _ in range(2)]
    others = [
        TableModel(VOCABULARY, {(): FIRST}),
        TableModel(VOCABULARY, {(): second, (0,): FIRST}),
        TableModel(other, {(): FIRST, (0,): second}),
        *functions,
        TableModel(VOCABULARY, lambda _: FIRST, identity="first"),
        random_table(VOCABULARY, 1),
        random_table(VOCABULARY, 2),
        random_table(VOCABULARY, 1, 0.5),
    ]
    assert len({each.fingerprint for each in [model, *others]}) == len(others) + 1
    assert functions[0].fingerprint == functions[0].fingerprint
    assert others[5].fingerprint == TableModel(VOCABULARY, lambda _: FIRST, identity="first").fingerprint
    assert random_table(VOCABULARY, 1).fingerprint == random_table(VOCABULARY, 1, 1).fingerprint


@settings(max_examples=80)
@given(st.integers(-5, 10**12), st.sampled_from([1e-3, 0.05, 1, 3.5, 1e6]), st.lists(st.sampled_from(POSSIBLE)))
def test_random_rows(seed: int, concentration: float, prefix: list[int]) -> None:
    model = random_table(VOCABULARY, seed, concentration)
    row = np.exp(model.log_probabilities([prefix])[0])
    assert abs(row.sum() - 1) < 1e-12
    assert not row[4:].any()
    assert (row[POSSIBLE] > 0).all() or concentration < 1
    again = random_table(VOCABULARY, seed, concentration).log_probabilities([[0, 0, 1], prefix, []])
    np.testing.assert_array_equal(np.exp(again[1]), row)
    if concentration >= 0.05:  # below, a row is a single token to float64, and two rows may agree
        other_prefix = model.log_probabilities([[*prefix, 0]])[0]
        other_seed = random_table(VOCABULARY, seed + 1, concentration).log_probabilities([prefix])[0]
        assert not np.array_equal(np.exp(other_prefix), row)
        assert not np.array_equal(np.exp(other_seed), row)


def test_a_concentration_of_one_is_uniform_over_distributions() -> None:
    # Each of four probabilities is then Beta(1, 3): mean 1/4, variance 3/80, P(p > t) = (1 - t) ** 3.
    prefixes = [[number % 2 * 2] * (number // 2) for number in range(2000)]
    rows = np.exp(random_table(VOCABULARY, 5).log_probabilities(prefixes))[:, POSSIBLE]
    distinct = np.unique(rows, axis=0)
    assert len(distinct) == 1999  # the empty prefix occurs twice
    np.testing.assert_allclose(distinct.mean(axis=0), 1 / 4, atol=0.02)
    np.testing.assert_allclose(distinct.var(axis=0), 3 / 80, rtol=0.15)
    for level in (0.1, 0.4, 0.7):
        np.testing.assert_allclose((distinct > level).mean(axis=0), (1 - level) ** 3, atol=0.05)


@pytest.mark.parametrize("concentration", [0, -1, 1e-4, 1e7, float("inf"), float("nan")])
def test_concentrations_out_of_range(concentration: float) -> None:
    with pytest.raises(OptionError, match=r"from 0\.001 to 1e\+06, not"):
        random_table(VOCABULARY, 0, concentration)
