"""Adaptive weighted rejection sampling (Lipkin et al. 2025, arXiv 2504.05410): steps without a mask.

A step draws tokens from the model's row without replacement and asks the matcher about each, one by one, until one is
allowed: that is the token x. A second round goes on from the same row, x being there again and everything refused
still gone, until a token is allowed once more (that may be x, about which nobody needs to be asked again). With n
refusals in both rounds, r of the row's mass refused in the first round, and the row's total T (1 but for rounding), the
weight is

    w = (T - r) / (n + 1).

It is *properly weighted*: for every allowed token t, the mean of (w if x is t, else 0) is p(t). So the mean of w is the
allowed mass m, and given x too its mean is m. The proof is short. Let the refused tokens be a_1 ... a_n in order, with
r_i the mass of the first i, and let x come after the first k of them. The probability of all that is

    prod over i of p(a_i) / (T - r_{i-1})  *  p(x) / (T - r_k)  *  m / (T - r_n).

Times w = (T - r_k) / (n + 1) the only factor with k cancels; the sum over k = 0 ... n cancels n + 1. What is left is
p(x) times the probability that one round refuses exactly a_1 ... a_n and then accepts, and those add up to 1.

So w takes the place of the allowed mass in sequential Monte Carlo (`tokdfa.decoding.smc`), at the price of some noise,
and a step costs a few single-token checks: in each round at most 1 / m on average, and near 1 in both together where
the model agrees with the constraint. Where m is tiny it may come to V checks, and a mask is the better way; where masks
are slow and the model agrees, this is.

The paper's reference implementation has since added variants with less noise; this is the estimator of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.decoding.draws import Target
from tokdfa.decoding.sampling import draw_index
from tokdfa.decoding.smc import run_particles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.draws import Costs, Draws, Eos
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel


class WeightedToken(NamedTuple):
    """The token of a step, None if no token with a probability is allowed, and its weight, 0 then."""

    token: int | None
    weight: float


def draw_by_adaptive_rejection(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    particles: int,
    threshold: float = 0.5,
    max_tokens: int = 256,
    eos: Eos = "counted",
    seed: int = 0,
) -> Draws:
    """`particles` weighted sequences by adaptive rejection and resampling; one population, no masks.

    (With eos="ignored" a mask is filled where a text can end.) Options, weights, `log_mass` and errors are those of
    `tokdfa.decoding.smc.draw_by_smc`; at a dead end the sequence gets weight 0, as no mask tells it from a model
    without mass on what is allowed.
    """
    target = Target(model, compiled, context, max_tokens, eos)
    return run_particles(target, propose_by_checks, particles=particles, threshold=threshold, seed=seed)


def propose_by_checks(
    row: Floats, matcher: Matcher, generator: np.random.Generator, costs: Costs
) -> tuple[int | None, float]:
    """A step by `adaptive_step`, as a `tokdfa.decoding.smc.Proposal`: the token and the log of its weight."""
    token, weight = adaptive_step(row, lambda token: costs.allows(matcher, token), generator)
    return token, float(np.log(weight)) if token is not None else -np.inf


def adaptive_step(row: Floats, allows: Callable[[int], bool], generator: np.random.Generator) -> WeightedToken:
    """One properly weighted token; see the module's docstring.

    `row`: log-probabilities, float64, shape (V,); `allows`: the check of a token, asked once at most about each. O(V)
    for the row, and O(log V) for each refusal on average.
    """
    remaining = _Remaining(row)
    token = remaining.draw_allowed(allows, generator)
    if token is None:
        return WeightedToken(None, 0.0)
    mass = remaining.mass
    remaining.draw_allowed(lambda other: other == token or allows(other), generator)
    return WeightedToken(token, mass / (remaining.refusals + 1))


class _Remaining:
    """What is left of a row: draws tokens and takes away those that are refused.

    Refused tokens stay in the sums that are drawn from until they have half of the mass; one that is drawn again is
    passed over. So a refusal costs O(log V), and all of them together O(V) for each halving of what is left.
    """

    def __init__(self, row: Floats) -> None:
        self._weights = np.exp(row)
        self._cumulative = np.cumsum(self._weights)
        self._refused_in_sums = 0.0
        self.refusals = 0

    @property
    def mass(self) -> float:
        """The mass of what has not been refused. Added up anew: differences would lose a small rest to rounding."""
        return float(self._weights.sum())

    def draw_allowed(self, allows: Callable[[int], bool], generator: np.random.Generator) -> int | None:
        """Draw without replacement until a token is allowed, which stays; None if nothing is left."""
        while self._cumulative[-1] > 0:
            token = draw_index(self._cumulative, generator)
            if not self._weights[token]:
                continue
            if allows(token):
                return token
            self.refusals += 1
            self._refused_in_sums += float(self._weights[token])
            self._weights[token] = 0
            if 2 * self._refused_in_sums > self._cumulative[-1]:
                self._cumulative = np.cumsum(self._weights)
                self._refused_in_sums = 0.0
        return None
