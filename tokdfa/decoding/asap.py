"""Grammar-aligned decoding, ASAp (Park et al. 2024, arXiv 2405.21047): masks that learn what leads nowhere.

Let ``c(u) = sum of p(rest | u)`` over all ways to complete the prefix u within the constraint: its *expected future
grammaticality*. Drawing each token a with probability in proportion to p(a | u) c(ua) would give the target exactly.
Local masking takes 1 for every c(ua) that is not 0. ASAp starts like that and keeps an upper bound, 1 for prefixes it
has never seen. A prefix that was seen has

    bound(u) = sum over allowed a of p(a | u) * bound(ua),        bound = 1 after an end token,

which is at least c(u) if that holds for each ua, and falls as the prefixes below u are seen. After every draft the
bounds along its path are computed again, from the end to the beginning. The bound of the empty prefix is an upper bound
on the constraint's mass Z. Under mild conditions the bounds converge to c, and the distribution of the next sequence to
the target (theorem 2 of the paper); the first sequence has the distribution of local masking, skew and all.

Sequences past `max_tokens` are outside the target (`tokdfa.decoding`), so c is 0 for a prefix of that length; a draft
that comes there is dropped, and will not come again.

Weights. The paper's sequences count equally, and the skew of the early ones stays in the sample. But the probability
Q_i(x) with which the i-th sequence was drawn is known: it is the product of p(a | u) bound(ua) / norm(u), so that
``P(x) / Q_i(x) = prod of norm(u) / bound(ua)`` is an importance weight, unbiased for Z whatever was drawn before.
``weighted=True`` returns these, which is not in the paper; it takes away the skew and leaves some variance.

Memory: a node for each distinct prefix seen, with one number for all tokens not yet tried there; no rows are kept. So
prefixes that are seen again cost a model row again, unless the model is a `tokdfa.models.cache.CachedModel`.
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


class AlignedSampler(TreeSampler):
    """Draws sequences and learns from each; see the module's docstring. Raises what `draw_by_asap` does."""

    refuses = False

    def log_bound(self, tokens: Sequence[int] = ()) -> float:
        """The log of the upper bound on the mass that completes `tokens`; of Z for none; 0 for a prefix never seen."""
        node = self._root
        for token in tokens:
            if token not in node.children:
                return 0.0
            node = node.children[token][1]
        return node.log_bound

    def draw(self, samples: int, *, max_drafts: int | None = None, weighted: bool = False) -> Draws:
        """`samples` further sequences, or fewer if `max_drafts` (default: 10 times `samples`) do not give them.

        With weighted=False all weights are equal, as published, and `log_mass` is the log of the upper bound on Z. With
        weighted=True they are importance weights, and `log_mass` is the log of their mean over all drafts, which is
        unbiased for Z if `max_drafts` equals `samples` (a dropped draft has weight 0).
        """
        started = time.perf_counter_ns()
        drawn = self._draw(samples, 10 * samples if max_drafts is None else max_drafts)
        log_mass, log_weights = self._root.log_bound, None
        if weighted:
            log_weights = drawn.log_weights
            log_mass = log_total(log_weights) - float(np.log(max(drawn.begun, 1)))
        return self._target.draws(drawn.costs, started, drawn.sequences, drawn.begun, log_mass, log_weights)


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
    """`samples` sequences by a new `AlignedSampler`, whose `draw` explains the options and the weights.

    Raises EmptyMask at a dead end, ModelError and OptionError as `tokdfa.decoding.loop.generate_batch` does. If the
    model gives no mass to the constraint at all, there are no sequences and `log_mass` is -inf.
    """
    sampler = AlignedSampler(model, compiled, context, max_tokens=max_tokens, eos=eos, seed=seed)
    return sampler.draw(samples, max_drafts=max_drafts, weighted=weighted)
