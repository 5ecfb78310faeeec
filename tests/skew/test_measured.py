"""Numbers with errors, made by hand, and whether they differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tokdfa.skew.measured import FEW_EFFECTIVE, Measured, differs


def test_pairs_with_equal_random_numbers_are_compared_sample_by_sample() -> None:
    """The error of a difference is smaller where the samples go together."""
    influence = np.random.default_rng(0).normal(size=100)
    one = Measured(0.5, 0.1, 0.304, 0.696, False, 1, influence)
    other = Measured(0.4, 0.1, 0.204, 0.596, False, 1, influence + 0.01 * influence[::-1])
    assert differs(one, other) is True
    assert differs(other, one) is True
    assert differs(one, Measured(0.4, 0.1, 0.204, 0.596, False, 2, influence)) is False
    assert differs(one, Measured(0.4, 0.1, 0.204, 0.596, False, 1, -influence)) is False


def test_cut_samples_leave_a_difference_open() -> None:
    exact = Measured(0.9, 0.01, 0.88, 0.92)
    cut = Measured(0.5, 0.01, 0.3, 0.95, is_cut=True)
    assert differs(exact, cut) is None
    assert differs(exact, Measured(0.5, 0.01, 0.48, 0.52)) is True
    assert differs(exact, Measured(0.5, 0.4, 0.0, 1.0, is_cut=True)) is False
    assert differs(Measured(np.inf, 0, 0, np.inf), exact) is False


def test_few_effective_samples_prove_nothing() -> None:
    """An error that is small by luck does not count."""
    far = Measured(0.01, 0.001, 0.008, 0.012, effective=1e6)
    poor = Measured(0.9, 0.001, 0.898, 0.902, effective=FEW_EFFECTIVE - 1)
    assert differs(far, poor) is None
    assert differs(far, replace(poor, effective=FEW_EFFECTIVE)) is True
