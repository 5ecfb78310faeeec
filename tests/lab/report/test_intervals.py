"""Bootstrap intervals against what theory says, and rank correlations against sums by hand."""

import numpy as np
import pytest

from tokdfa.lab.report.intervals import MIN_CLUSTERS, Interval, bootstrap, rank_correlation


def test_intervals_of_a_mean_cover_it_as_often_as_they_say():
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        values = generator.exponential(size=60)
        found = bootstrap(lambda rows, values=values: values[rows].mean(), range(60), repeats=150)
        covered += found.low <= 1 <= found.high
        assert found.low <= found.value <= found.high
    assert 85 <= covered <= 99  # 95% less the percentile bootstrap's known shortfall on skewed samples


def test_the_width_is_that_of_the_standard_error():
    values = np.random.default_rng(2).normal(size=400)
    found = bootstrap(lambda rows: values[rows].mean(), range(400))
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.1)


def test_rows_of_a_cluster_stay_together():
    values = np.repeat(np.random.default_rng(3).normal(size=40), 10)
    apart = bootstrap(lambda rows: values[rows].mean(), range(400))
    together = bootstrap(lambda rows: values[rows].mean(), np.repeat(np.arange(40), 10).tolist())
    assert together.high - together.low == pytest.approx(np.sqrt(10) * (apart.high - apart.low), rel=0.2)
    assert together.value == apart.value == pytest.approx(values.mean())


def test_few_clusters_have_no_interval():
    found = bootstrap(lambda rows: float(rows.sum()), ["a"] * 5 + [*range(MIN_CLUSTERS - 2)])
    assert np.isnan(found.low)
    assert np.isnan(found.high)
    assert found.sign == 0
    assert found.describe() == "36.0"
    assert not np.isnan(bootstrap(lambda rows: float(rows.sum()), range(MIN_CLUSTERS)).low)


def test_a_sign_is_told_only_where_the_interval_leaves_out_zero():
    assert [Interval(1, low, high).sign for low, high in ((0.5, 2), (-0.5, 2), (-2, -0.1), (0, 1))] == [1, 0, -1, 0]
    assert Interval(0.5, 0.25, 1).describe() == "0.500 (95% interval 0.250 to 1.00)"


def test_rank_correlations():
    rising = np.arange(10.0)
    assert rank_correlation(rising, np.exp(rising)) == pytest.approx(1)
    assert rank_correlation(rising, -(rising**3)) == pytest.approx(-1)
    assert rank_correlation(rising, np.ones(10)) == 0
    # ranks 1, 2.5, 2.5, 4 and 2, 1, 3, 4, less their mean of 2.5: 3 / sqrt(4.5 * 5)
    assert rank_correlation(np.array([1.0, 5, 5, 7]), np.array([20.0, 10, 30, 40])) == pytest.approx(
        (0.75 + 0 + 0 + 2.25) / np.sqrt(4.5 * 5)
    )
