"""Relevant pairs: 002's own way to tell which tokens lead nowhere, by a search over pairs of states.

Words. The *text automaton* is the constraint over tokens: its states are those of
`tokdfa.backends.proper_merge.proper_rows`, its transitions the entries of their rows, and the markers that lead over a
border of pieces. The *bigram automaton* is that of the proper sequences: a state for each set of tokens that a token
may be followed by (`Canonicity.state_of`), one, `fresh`, for the beginning of a piece, and one for whole pieces, which
say nothing about what follows. A *pair* has a state of each. A token leads from a pair to another iff both automata
allow it, a border from any pair that is not fresh to the fresh pair behind it. A pair is *relevant* iff a pair whose
text may end can be reached from it.

What a token makes of the bigram automaton depends on the token alone. So an entry of a row leads to one and the same
pair from whatever pair it is allowed in: pairs get numbers if entries, borders or the start lead to them, and beside
each entry stands the number of its pair. The edges from pair to pair, of which there may be 10^9, are not stored: they
are the entries of the text state's row, but for the tokens that the bigram state forbids.

The search is made once, for all that the start leads to: breadth-first over all tokens that both automata allow, where
each pair goes through the row of its text state, which is what making its mask costs; then backwards from the pairs
that may end, over reverse transitions. Each relevant pair goes through the entries that lead to it, and through those
pairs of their rows' states that are not known to be relevant yet. With `skip_visited` the search forwards leaves out
entries that lead to pairs visited before, as the notebook of 002 does; it finds the same pairs and looks at far fewer
edges.

Compare `tokdfa.backends.proper_merge.proper_table`, where no pairs occur.

Cost: time O(pairs x entries of a row), 1 to 2 ns each; O(entries of the rows) memory.
Source: 002, technical appendix, algorithms 5 and 6; its notebook skips groups that have been reached. Borders, byte
fallback and whole pieces are ours.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.automata.liveness import list_incoming_kernel
from tokdfa.backends.proper_merge.marked_product import ENDS
from tokdfa.backends.proper_merge.proper_rows import border_key_kernel
from tokdfa.backends.proper_merge.proper_states import begin_state
from tokdfa.backends.proper_merge.proper_table import ProperTable
from tokdfa.core.budget import spend
from tokdfa.core.interning import NEEDS_ROOM, InterningTable, find_key, intern_key
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.errors import LimitExceeded
from tokdfa.proper.intervals import is_listed_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.backends.proper_merge.proper_states import State
    from tokdfa.proper.canonical import Canonicity

#: How many pairs are visited by default. A pair costs some 20 bytes, and a walk along a row.
MAX_PAIRS = 5_000_000
#: How many edges the search looks at between two looks at the clock: some 0.1 s. What an edge takes.
EDGES_AT_A_TIME, NS_PER_EDGE = 50_000_000, 2
#: Indices into `places`: the next pair of the queue and its end; how many edges have been looked at.
NEXT, END, EDGES = range(3)
#: Stands for a border where the merge tree's number of a token stands else, which is at least -1.
BORDER = -2


#: ``keys``: of pairs, text state * width + bigram state; ``of_entry``: the pair that each entry of the rows leads to;
#: ``behind``: the fresh pair behind a border of each text state, -1 if there is none; ``offsets``, ``tokens``: of the
#: rows; ``list_starts``, ``starts``, ``ends``: of the forbidden successors (`IntervalLists`), ``order``: of the
#: `MergeTree`; ``queue``: the visited pairs, then the relevant ones; ``forbidden``: by token, the last pair of the
#: queue that forbade it; ``entries``: those of the rows, of which the first ``left[state]`` of a state may lead to
#: pairs that are not visited; empty if none is skipped.
class _Graph(
    Struct,
    fields=(
        *("keys", "of_entry", "behind", "offsets", "tokens", "list_starts", "starts", "ends", "order"),
        *("queue", "visited", "relevant", "forbidden", "places", "entries", "left"),
    ),
):
    """What the kernels of the search take."""


#: Into pair p lead entries of the rows and borders k from ``starts[p]`` to ``starts[p + 1] - 1``: from the text states
#: ``sources[k]``, by the tokens with the numbers ``labels[k]`` (`BORDER`: a border). The visited pairs of a text state
#: that are not known to be relevant are among ``waiting[first[state] :][: left[state]]``. All int32.
class _Incoming(Struct, fields=("starts", "sources", "labels", "waiting", "first", "left")):
    """The edges backwards."""


class RelevantPairs(ProperTable):
    """The table of one constraint whose liveness comes from the search, made at once for all that `start` leads to.

    `start`: the last token (-1: none) and the keys the text may begin with; None: the text begins here. `max_seconds`:
    how long the search may take (None: as long as it likes). `skip_visited`: see the module. Raises LimitExceeded past
    `max_transitions` entries, `max_pairs` visited pairs or `max_seconds`.
    """

    def __init__(
        self,
        automaton: PieceAutomaton,
        canonicity: Canonicity,
        start: State | None = None,
        max_transitions: int = 30_000_000,
        max_pairs: int = MAX_PAIRS,
        max_seconds: float | None = None,
        skip_visited: bool = False,
    ) -> None:
        super().__init__(automaton, canonicity, max_transitions, every_state=True)
        last, keys = begin_state(self) if start is None else start
        begin = [self._rows.number(key) for key in keys]
        self._rows.close()
        lists = canonicity.lists
        #: The bigram states: those of the lists, `fresh`, and the one after whole pieces.
        self.fresh, self.width = lists.state_count, lists.state_count + 2
        self._state_after = np.where(lists.state_of >= 0, lists.state_of, self.fresh + 1).astype(np.int32)
        after = self.fresh if last < 0 else int(self._state_after[last])
        self._number_pairs([state * self.width + after for state in begin])
        pair_count = len(self._pairs)
        #: bool, shape (pairs,): which pairs the start leads to, and which of these are relevant.
        self.visited, self.relevant = np.zeros((2, pair_count), dtype=np.bool_)
        self.visited[: len(begin)] = True
        columns = self._rows.states.columns["offsets"], self._rows.entries("tokens")
        self._places, queue = np.array([0, len(begin), 0], dtype=np.int64), np.arange(pair_count, dtype=np.int32)
        graph = _Graph(
            *(self._pairs.words, self._of_entry, self._behind, *columns),
            *(lists.list_starts, lists.starts, lists.ends, canonicity.merge_tree.order),
            *(queue, self.visited, self.relevant, np.zeros(canonicity.size, dtype=np.int64), self._places),
            *(np.arange(self._rows.entry_count if skip_visited else 0), np.diff(columns[0][: self._rows.count + 1])),
        )
        self._search(graph, queue, max_pairs, max_seconds)

    def _number_pairs(self, begin: list[int]) -> None:
        """Number the pairs, those with the keys `begin` first. O(entries)."""
        rows = self._rows
        self._pairs = InterningTable(keys=True, entries=1024)
        for key in begin:
            self._pairs.intern([key])
        self._of_entry = np.empty(rows.entry_count, dtype=np.int32)
        self._behind = np.full(rows.count, -1, dtype=np.int32)
        done = 0
        while (
            done := _number_pairs_kernel(
                *(done, rows.struct, rows.reader, self.node_count, self._state_after, self.fresh, self.width),
                *(self._pairs.struct, self._of_entry, self._behind),
            )
        ) < rows.count:
            self._pairs.grow()

    def _search(self, graph: _Graph, queue: npt.NDArray[np.int32], max_pairs: int, max_seconds: float | None) -> None:
        """Find the pairs that the start leads to, and those of them that are relevant."""
        places, clock = self._places, (time.monotonic(), np.inf if max_seconds is None else max_seconds)
        self._repeat(*clock, _visit_pairs_kernel, graph, self.fresh, self.width, max_pairs)
        if places[END] > max_pairs:
            raise LimitExceeded(
                f'the search visits more than {max_pairs} pairs: use relevance="fixpoint", or raise max_pairs',
                limit="max_pairs",
                value=max_pairs,
            )
        #: How many pairs the start leads to, and how many edges of theirs the search forwards has looked at.
        self.visited_pairs, self.edges = int(places[END]), int(places[EDGES])
        visited = queue[: self.visited_pairs].copy()
        state_of = self._pairs.words[visited] // self.width
        states, nodes = np.divmod(self._rows.states.words[state_of], self.node_count)
        can_end = (self.automaton.can_stop[states] & ENDS != 0) & ~self.canonicity.whole_pieces.terminal[nodes]
        ends = visited[can_end]
        self.relevant[ends] = True
        queue[: len(ends)] = ends
        places[NEXT], places[END] = 0, len(ends)
        self._repeat(*clock, _step_back_kernel, graph, self._incoming(visited, state_of), self.fresh, self.width)

    def _incoming(self, visited: npt.NDArray[np.int32], state_of: npt.NDArray[np.int64]) -> _Incoming:
        """The edges into all pairs. `state_of`: the text states of `visited`. O(entries of the rows)."""
        count, number = self._rows.count, self.canonicity.merge_tree.number
        first, order = list_incoming_kernel(state_of.astype(np.int32), count)
        borders = np.flatnonzero(self._behind >= 0).astype(np.int32)
        starts, entries = list_incoming_kernel(np.append(self._of_entry, self._behind[borders]), len(self._pairs))
        sources = np.repeat(
            np.arange(count, dtype=np.int32), np.diff(self._rows.states.columns["offsets"][: count + 1])
        )
        labels = np.append(number[self._rows.entries("tokens")], np.full(len(borders), BORDER, dtype=np.int32))
        return _Incoming(
            starts, np.append(sources, borders)[entries], labels[entries], visited[order], first, np.diff(first)
        )

    def _repeat(self, begun: float, max_seconds: float, go_on: Any, *arguments: Any) -> None:
        """Call a kernel of the search until it is done. Raises LimitExceeded past the time."""
        is_done = False
        while not is_done:
            before = int(self._places[EDGES])
            is_done = go_on(*arguments)
            spend(NS_PER_EDGE * (int(self._places[EDGES]) - before))
            if time.monotonic() - begun > max_seconds:
                raise LimitExceeded(
                    f'the search over pairs takes more than {max_seconds:g} s: use relevance="fixpoint", or raise '
                    "max_seconds",
                    limit="seconds",
                    value=max_seconds,
                )

    @property
    def dead_transitions(self) -> int:
        """How many entries lead to a pair that is not relevant, or that the start does not lead to."""
        return self.transitions - int(self.relevant[self._of_entry].sum())

    @property
    def relevant_pairs(self) -> int:
        """How many of these are relevant."""
        return int(self.relevant.sum())

    @property
    def nbytes(self) -> int:
        kept = (self._state_after, self._of_entry, self._behind, self.visited, self.relevant)
        return super().nbytes + self._pairs.nbytes + sum(array.nbytes for array in kept)

    def is_live(self, key: int, last: int) -> bool:
        """Whether the pair of a state and the last token is relevant. Pairs that the start does not lead to are not."""
        state = self._rows.states.find(key)
        pair = self._pairs.find(state * self.width + int(self._state_after[last])) if state >= 0 else -1
        return pair >= 0 and bool(self.relevant[pair])

    def _read_row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        state = self._rows.states.find(key)
        row = self._rows.row(state) if state >= 0 else slice(0, 0)
        keys = self._rows.states.words[self._rows.entries("targets")[row]].astype(np.int32)
        return self._rows.entries("tokens")[row], keys, self.relevant[self._of_entry[row]]


@kernel
def _number_pairs_kernel(  # type: ignore[no-untyped-def]
    state, rows, reader, node_count, state_after, fresh, width, pairs, of_entry, behind
):
    """Number the pairs that the rows from `state` on lead to. Returns the state at which `pairs` has to grow."""
    while state < len(behind):
        for k in range(rows.offsets[state], rows.offsets[state + 1]):
            pair = intern_key(np.int64(rows.targets[k]) * width + state_after[rows.tokens[k]], pairs)
            if pair == NEEDS_ROOM:
                return state
            of_entry[k] = pair
        border = border_key_kernel(rows.states.words[state], node_count, reader)
        if border >= 0:
            pair = intern_key(find_key(border, rows.states) * width + fresh, pairs)
            if pair == NEEDS_ROOM:
                return state
            behind[state] = pair
        state += 1
    return state


@kernel
def _visit_pairs_kernel(graph, fresh, width, max_pairs):  # type: ignore[no-untyped-def]
    """Go on breadth-first for some `EDGES_AT_A_TIME`. Returns whether it is done, or has visited too many pairs."""
    queue, visited, of_entry, tokens = graph.queue, graph.visited, graph.of_entry, graph.tokens
    forbidden, order, offsets = graph.forbidden, graph.order, graph.offsets
    entries, left = graph.entries, graph.left
    edges, head, tail = 0, graph.places[NEXT], graph.places[END]
    while head < tail <= max_pairs and edges < EDGES_AT_A_TIME:
        key = graph.keys[queue[head]]
        head += 1
        state, after = key // width, key % width
        if after < fresh:
            for k in range(graph.list_starts[after], graph.list_starts[after + 1]):
                for number in range(graph.starts[k], graph.ends[k]):
                    forbidden[order[number]] = head
        begin, end = offsets[state], offsets[state + 1]
        if len(entries):
            end = begin + left[state]
        kept = begin
        edges += end - begin
        for place in range(begin, end):
            k = entries[place] if len(entries) else place
            if visited[of_entry[k]]:
                continue
            if forbidden[tokens[k]] != head:
                visited[of_entry[k]] = True
                queue[tail] = of_entry[k]
                tail += 1
            elif len(entries):
                entries[kept] = k
                kept += 1
        left[state] = kept - begin
        target = graph.behind[state]
        if after != fresh and target >= 0 and not visited[target]:
            visited[target] = True
            queue[tail] = target
            tail += 1
    graph.places[NEXT], graph.places[END] = head, tail
    graph.places[EDGES] += edges
    return head == tail or tail > max_pairs


@kernel
def _step_back_kernel(graph, incoming, fresh, width):  # type: ignore[no-untyped-def]
    """Go on backwards for some `EDGES_AT_A_TIME`. Returns whether it is done."""
    queue, relevant, keys = graph.queue, graph.relevant, graph.keys
    list_starts, starts, ends = graph.list_starts, graph.starts, graph.ends
    waiting, left = incoming.waiting, incoming.left
    edges, head, tail = 0, graph.places[NEXT], graph.places[END]
    while head < tail and edges < EDGES_AT_A_TIME:
        pair = queue[head]
        head += 1
        for k in range(incoming.starts[pair], incoming.starts[pair + 1]):
            state, label = incoming.sources[k], incoming.labels[k]
            kept = begin = incoming.first[state]
            edges += left[state] + 1
            for place in range(begin, begin + left[state]):
                source = waiting[place]
                if relevant[source]:
                    continue
                after = keys[source] % width
                if label == BORDER:
                    is_kept = after == fresh
                else:
                    is_kept = after < fresh and is_listed_kernel(after, label, list_starts, starts, ends)
                if is_kept:
                    waiting[kept] = source
                    kept += 1
                else:
                    relevant[source] = True
                    queue[tail] = source
                    tail += 1
            left[state] = kept - begin
    graph.places[NEXT], graph.places[END] = head, tail
    graph.places[EDGES] += edges
    return head == tail
