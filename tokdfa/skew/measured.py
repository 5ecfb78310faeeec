"""A number estimated from samples, with its error; and whether two such numbers differ.

Words. The *influence* of a sample on a number is what the sample moves it by, times the number n of samples: for a
mean, the sample's distance from it. By the delta method the *standard error* is the root of the mean square influence
over n. Intervals are at 95 %: the value and 1.96 standard errors to each side; Wilson's for probabilities. Two numbers
are *paired* if their samples were drawn with the same random numbers: where these move both alike, which their
influences tell, the error of the difference is smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tokdfa.decoding.sampling import Floats

#: Standard errors to each side of a value in an interval of 95 %.
Z_95 = 1.959963984540054
#: Differences below this are rounding.
ROUNDING = 1e-9
#: With fewer effective samples an error says more about the samples drawn than about those that were not.
FEW_EFFECTIVE = 30


@dataclass(frozen=True, eq=False)
class Measured:
    """A number with its error. Immutable.

    `value`; `standard_error`: of sampling; `low`, `high`: the ends of an interval of 95 %, widened by what cut samples
    leave open; `is_cut`: whether it was; `influence`: float64, shape (n,), what each sample moves the value by, times
    n; `seed`: that of the random numbers, which pairs two estimates sample by sample; `effective`: how many samples
    carry it, (sum w)^2 / sum w^2 where they are weighted.
    """

    value: float
    standard_error: float
    low: float
    high: float
    is_cut: bool = False
    seed: int = 0
    influence: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    effective: float = np.inf


def differs(one: Measured, other: Measured) -> bool | None:
    """Whether two numbers differ by more than the error of their difference, at 95 %.

    False: they do not, and a difference must not be reported. Nor may it with None: sampling errors alone would say
    yes, but there are fewer than FEW_EFFECTIVE effective samples, or cut samples leave too much open. The interval of
    the difference is put together from both intervals (MOVER; Donner and Zou 2010), which need not be symmetric;
    estimates with the same seed are paired, sample by sample.
    """
    difference = one.value - other.value
    if not np.isfinite(difference) or abs(difference) <= ROUNDING:
        return False
    if difference < 0:
        return differs(other, one)
    paired = one.seed == other.seed and len(one.influence) == len(other.influence) > 0
    moments = (float(a.influence @ b.influence) for a, b in ((one, other), (one, one), (other, other)))
    product, first, second = moments if paired else (0.0, 1.0, 1.0)
    correlation = float(np.clip(product / np.sqrt(first * second), -1, 1)) if first > 0 and second > 0 else 0.0
    of_sampling = _margin(Z_95 * one.standard_error, Z_95 * other.standard_error, correlation)
    if difference > _margin(one.value - one.low, other.high - other.value, correlation):
        return True if min(one.effective, other.effective) >= FEW_EFFECTIVE else None
    return None if (one.is_cut or other.is_cut) and difference > of_sampling else False


def _margin(below: float, above: float, correlation: float) -> float:
    if np.isinf(below) or np.isinf(above):
        return float("inf")
    return float(np.sqrt(max(0.0, below**2 + above**2 - 2 * correlation * below * above)))


def standard_error(influence: Floats) -> float:
    """The standard error of a number. `influence`: float64, shape (n,), n at least 2."""
    return float(np.sqrt((influence**2).sum() / (len(influence) * (len(influence) - 1))))


def measured_ratio(numbers: Floats, weights: Floats, seed: int, limit: float) -> Measured:
    """The sum of `numbers` over the sum of `weights`, between 0 and `limit`. Both: float64, shape (n,), by sample."""
    value = float(numbers.sum() / weights.sum())
    influence = (numbers - value * weights) / weights.mean()
    error = standard_error(influence)
    low, high = max(0.0, value - Z_95 * error), min(limit, value + Z_95 * error)
    return Measured(value, error, low, high, False, seed, influence, float(len(numbers)))


def wilson_interval(p: float, count: float) -> tuple[float, float]:
    """Wilson's interval of 95 % for a probability seen as `p` in `count` trials, which need not be a whole number."""
    p, spread = min(max(p, 0.0), 1.0), Z_95**2 / count
    middle, half = p + spread / 2, Z_95 * np.sqrt(p * (1 - p) / count + spread / (4 * count))
    low, high = float((middle - half) / (1 + spread)), float((middle + half) / (1 + spread))
    return low if p > 0 else 0.0, high if p < 1 else 1.0  # where rounding may miss them
