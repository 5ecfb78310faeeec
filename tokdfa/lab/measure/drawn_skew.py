r"""How far the answers of a strategy are from a known distribution, when only draws of the strategy are at hand.

A *run* of a strategy leads to one answer; its *shares* are the probabilities of the answers given what the run has
drawn (for weighted particles the weights; otherwise one answer has it all). The mean of the shares over R independent
runs is an unbiased estimate q' of the strategy's distribution q, and the total variation of q from the ideal p is
wanted, half the sum of |q - p|. Two estimates have it between them, in expectation:

- *plug-in*: that of q' from p. Too large on average, since the absolute value is convex: even exact draws from p show
  the *noise floor*, for R draws half the sum of E|X - Rp| / R with X binomial (De Moivre's closed form).
- *cross-fitted*: TV is the largest value of half the sum of s (q - p) over signs s. One half of the runs says which
  signs, the other half estimates the sum with them, and the other way round. For fixed signs that is unbiased and at
  most TV; so it is too small on average, by what wrong signs cost, and its mean is 0 if q is p. It may be negative.

The standard error is that of the cross-fitted value over runs, on the safe side: both halves are taken as fully
correlated, and each has two more values, the ends of the range that an answer may have (so Agresti and Coull 1998 treat
shares). Otherwise some runs with the same answer would look like certainty.
"""

from __future__ import annotations

from math import exp, floor, lgamma, log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.errors import OptionError

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

#: With fewer runs, five in each half, an error is anybody's guess.
LEAST_RUNS = 10


class DrawnDistance(NamedTuple):
    """The total variation from the ideal, by draws; see the module. All four are shares."""

    cross_fitted: float
    standard_error: float
    plug_in: float
    noise_floor: float


def drawn_distance(shares: Floats, ideal: Floats) -> DrawnDistance:
    """The distance of the strategy with these runs from `ideal`. O(R k).

    `shares`: float64, shape (R, k), each row adding up to 1, in the order of independent runs; `ideal`: float64, shape
    (k,). Raises OptionError for fewer than `LEAST_RUNS` runs.
    """
    runs = len(shares)
    if runs < LEAST_RUNS:
        raise OptionError(f"a distance with an error needs at least {LEAST_RUNS} runs, not {runs}")
    plug_in = float(np.abs(shares.mean(axis=0) - ideal).sum()) / 2
    halves = shares[::2], shares[1::2]
    values, variances = [], []
    for fitted, judged in (halves, halves[::-1]):
        signs = np.sign(fitted.mean(axis=0) - ideal)
        each = (judged - ideal) @ signs / 2
        values.append(float(each.mean()))
        ends = (np.array([signs.min(), signs.max()]) - ideal @ signs) / 2
        variances.append(float(np.append(each, ends).var(ddof=1)) / len(each))
    return DrawnDistance(
        float(np.mean(values)), float(np.sqrt(np.mean(variances))), plug_in, expected_distance(ideal, runs)
    )


def expected_distance(ideal: Floats, draws: int) -> float:
    """The mean total variation between `ideal` and the shares of so many exact draws from it. O(k).

    E|X - np| = 2 (m + 1) C(n, m + 1) p^(m+1) (1 - p)^(n - m) with m = floor(np), for X binomial (De Moivre 1730;
    Diaconis and Zabell 1991).
    """
    total = 0.0
    for p in ideal.tolist():
        if 0 < p < 1:
            m = floor(draws * p)
            log_choose = lgamma(draws + 1) - lgamma(m + 2) - lgamma(draws - m)
            total += 2 * exp(log(m + 1) + log_choose + (m + 1) * log(p) + (draws - m) * log(1 - p))
    return total / draws / 2
