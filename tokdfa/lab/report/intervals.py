"""How sure a number of a report is: 95% intervals by resampling, so that no difference is told that may be chance.

The bootstrap (Efron 1979), percentile form: the sample is drawn again from itself, with replacement, many times, and
the interval holds the middle 95% of what the statistic is then. What is drawn are *clusters*: rows that belong to one
text, say, stay together, since they are not independent of each other. Draws are seeded, so a report of the same data
is the same. Intervals of few clusters are too narrow, so below `MIN_CLUSTERS` there is none; all are blind to what no
cluster shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.lab.report.metrics import significant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LEVEL = 0.95
REPEATS = 1000
#: Fewer clusters than this give no interval.
MIN_CLUSTERS = 6


class Interval(NamedTuple):
    """A statistic of the sample, and its interval; NaN at both ends if there are too few clusters."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 if the whole interval is on that side of 0, else 0: a difference from 0 may be chance."""
        return int(self.low > 0) - int(self.high < 0)

    def describe(self, form: Callable[[float], str] = significant) -> str:
        """``0.12 (95% interval 0.10 to 0.14)``; numbers as `form` writes them."""
        if np.isnan(self.low):
            return form(self.value)
        return f"{form(self.value)} (95% interval {form(self.low)} to {form(self.high)})"


def bootstrap(
    statistic: Callable[[npt.NDArray[np.int64]], float], clusters: Sequence[object], repeats: int = REPEATS
) -> Interval:
    """The interval of ``statistic(rows)``, a function of row numbers (some of them several times).

    `clusters`: the cluster of each row. O(repeats) times the statistic.
    """
    members: dict[object, list[int]] = {}
    for row, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(row)
    rows = [np.array(found, dtype=np.int64) for found in members.values()]
    value = float(statistic(np.arange(len(clusters), dtype=np.int64)))
    if len(rows) < MIN_CLUSTERS:
        return Interval(value, np.nan, np.nan)
    generator = np.random.default_rng(0)
    drawn = np.empty(repeats)
    for turn in range(repeats):
        drawn[turn] = statistic(np.concatenate([rows[one] for one in generator.integers(len(rows), size=len(rows))]))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def rank_correlation(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Spearman's rank correlation, equal values sharing their mean rank; 0 if one side is constant. O(n log n)."""
    one, other = (_ranks(values) for values in (first, second))
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / scale if scale > 0 else 0.0


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean_rank: npt.NDArray[np.float64] = ends - (counts - 1) / 2
    return mean_rank[inverse]
