"""Prefixes that were seen, with upper bounds on what completes them, and the path that is being walked.

Let ``c(u) = sum of p(rest | u)`` over all ways to complete the prefix u within the constraint. A `Node` has an upper
bound on it: 1 for a prefix that was never seen, and for one that was

    bound(u) = sum over the tokens a that may follow of p(a | u) * bound(ua),        bound = 1 after an end token.

Drawing each token in proportion to p(a | u) bound(ua) gives a sequence the probability P(x) bound(x) / bound(root), so
that all complete sequences come in the proportions of the model. `tokdfa.decoding.asap` takes whatever comes of it;
`tokdfa.decoding.cars` and `tokdfa.decoding.adaptrack` refuse or go back where a bound turns out to be too large.

Memory: a node for each distinct prefix seen, with one number for all tokens not yet tried there. Rows are kept by a
`Path` alone, for the prefixes of the sequence in progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.decoding.sampling import Floats, draw_index, log_total

if TYPE_CHECKING:
    from tokdfa.backends.base import Matcher
    from tokdfa.decoding.draws import Costs, Target

Tokens = npt.NDArray[np.int64]

#: Chances nearer to 1 than this are 1: what a sum of thousands of probabilities loses to rounding is no event.
ROUNDING = 1e-12


def happens(chance: float, generator: np.random.Generator) -> bool:
    """True with probability `chance`. Takes a random number unless that is 1."""
    return chance > 1 - ROUNDING or draw_index(np.array([chance, 1.0]), generator) == 0


class Node:
    """A prefix that was seen. `log_bound`: the log of its bound; `children`: token -> log p(token | prefix), its node.

    `log_untried`: the log of the mass, after this prefix, of all tokens that may come and have no node; `is_known`:
    whether the tokens that may come were looked at, so that the bound follows from those below.
    """

    __slots__ = ("children", "is_known", "log_bound", "log_untried")

    def __init__(self) -> None:
        self.log_bound = 0.0
        self.log_untried = 0.0
        self.is_known = False
        self.children: dict[int, tuple[float, Node]] = {}

    def tighten(self) -> None:
        """Compute the bound anew from those of the children."""
        parts = [log_p + child.log_bound for log_p, child in self.children.values()]
        self.log_bound = log_total(np.array([self.log_untried, *parts]))

    def expected(self, tokens: Tokens, logs: Floats) -> Floats:
        """log p(token | prefix) + log bound of each token. `tokens`: those that may come, ascending, int64, shape (n,);
        `logs`: their log-probabilities, float64, shape (n,). O(n)."""
        found = logs.copy()
        found[np.searchsorted(tokens, list(self.children))] += [child.log_bound for _, child in self.children.values()]
        return found

    def look(self, tokens: Tokens, logs: Floats) -> None:
        """Take down which tokens may come, and what mass those without a node have. Arguments as in `expected`."""
        untried = logs.copy()
        untried[np.searchsorted(tokens, list(self.children))] = -np.inf
        self.log_untried = log_total(untried)
        self.is_known = True

    def enter(self, tokens: Tokens, logs: Floats, place: int) -> Node:
        """The node of ``tokens[place]``, made if there is none. Arguments as in `expected`."""
        _, child = self.children.setdefault(int(tokens[place]), (float(logs[place]), Node()))
        self.look(tokens, logs)
        return child


@dataclass(eq=False)
class Step:
    """A prefix of the path: its matcher, the tokens that may come with their log-probabilities, and which one came."""

    matcher: Matcher
    is_complete: bool
    tokens: Tokens | None = None
    logs: Floats | None = None
    taken: int | None = None


class Path:
    """The prefixes of the sequence in progress with all that was asked about them, so that nothing is asked twice."""

    def __init__(self, target: Target, costs: Costs) -> None:
        self._target, self.costs = target, costs
        start = target.start()
        self._steps = [Step(start, target.is_complete(start, costs))]

    def forget(self) -> None:
        """Keep nothing but the beginning, of which nothing has been asked."""
        del self._steps[1:]
        first = self._steps[0]
        first.tokens = first.logs = first.taken = None

    def tokens(self, depth: int) -> list[int]:
        """The first `depth` tokens of the path."""
        return [step.taken for step in self._steps[:depth] if step.taken is not None]

    def is_complete(self, depth: int) -> bool:
        """Whether the first `depth` tokens need no further one."""
        return self._steps[depth].is_complete

    def question(self, depth: int) -> tuple[Tokens, Floats]:
        """The tokens that may come after the first `depth`, ascending, int64, and their log-probabilities, float64.

        Asks the mask and the model, unless they were asked since the path last came here.
        """
        step = self._steps[depth]
        if step.tokens is None or step.logs is None:
            step.tokens = self.costs.allowed(step.matcher)
            ((_, row),) = self.costs.rows(self._target.model, [self._target.prefix(self.tokens(depth))])
            step.logs = row[step.tokens]
        return step.tokens, step.logs

    def go(self, depth: int, token: int) -> None:
        """Take `token` after the first `depth` tokens; what was behind another token is forgotten."""
        step = self._steps[depth]
        if step.taken == token:
            return
        del self._steps[depth + 1 :]
        step.taken = token
        matcher = step.matcher.fork()
        matcher.advance(token)
        self._steps.append(Step(matcher, self._target.is_complete(matcher, self.costs)))
