"""The search for relevant pairs: forwards from the start, then backwards from where the text may end.

Words. For pairs, entries and borders see `tokdfa.backends.proper_merge.pair_graph`. A pair is *relevant* iff a pair
whose text may end can be reached from it.

The search. Breadth-first from the start over all tokens that both automata allow; then backwards, from the visited
pairs that may end, over reverse transitions.

There may be 10^9 edges, so they are looked at as they are needed: forwards, each pair goes through the row of its text
state, which is what making its mask costs; backwards, each relevant pair goes through the entries that lead to it, and
those pairs of their rows that are not known to be relevant yet. With `skip_visited` the search forwards leaves entries
out that lead to pairs visited before, as the one backwards does. That finds the same pairs, looks at far fewer edges,
and is not in 002, whose 27.3 s are those of some 18,000 masks of 1.5 ms.

Cost: time O(pairs x entries of a row) forwards, 1 to 2 ns each.
Source: 002, technical appendix, algorithms 5 and 6. Borders, byte fallback and whole pieces are ours.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded
from tokdfa.proper.intervals import is_listed_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.pair_graph import PairGraph
    from tokdfa.proper.canonical import Canonicity

#: How many pairs are visited by default. A pair costs some 20 bytes, and a walk along a row.
MAX_PAIRS = 5_000_000
#: How many edges the search looks at between two looks at the clock: some 0.1 s.
EDGES_AT_A_TIME = 50_000_000
#: What an edge takes.
NS_PER_EDGE = 2


class FoundPairs(NamedTuple):
    """What the search finds. `visited`: which pairs the start leads to; `relevant`: which of these are relevant; both
    bool, shape (pairs,). `edges`: how many edges of visited pairs the search forwards has looked at.
    """

    visited: npt.NDArray[np.bool_]
    relevant: npt.NDArray[np.bool_]
    edges: int


def search_pairs(
    graph: PairGraph,
    canonicity: Canonicity,
    can_end: npt.NDArray[np.bool_],
    max_pairs: int = MAX_PAIRS,
    max_seconds: float | None = None,
    skip_visited: bool = False,
) -> FoundPairs:
    """The pairs that the start leads to, and those of them that are relevant.

    `can_end`: bool, shape (text states,), where the text may end. `max_seconds`: how long the search may take (None: as
    long as it likes). Raises LimitExceeded past `max_pairs` visited pairs, or `max_seconds`.
    """
    clock = _Clock(max_seconds)
    queue, visited, edges = _visit_pairs(graph, canonicity, max_pairs, clock, skip_visited)
    relevant = _spread_relevance(graph, canonicity, queue, can_end, clock)
    return FoundPairs(visited, relevant, edges)


class _Clock:
    """Counts from now on. `max_seconds`: None for any time."""

    def __init__(self, max_seconds: float | None) -> None:
        self._begun, self._max_seconds = time.monotonic(), max_seconds

    def check(self) -> None:
        """Raise LimitExceeded if the time is over."""
        if self._max_seconds is not None and time.monotonic() - self._begun > self._max_seconds:
            raise LimitExceeded(
                f'the search over pairs takes more than {self._max_seconds:g} s: use relevance="fixpoint", or raise '
                "max_seconds",
                limit="seconds",
                value=self._max_seconds,
            )


def _visit_pairs(
    graph: PairGraph, canonicity: Canonicity, max_pairs: int, clock: _Clock, skip_visited: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], int]:
    """The visited pairs in the order of their visits, int32; which they are, bool; and the edges looked at."""
    text, pairs, lists = graph.text, graph.pairs, canonicity.lists
    visited = np.zeros(len(pairs.keys), dtype=np.bool_)
    queue = np.empty(len(pairs.keys), dtype=np.int32)
    queue[: graph.begins] = np.arange(graph.begins)
    visited[: graph.begins] = True
    places = np.array([0, graph.begins], dtype=np.int64)  # the next pair of the queue, and its end
    forbidden = np.zeros(canonicity.size, dtype=np.int64)
    entries = np.arange(len(text.tokens) if skip_visited else 0, dtype=np.int64)
    left = np.diff(text.starts)
    edges = 0
    while places[0] < places[1]:
        found = _visit_pairs_kernel(
            queue, places, max_pairs, graph.width, graph.fresh, text, pairs, lists.list_starts, lists.starts,
            lists.ends, canonicity.forest.order, forbidden, visited, entries, left,
        )  # fmt: skip
        edges += found
        spend(NS_PER_EDGE * int(found))
        if places[1] > max_pairs:
            raise LimitExceeded(
                f'the search visits more than {max_pairs} pairs: use relevance="fixpoint", or raise max_pairs',
                limit="max_pairs",
                value=max_pairs,
            )
        clock.check()
    return queue[: places[1]], visited, edges


def _spread_relevance(
    graph: PairGraph,
    canonicity: Canonicity,
    visited: npt.NDArray[np.int32],
    can_end: npt.NDArray[np.bool_],
    clock: _Clock,
) -> npt.NDArray[np.bool_]:
    """Which pairs are relevant: bool, shape (pairs,). `visited`: their numbers, in any order; overwritten."""
    text, pairs, lists = graph.text, graph.pairs, canonicity.lists
    waiting = visited[np.argsort(pairs.keys[visited], kind="stable")]
    first = np.searchsorted(pairs.keys[waiting], np.arange(len(text.keys) + 1) * graph.width).astype(np.int64)
    incoming = _Incoming(*_sort_edges_kernel(text.starts, pairs.of_entry, pairs.behind, len(pairs.keys)))
    ends = visited[can_end[pairs.keys[visited] // graph.width]]
    relevant = np.zeros(len(pairs.keys), dtype=np.bool_)
    relevant[ends] = True
    queue = visited  # every relevant pair has been visited, so there is room
    queue[: len(ends)] = ends
    places = np.array([0, len(ends)], dtype=np.int64)
    remaining = np.diff(first)
    while places[0] < places[1]:
        _spread_relevance_kernel(
            queue, places, graph.width, graph.fresh, text, pairs, incoming, lists.list_starts, lists.starts,
            lists.ends, canonicity.forest.number, first, remaining, waiting, relevant,
        )  # fmt: skip
        spend(NS_PER_EDGE * min(EDGES_AT_A_TIME, len(text.tokens) + len(pairs.keys)))
        clock.check()
    return relevant


class _Incoming(NamedTuple):
    """The edges backwards. Those into pair p are ``starts[p] .. starts[p + 1] - 1``: of each, its entry in the rows of
    the text, -1 for a border, and the state that it leaves.
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int32]


@kernel
def _visit_pairs_kernel(  # type: ignore[no-untyped-def]
    queue, places, max_pairs, width, fresh, text, pairs, list_starts, interval_starts, interval_ends, order,
    forbidden, visited, entries, left,
):  # fmt: skip
    """Go on breadth-first for some `EDGES_AT_A_TIME`; returns how many edges were looked at.

    `forbidden`: int64, shape (V,), zeros at first: the number of the last pair that a token may not follow. With
    `entries` (all entries, else empty) those
    that lead to visited pairs are left out: the ``left[state]`` first ones from ``starts[state]`` on are the others.
    """
    edges = 0
    head, tail = places[0], places[1]
    while head < tail and edges < EDGES_AT_A_TIME and tail <= max_pairs:
        key = pairs.keys[queue[head]]
        head += 1
        state, after = key // width, key % width
        if after < fresh:
            for k in range(list_starts[after], list_starts[after + 1]):
                for number in range(interval_starts[k], interval_ends[k]):
                    forbidden[order[number]] = head
        begin = text.starts[state]
        if len(entries):
            end = begin + left[state]
            edges += left[state]
            kept = begin
            for place in range(begin, end):
                k = entries[place]
                target = pairs.of_entry[k]
                if visited[target]:
                    continue
                if forbidden[text.tokens[k]] == head:
                    entries[kept] = k
                    kept += 1
                else:
                    visited[target] = True
                    queue[tail] = target
                    tail += 1
            left[state] = kept - begin
        else:
            end = text.starts[state + 1]
            edges += end - begin
            for k in range(begin, end):
                if forbidden[text.tokens[k]] != head and not visited[pairs.of_entry[k]]:
                    visited[pairs.of_entry[k]] = True
                    queue[tail] = pairs.of_entry[k]
                    tail += 1
        target = pairs.behind[state]
        if after != fresh and target >= 0 and not visited[target]:
            visited[target] = True
            queue[tail] = target
            tail += 1
    places[0], places[1] = head, tail
    return edges


@kernel
def _sort_edges_kernel(row_starts, of_entry, behind, pair_count):  # type: ignore[no-untyped-def]
    """The arrays of `_Incoming`."""
    starts = np.zeros(pair_count + 1, dtype=np.int64)
    for pair in of_entry:
        starts[pair + 1] += 1
    for pair in behind:
        if pair >= 0:
            starts[pair + 1] += 1
    for pair in range(pair_count):
        starts[pair + 1] += starts[pair]
    entries, sources = np.empty(starts[pair_count], dtype=np.int64), np.empty(starts[pair_count], dtype=np.int32)
    free = starts.copy()
    for state in range(len(behind)):
        for k in range(row_starts[state], row_starts[state + 1] + 1):
            is_border = k == row_starts[state + 1]
            pair = behind[state] if is_border else of_entry[k]
            if pair >= 0:
                entries[free[pair]], sources[free[pair]] = -1 if is_border else k, state
                free[pair] += 1
    return starts, entries, sources


@kernel
def _spread_relevance_kernel(  # type: ignore[no-untyped-def]
    queue, places, width, fresh, text, pairs, incoming, list_starts, interval_starts, interval_ends, number,
    first, remaining, waiting, relevant,
):  # fmt: skip
    """Go on backwards for some `EDGES_AT_A_TIME`.

    The visited pairs of a state that are not known to be relevant are ``waiting[first[state] :][:remaining[state]]``,
    among others that have become relevant since.
    """
    edges = 0
    head, tail = places[0], places[1]
    while head < tail and edges < EDGES_AT_A_TIME:
        pair = queue[head]
        head += 1
        for edge in range(incoming.starts[pair], incoming.starts[pair + 1]):
            state, entry = incoming.sources[edge], incoming.entries[edge]
            begin = first[state]
            edges += remaining[state] + 1
            placed = number[text.tokens[entry]] if entry >= 0 else -1
            kept = begin
            for place in range(begin, begin + remaining[state]):
                source = waiting[place]
                if relevant[source]:
                    continue
                after = pairs.keys[source] % width
                if after == fresh:
                    is_refused = entry < 0
                else:
                    is_refused = (
                        after < fresh
                        and entry >= 0
                        and is_listed_kernel(after, placed, list_starts, interval_starts, interval_ends)
                    )
                if is_refused:
                    waiting[kept] = source
                    kept += 1
                else:
                    relevant[source] = True
                    queue[tail] = source
                    tail += 1
            remaining[state] = kept - begin
    places[0], places[1] = head, tail
