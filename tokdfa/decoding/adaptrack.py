r"""AdapTrack (Li et al. 2025, arXiv 2510.17376): masks, and going back where they turn out to have bent the model.

Every prefix x that was seen has a bound Q[x] (`tokdfa.decoding.prefix_tree`; the paper's estimate) and a *next token*
N[x]. The next tokens are followed from the beginning to a prefix s without one. If s is complete, it is the answer.
Otherwise its mask is looked at, N[s] is drawn through it, and the bounds along s fall from Q to Q'. With
``P_Q(n | x) = p(n | x) Q[xn] / Q[x]``, each prefix x of s then keeps its next token n with probability P_Q'(n | x) /
P_Q(n | x), and draws another one, in proportion to P_Q, with the rest: that is going back (algorithm 2 of the paper).

Not exact. Theorem 5.2 says that N[x] has the distribution P_Q' after such an update if it had P_Q before. But s was
looked at because N[x] leads there, so that, given what is now known, N[x] is not distributed by P_Q. Where s is a
token below x the two errors cancel; deeper, mass that should go back to the beginning stays near s. The shortest
example: o or n with probability 1/2 each; o is complete; after n comes s or t, 1/2 each; half of what follows s is
forbidden. The target has o with 4/7 = 0.571, this procedure with 15/28 = 0.536, and local masking with 0.5
(`tests/decoding/test_adaptrack.py` computes the first two). So it takes away a part of the skew, and costs few rows.
To go back exactly, go where a new draft would diverge: ``draw_by_cars(..., backtrack=True)``.

The paper begins every answer with nothing known. Here bounds stay from answer to answer of one call, next tokens do
not; so the first sequence is the paper's, and later ones are nearer to the target.

The model is asked once about each prefix that the path comes to; a prefix that was left and is come to again costs a
row again, unless the model is a `tokdfa.models.cache.CachedModel`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.prefix_tree import Path, PrefixNode, happens
from tokdfa.decoding.sampling import Floats, draw_index, log_total, random_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.prefix_tree import Tokens
    from tokdfa.models.base import LanguageModel


def draw_by_adaptrack(
    model: LanguageModel,
    compiled: CompiledConstraint,
    context: Sequence[int] = (),
    *,
    samples: int,
    max_looks: int | None = None,
    max_tokens: int = 256,
    eos: Eos = "counted",
    seed: int = 0,
) -> Draws:
    """`samples` sequences of equal weight; fewer if an answer needs more than `max_looks` prefixes to be looked at.

    `max_looks`: of one answer, 20 times `max_tokens` by default. `drafts`: how often a path was begun or gone back on.
    A prefix of `max_tokens` tokens that is not complete is taken for invalid. `log_mass`: the log of the upper bound on
    Z. Raises EmptyMask at a dead end, ModelError and OptionError as `tokdfa.decoding.loop.generate_batch` does.
    """
    started = time.perf_counter_ns()
    target = Target(model, compiled, context, max_tokens, eos)
    check_count("samples", samples)
    most = 20 * max_tokens if max_looks is None else max_looks
    check_count("max_looks", most)
    walk = _Walk(target, random_generator(seed))
    kept = []
    for _ in range(samples):
        tokens = walk.answer(most)
        if tokens is not None:
            kept.append(target.text_tokens(tokens))
    return target.draws(walk.path.costs, started, kept, walk.drafts, walk.root.log_bound)


class _Walk:
    """The bounds and the path."""

    def __init__(self, target: Target, generator: np.random.Generator) -> None:
        self._target, self._generator = target, generator
        self.root = PrefixNode()
        self.path = Path(target, Costs())
        self.drafts = 0

    def answer(self, most: int) -> list[int] | None:
        """The tokens of a complete sequence, the end token included; None if there is no mass, or after `most` looks.

        A look is at a prefix without a next token, each of which costs a mask and a row.
        """
        following: dict[PrefixNode, int] = {}
        self.drafts += 1
        for _ in range(most):
            if self.root.log_bound == -np.inf:
                return None
            nodes = self._follow(following)
            depth = len(nodes) - 1
            if self.path.is_complete(depth):
                return self.path.tokens(depth)
            self._look(nodes, following)
        return None

    def _follow(self, following: dict[PrefixNode, int]) -> list[PrefixNode]:
        """The nodes along the next tokens, from the root to one without a next token."""
        nodes = [self.root]
        while (token := following.get(nodes[-1])) is not None:
            self.path.question(len(nodes) - 1)  # for when another token is drawn here
            self.path.go(len(nodes) - 1, token)
            nodes.append(nodes[-1].children[token][1])
        return nodes

    def _look(self, nodes: list[PrefixNode], following: dict[PrefixNode, int]) -> None:
        """Give the last of the nodes a next token, tighten the bounds, and go back where that is due."""
        last, depth = nodes[-1], len(nodes) - 1
        before = [node.log_bound for node in nodes]
        if depth == self._target.max_tokens:
            last.log_bound = -np.inf
        else:
            tokens, logs = self.path.question(depth)
            last.look(tokens, logs)
            self._draw_next(last, tokens, logs, following)
            last.tighten()
        for node in reversed(nodes[:-1]):
            node.tighten()
        has_left = False
        for place, node in enumerate(nodes[:-1]):
            fall = nodes[place + 1].log_bound - before[place + 1] - (node.log_bound - before[place])
            # a bound that has become 0 takes its next token with it: -inf, or NaN where the prefix has no mass left
            keep = float(np.exp(fall)) if nodes[place + 1].log_bound > -np.inf else 0.0
            if not happens(keep, self._generator):
                has_left = True
                old = following.pop(node)
                tokens, logs = self.path.question(place)
                self._draw_next(node, tokens, logs, following, old)
        self.drafts += has_left

    def _draw_next(
        self,
        node: PrefixNode,
        tokens: Tokens,
        logs: Floats,
        following: dict[PrefixNode, int],
        without: int | None = None,
    ) -> None:
        """Draw the next token of a node in proportion to p times bound, any but `without`; none if there is no mass."""
        expected = node.expected(tokens, logs)
        if without is not None:
            expected[np.searchsorted(tokens, without)] = -np.inf
        log_norm = log_total(expected)
        if log_norm > -np.inf:
            place = draw_index(np.cumsum(np.exp(expected - log_norm)), self._generator)
            node.enter(tokens, logs, place)
            following[node] = int(tokens[place])
