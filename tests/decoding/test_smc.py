"""Importance-weighted resampling: weights against the enumeration, and how many of each are drawn again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.models import (
    SPECIAL,
    WORDS,
    compile_words,
    masked_sequences,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding.adaptive_rejection import draw_by_adaptive_rejection
from tokdfa.decoding.smc import draw_by_smc, systematic_counts
from tokdfa.errors import OptionError

COMPILED = compile_words(WORDS)


def test_without_resampling_the_weights_are_importance_weights() -> None:
    model, context = skewed_model(), (SPECIAL,)
    target, masked = target_sequences(model, WORDS, context), masked_sequences(model, WORDS, context)
    draws = draw_by_smc(model, COMPILED, context, particles=80, threshold=0)
    for tokens, log_weight in zip(draws.sequences, draws.log_weights, strict=True):
        assert math.exp(log_weight) == pytest.approx(target[tokens] / masked[tokens])
    assert math.exp(draws.log_mass) == pytest.approx(np.exp(draws.log_weights).mean())


def test_resampling_makes_weights_equal() -> None:
    model = skewed_model()
    never = draw_by_smc(model, COMPILED, particles=200, threshold=0)
    often = draw_by_smc(model, COMPILED, particles=200, threshold=1)
    assert often.effective_sample_size > 1.5 * never.effective_sample_size


@settings(deadline=None, derandomize=True, max_examples=300)
@given(
    st.lists(st.sampled_from([0.0, 1e-12, 0.2, 1.0, 3.0]), min_size=1, max_size=30).filter(any),
    st.floats(0, 1, exclude_max=True),
)
def test_systematic_counts(weights: list[float], offset: float) -> None:
    size = len(weights)
    shares = np.array(weights) / sum(weights)
    counts = systematic_counts(shares, offset)
    assert counts.sum() == size
    assert np.all(np.abs(counts - shares * size) <= 1 + 1e-9)
    assert not counts[shares == 0].any()
    # the plain twin: walk along the sum, point by point
    borders = np.cumsum(shares) * size
    points = np.arange(size) + offset
    if np.abs(borders[:, None] - points[None, :]).min() > 1e-9:
        owners = [int(np.flatnonzero(borders > point)[0]) for point in points]
        assert counts.tolist() == [owners.count(index) for index in range(size)]


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_thresholds_out_of_range(threshold: float) -> None:
    for draw in (draw_by_smc, draw_by_adaptive_rejection):
        with pytest.raises(OptionError, match="threshold"):
            draw(skewed_model(), COMPILED, particles=2, threshold=threshold)


def test_systematic_counts_have_the_right_mean() -> None:
    shares = np.array([0.05, 0.4, 0.0, 0.25, 0.3])
    offsets = (np.arange(1000) + 0.5) / 1000
    mean = np.mean([systematic_counts(shares, offset) for offset in offsets], axis=0)
    assert mean == pytest.approx(shares * 5, abs=2e-3)
