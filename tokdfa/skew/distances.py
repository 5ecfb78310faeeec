"""How far two distributions over texts are from each other, in nats, with bounds where mass is unresolved.

For distributions p and q over the same texts, m = (p + q) / 2, and natural logarithms with 0 log 0 = 0:

- total variation: half the sum of |p - q|, in [0, 1]; the largest difference in the probability of any set of texts;
- Kullback-Leibler: KL(p || q) = sum of p log(p / q), at least 0; **inf** if p has mass where q has none;
- Jensen-Shannon: (KL(p || m) + KL(q || m)) / 2, in [0, log 2], symmetric.

Each is a sum of terms h(p_i, q_i) with h convex in both arguments together; that gives rigorous bounds if p lacks the
mass u and q the mass v (see `tokdfa.skew.distribution`). The distance is then a convex function of how u and v are
divided among the texts. Such a function is largest where all of u goes to one text and all of v to one text; and it is
nowhere below its tangent plane, the least value of which is again found text by text. Pinsker's inequality,
KL >= 2 TV^2, gives another lower bound. Time and memory: O(n) for n texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.errors import OptionError
from tokdfa.skew.distribution import TOTAL_TOLERANCE, Distribution, Interval

if TYPE_CHECKING:
    from collections.abc import Callable

Floats = npt.NDArray[np.float64]


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Total variation of two distributions: floats of shape (n,), in the same order of texts. Symmetric.

    This and the other two raise OptionError for arrays of different shape or that do not sum to 1.
    """
    return _value(_TOTAL_VARIATION, p, q)


def kl_divergence(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """KL(p || q) in nats: floats of shape (n,); inf if p has mass where q has none."""
    return _value(_KULLBACK_LEIBLER, p, q)


def jensen_shannon(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """The Jensen-Shannon divergence in nats: floats of shape (n,). Symmetric, at most log 2."""
    return _value(_JENSEN_SHANNON, p, q)


class Distances(NamedTuple):
    """All distances of two distributions p and q, as intervals. `kl_forward`: KL(p || q); `kl_backward`: KL(q || p)."""

    total_variation: Interval
    kl_forward: Interval
    kl_backward: Interval
    jensen_shannon: Interval


def compare(p: Distribution, q: Distribution) -> Distances:
    """The distances of two distributions, matched by text; a text that one of them lacks has probability 0 there.

    The true distances are inside the intervals, whatever texts the unresolved mass belongs to. Rounding adds about
    1e-15 to what is exact.
    """
    texts = tuple(dict.fromkeys(p.texts + q.texts))
    one, other = _align(p, texts), _align(q, texts)
    variation = _bounds(_TOTAL_VARIATION, one, p.unresolved, other, q.unresolved)
    pinsker = 2 * variation.lower**2
    forward = _bounds(_KULLBACK_LEIBLER, one, p.unresolved, other, q.unresolved)
    backward = _bounds(_KULLBACK_LEIBLER, other, q.unresolved, one, p.unresolved)
    divergence = _bounds(_JENSEN_SHANNON, one, p.unresolved, other, q.unresolved)
    return Distances(
        Interval(variation.lower, min(variation.upper, 1.0)),
        Interval(max(forward.lower, min(pinsker, forward.upper)), forward.upper),
        Interval(max(backward.lower, min(pinsker, backward.upper)), backward.upper),
        Interval(divergence.lower, min(divergence.upper, float(np.log(2)))),
    )


@dataclass(frozen=True)
class _Divergence:
    """A sum of convex terms. `terms`: h(p, q); `slopes`: its (sub)gradients by p and by q, for positive p + q."""

    terms: Callable[[Floats, Floats], Floats]
    slopes: Callable[[Floats, Floats], tuple[Floats, Floats]]


def _log_ratio(p: Floats, q: Floats) -> Floats:
    """log(p / q), 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((p == 0) & (q == 0), 0.0, np.log(p) - np.log(q))


def _kl_terms(p: Floats, q: Floats) -> Floats:
    with np.errstate(invalid="ignore"):  # 0 times -inf, where p is 0
        return np.where(p == 0, 0.0, p * _log_ratio(p, q))


def _kl_slopes(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return _log_ratio(p, q) + 1, np.where(p == 0, 0.0, -p / q)


def _js_terms(p: Floats, q: Floats) -> Floats:
    middle = (p + q) / 2
    return (_kl_terms(p, middle) + _kl_terms(q, middle)) / 2


def _js_slopes(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    middle = (p + q) / 2
    return _log_ratio(p, middle) / 2, _log_ratio(q, middle) / 2


def _tv_slopes(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    sign = np.sign(p - q) / 2
    return sign, -sign


_TOTAL_VARIATION = _Divergence(lambda p, q: np.abs(p - q) / 2, _tv_slopes)
_KULLBACK_LEIBLER = _Divergence(_kl_terms, _kl_slopes)
_JENSEN_SHANNON = _Divergence(_js_terms, _js_slopes)


def _value(divergence: _Divergence, p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    one, other = (_check(np.asarray(values, dtype=np.float64)) for values in (p, q))
    if one.shape != other.shape:
        raise OptionError(f"two distributions over the same texts have one shape, not {one.shape} and {other.shape}")
    return max(0.0, float(divergence.terms(one, other).sum()))


def _check(values: Floats) -> Floats:
    if values.ndim != 1 or not (np.all(values >= 0) and abs(values.sum() - 1) <= TOTAL_TOLERANCE):
        raise OptionError(
            f"a distribution is one row of probabilities that add up to 1, not {values.shape} with {values.sum():.9g};"
            " use compare for distributions with unresolved mass"
        )
    return values


def _align(distribution: Distribution, texts: tuple[bytes, ...]) -> Floats:
    known = dict(zip(distribution.texts, distribution.probabilities.tolist(), strict=True))
    return np.array([known.get(text, 0.0) for text in texts])


def _bounds(divergence: _Divergence, p: Floats, u: float, q: Floats, v: float) -> Interval:
    """The least and the greatest distance, rigorously, when `u` is still to be divided over p and `v` over q."""
    if len(p) == 1:  # all mass is on the one text, hidden or not
        return Interval(0.0, 0.0)
    if u == 0 and v == 0:
        value = max(0.0, float(divergence.terms(p, q).sum()))
        return Interval(value, value)
    upper = _largest(divergence, p, u, q, v)
    return Interval(min(max(0.0, _least(divergence, p, u, q, v)), upper), upper)


def _largest(divergence: _Divergence, p: Floats, u: float, q: Floats, v: float) -> float:
    """All of `u` on one text and all of `v` on one, the same or two others: the terms change there only."""
    terms = divergence.terms(p, q)
    more_p, more_q = divergence.terms(p + u, q), divergence.terms(p, q + v)
    total = float(terms.sum())
    if np.isinf(total) or np.isinf(more_p).any():
        return float("inf")
    apart = _best_apart(more_p - terms, more_q - terms)
    together = float((divergence.terms(p + u, q + v) - terms).max())
    return total + max(apart, together)


def _best_apart(one: Floats, other: Floats) -> float:
    """max of ``one[i] + other[j]`` over i != j, for at least two texts."""
    first, second = int(one.argmax()), int(other.argmax())
    if first != second:
        return float(one[first] + other[second])
    elsewhere = np.arange(len(one)) != first
    return float(
        max(
            one[first] + other.max(where=elsewhere, initial=-np.inf),
            one.max(where=elsewhere, initial=-np.inf) + other[second],
        )
    )


def _least(divergence: _Divergence, p: Floats, u: float, q: Floats, v: float) -> float:
    """The least value of a tangent plane, over all divisions of `u` and `v`.

    The plane touches where u and v are spread evenly. Under KL, mass of p on a text that q cannot have (no mass there,
    none to come) means inf, which is no minimum; so u is spread over the other texts only.
    """
    open_to_p = (q > 0) | (v > 0) if divergence is _KULLBACK_LEIBLER else np.ones(len(p), dtype=np.bool_)
    if not open_to_p.any():
        return float("inf")
    spread_p = np.where(open_to_p, u / np.count_nonzero(open_to_p), 0.0)
    spread_q = np.full(len(q), v / len(q))
    touching = float(divergence.terms(p + spread_p, q + spread_q).sum())
    if np.isinf(touching):
        return touching
    by_p, by_q = divergence.slopes(p + spread_p, q + spread_q)
    least = touching
    if u > 0:
        least += u * float(by_p[open_to_p].min() - by_p[open_to_p].mean())
    if v > 0:
        least += v * float(by_q.min() - by_q.mean())
    return least
