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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.prefix_tree import Node
from tokdfa.decoding.sampling import draw_index, log_total, random_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.sampling import Floats
    from tokdfa.models.base import LanguageModel


class _Draft(NamedTuple):
    """A draft's tokens, the end token included, whether it is complete, and the log of its importance weight."""

    tokens: list[int]
    is_complete: bool
    log_weight: float


class AlignedSampler:
    """Draws sequences and learns from each; see the module's docstring. Raises what `draw_by_asap` does."""

    def __init__(
        self,
        model: LanguageModel,
        compiled: CompiledConstraint,
        context: Sequence[int] = (),
        *,
        max_tokens: int = 256,
        eos: Eos = "counted",
        seed: int = 0,
    ) -> None:
        self._target = Target(model, compiled, context, max_tokens, eos)
        self._generator = random_generator(seed)
        self._root = Node()
        self._start = self._target.start()

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
        check_count("samples", samples)
        limit = 10 * samples if max_drafts is None else max_drafts
        check_count("max_drafts", limit)
        costs = Costs()
        kept: list[_Draft] = []
        drafts = 0
        while len(kept) < samples and drafts < limit and self._root.log_bound > -np.inf:
            draft = self._draw_one(costs)
            drafts += 1
            if draft.is_complete:
                kept.append(draft)
        sequences = [self._target.text_tokens(draft.tokens) for draft in kept]
        if not weighted:
            return self._target.draws(costs, started, sequences, drafts, self._root.log_bound)
        log_weights = np.array([draft.log_weight for draft in kept])
        log_mass = log_total(log_weights) - float(np.log(max(drafts, 1)))
        return self._target.draws(costs, started, sequences, drafts, log_mass, log_weights)

    def _draw_one(self, costs: Costs) -> _Draft:
        """One draft, and what is learned from it."""
        target, matcher = self._target, self._start.fork()
        path, tokens, log_weight = [self._root], list[int](), 0.0
        is_complete = target.is_complete(matcher, costs)
        while not is_complete and len(tokens) < target.max_tokens:
            allowed = costs.allowed(matcher)
            ((_, row),) = costs.rows(target.model, [target.prefix(tokens)])
            chosen = self._choose(path[-1], allowed, row[allowed])
            if chosen is None:
                break
            token, log_factor = chosen
            log_weight += log_factor
            path.append(path[-1].children[token][1])
            tokens.append(token)
            matcher.advance(token)
            is_complete = target.is_complete(matcher, costs)
        path[-1].log_bound = 0.0 if is_complete else -np.inf
        for node in reversed(path[:-1]):
            node.tighten()
        return _Draft(tokens, is_complete, log_weight)

    def _choose(self, node: Node, allowed: npt.NDArray[np.int64], logs: Floats) -> tuple[int, float] | None:
        """The next token, for which `node` gets a child, and log(norm / bound); None if no mass is left.

        `allowed`: the allowed tokens, ascending; `logs`: their log-probabilities, float64.
        """
        expected = node.expected(allowed, logs)
        log_norm = log_total(expected)
        if log_norm == -np.inf:
            return None
        place = draw_index(np.cumsum(np.exp(expected - log_norm)), self._generator)
        child = node.enter(allowed, logs, place)
        return int(allowed[place]), log_norm - child.log_bound


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
