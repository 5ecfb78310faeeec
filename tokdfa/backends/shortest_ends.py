"""How few tokens lead from a state to an end: exactly, for every strategy whose states can be told apart.

Words. A *situation* is a state of the strategy as a number, its *targets* the situations after each token
(`tokdfa.backends.situation_source`). The *distance* of a situation is the least number of tokens after which the text
may end, 0 where it may end at once; an end token does not count.

Tokens that lead to one situation are one edge, so a situation has some dozens of edges where it has 100,000 tokens, and
a breadth-first search over situations finds the distance. That holds for context-free constraints as well: a situation
holds its stack, so there are infinitely many, but no search looks further ahead than the distance.

Among the nearest situations of JSON are thousands that no shortest way passes: names half written, members that
nobody asked for, values inside values. `pushdown_trie` knows *waypoints* of a situation q, such that every way from q
to an end passes one, maybe inside a token: where what is being read ends, or where the innermost calls return. Let the
end of a token that is read from a waypoint r never take more than s tokens (the *slack* of r, mostly 1: the end is a
token itself, or leads to where a token leads). A search that met every waypoint r of q at least s - 1 tokens before q
leaves q out: a way from q that passes r inside its i-th token, i >= 1, and takes n tokens, is matched by s tokens and
the n - i others from r. That is exact, as a waypoint that was left out itself was so for others met before.

With tokens to spare no such search is needed. Where a strategy reads bytes, *some* way to an end is found at once
(`tokdfa.backends.some_end`), and the fewest tokens that spell its bytes bound the distance of each situation along it
from above.

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
from bisect import bisect_right
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.remembered_ends import RememberedEnds
from tokdfa.backends.some_end import FAR, SomeEnd
from tokdfa.backends.spelled_ends import fewest_tokens, unspelled_ends
from tokdfa.core.budget import spend
from tokdfa.core.locks import new_lock
from tokdfa.errors import EmptyLanguageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from tokdfa.backends.situation_source import SituationSource
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.vocabulary import Vocabulary

    Int32 = npt.NDArray[np.int32]

#: How many targets of situations are kept, 4 bytes a token each.
RECENT = 8
#: What an expanded situation and an edge take.
NS_PER_SITUATION, NS_PER_EDGE = 300_000, 1_000
#: What it takes to read a byte or the end of a token, and to ask for a target's distance, a waypoint or its slack.
NS_PER_READ, NS_PER_ASKED = 10_000, 1_000
#: How often the waypoints of waypoints are looked up.
MOST_LAYERS = 4
#: From a waypoint that reads more bytes than a value of JSON begins with, most ends of tokens could be read.
MOST_FIRST = 32


class ShortestEnds:
    """Distances of the situations of one compiled constraint, remembered. Safe to share between threads.

    `state`: that of a matcher, which `source` numbers. Methods raise what the strategy raises, and LimitExceeded past
    the budget of a step; what was found by then is kept.
    """

    def __init__(self, source: SituationSource, vocab: Vocabulary) -> None:
        self.source, self._vocab = source, vocab
        self._lock = new_lock()
        #: The situation after each token, special tokens among them: int32, shape (V,), -1 where none is allowed.
        self.targets = lru_cache(RECENT)(self._find_targets)
        #: Situation -> its targets, each once, and the lowest token to each; both int32.
        self._edges: dict[int, tuple[Int32, Int32]] = {}
        #: Situation -> the least and the most that its distance can be.
        self._bounds: dict[int, tuple[int, int]] = {}
        self._some_end = SomeEnd(source)
        #: The same for matchers that remember more than a situation knows.
        self.remembered = RememberedEnds(self, vocab)
        #: Situations from which some way to an end was looked for.
        self._followed: set[int] = set()
        #: (situation, whether calls return) -> its waypoints; waypoint -> its slack.
        self._waypoints: dict[tuple[int, bool], frozenset[int]] = {}
        self._slacks: dict[int, int] = {}

    def is_within(self, state: Any, tokens: int) -> bool:
        """Whether so many tokens are enough to come to an end."""
        with self._lock:
            return self.is_near(self.source.number(state), tokens)

    def path(self, state: Any) -> list[int]:
        """The fewest tokens to an end; of several such ways one."""
        return self.path_from(self.source.number(state))

    def path_from(self, situation: int) -> list[int]:
        """`path` from the state that is a situation."""
        tokens = []
        with self._lock:
            self._settle(situation, FAR)
            if self._bounds[situation][0] >= FAR:
                raise EmptyLanguageError("no tokens lead from here to an end: the longest match may cut off every text")
            for left in reversed(range(self._bounds[situation][0])):
                targets, firsts = self._edges_of(situation)
                # the search has seen one of them to be so near
                nearer = next(k for k, target in enumerate(targets.tolist()) if self._bounds_of(target)[1] <= left)
                situation = int(targets[nearer])
                self._bounds[situation] = left, left
                tokens.append(int(firsts[nearer]))
        return tokens

    def restrict(self, state: Any, tokens: int, mask: Mask) -> None:
        """Take out of `mask`, that of `state`, the tokens after which so many more are not enough; no end tokens."""
        with self._lock:
            situation = self.source.number(state)
            targets = self._edges_of(situation)[0].tolist()
            spend(NS_PER_ASKED * len(targets))
            far = [target for target in targets if not self.is_near(target, tokens)]
            if not far:
                return
            leads = self.targets(situation)
            lost = np.isin(leads, np.array(far, dtype=np.int32)) if len(far) > 1 else leads == far[0]
        mask &= ~masks.mask_from_ids(np.flatnonzero(lost), self._vocab.size)

    def is_near(self, situation: int, tokens: int) -> bool:
        """`is_within` of the state that is a situation."""
        if tokens < 0:
            return False
        with self._lock:
            self._settle(situation, tokens)
            return self._bounds[situation][1] <= tokens

    def distance(self, situation: int) -> int:
        """The fewest tokens to an end, FAR if none lead there."""
        with self._lock:
            self._settle(situation, FAR)
            return self._bounds[situation][1]

    def some_way(self, situation: int) -> tuple[int, bytes] | None:
        """The tokens that some way to an end takes, and its bytes; None if none is known. It is not the shortest."""
        with self._lock:
            way = self._some_end.way(situation)
            return None if way is None else (fewest_tokens(self._vocab, way[0])[0], way[0])

    def _settle(self, situation: int, tokens: int) -> None:
        """Know the distance, or that it is more than `tokens`, or that it is not."""
        if self._bounds_of(situation)[1] == FAR and situation not in self._followed:
            self._follow_some_end(situation)
        least, most = self._bounds_of(situation)
        if not (least == most or most <= tokens < FAR or least > tokens):
            self._search(situation, tokens)

    def _follow_some_end(self, situation: int) -> None:
        """Bound distances from above by the fewest tokens that spell some way to an end."""
        self._followed.add(situation)
        way = self._some_end.way(situation)
        if way is not None:
            for here, tokens in zip(way[1], fewest_tokens(self._vocab, way[0]), strict=True):
                least, most = self._bounds_of(here)
                self._bounds[here] = least, min(most, tokens)

    def _bounds_of(self, situation: int) -> tuple[int, int]:
        bounds = self._bounds.get(situation)
        if bounds is None:
            bounds = self._bounds[situation] = (0, 0) if self.source.can_end(situation) else (1, FAR)
        return bounds

    def _search(self, start: int, tokens: int) -> None:
        """Expand what is near `start`, nearest first, until its distance is known or seen to be more than `tokens`."""
        met, expanded, spared = {start: 0}, list[int](), dict[int, frozenset[int]]()
        agenda, steps, best, done = [start], 0, self._bounds_of(start)[1], set[int]()
        reads_no_bytes = self.source.following(start) is None  # as in a region or a head, which others may follow
        while agenda and steps < min(best, tokens + 1) and (best > tokens or tokens == FAR):
            following, together = [], set(agenda)
            # those whose waypoints are as near go last, and may be spared
            for here in sorted(agenda, key=lambda here: not together.isdisjoint(self._waypoints_of(here, False))):
                done.add(here)
                spend(NS_PER_ASKED)
                if steps + self._bounds_of(here)[0] >= min(best, tokens + 1):
                    continue  # no nearer than what is known
                for waypoints in self._layers(here):
                    spend(NS_PER_ASKED * len(waypoints))
                    if all(k in done and met[k] + self._slack_of(k) <= steps + 1 for k in waypoints):
                        spared[here] = waypoints
                        break
                else:
                    expanded.append(here)
                    targets = self._edges_of(here)[0].tolist()
                    spend(NS_PER_EDGE * len(targets))
                    for target in targets:
                        if target not in met:
                            met[target] = steps + 1
                            if reads_no_bytes and best > tokens and target not in self._followed:
                                self._follow_some_end(target)
                            least, most = self._bounds_of(target)
                            best = min(best, steps + 1 + most)
                            if least < most:
                                following.append(target)
            agenda, steps = following, steps + 1
        self._spread(met, expanded, spared)
        least, most = self._bounds[start]
        if best > tokens or tokens == FAR:  # else it is near enough, though maybe nearer
            least = max(least, min(best, tokens + 1))
        self._bounds[start] = least, most

    def _spread(self, met: Iterable[int], expanded: list[int], spared: dict[int, frozenset[int]]) -> None:
        """Better bounds for the situations of a search, from those of its leaves, along its edges."""
        sources = defaultdict(list)
        for here in expanded:
            targets = self._edges_of(here)[0].tolist()
            spend(2 * NS_PER_EDGE * len(targets))  # they are followed twice
            for target in targets:
                sources[target].append((here, 1))
        for which in (1, 0):
            inside = set(expanded)
            if which == 0:  # no way is shorter than the shortest from the waypoints
                for here, waypoints in spared.items():
                    if all(self._slack_of(waypoint) == 1 for waypoint in waypoints):
                        inside.add(here)
                        for waypoint in waypoints:
                            sources[waypoint].append((here, 0))
            found: dict[int, int] = {}
            agenda = [(self._bounds[leaf][which], leaf) for leaf in met if leaf not in inside]
            heapq.heapify(agenda)
            while agenda:
                distance, here = heapq.heappop(agenda)
                if distance >= FAR or here in found:
                    continue
                found[here] = distance
                for source, length in sources.get(here, ()):
                    if source not in found:
                        heapq.heappush(agenda, (distance + length, source))
            for here in inside:
                bounds = self._bounds[here]
                if which == 0:
                    self._bounds[here] = max(bounds[0], found.get(here, FAR)), bounds[1]
                else:
                    self._bounds[here] = bounds[0], min(bounds[1], found.get(here, FAR))

    def _layers(self, situation: int) -> Iterator[frozenset[int]]:
        """Sets of waypoints, the nearest first: where instructions end, and then where calls return."""
        for calls in (False, True):
            waypoints = self._waypoints_of(situation, calls)
            for _ in range(MOST_LAYERS):
                if not waypoints:
                    break
                yield waypoints
                beyond = [self._waypoints_of(waypoint, calls) for waypoint in waypoints]
                waypoints = frozenset().union(*beyond) if all(beyond) else frozenset()

    def _waypoints_of(self, situation: int, calls: bool) -> frozenset[int]:
        """See `SituationSource.waypoints`."""
        found = self._waypoints.get((situation, calls))
        if found is None:
            some = self.source.waypoints(situation, calls)
            found = frozenset(() if situation in some else some)
            self._waypoints[situation, calls] = found
        return found

    def _slack_of(self, situation: int) -> int:
        """How many tokens the end of a token takes from here at most, or its like; 1 if there is none, FAR if nobody
        knows.
        """
        slack = self._slacks.get(situation)
        if slack is None:
            spend(256 * NS_PER_READ)
            first = [byte for byte in range(256) if self.source.read(situation, bytes([byte])) >= 0]
            slack = 1 if len(first) <= MOST_FIRST else FAR
            if slack == 1:
                reached = {situation, *self._edges_of(situation)[0].tolist()}
                slack = max([1, *(self._slack_after(situation, byte, reached) for byte in first)])
            self._slacks[situation] = slack
        return slack

    def _slack_after(self, situation: int, byte: int, reached: set[int]) -> int:
        """The slack by ends of tokens that begin with a byte."""
        ends, slack, k = unspelled_ends(self._vocab, byte), 1, 0
        while k < len(ends):
            end = ends[k]
            found = self.source.read(situation, end)
            if found >= 0:
                slack = max(slack, 1 if found in reached else fewest_tokens(self._vocab, end)[0])
                k += 1
            else:  # and no other one that begins as badly
                bad = next(n for n in range(1, len(end) + 1) if self.source.read(situation, end[:n]) < 0)
                k = bisect_right(ends, end[:bad], k, key=lambda other: other[:bad])
            spend(NS_PER_READ)
        return slack

    def _edges_of(self, situation: int) -> tuple[Int32, Int32]:
        """The situations that tokens lead to, each once, and the lowest token to each."""
        edges = self._edges.get(situation)
        if edges is None:
            spend(NS_PER_SITUATION)
            leads = self.targets(situation)
            tokens = np.flatnonzero(leads >= 0).astype(np.int32)[::-1]
            reached = leads[tokens]
            first = np.full(int(reached.max(initial=-1)) + 1, -1, dtype=np.int32)
            first[reached] = tokens  # the last one written is the lowest
            targets = np.flatnonzero(first >= 0).astype(np.int32)
            edges = self._edges[situation] = targets, first[targets]
            spend(0, edges[0].nbytes + edges[1].nbytes)
        return edges

    def _find_targets(self, situation: int) -> Int32:
        """See `targets`."""
        leads = self.source.targets(situation)
        allowed = masks.allocate_mask(self._vocab.size)
        self.source.fill(situation, allowed)
        others = np.flatnonzero(masks.mask_to_bool(allowed, self._vocab.size) & (leads < 0))
        others = others[~np.isin(others, self._vocab.end_tokens)]
        if len(others):
            leads = leads.copy()
            spend(NS_PER_READ * len(others))
            leads[others] = [self.source.step(situation, int(token)) for token in others]
        return leads
