"""Prefixes that were seen, with upper bounds on what completes them, and the path that is being walked.

Let ``c(u) = sum of p(rest | u)`` over all ways to complete the prefix u within the constraint. A `PrefixNode` has an
upper bound on it: 1 for a prefix that was never seen, and for one that was

    bound(u) = sum over the tokens a that may follow of p(a | u) * bound(ua),        bound = 1 after an end token.

Drawing each token in proportion to p(a | u) bound(ua) gives a sequence the probability P(x) bound(x) / bound(root), so
that all complete sequences come in the proportions of the model. `tokdfa.decoding.asap` takes whatever comes of it;
`tokdfa.decoding.cars` and `tokdfa.decoding.adaptrack` refuse or go back where a bound turns out to be too large. The
first two draw by a `TreeSampler`.

Memory: a node for each distinct prefix seen, with one number for all tokens not yet tried there. Rows are kept by a
`Path` alone, for the prefixes of the sequence in progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.decoding.draws import Costs, Target, check_count
from tokdfa.decoding.sampling import Floats, draw_index, log_total, random_generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.decoding.draws import Eos
    from tokdfa.models.base import LanguageModel

Tokens = npt.NDArray[np.int64]

#: Chances nearer to 1 than this are 1: what a sum of thousands of probabilities loses to rounding is no event.
ROUNDING = 1e-12


def happens(chance: float, generator: np.random.Generator) -> bool:
    """True with probability `chance`. Takes a random number unless that is 1."""
    return chance > 1 - ROUNDING or draw_index(np.array([chance, 1.0]), generator) == 0


class PrefixNode:
    """A prefix that was seen. `log_bound`: the log of its bound; `children`: token -> log p(token | prefix), its node.

    `log_untried`: the log of the mass, after this prefix, of all tokens that may come and have no node; `is_known`:
    whether the tokens that may come were looked at, so that the bound follows from those below.
    """

    __slots__ = ("children", "is_known", "log_bound", "log_untried")

    def __init__(self) -> None:
        self.log_bound = 0.0
        self.log_untried = 0.0
        self.is_known = False
        self.children: dict[int, tuple[float, PrefixNode]] = {}

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

    def enter(self, tokens: Tokens, logs: Floats, place: int) -> PrefixNode:
        """The node of ``tokens[place]``, made if there is none. Arguments as in `expected`."""
        _, child = self.children.setdefault(int(tokens[place]), (float(logs[place]), PrefixNode()))
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


class Drafts(NamedTuple):
    """What a `TreeSampler` drew. Of each kept draft: the text's tokens, the log of the root's bound when it began, and
    of the product of norm(u) / bound(ua) along it, norm(u) being the sum of p(a | u) bound(ua). `begun`: how many
    drafts there were.
    """

    costs: Costs
    sequences: list[tuple[int, ...]]
    log_bounds: Floats
    log_weights: Floats
    begun: int


class TreeSampler:
    """Draws drafts token by token in proportion to p times bound, and tightens the bounds along each.

    `refuses`: whether a draft is refused at a prefix never seen with the probability that its mask does not allow;
    `backtrack`: keep the rows of what a draft has in common with the one before.
    """

    def __init__(
        self,
        model: LanguageModel,
        compiled: CompiledConstraint,
        context: Sequence[int] = (),
        *,
        refuses: bool,
        max_tokens: int = 256,
        eos: Eos = "counted",
        backtrack: bool = False,
        seed: int = 0,
    ) -> None:
        self.target = Target(model, compiled, context, max_tokens, eos)
        self._refuses, self._backtrack = refuses, backtrack
        self._generator = random_generator(seed)
        self._root = PrefixNode()

    def log_bound(self, tokens: Sequence[int] = ()) -> float:
        """The log of the upper bound on the mass that completes `tokens`; of Z for none; 0 for a prefix never seen."""
        node = self._root
        for token in tokens:
            if token not in node.children:
                return 0.0
            node = node.children[token][1]
        return node.log_bound

    def draw(self, samples: int, max_drafts: int) -> Drafts:
        """`samples` complete drafts, or fewer if `max_drafts` do not give them or no mass is left."""
        check_count("samples", samples)
        check_count("max_drafts", max_drafts)
        path = Path(self.target, Costs())
        kept: list[tuple[tuple[int, ...], float, float]] = []
        begun = 0
        while len(kept) < samples and begun < max_drafts and self._root.log_bound > -np.inf:
            log_bound = self._root.log_bound
            if not self._backtrack:
                path.forget()
            nodes = [self._root]
            log_weight = self._walk(path, nodes)
            begun += 1
            if log_weight is not None:
                kept.append((self.target.text_tokens(path.tokens(len(nodes) - 1)), log_bound, log_weight))
            elif len(nodes) > 1 and not nodes[-1].is_known:
                nodes[-1].log_bound = -np.inf  # a prefix that is as long as it may be
            for node in reversed(nodes):
                if node.is_known:
                    node.tighten()
        sequences = [sequence for sequence, _, _ in kept]
        log_bounds, log_weights = np.array([logs for _, *logs in kept]).reshape(-1, 2).T
        return Drafts(path.costs, sequences, log_bounds, log_weights, begun)

    def _walk(self, path: Path, nodes: list[PrefixNode]) -> float | None:
        """Walk a draft, appending its nodes; the log of its weight, None if it did not come to its end."""
        log_weight = 0.0
        while not path.is_complete(depth := len(nodes) - 1):
            if depth == self.target.max_tokens:
                return None
            node, (tokens, logs) = nodes[-1], path.question(depth)
            is_new = not node.is_known
            node.look(tokens, logs)
            expected = node.expected(tokens, logs)
            log_norm = log_total(expected)
            if log_norm == -np.inf:
                return None
            if is_new and self._refuses and not happens(float(np.exp(log_norm)), self._generator):
                return None
            place = draw_index(np.cumsum(np.exp(expected - log_norm)), self._generator)
            nodes.append(node.enter(tokens, logs, place))
            log_weight += log_norm - nodes[-1].log_bound
            path.go(depth, int(tokens[place]))
        return log_weight
