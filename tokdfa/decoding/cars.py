"""Constrained adaptive rejection sampling, CARS (Parys et al. 2025, arXiv 2510.01902): exact, and ever less refused.

Rejection sampling forgets what it has learned from a refused draft. Here a draft is drawn token by token in proportion
to p(a | u) bound(ua) (`tokdfa.decoding.prefix_tree`), where the bounds know of everything that has been found to lead
nowhere. At the first prefix that was never seen its mask is looked at, and the draft goes on with the probability m
that the mask allows; with 1 - m it is refused, the bounds along its path become what they are now known to be, and the
next draft begins. Whatever was learned before, a draft is the complete sequence x with probability P(x) / bound(root):
all have the same factor, so what is kept has the target's distribution exactly, and the kept ones are independent.

Not to be confused with `tokdfa.decoding.adaptive_rejection`, which draws *one token* by rejection and carries a weight;
here whole sequences are refused and need none.

`backtrack=True` goes back only as far as the next draft would diverge anyway: rows of the part in common are kept. The
draws are the same for the same seed; it saves forward passes, not probability. (`tokdfa.decoding.adaptrack` has the
rule that AdapTrack publishes for going back, which is another.)

The estimate of Z is the mean over drafts of (bound(root) when it began, if it was kept, else 0): unbiased if the number
of drafts is fixed, as with ``max_drafts=samples``; stopping at the last sample makes it a little too large.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.decoding.prefix_tree import TreeSampler
from tokdfa.decoding.sampling import log_total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.draws import Draws, Eos
    from tokdfa.models.base import LanguageModel


def draw_by_cars(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    samples: int,
    max_drafts: int | None = None,
    max_tokens: int = 256,
    eos: Eos = "counted",
    backtrack: bool = False,
    seed: int = 0,
) -> Draws:
    """`samples` exact, independent sequences of equal weight, or fewer if `max_drafts` (default: 1000 times `samples`)
    do not give them. `log_mass`: see the module's docstring; -inf if nothing was kept.

    Raises EmptyMask at a dead end, ModelError as `tokdfa.decoding.loop.generate_batch` does,
    OptionError for values out of range. If the model gives no mass to the constraint, there are no sequences.
    """
    started = time.perf_counter_ns()
    sampler = TreeSampler(
        model, compiled, context, refuses=True, max_tokens=max_tokens, eos=eos, backtrack=backtrack, seed=seed
    )
    drawn = sampler.draw(samples, 1000 * samples if max_drafts is None else max_drafts)
    log_mass = log_total(drawn.log_bounds) - float(np.log(max(drawn.begun, 1)))
    return sampler.target.draws(drawn.costs, started, drawn.sequences, drawn.begun, log_mass)
