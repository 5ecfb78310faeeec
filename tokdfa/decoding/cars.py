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

from tokdfa.decoding.draws import Costs, Draws, Eos, Target, check_count
from tokdfa.decoding.prefix_tree import Node, Path, happens
from tokdfa.decoding.sampling import Floats, draw_index, log_total, random_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint
    from tokdfa.decoding.prefix_tree import Tokens
    from tokdfa.models.base import LanguageModel


class CarsSampler:
    """Draws sequences and learns from each refused draft; see the module. Raises what `draw_by_cars` does."""

    def __init__(
        self,
        model: LanguageModel,
        compiled: CompiledConstraint,
        context: Sequence[int] = (),
        *,
        max_tokens: int = 256,
        eos: Eos = "counted",
        backtrack: bool = False,
        seed: int = 0,
    ) -> None:
        self._target = Target(model, compiled, context, max_tokens, eos)
        self._backtrack = backtrack
        self._generator = random_generator(seed)
        self._root = Node()

    @property
    def log_bound(self) -> float:
        """The log of the upper bound on the constraint's mass; a draft is kept with probability Z / bound."""
        return self._root.log_bound

    def draw(self, samples: int, *, max_drafts: int | None = None) -> Draws:
        """`samples` further sequences of equal weight, or fewer if `max_drafts` (default: 1000 times `samples`) do not
        give them. `log_mass`: see the module's docstring; -inf if nothing was kept."""
        started = time.perf_counter_ns()
        check_count("samples", samples)
        limit = 1000 * samples if max_drafts is None else max_drafts
        check_count("max_drafts", limit)
        path = Path(self._target, Costs())
        kept: list[tuple[int, ...]] = []
        log_bounds: list[float] = []
        drafts = 0
        while len(kept) < samples and drafts < limit and self._root.log_bound > -np.inf:
            log_bound = self._root.log_bound
            if not self._backtrack:
                path.forget()
            tokens = self._draft(path)
            drafts += 1
            if tokens is not None:
                kept.append(self._target.text_tokens(tokens))
                log_bounds.append(log_bound)
        log_mass = log_total(np.array(log_bounds)) - float(np.log(max(drafts, 1)))
        return self._target.draws(path.costs, started, kept, drafts, log_mass)

    def _draft(self, path: Path) -> list[int] | None:
        """The tokens of a draft, the end token included, None if it was refused; what it taught is in the bounds."""
        nodes = [self._root]
        is_kept = self._walk(path, nodes)
        if not is_kept and len(nodes) > 1 and not nodes[-1].is_known:
            nodes[-1].log_bound = -np.inf  # a prefix that is as long as it may be
        for node in reversed(nodes):
            if node.is_known:
                node.tighten()
        return path.tokens(len(nodes) - 1) if is_kept else None

    def _walk(self, path: Path, nodes: list[Node]) -> bool:
        """Walk a draft, appending its nodes; whether it came to its end."""
        while not path.is_complete(depth := len(nodes) - 1):
            if depth == self._target.max_tokens:
                return False
            tokens, logs = path.question(depth)
            place = self._choose(nodes[-1], tokens, logs)
            if place is None:
                return False
            nodes.append(nodes[-1].enter(tokens, logs, place))
            path.go(depth, int(tokens[place]))
        return True

    def _choose(self, node: Node, tokens: Tokens, logs: Floats) -> int | None:
        """The place of the next token; None if what was drawn is not among `tokens`, which only a new prefix can do."""
        is_new = not node.is_known
        node.look(tokens, logs)
        expected = node.expected(tokens, logs)
        log_norm = log_total(expected)
        if log_norm == -np.inf:
            return None
        if is_new and not happens(float(np.exp(log_norm)), self._generator):
            return None
        return draw_index(np.cumsum(np.exp(expected - log_norm)), self._generator)


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
    """`samples` exact, independent sequences by a new `CarsSampler`, whose `draw` explains the options.

    Raises EmptyMask at a dead end, ModelError as `tokdfa.decoding.loop.generate_batch` does,
    OptionError for values out of range. If the model gives no mass to the constraint, there are no sequences.
    """
    sampler = CarsSampler(model, compiled, context, max_tokens=max_tokens, eos=eos, backtrack=backtrack, seed=seed)
    return sampler.draw(samples, max_drafts=max_drafts)
