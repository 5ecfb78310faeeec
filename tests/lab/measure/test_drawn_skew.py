"""The distance of a strategy that was only drawn from: against its known distribution, over many repetitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.lab.measure.drawn_skew import drawn_distance, expected_distance
from tokdfa.skew.distances import total_variation

IDEAL = np.array([0.5, 0.3, 0.15, 0.05])
FAR = np.array([0.1, 0.3, 0.2, 0.4])


def one_hot(drawn):
    return np.eye(len(IDEAL))[drawn]


def repeated(masked, runs, repetitions=400, seed=1):
    rng = np.random.default_rng(seed)
    return [drawn_distance(one_hot(rng.choice(4, runs, p=masked)), IDEAL) for _ in range(repetitions)]


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(1, 60), st.lists(st.integers(0, 20), min_size=1, max_size=5).filter(any))
def test_the_noise_floor_is_the_mean_over_all_outcomes(draws, weights):
    ideal = np.array(weights) / sum(weights)
    expected = sum(
        math.comb(draws, k) * p**k * (1 - p) ** (draws - k) * abs(k / draws - p) / 2
        for p in ideal.tolist()
        for k in range(draws + 1)
    )
    assert expected_distance(ideal, draws) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("runs", [10, 40])
def test_exact_draws_show_the_floor_and_a_cross_fitted_mean_of_0(runs):
    found = repeated(IDEAL, runs)
    floor = found[0].noise_floor
    assert floor == expected_distance(IDEAL, runs)
    plug_in, cross_fitted = (np.array([getattr(one, name) for one in found]) for name in ("plug_in", "cross_fitted"))
    for values, mean in ((plug_in, floor), (cross_fitted, 0.0)):
        assert abs(values.mean() - mean) < 3 * values.std() / np.sqrt(len(values))
    # an interval of 95 %, on the safe side
    errors = np.array([one.standard_error for one in found])
    assert np.mean(np.abs(cross_fitted) <= 1.96 * errors) >= 0.95


@pytest.mark.parametrize("masked", [FAR, 0.8 * IDEAL + 0.2 * FAR])
def test_the_two_estimates_have_the_truth_between_them(masked):
    truth = total_variation(IDEAL, masked)
    found = repeated(masked, 40)
    low, high = np.mean([one.cross_fitted for one in found]), np.mean([one.plug_in for one in found])
    assert low < truth < high + 1e-12
    covered = [
        one.cross_fitted - 1.96 * one.standard_error <= truth <= one.plug_in + 1.96 * one.standard_error
        for one in found
    ]
    assert np.mean(covered) >= 0.95
