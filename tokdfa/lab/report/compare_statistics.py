"""What may be told of two runs: bootstrap intervals of ratios, their chance, and many comparisons at once.

The *ratio of medians* is the median after over the median before. Its interval is a bootstrap's (see
`tokdfa.lab.report.intervals`): samples are drawn again, both runs' samples of one place together, since a hard mask is
hard in both runs and says nothing of a change. Over cases the statistic is the median of their ratios, and cases are
drawn.

The *chance* of a ratio is the probability of one at least as far from 1 if nothing had changed: the logarithm over its
bootstrap standard error, read as Student's t with one degree of freedom less than there are samples, which matters
where there are few. Among hundreds of comparisons some are far from 1 by chance, so `discoveries` tells those only that
pass the procedure of Benjamini and Hochberg (1995): of what is told, a share of `FALSE_SHARE` may be chance, at most,
in the long run.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.lab.report.intervals import LEVEL, MIN_CLUSTERS, REPEATS, Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Of the changes that are told, this share may be chance.
FALSE_SHARE = 0.05
#: Of the normal distribution: so many standard deviations to either side hold `LEVEL`.
NORMAL_QUANTILE = NormalDist().inv_cdf((1 + LEVEL) / 2)
#: So many numbers are drawn of each run, and its sample at least so often; so many are held at once.
_DRAWN, _FEWEST, _CHUNK = 100_000, 200, 1_000_000


class Estimate(NamedTuple):
    """A ratio with its interval, the chance that it is 1, and of how many samples or cases it is.

    NaN for interval and chance if there are fewer than `MIN_CLUSTERS`.
    """

    interval: Interval
    chance: float
    size: int

    def corrected(self, shift: float, spread: float, error: float) -> Estimate:
        """The ratio less a shift that is known up to a standard deviation `spread`, both as logarithms.

        `error`: the standard error that the estimate came with. Interval and chance get wider by the spread.
        """
        value, low, high = (math.log(end) for end in self.interval)
        down, up = (math.hypot(value - end, NORMAL_QUANTILE * spread) for end in (low, high))
        ends = (value - shift, value - shift - down, value - shift + up)
        known = chance(value - shift, math.hypot(error, spread), self.size) if self.size >= MIN_CLUSTERS else math.nan
        return Estimate(Interval(*map(math.exp, ends)), known, self.size)


def ratio_of_medians(before: npt.NDArray[np.float64], after: npt.NDArray[np.float64]) -> tuple[Estimate, float]:
    """median(after) / median(before) of positive samples, paired by their order, and the log's standard error.

    O(numbers drawn): some 100,000 of each run, or 200 times as many as there are samples, if that is more.
    """
    value = math.log(float(np.median(after)) / float(np.median(before)))
    drawn = np.concatenate(
        [
            np.log(np.median(after[rows], axis=1)) - np.log(np.median(before[rows], axis=1))
            for rows in _draws(len(before))
        ]
        or [np.empty(0)]
    )
    return _estimate(value, drawn, len(before))


def median_ratio(logs: npt.NDArray[np.float64]) -> tuple[Estimate, float]:
    """The median of ratios whose logarithms are given, one a case, and the log's standard error."""
    drawn = np.concatenate([np.median(logs[rows], axis=1) for rows in _draws(len(logs))] or [np.empty(0)])
    return _estimate(float(np.median(logs)), drawn, len(logs))


def _draws(count: int) -> list[npt.NDArray[np.int64]]:
    """Rows to draw, up to `REPEATS` times, less often of many; none if there are too few.

    Seeded, so equal data give equal intervals.
    """
    if count < MIN_CLUSTERS:
        return []
    generator = np.random.default_rng(0)
    repeats, turns = max(_FEWEST, min(REPEATS, _DRAWN // count)), max(1, _CHUNK // count)
    sizes = [min(turns, repeats - start) for start in range(0, repeats, turns)]
    return [generator.integers(count, size=(size, count)) for size in sizes]


def _estimate(value: float, drawn: npt.NDArray[np.float64], count: int) -> tuple[Estimate, float]:
    if not len(drawn):
        return Estimate(Interval(math.exp(value), math.nan, math.nan), math.nan, count), math.nan
    low, high = np.exp(np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
    error = float(drawn.std()) * math.sqrt(count / (count - 1))
    interval = Interval(math.exp(value), float(low), float(high))
    return Estimate(interval, chance(value, error, count), count), error


def chance(value: float, error: float, count: int) -> float:
    """How probable a mean of `count` numbers is at least this far from 0 on either side, if its true value is 0.

    `error` is its standard error. Student's t by the normal distribution, as Wallace (1959) transforms it: within
    0.0005 of the tables for five degrees of freedom and more.
    """
    if value == 0:
        return 1.0
    if error == 0:
        return 0.0
    free, t = count - 1, abs(value) / error
    normal = (8 * free + 1) / (8 * free + 3) * math.sqrt(free * math.log1p(t * t / free))
    return math.erfc(normal / math.sqrt(2))


def discoveries(chances: Sequence[float], share: float = FALSE_SHARE) -> list[bool]:
    """Which of many comparisons are told (Benjamini and Hochberg 1995); NaN is never told, nor counted. O(n log n)."""
    known = sorted(value for value in chances if not math.isnan(value))
    passing = [value for rank, value in enumerate(known, 1) if value <= share * rank / len(known)]
    limit = passing[-1] if passing else -1.0
    return [value <= limit for value in chances]
