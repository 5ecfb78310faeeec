"""Rejection sampling: draw from the model as if there were no constraint, and keep what satisfies it.

Exact: a draft comes with its probability P(x), and it is kept iff it is in the token language, so what is kept has the
target's distribution (von Neumann 1951; see `tokdfa.decoding` for the target). The price is 1 / Z drafts for each
sequence, Z being the constraint's mass, which is tiny for most constraints that are of use; hence `max_drafts`.

A draft is given up at its first token that is not allowed (*prefix rejection*). It would have been refused in the end,
so the distribution is the same, and a draft costs a few rows instead of a whole text.

The estimate of Z. With k kept sequences the last of which was the N-th draft, (k - 1) / (N - 1) is unbiased for a
process that stops there; if all drafts were used up first, kept / drafts is (Girshick, Mosteller and Savage 1946).
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.sampling import draw_index, random_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel


def draw_by_rejection(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    samples: int,
    max_drafts: int,
    max_tokens: int = 256,
    eos: Eos = "counted",
    batch: int = 32,
    seed: int = 0,
) -> Draws:
    """Up to `samples` exact, independent sequences out of at most `max_drafts` drafts; all weights are equal.

    Drafts are made `batch` at a time, and a batch is finished before the next begins, so that short texts have no
    advantage. A draft of `max_tokens` tokens without an end is refused. What was drawn depends on the seed only, not on
    `batch`. `log_mass`: see the module's docstring; -inf, and no sequences, if
    nothing was kept; None if the first kept draft ended it (samples=1), where no unbiased estimate exists.

    Raises OptionError for values out of range; ModelError as `tokdfa.decoding.loop.generate_batch` does.
    """
    started = time.perf_counter_ns()
    target = Target(model, compiled, context, max_tokens, eos)
    for name, value in (("samples", samples), ("max_drafts", max_drafts), ("batch", batch)):
        check_count(name, value)
    streams = random_generator(seed)
    costs = Costs()
    kept: list[tuple[int, ...]] = []
    drafts, last = 0, 0
    while len(kept) < samples and drafts < max_drafts:
        generators = streams.spawn(min(batch, max_drafts - drafts))
        for draft in _finish([_Draft(target, generator) for generator in generators], target, costs):
            drafts += 1
            if draft.is_kept and len(kept) < samples:
                kept.append(target.text_tokens(draft.tokens))
                last = drafts
    return target.draws(costs, started, kept, drafts, _log_mass(len(kept), samples, last, drafts))


def _log_mass(kept: int, samples: int, last: int, drafts: int) -> float | None:
    if kept == samples:
        return math.log((kept - 1) / (last - 1)) if kept > 1 else None
    return math.log(kept / drafts) if kept else -math.inf


def _finish(drafts: list[_Draft], target: Target, costs: Costs) -> list[_Draft]:
    """Run all drafts to their ends, one model call a round; returns them."""
    for draft in drafts:
        draft.look_ahead(costs)
    active = [draft for draft in drafts if not draft.is_over]
    while active:
        for index, row in costs.rows(target.model, [target.prefix(draft.tokens) for draft in active]):
            active[index].step(row, costs)
        active = [draft for draft in active if not draft.is_over]
    return drafts


class _Draft:
    """An unconstrained sequence in progress, with a random stream of its own."""

    def __init__(self, target: Target, generator: np.random.Generator) -> None:
        self._target, self._generator = target, generator
        self._matcher = target.start()
        self.tokens: list[int] = []
        self.is_over = self.is_kept = False

    def step(self, row: Floats, costs: Costs) -> None:
        """Append a token drawn from the whole row: float64, shape (V,)."""
        token = draw_index(np.cumsum(np.exp(row)), self._generator)
        self.tokens.append(token)
        if costs.allows(self._matcher, token):
            self._matcher.advance(token)
            self.look_ahead(costs)
        else:
            self.is_over = True

    def look_ahead(self, costs: Costs) -> None:
        """See whether the draft is complete, or as long as it may be."""
        self.is_kept = self._target.is_complete(self._matcher, costs)
        self.is_over = self.is_kept or len(self.tokens) == self._target.max_tokens
