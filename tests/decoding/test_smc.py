"""Importance-weighted resampling: weights against the enumeration, the mass without bias, the target in the limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding.models import (
    APART,
    SPECIAL,
    WORDS,
    DeadEnd,
    by_text,
    compile_words,
    distance,
    masked_sequences,
    skewed_model,
    target_sequences,
)
from tokdfa.decoding.smc import draw_by_smc, systematic_counts
from tokdfa.errors import EmptyMask, ModelError, OptionError

if TYPE_CHECKING:
    from tokdfa.decoding.draws import Eos

COMPILED = compile_words(WORDS)


def test_without_resampling_the_weights_are_importance_weights() -> None:
    model, context = skewed_model(), (SPECIAL,)
    target, masked = target_sequences(model, WORDS, context), masked_sequences(model, WORDS, context)
    draws = draw_by_smc(model, COMPILED, context, particles=80, threshold=0)
    for tokens, log_weight in zip(draws.sequences, draws.log_weights, strict=True):
        assert math.exp(log_weight) == pytest.approx(target[tokens] / masked[tokens])
    assert math.exp(draws.log_mass) == pytest.approx(np.exp(draws.log_weights).mean())


@pytest.mark.parametrize("threshold", [0, 0.5, 1])
@pytest.mark.parametrize("eos", ["counted", "ignored"])
def test_the_mass_is_estimated_without_bias(threshold: float, eos: Eos) -> None:
    model = skewed_model(seed=9)
    words = WORDS if eos == "counted" else APART
    target = target_sequences(model, words, eos=eos)
    compiled = compile_words(words)
    masses, parts = [], []
    text = max(by_text(target), key=by_text(target).get)
    for seed in range(300):
        draws = draw_by_smc(model, compiled, particles=6, threshold=threshold, eos=eos, seed=seed)
        masses.append(math.exp(draws.log_mass))
        parts.append(sum(np.exp(draws.log_weights)[[spelled == text for spelled in draws.texts]]) / 6)
    # nearly standard normal: each beyond 4 with probability 6e-5
    for values, truth in ((masses, sum(target.values())), (parts, by_text(target)[text] * sum(target.values()))):
        assert abs(np.mean(values) - truth) < 4 * np.std(values) / math.sqrt(len(values))
    # not because the error is large
    assert np.std(masses) / math.sqrt(len(masses)) < 0.1 * sum(target.values())


def test_more_particles_come_nearer_to_the_target() -> None:
    model = skewed_model()
    truth = by_text(target_sequences(model, WORDS))
    local = distance(by_text(masked_sequences(model, WORDS)), truth)
    away = {
        particles: np.mean(
            [
                distance(draw_by_smc(model, COMPILED, particles=particles, seed=seed).text_probabilities(), truth)
                for seed in range(10)
            ]
        )
        for particles in (10, 1000)
    }
    assert away[1000] < 0.05 < local / 2
    assert away[1000] < away[10] / 3


def test_costs_are_what_the_model_saw() -> None:
    model = skewed_model()
    draws = draw_by_smc(model, COMPILED, particles=50)
    assert (draws.model_rows, draws.model_calls) == (model.counts.rows, model.counts.batches)
    assert draws.model_rows < draws.masks
    assert draws.single_token_checks == 0
    assert draws.drafts == len(draws.sequences) == 50
    assert draws.sequences == draw_by_smc(model, COMPILED, particles=50).sequences
    assert draws.sequences != draw_by_smc(model, COMPILED, particles=50, seed=1).sequences


def test_what_is_too_long_has_no_weight() -> None:
    model = skewed_model()
    draws = draw_by_smc(model, COMPILED, particles=4000, max_tokens=3, threshold=0)
    target = {tokens: p for tokens, p in target_sequences(model, WORDS).items() if len(tokens) <= 2}
    assert math.exp(draws.log_mass) == pytest.approx(sum(target.values()), rel=0.1)
    assert {tokens for tokens, w in zip(draws.sequences, draws.log_weights, strict=True) if w > -np.inf} <= set(target)
    assert any(len(tokens) == 3 for tokens in draws.sequences)


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


def test_systematic_counts_have_the_right_mean() -> None:
    shares = np.array([0.05, 0.4, 0.0, 0.25, 0.3])
    offsets = (np.arange(1000) + 0.5) / 1000
    mean = np.mean([systematic_counts(shares, offset) for offset in offsets], axis=0)
    assert mean == pytest.approx(shares * 5, abs=2e-3)


def test_errors() -> None:
    model = skewed_model()
    for threshold in (-0.1, 1.1, float("nan")):
        with pytest.raises(OptionError, match="threshold"):
            draw_by_smc(model, COMPILED, particles=2, threshold=threshold)
    with pytest.raises(OptionError, match="particles"):
        draw_by_smc(model, COMPILED, particles=0)
    with pytest.raises(OptionError, match="may also go on"):
        draw_by_smc(model, COMPILED, particles=20, eos="ignored")
    with pytest.raises(EmptyMask, match="dead end"):
        draw_by_smc(model, DeadEnd(COMPILED), particles=2)
    model.context_limit = 2
    with pytest.raises(ModelError, match="longer than the 2"):
        draw_by_smc(model, COMPILED, (SPECIAL, SPECIAL), particles=2)
