"""What may be told of two runs: bootstrap intervals of ratios, their chance, and many comparisons at once.

The *ratio of medians* is the median after over the median before. Its 95% interval is a percentile bootstrap's (Efron
1979): samples are drawn again, both runs' samples of one place together, since a hard mask is hard in both runs and
says nothing of a change. Over cases the statistic is the median of their ratios, and cases are drawn. Draws are seeded,
so equal data give equal intervals.

The *chance* of a ratio is the probability of one at least as far from 1 if nothing had changed: the logarithm over its
bootstrap standard error, read as Student's t with one degree of freedom less than there are samples, which matters
where there are few. Among hundreds of comparisons some are far from 1 by chance, so `discoveries` tells those only that
pass the procedure of Benjamini and Hochberg (1995): of what is told, a share of `FALSE_SHARE` may be chance, at most,
in the long run.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.95
#: Fewer samples or cases than this give no interval: it would be too narrow.
FEWEST = 6
#: Of the changes that are told, this share may be chance.
FALSE_SHARE = 0.05
#: Of the normal distribution: so many standard deviations to either side hold `LEVEL`.
NORMAL_QUANTILE = NormalDist().inv_cdf((1 + LEVEL) / 2)
#: A sample is drawn so often; of many numbers less often, but so many in all; so many are held at once.
_REPEATS, _FEWEST_REPEATS, _DRAWN, _HELD = 1000, 200, 100_000, 1_000_000


class Interval(NamedTuple):
    """A ratio with the ends of its interval; NaN at both where there are too few samples."""

    value: float
    low: float
    high: float


class Estimate(NamedTuple):
    """A ratio with its interval, the chance that it is 1 (NaN without an interval), and of how many samples it is.

    `error`: the standard error of its logarithm.
    """

    interval: Interval
    chance: float
    size: int
    error: float

    def corrected(self, shift: float, spread: float) -> Estimate:
        """The ratio less a shift that is known up to a standard deviation `spread`, both as logarithms.

        Interval and chance get wider by the spread.
        """
        value, low, high = (math.log(end) for end in self.interval)
        down, up = (math.hypot(value - end, NORMAL_QUANTILE * spread) for end in (low, high))
        ends = (value - shift, value - shift - down, value - shift + up)
        error = math.hypot(self.error, spread)
        return Estimate(Interval(*map(math.exp, ends)), chance(value - shift, error, self.size), self.size, error)


def ratio_of_medians(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> Estimate:
    """median(after) / median(before) of positive samples, paired by their order."""
    return _estimate(
        lambda old, new, axis=-1: np.log(np.median(new, axis=axis) / np.median(old, axis=axis)), before, after
    )


def median_ratio(logs: npt.NDArray[np.float64]) -> Estimate:
    """The median of ratios whose logarithms are given, one a case."""
    return _estimate(np.median, logs)


def _estimate(statistic: Callable[..., Any], *samples: npt.NDArray[np.float64]) -> Estimate:
    """The estimate of a ratio whose logarithm a statistic gives. Cost: some 100,000 numbers drawn, or more of many."""
    from scipy.stats import bootstrap

    value, count = float(statistic(*samples)), len(samples[0])
    if count < FEWEST:
        return Estimate(Interval(math.exp(value), math.nan, math.nan), math.nan, count, math.nan)
    found = bootstrap(
        samples,
        statistic,
        paired=len(samples) > 1,
        vectorized=True,
        confidence_level=LEVEL,
        method="percentile",
        n_resamples=max(_FEWEST_REPEATS, min(_REPEATS, _DRAWN // count)),
        batch=max(1, _HELD // count),
        rng=np.random.default_rng(0),
    )
    error = float(found.standard_error) * math.sqrt(count / (count - 1))
    ends = (math.exp(float(end)) for end in found.confidence_interval)
    return Estimate(Interval(math.exp(value), *ends), chance(value, error, count), count, error)


def chance(value: float, error: float, count: int) -> float:
    """How probable a mean of `count` numbers is at least this far from 0 on either side, if its true value is 0.

    `error` is its standard error; NaN where that is.
    """
    from scipy.stats import t

    if value == 0 and not math.isnan(error):
        return 1.0
    return float(2 * t.sf(math.inf if error == 0 else abs(value) / error, count - 1))


def discoveries(chances: Sequence[float], share: float = FALSE_SHARE) -> list[bool]:
    """Which of many comparisons are told (Benjamini and Hochberg 1995); NaN is never told, nor counted."""
    from scipy.stats import false_discovery_control

    values = np.array(chances, dtype=np.float64)
    known = ~np.isnan(values)
    if known.any():
        values[known] = false_discovery_control(values[known])
    return [bool(value <= share) for value in values]
