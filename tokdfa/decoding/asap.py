"""Grammar-aligned decoding, ASAp (Park et al. 2024, arXiv 2405.21047): masks that learn what leads nowhere.

Local masking takes 1 for the mass c(ua) that completes each prefix ua within the constraint, if that is not 0. ASAp
starts like that and keeps an upper bound (`tokdfa.decoding.prefix_tree`), which falls as the prefixes below are seen:
after every draft the bounds along its path are computed again, from the end to the beginning. The bound of the empty
prefix is an upper bound on the constraint's mass Z. Under mild conditions the bounds converge to c, and the
distribution of the next sequence to the target (theorem 2 of the paper); the first sequence has the distribution of
local masking, skew and all.

Sequences past `max_tokens` are outside the target (`tokdfa.decoding`), so c is 0 for a prefix of that length; a draft
that comes there is dropped, and will not come again.

Weights. The paper's sequences count equally, and the skew of the early ones stays in the sample. But the probability
Q_i(x) with which the i-th sequence was drawn is known: it is the product of p(a | u) bound(ua) / norm(u), so that
``P(x) / Q_i(x) = prod of norm(u) / bound(ua)`` is an importance weight, unbiased for Z whatever was drawn before.
``weighted=True`` returns these, which is not in the paper; it takes away the skew and leaves some variance.

No rows are kept: prefixes that are seen again cost a model row again, unless the model is a
`tokdfa.models.cache.CachedModel`.
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


def draw_by_asap(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    samples: int,
    max_drafts: int | None = None,
    max_tokens: int = 256,
    eos: Eos = "counted",
    weighted: bool = False,
    seed: int = 0,
) -> Draws:
    """`samples` sequences, or fewer if `max_drafts` (default: 10 times `samples`) do not give them.

    With weighted=False all weights are equal, as published, and `log_mass` is the log of the upper bound on Z. With
    weighted=True they are importance weights, and `log_mass` is the log of their mean over all drafts, which is
    unbiased for Z if `max_drafts` equals `samples` (a dropped draft has weight 0).

    Raises EmptyMask at a dead end, ModelError and OptionError as `tokdfa.decoding.loop.generate_batch` does. If the
    model gives no mass to the constraint at all, there are no sequences and `log_mass` is -inf.
    """
    started = time.perf_counter_ns()
    sampler = TreeSampler(model, compiled, context, refuses=False, max_tokens=max_tokens, eos=eos, seed=seed)
    drawn = sampler.draw(samples, 10 * samples if max_drafts is None else max_drafts)
    log_mass, log_weights = sampler.log_bound(), None
    if weighted:
        log_weights = drawn.log_weights
        log_mass = log_total(log_weights) - float(np.log(max(drawn.begun, 1)))
    return sampler.target.draws(drawn.costs, started, drawn.sequences, drawn.begun, log_mass, log_weights)
