"""How few tokens lead from a state to an end: exactly, for every strategy whose states can be told apart.

Words. A *situation* is a state of the strategy as a number, its *targets* the situations after each token
(`tokdfa.backends.situation_source`). The *distance* of a situation is the least number of tokens after which the text
may end, 0 where it may end at once; an end token does not count.

Tokens that lead to one situation are one edge, so a situation has some dozens of edges where it has 100,000 tokens, and
a breadth-first search over situations finds the distance. That holds for context-free constraints as well: a situation
holds its stack, so there are infinitely many, but no search looks further ahead than the distance.

A search leaves bounds behind. Let it have met some situations, of which it expanded part; the others are its *leaves*.
A way to an end from an expanded one stays among these, or comes to a leaf first. So with the lower bounds of the leaves
the shortest ways along the edges seen are lower bounds of all, and with their upper bounds upper ones. Where both are
equal the distance is known, and later searches stop there. What a text passes is mostly settled by its first search.

Cost: `SituationSource.targets` of each situation expanded, once: 0.5 to 2 ms for 128,000 tokens with the grammar
engines, the index and the tokens DFA, some us a token with others. Then about 1 us an edge and search. Memory: 8 bytes
an edge.

Source: breadth-first search (Moore 1959) and shortest ways from many ends (Dijkstra 1959), on the automaton over tokens
of 002, made as it is met.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: How many targets of situations are kept, 4 bytes a token each.
RECENT = 8
#: What an expanded situation and an edge take.
NS_PER_SITUATION, NS_PER_EDGE = 300_000, 1_000
#: No end is known.
FAR = 1 << 30


class ShortestEnds:
    """Distances of the situations of one compiled constraint, remembered. Safe to share between threads.

    `state`: that of a matcher, which `source` numbers. Methods raise what the strategy raises, and LimitExceeded past
    the budget of a step; what was found by then is kept.
    """

    def __init__(self, source: SituationSource, vocab: Vocabulary) -> None:
        self._source, self._vocab = source, vocab
        self._lock = new_lock()
        self._targets = lru_cache(RECENT)(self._find_targets)
        #: Situation -> its targets, each once, and the lowest token to each; both int32.
        self._edges: dict[int, tuple[Int32, Int32]] = {}
        #: Situation -> the least and the most that its distance can be.
        self._bounds: dict[int, tuple[int, int]] = {}

    def is_within(self, state: Any, tokens: int) -> bool:
        """Whether so many tokens are enough to come to an end."""
        with self._lock:
            return self._is_within(self._source.number(state), tokens)

    def path(self, state: Any) -> list[int]:
        """The fewest tokens to an end; of several such ways one, always the same."""
        tokens = []
        with self._lock:
            situation = self._source.number(state)
            self._settle(situation, FAR)
            while left := self._bounds[situation][0]:
                targets, firsts = self._edges_of(situation)
                nearer = next(k for k, target in enumerate(targets.tolist()) if self._is_within(target, left - 1))
                situation = int(targets[nearer])
                self._settle(situation, FAR)
                tokens.append(int(firsts[nearer]))
        return tokens

    def restrict(self, state: Any, tokens: int, mask: Mask) -> None:
        """Take out of `mask`, that of `state`, the tokens after which so many more are not enough; no end tokens."""
        with self._lock:
            situation = self._source.number(state)
            targets = self._edges_of(situation)[0].tolist()
            far = [target for target in targets if not self._is_within(target, tokens)]
            if not far:
                return
            leads = self._targets(situation)
            lost = np.isin(leads, np.array(far, dtype=np.int32)) if len(far) > 1 else leads == far[0]
        mask &= ~masks.mask_from_ids(np.flatnonzero(lost), self._vocab.size)

    def _is_within(self, situation: int, tokens: int) -> bool:
        if tokens < 0:
            return False
        self._settle(situation, tokens)
        return self._bounds[situation][1] <= tokens

    def _settle(self, situation: int, tokens: int) -> None:
        """Know the distance, or that it is more than `tokens`, or that it is not."""
        least, most = self._bounds_of(situation)
        if not (least == most or most <= tokens < FAR or least > tokens):
            self._search(situation, tokens)

    def _bounds_of(self, situation: int) -> tuple[int, int]:
        bounds = self._bounds.get(situation)
        if bounds is None:
            bounds = self._bounds[situation] = (0, 0) if self._source.can_end(situation) else (1, FAR)
        return bounds

    def _search(self, start: int, tokens: int) -> None:
        """Expand what is near `start`, nearest first, until its distance is known or seen to be more than `tokens`."""
        met, expanded = {start}, []
        agenda, steps, best = [start], 0, FAR
        while agenda and steps < min(best, tokens + 1):
            following = []
            for here in agenda:
                if steps + self._bounds_of(here)[0] >= min(best, tokens + 1):
                    continue  # no nearer than what is known
                expanded.append(here)
                for target in self._edges_of(here)[0].tolist():
                    if target not in met:
                        met.add(target)
                        least, most = self._bounds_of(target)
                        best = min(best, steps + 1 + most)
                        if least < most:
                            following.append(target)
            agenda, steps = following, steps + 1
        self._spread(met, expanded)

    def _spread(self, met: set[int], expanded: list[int]) -> None:
        """Better bounds for the situations of a search, from those of its leaves, along its edges."""
        sources = defaultdict(list)
        for here in expanded:
            for target in self._edges_of(here)[0].tolist():
                sources[target].append(here)
        spend(NS_PER_EDGE * len(sources))
        inside = set(expanded)
        for which in (0, 1):
            found: dict[int, int] = {}
            agenda = [(self._bounds[leaf][which], leaf) for leaf in met if leaf not in inside]
            heapq.heapify(agenda)
            while agenda:
                distance, here = heapq.heappop(agenda)
                if distance >= FAR or here in found:
                    continue
                found[here] = distance
                for source in sources.get(here, ()):
                    if source not in found:
                        heapq.heappush(agenda, (distance + 1, source))
            for here in expanded:
                bounds = self._bounds[here]
                if which == 0:
                    self._bounds[here] = max(bounds[0], found.get(here, FAR)), bounds[1]
                else:
                    self._bounds[here] = bounds[0], min(bounds[1], found.get(here, FAR))

    def _edges_of(self, situation: int) -> tuple[Int32, Int32]:
        """The situations that tokens lead to, each once, and the lowest token to each."""
        edges = self._edges.get(situation)
        if edges is None:
            spend(NS_PER_SITUATION)
            leads = self._targets(situation)
            tokens = np.flatnonzero(leads >= 0).astype(np.int32)[::-1]
            reached = leads[tokens]
            first = np.full(int(reached.max(initial=-1)) + 1, -1, dtype=np.int32)
            first[reached] = tokens  # the last one written is the lowest
            targets = np.flatnonzero(first >= 0).astype(np.int32)
            edges = self._edges[situation] = targets, first[targets]
            spend(0, edges[0].nbytes + edges[1].nbytes)
        return edges

    def _find_targets(self, situation: int) -> Int32:
        """The situation after each token, special tokens that a grammar names among them."""
        leads = self._source.targets(situation)
        allowed = masks.allocate_mask(self._vocab.size)
        self._source.fill(situation, allowed)
        others = np.flatnonzero(masks.mask_to_bool(allowed, self._vocab.size) & (leads < 0))
        others = others[~np.isin(others, self._vocab.end_tokens)]
        if len(others):
            leads = leads.copy()
            leads[others] = [self._source.step(situation, int(token)) for token in others]
        return leads
