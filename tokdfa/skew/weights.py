"""What weighted samples of the masked distribution say of the target: mass, divergences, events, all with errors.

For Q, P, Z, p and the weights w see `tokdfa.skew.estimate`. With the *ratio* ``r(s) = P(s) / Q(s) = w(s) / Z``,

    Z = E_Q[w],   D = E_Q[f(r)]   with E_Q[r] = 1,

and with f(r) the divergence D is: ``|r - 1| / 2`` total variation; ``r log r - r + 1`` KL(P || Q), here *forward*;
``-log r + r - 1`` KL(Q || P), *backward*; ``(r log(2r / (1+r)) + log(2 / (1+r))) / 2`` Jensen-Shannon. One sample gives
all of them.

Method. The mean of w is an unbiased estimate of Z. A divergence puts this mean in place of Z; the bias of first order,
``(-cov(r, r f') + var(r) E[r f' + r^2 f'' / 2]) / n``, is subtracted (for total variation without the second
derivative, which is a spike at 1). The influence of a sample on D (`tokdfa.skew.measured`) is
``f(r) - D - (r - 1) E[r f']``. The interval of Z is made in the logarithm. Those of events are Wilson's; under P, n is
replaced by the effective number of samples p (1 - p) / error^2. An event that no sample or every sample shows has no
error; then r <= 1 / Z bounds what a sample may have missed.

Cut samples (`tokdfa.skew.samples`). The weight of what a cut sample might become is between 0 and what it has reached.
Values count it as it stands: they are those of generation with this limit. Intervals are widened to cover every way of
going on (so KL(Q || P) has no upper end): they are about all sequences, long ones included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.decoding.sampling import Floats, log_total
from tokdfa.skew.measured import Z_95, Measured, standard_error, wilson_interval

if TYPE_CHECKING:
    from collections.abc import Callable

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class EventEstimate:
    """The probability of an event under Q (`masked`) and under P (`target`)."""

    masked: Measured
    target: Measured


class Divergence(NamedTuple):
    """A convex f with f(1) = f'(1) = 0: f(r), r f'(r) and r^2 f''(r) of log r (float64, finite); f(0); D's limit."""

    values: Callable[[Floats], Floats]
    slopes: Callable[[Floats], Floats]
    curvatures: Callable[[Floats], Floats]
    at_zero: float
    limit: float


def _js_part(log_r: Floats) -> Floats:
    """log(2r / (1 + r)), whatever the size of r."""
    return np.log(2) - np.logaddexp(0, -log_r)


TOTAL_VARIATION = Divergence(
    lambda log_r: np.abs(np.expm1(log_r)) / 2,
    lambda log_r: np.exp(log_r) * np.sign(log_r) / 2,
    np.zeros_like,
    0.5,
    1.0,
)
KL_FORWARD = Divergence(
    lambda log_r: np.exp(log_r) * log_r - np.expm1(log_r), lambda log_r: np.exp(log_r) * log_r, np.exp, 1.0, np.inf
)
KL_BACKWARD = Divergence(lambda log_r: np.expm1(log_r) - log_r, np.expm1, np.ones_like, np.inf, np.inf)
JENSEN_SHANNON = Divergence(
    lambda log_r: (np.exp(log_r) * _js_part(log_r) + _js_part(-log_r)) / 2,
    lambda log_r: np.exp(log_r) * _js_part(log_r) / 2,
    lambda log_r: np.exp(_js_part(log_r)) / 4,
    float(np.log(2)) / 2,
    float(np.log(2)),
)


class Weights:
    """The weights of n samples, and what is estimated from them. See the module's docstring for the formulas.

    `log_weights`: float64, shape (n,), natural logs; `complete`: bool, shape (n,), False for cut samples; `seed`: that
    of the samples. Each method is O(n).
    """

    def __init__(self, log_weights: Floats, complete: Bools, seed: int) -> None:
        self.log_weights, self.complete, self.seed = log_weights, complete, seed
        self.is_cut = not complete.all()
        self.count = len(log_weights)
        self.log_z = log_total(log_weights) - np.log(self.count)
        #: log Z if nothing that was cut ever became complete.
        self.log_z_low = log_total(log_weights[complete]) - np.log(self.count)
        self.log_ratios = log_weights - self.log_z
        self.ratios = np.exp(self.log_ratios)
        #: (sum w)^2 / sum w^2: how many samples carry the estimates.
        self.effective = float(self.ratios.sum() ** 2 / (self.ratios**2).sum())

    def _measured(self, influence: Floats, value: float, low: float, high: float) -> Measured:
        error = standard_error(influence)
        return Measured(value, error, low, high, self.is_cut, self.seed, influence, self.effective)

    def log_mass(self) -> Measured:
        """log Z."""
        influence = self.ratios - 1
        margin = Z_95 * standard_error(influence)
        return self._measured(influence, self.log_z, self.log_z_low - margin, min(self.log_z + margin, 0.0))

    def divergence(self, kind: Divergence) -> Measured:
        """D, which is between 0 and `kind.limit`."""
        values, slopes = kind.values(self.log_ratios), kind.slopes(self.log_ratios)
        deviation = self.ratios - 1
        curvature = float((slopes + kind.curvatures(self.log_ratios) / 2).mean())
        bias = (float((deviation**2).mean()) * curvature - float((deviation * slopes).mean())) / self.count
        influence = values - values.mean() - deviation * slopes.mean()
        value = float(np.clip(values.mean() - bias, 0, kind.limit))
        lower, upper = self._bounds(kind) if self.is_cut else (value, value)
        margin = Z_95 * standard_error(influence)
        return self._measured(influence, value, max(min(lower, value) - margin, 0), min(upper + margin, kind.limit))

    def _bounds(self, kind: Divergence) -> tuple[float, float]:
        """The least and the greatest divergence, sample by sample, whatever the cut samples become."""
        lowest = self.log_ratios
        highest = self.log_weights - self.log_z_low
        nearest = np.where(self.complete, np.clip(0, lowest, highest), np.minimum(0, highest))
        farthest = kind.values(np.where(self.complete, lowest, 0))
        farthest = np.maximum(kind.values(highest), np.where(self.complete, farthest, kind.at_zero))
        return float(kind.values(nearest).mean()), float(farthest.mean())

    def event(self, holds: Bools) -> EventEstimate:
        """The probability of an event; `holds`: bool, shape (n,), False for cut samples, of which it is not known."""
        cut = ~self.complete
        shown = holds.astype(np.float64)
        p = float(shown.mean())
        low, high = wilson_interval(p, self.count)[0], wilson_interval(p + float(cut.mean()), self.count)[1]
        masked = replace(self._measured(shown - p, p, low, high), effective=float(self.count))
        share = min(1.0, float((self.ratios * shown).mean()))
        influence = self.ratios * (shown - share)
        error = standard_error(influence)
        if 0 < share < 1 and error**2 > 0:
            effective = share * (1 - share) / error**2
            low = wilson_interval(share, effective)[0]
            high = wilson_interval(min(1.0, share + float((self.ratios * cut).mean())), effective)[1]
        else:  # what was never seen has a ratio of at most 1 / Z
            largest = float(np.exp(-self.log_mass().low))
            low, high = max(0.0, 1 - (1 - low) * largest), min(1.0, high * largest)
        return EventEstimate(masked, self._measured(influence, share, min(low, share), max(high, share)))
