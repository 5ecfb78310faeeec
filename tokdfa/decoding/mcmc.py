r"""Markov chains over constrained sequences (Anaya Gonzalez et al. 2025, arXiv 2506.05754): Metropolis-Hastings.

A chain is at a sequence x of the constraint, at first one drawn through local masks. A step cuts x at a place i, drawn
with probability ``cut_x(i)``, draws the rest anew through local masks, which gives y, and goes there with probability

    min(1, P(y) q(x | y) / (P(x) q(y | x))),      q(y | x) = sum over i of cut_x(i) * M(y from i on),

else stays; M is the probability under local masks, and i runs over the places up to which x and y agree. So the target
is stationary, every sequence on the way is of the constraint, and the distance from the target (total variation) never
grows from step to step. It tends to 0, as every sequence can be proposed from every other one (i = 0).

`proposal`: how the place is drawn, as the paper names it. "uniform"; "priority": by exp(entropy) - 1 of the masked row
there, so that places without a choice are not cut at; "restart": always at the beginning, an independent proposal.
(The paper's repository calls the first "prefix". "priority" with no choice anywhere restarts.)

Cost: a step asks the model for the tokens behind the cut only, and needs the mask there; nothing is batched. Sequences
over `max_tokens` have probability 0: a chain does not go there. One that begins there restarts until it is complete.

The estimate of Z is that of importance sampling by the beginnings of the chains, P over M, which is unbiased.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.prefix_tree import happens
from tokdfa.decoding.sampling import draw_index, log_total, random_generator
from tokdfa.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel

#: How the place of the cut is drawn.
Proposal = Literal["uniform", "priority", "restart"]


def draw_by_mcmc(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    samples: int,
    steps: int = 10,
    proposal: Proposal = "uniform",
    max_tokens: int = 256,
    eos: Eos = "counted",
    seed: int = 0,
) -> Draws:
    """`samples` independent chains of `steps` steps each (from 0 up); a sequence is where a chain is at its end.

    Weights are equal; a chain that never became complete gives no sequence. `drafts` counts proposals and beginnings.
    `log_mass`: see the module's docstring. Raises EmptyMask at a dead end, ModelError and OptionError as
    `tokdfa.decoding.loop.generate_batch` does.
    """
    started = time.perf_counter_ns()
    target = Target(model, compiled, context, max_tokens, eos)
    check_count("samples", samples)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 0:
        raise OptionError(f"steps is a whole number from 0 up, not {steps!r}")
    if proposal not in get_args(Proposal):
        raise OptionError(f"proposal is {' or '.join(map(repr, get_args(Proposal)))}, not {proposal!r}")
    costs = Costs()
    kept, beginnings = [], []
    for generator in random_generator(seed).spawn(samples):
        chain = _Chain(target, generator, proposal, costs)
        beginnings.append(chain.here.log_weight)
        for _ in range(steps):
            chain.step()
        if chain.here.is_complete:
            kept.append(target.text_tokens(chain.here.tokens))
    log_mass = log_total(np.array(beginnings)) - float(np.log(samples))
    return target.draws(costs, started, kept, samples * (steps + 1), log_mass)


@dataclass(eq=False)
class _State:
    """A sequence. For each of its tokens: `log_p`, the log of its probability; `log_m`, of the allowed mass there;
    `choice`: exp(entropy) - 1 of the masked row."""

    tokens: list[int] = field(default_factory=list)
    log_p: list[float] = field(default_factory=list)
    log_m: list[float] = field(default_factory=list)
    choice: list[float] = field(default_factory=list)
    is_complete: bool = False

    @property
    def log_weight(self) -> float:
        """log P - log M, -inf if it is not complete."""
        return sum(self.log_m) if self.is_complete else -np.inf

    def before(self, place: int) -> _State:
        """Its first `place` tokens."""
        return _State(self.tokens[:place], self.log_p[:place], self.log_m[:place], self.choice[:place])

    def cuts(self, proposal: Proposal) -> Floats:
        """The weight of a cut before each token: float64, shape (tokens,), adding up to 1; one cut for no tokens."""
        weights = np.zeros(max(len(self.tokens), 1))
        if proposal == "uniform":
            weights += 1
        elif proposal == "priority":
            weights[: len(self.choice)] = self.choice
        if not weights.any():
            weights[0] = 1
        return weights / weights.sum()


class _Chain:
    """Where a chain is, and its stream of random numbers."""

    def __init__(self, target: Target, generator: np.random.Generator, proposal: Proposal, costs: Costs) -> None:
        self._target, self._generator, self._proposal, self._costs = target, generator, proposal, costs
        self.here = self._grow(_State())

    def step(self) -> None:
        """One proposal, taken or not."""
        if not self.here.is_complete:
            self.here = self._grow(_State())
            return
        place = draw_index(np.cumsum(self.here.cuts(self._proposal)), self._generator)
        there = self._grow(self.here.before(place))
        if not there.is_complete:
            return
        log_ratio = sum(there.log_p) - sum(self.here.log_p)
        log_ratio += log_proposal(there, self.here, self._proposal) - log_proposal(self.here, there, self._proposal)
        if happens(float(np.exp(min(log_ratio, 0.0))), self._generator):
            self.here = there

    def _grow(self, state: _State) -> _State:
        """`state` with tokens drawn through local masks until it is complete, or cannot be any more."""
        target, matcher = self._target, self._target.start()
        for token in state.tokens:
            matcher.advance(token)
        state.is_complete = target.is_complete(matcher, self._costs)
        while not state.is_complete and len(state.tokens) < target.max_tokens:
            allowed = self._costs.allowed(matcher)
            ((_, row),) = self._costs.rows(target.model, [target.prefix(state.tokens)])
            logs = row[allowed]
            log_mass = log_total(logs)
            if log_mass == -np.inf:
                break
            shares = np.exp(logs - log_mass)
            place = draw_index(np.cumsum(shares), self._generator)
            possible = shares > 0
            entropy = -float((shares[possible] * np.log(shares[possible])).sum())
            state.tokens.append(int(allowed[place]))
            state.log_p.append(float(logs[place]))
            state.log_m.append(log_mass)
            state.choice.append(max(float(np.expm1(entropy)), 0.0))
            matcher.advance(state.tokens[-1])
            state.is_complete = target.is_complete(matcher, self._costs)
        return state


def log_proposal(here: _State, there: _State, proposal: Proposal) -> float:
    """log q(there | here), for two complete sequences; see the module's docstring."""
    common = 0
    while common < min(len(here.tokens), len(there.tokens)) and here.tokens[common] == there.tokens[common]:
        common += 1
    steps = np.array(there.log_p) - np.array(there.log_m)
    rests = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    cuts = here.cuts(proposal)[: common + 1]
    with np.errstate(divide="ignore"):
        return log_total(np.log(cuts) + rests[: len(cuts)])
