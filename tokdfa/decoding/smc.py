r"""Importance-weighted resampling (sequential Monte Carlo; Lew et al. 2023, arXiv 2306.03081), over any proposal.

N *particles* grow side by side, a token a step. A particle's weight is multiplied by the *allowed mass* of its step,
the model's probability of everything that may come next. Where a sequence x is drawn through local masks with
probability ``Q(x) = prod of p(x_t) / m_t`` (m_t the allowed mass), its weight is ``prod of m_t = P(x) / Q(x)``: the
importance weight. So the mean of the weights estimates the constraint's mass Z without bias, and weighted averages
approach those of the target.

Weights alone become uneven: one particle ends up with all of them. So when the effective sample size,
``(sum w)^2 / sum w^2``, falls below `threshold` times N, the particles are *resampled*: N particles are chosen, each
with a chance in proportion to its weight, and all get the mean weight. Each particle's expected share stays what it
was, hence the mean of the final weights is still unbiased for Z (Del Moral 2004, theorem 7.4.2). Resampling is
*systematic*: one random number places N equidistant points on the sum of the weights, and a particle has as many copies
as points fall on it; the least noisy of the usual ways (Douc, Cappe and Moulines 2005).

A particle that is complete waits with its weight. One that is not within `max_tokens` gets weight 0, and so does one
whose model row has no mass on what is allowed. Everything here holds if the weight of a step is not the allowed mass
itself but random with that mean, whatever token was drawn; that is what `adaptive_rejection` makes of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.arguments import as_number
from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.sampling import Floats, draw_index, log_total, random_generator
from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.models.base import LanguageModel

#: Draws one step: (row, matcher, random numbers, costs) -> the token and the log of its weight; None, -inf if nothing
#: that is allowed has a probability. For each allowed t, the mean of (the weight if t was drawn, else 0) must be p(t).
Proposal = Callable[[Floats, "Matcher", np.random.Generator, Costs], tuple[int | None, float]]


def draw_by_smc(
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
    """`particles` weighted sequences by local masks and resampling; one population.

    `threshold`: resample when the effective sample size is below this share of the particles, from 0 (never: plain
    importance sampling) to 1. The mean of the weights is unbiased for the constraint's mass Z; `log_mass` is its log.
    The sequences of one population are not independent; for standard errors, draw several with different seeds.
    Raises EmptyMask at a dead end, ModelError and OptionError as `tokdfa.decoding.loop.generate_batch` does.
    """
    target = Target(model, compiled, context, max_tokens, eos)
    return run_particles(target, propose_by_mask, particles=particles, threshold=threshold, seed=seed)


def propose_by_mask(
    row: Floats, matcher: Matcher, generator: np.random.Generator, costs: Costs
) -> tuple[int | None, float]:
    """A token of the row restricted to the mask, and the log of the allowed mass: a `Proposal`. O(V)."""
    allowed = costs.allowed(matcher)
    logs = row[allowed]
    log_mass = log_total(logs)
    if log_mass == -np.inf:
        return None, log_mass
    return int(allowed[draw_index(np.cumsum(np.exp(logs - log_mass)), generator)]), log_mass


def run_particles(target: Target, propose: Proposal, *, particles: int, threshold: float, seed: int) -> Draws:
    """`particles` weighted sequences of `target`, each step by `propose`; see `draw_by_smc`. One model call a step."""
    started = time.perf_counter_ns()
    check_count("particles", particles)
    if not 0 <= as_number(threshold, "threshold") <= 1:
        raise OptionError(f"the threshold is a share of the particles, from 0 to 1, not {threshold!r}")
    generator = random_generator(seed)
    costs = Costs()
    first = _Particle(target.start())
    first.is_complete = target.is_complete(first.matcher, costs)
    population = [first, *(first.fork() for _ in range(particles - 1))]
    log_weights = np.zeros(particles)
    for _ in range(target.max_tokens):
        growing = [
            index
            for index, particle in enumerate(population)
            if not particle.is_complete and log_weights[index] > -np.inf
        ]
        if not growing:
            break
        prefixes = [target.prefix(population[index].tokens) for index in growing]
        for place, row in costs.rows(target.model, prefixes):
            index = growing[place]
            token, log_weight = propose(row, population[index].matcher, generator, costs)
            log_weights[index] += log_weight
            if token is not None:
                population[index].advance(token)
                population[index].is_complete = target.is_complete(population[index].matcher, costs)
        population, log_weights = _resample_if_uneven(population, log_weights, threshold, generator)
    log_weights[[not particle.is_complete for particle in population]] = -np.inf
    sequences = [
        target.text_tokens(particle.tokens) if particle.is_complete else tuple(particle.tokens)
        for particle in population
    ]
    log_mass = log_total(log_weights) - float(np.log(particles))
    return target.draws(costs, started, sequences, particles, log_mass, log_weights)


class _Particle:
    """A sequence in progress. After an end token or a complete text it does not move."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.tokens: list[int] = []
        self.is_complete = False

    def advance(self, token: int) -> None:
        self.matcher.advance(token)
        self.tokens.append(token)

    def fork(self) -> _Particle:
        twin = _Particle(self.matcher.fork())
        twin.tokens = self.tokens.copy()
        twin.is_complete = self.is_complete
        return twin


def _resample_if_uneven(
    population: list[_Particle], log_weights: Floats, threshold: float, generator: np.random.Generator
) -> tuple[list[_Particle], Floats]:
    """The population and its log weights, resampled if the effective sample size is below the threshold."""
    log_sum = log_total(log_weights)
    if log_sum == -np.inf or all(particle.is_complete for particle in population):
        return population, log_weights
    shares = np.exp(log_weights - log_sum)
    if 1 / np.square(shares).sum() >= threshold * len(population):
        return population, log_weights
    copies = systematic_counts(shares, generator.random())
    chosen = []
    for particle, count in zip(population, copies.tolist(), strict=True):
        chosen += [particle] * bool(count) + [particle.fork() for _ in range(count - 1)]
    return chosen, np.full(len(population), log_sum - np.log(len(population)))


def systematic_counts(shares: Floats, offset: float) -> npt.NDArray[np.int64]:
    """How often each particle is taken: int64, shape (n,), adding up to n, each within 1 of n times its share.

    `shares`: float64, shape (n,), adding up to 1; `offset`: uniform in [0, 1). The points are (i + offset) / n.
    """
    size = len(shares)
    borders = np.cumsum(shares) * (size / shares.sum())
    below = np.ceil(borders - offset).astype(np.int64).clip(0, size)  # the points below each border
    below[np.flatnonzero(shares)[-1] :] = size  # rounding may leave the last border short of the last point
    return np.diff(below, prepend=0)
