"""Relevant pairs: the seed's own way to tell which tokens lead nowhere, by a search over pairs of states.

Words. The *text automaton* is the constraint over tokens: its states are the keys of `tokdfa.token_automata.
proper_table`, its transitions their rows, and the markers that lead over a border of pieces. The *bigram automaton* is
that of the proper sequences: a state for each set of tokens that a token may be followed by
(`Canonicity.state_of`), one, `fresh`, for the beginning of a piece, and one for whole pieces, which say nothing about
what follows. A *pair* has a state of each: where the text is, and what the last token was. A token leads from a pair to
another iff both automata allow it, a border from any pair that is not fresh to the fresh pair behind it. A pair is
*relevant* iff a pair whose text may end can be reached from it.

The search. Breadth-first from the start over all tokens that both automata allow; then backwards, from the visited
pairs that may end, over reverse transitions. A mask is made anew at each request: the tokens that both automata allow
and that lead to a relevant pair.

Edges are not stored (there may be 10^9 of them): forwards, each pair goes through the row of its text state, which is
what making its mask costs; backwards, each relevant pair goes through the entries that lead to it, and those pairs of
their rows that are not known to be relevant yet. With `skip_visited` the search forwards leaves entries out that lead
to pairs visited before, as the one backwards does. That finds the same pairs, looks at far fewer edges, and is not in
002, whose 27.3 s are those of some 18,000 masks of 1.5 ms.

Cost: O(entries of the rows) memory; time O(pairs x entries of a row) forwards, 1 to 2 ns each. Compare
`tokdfa.token_automata.proper_table`, where no pairs occur.
Source: 002, technical appendix, algorithms 5 and 6. Borders, byte fallback and whole pieces are ours.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.bpe.intervals import _longer_kernel
from tokdfa.errors import LimitExceeded
from tokdfa.jit import kernel
from tokdfa.mask import allocate_mask, set_token
from tokdfa.token_automata.marked_product import BORDERS, ENDS
from tokdfa.token_automata.proper_rows import _find_slot_kernel, _number_state_kernel, _read_row_kernel
from tokdfa.token_automata.proper_states import ProperStates, begin_state
from tokdfa.token_automata.proper_table import ProperTable

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.bpe.canonical import Canonicity
    from tokdfa.mask import Mask
    from tokdfa.token_automata.marked_product import PieceAutomaton
    from tokdfa.token_automata.proper_states import State

#: How many pairs are visited by default. A pair costs some 20 bytes, and a walk along a row.
MAX_PAIRS = 5_000_000
#: How many edges the search looks at between two looks at the clock: some 0.1 s.
EDGES_AT_A_TIME = 50_000_000


class _Rows(NamedTuple):
    """The text automaton. State i is ``keys[i]`` and has the entries ``starts[i] .. starts[i + 1] - 1`` of `tokens` and
    `targets` (states); `behind[i]` is the state behind a border, -1 if none may stand here. `slots` finds a state by
    its key.
    """

    keys: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    behind: npt.NDArray[np.int32]


class _Pairs(NamedTuple):
    """The pairs that entries, borders and the start lead to. Pair p is ``keys[p]``: state * width + bigram state;
    `slots` finds it. `of_entry`: the pair that each entry of the rows leads to; `behind`: the fresh pair behind a
    border of each state, -1 if there is none.
    """

    keys: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    of_entry: npt.NDArray[np.int32]
    behind: npt.NDArray[np.int32]


class RelevantPairs(ProperTable):
    """The table of one constraint whose liveness comes from the search, made at once for all that `start` leads to.

    `start`: the last token (-1: none) and the keys the text may begin with; None: the text begins here. `max_seconds`:
    how long the search may take (None: as long as it likes). Raises LimitExceeded past `max_transitions` entries,
    `max_pairs` visited pairs, or `max_seconds`.
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
        super().__init__(automaton, canonicity, max_transitions)
        last, keys = begin_state(self) if start is None else start
        lists = canonicity.lists
        #: Bigram states: those of the lists, then `fresh`, then the one of whole pieces.
        self.fresh, self.width = lists.state_count, lists.state_count + 2
        self._state_after = np.where(lists.state_of >= 0, lists.state_of, self.fresh + 1).astype(np.int32)
        begin = np.array(keys, dtype=np.int64)
        self._text = _Rows(
            *_list_rows_kernel(
                begin, self.node_count, self.root, self._reader, automaton.marker, self._stack, self._room,
                max_transitions,
            )
        )  # fmt: skip
        if len(self._text.tokens) > max_transitions:
            raise LimitExceeded(
                f'the token automaton has more than {max_transitions} transitions: use relevance="fixpoint", or raise '
                "max_transitions",
                limit="max_transitions",
                value=max_transitions,
            )
        after = self.fresh if last < 0 else int(self._state_after[last])
        self._pairs = _Pairs(*_number_pairs_kernel(begin, after, self.fresh, self.width, self._state_after, self._text))
        #: bool, shape (pairs,): which pairs the start leads to, and which of these are relevant.
        self.visited = np.zeros(len(self._pairs.keys), dtype=np.bool_)
        self.relevant = np.zeros(len(self._pairs.keys), dtype=np.bool_)
        #: How many edges of visited pairs the search forwards has looked at.
        self.edges = 0
        self._search(len(begin), max_pairs, max_seconds, skip_visited)

    @property
    def settled_states(self) -> int:
        return len(self._text.keys)

    @property
    def transitions(self) -> int:
        return len(self._text.tokens)

    @property
    def dead_transitions(self) -> int:
        """How many entries lead to a pair that is not relevant, or that the start does not lead to."""
        return self.transitions - int(self.relevant[self._pairs.of_entry].sum())

    @property
    def visited_pairs(self) -> int:
        """How many pairs the start leads to."""
        return int(self.visited.sum())

    @property
    def relevant_pairs(self) -> int:
        """How many of these are relevant."""
        return int(self.relevant.sum())

    @property
    def nbytes(self) -> int:
        arrays = (*self._text, *self._pairs, self.visited, self.relevant, self._state_after)
        return sum(array.nbytes for array in arrays) + self.automaton.nbytes

    def is_live(self, key: int, last: int) -> bool:
        """Whether the pair of a state and the last token is relevant. Pairs that the start does not lead to are not."""
        pair = int(_find_pair_kernel(key, self._state_after[last], self.width, self._text, self._pairs))
        return pair >= 0 and bool(self.relevant[pair])

    def write_mask(self, key: int, forbidden: Mask, out: Mask) -> None:
        """Set the bits of the tokens that lead from a state to a relevant pair and are not `forbidden`. O(row)."""
        _write_relevant_kernel(key, self._text, self._pairs.of_entry, self.relevant, forbidden, out)

    def _read_row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        state = int(_find_state_kernel(key, self._text.keys, self._text.slots))
        if state < 0:
            nothing = np.zeros(0, dtype=np.int32)
            return nothing, nothing, np.zeros(0, dtype=np.bool_)
        row = slice(*self._text.starts[state : state + 2].tolist())
        keys = self._text.keys[self._text.targets[row]].astype(np.int32)
        return self._text.tokens[row], keys, self.relevant[self._pairs.of_entry[row]]

    def _search(self, begins: int, max_pairs: int, max_seconds: float | None, skip_visited: bool) -> None:
        """Fill `visited` and `relevant`."""
        until = float("inf") if max_seconds is None else time.monotonic() + max_seconds
        text, pairs, lists, forest = self._text, self._pairs, self.canonicity.lists, self.canonicity.forest
        queue = np.empty(len(pairs.keys), dtype=np.int32)
        queue[:begins] = np.arange(begins)  # the start's pairs have the first numbers
        self.visited[:begins] = True
        places = np.array([0, begins], dtype=np.int64)  # the next pair of the queue, and its end
        forbidden = np.zeros(self.canonicity.size, dtype=np.bool_)
        entries = np.arange(len(text.tokens) if skip_visited else 0, dtype=np.int64)
        left = np.diff(text.starts)
        while places[0] < places[1]:
            self.edges += _visit_pairs_kernel(
                queue, places, max_pairs, self.width, self.fresh, text, pairs, lists.list_starts, lists.starts,
                lists.ends, forest.order, forbidden, self.visited, entries, left,
            )  # fmt: skip
            if places[1] > max_pairs:
                raise LimitExceeded(
                    f'the search visits more than {max_pairs} pairs: use relevance="fixpoint", or raise max_pairs',
                    limit="max_pairs",
                    value=max_pairs,
                )
            _check_clock(until, max_seconds)
        visited = queue[: places[1]]
        of_state = np.argsort(pairs.keys[visited], kind="stable")
        waiting = visited[of_state].astype(np.int32)
        first = np.searchsorted(pairs.keys[waiting], np.arange(len(text.keys) + 1) * self.width).astype(np.int64)
        ends = self.automaton.can_stop[text.keys // self.node_count] & ENDS != 0
        ends &= ~self.canonicity.whole_pieces.terminal[text.keys % self.node_count]
        incoming = _Incoming(*_sort_entries_kernel(text.starts, pairs.of_entry, pairs.behind, len(pairs.keys)))
        places[:] = 0
        found = visited[ends[pairs.keys[visited] // self.width]]
        queue[: len(found)] = found
        self.relevant[found] = True
        places[1] = len(found)
        remaining = np.diff(first)
        while places[0] < places[1]:
            _spread_relevance_kernel(
                queue, places, self.width, self.fresh, text, pairs, incoming, lists.list_starts, lists.starts,
                lists.ends, forest.number, first, remaining, waiting, self.relevant,
            )  # fmt: skip
            _check_clock(until, max_seconds)


class _Incoming(NamedTuple):
    """The edges backwards. Into pair p lead the entries ``entries[starts[p] : starts[p + 1]]``, which stand in the rows
    of the states `sources`, and borders from the states ``borders[border_starts[p] : border_starts[p + 1]]``.
    """

    starts: npt.NDArray[np.int64]
    entries: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int32]
    border_starts: npt.NDArray[np.int64]
    borders: npt.NDArray[np.int32]


class PairStates(ProperStates):
    """Masks over relevant pairs, each made when it is asked for. Immutable to its users, safe to share."""

    def __init__(self, table: RelevantPairs) -> None:
        super().__init__(table)
        self._pairs = table
        self._nothing = allocate_mask(table.canonicity.size)
        self._nothing.flags.writeable = False

    def prepare(self, state: State) -> None:
        """Nothing: the search has settled everything."""

    def settle_all(self, state: State) -> None:
        """Nothing: the search has settled everything."""

    def fill(self, state: State, out: Mask) -> None:
        last, keys = state
        forbidden = self._nothing if last < 0 else self.canonicity.forbidden_after(last)
        out.fill(0)
        for key in keys:
            self._pairs.write_mask(key, forbidden, out)
            border = -1 if last < 0 else self._behind_border(key)
            if border >= 0:
                self._pairs.write_mask(border, self._nothing, out)
        if self.can_end(state):
            for end in self.canonicity.vocabulary.end_tokens:
                set_token(out, end)


def _check_clock(until: float, max_seconds: float | None) -> None:
    if max_seconds is not None and time.monotonic() > until:
        raise LimitExceeded(
            f'the search over pairs takes more than {max_seconds:g} s: use relevance="fixpoint", or raise max_seconds',
            limit="seconds",
            value=max_seconds,
        )


@kernel
def _find_state_kernel(key, keys, slots):  # type: ignore[no-untyped-def]
    """The number of a key, or -1."""
    return slots[_find_slot_kernel(key, keys, slots)]


@kernel
def _find_pair_kernel(key, after, width, text, pairs):  # type: ignore[no-untyped-def]
    """The number of the pair of a key and a bigram state, or -1."""
    state = np.int64(_find_state_kernel(key, text.keys, text.slots))
    if state < 0:
        return np.int32(-1)
    return _find_state_kernel(state * width + after, pairs.keys, pairs.slots)


@kernel
def _longer_keys_kernel(least, keys, slots, known):  # type: ignore[no-untyped-def]
    """`keys` and `slots` with room for at least `least` keys, of which the first `known` are there."""
    room = len(keys)
    while room < least:
        room *= 2
    new_keys, new_slots = np.empty(room, dtype=np.int64), np.full(2 * room, -1, dtype=np.int32)
    new_keys[:known] = keys[:known]
    for number in range(known):
        new_slots[_find_slot_kernel(new_keys[number], new_keys, new_slots)] = number
    return new_keys, new_slots


@kernel
def _list_rows_kernel(begin, node_count, root, reader, marker, stack, room, max_transitions):  # type: ignore[no-untyped-def]
    """The arrays of `_Rows`: all states that tokens and borders lead to from the keys `begin`.

    Stops past `max_transitions`.
    """
    keys, slots = np.empty(1024, dtype=np.int64), np.full(2048, -1, dtype=np.int32)
    starts, behind = np.zeros(1024, dtype=np.int64), np.full(1024, -1, dtype=np.int32)
    tokens, targets = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    counts = np.zeros(2, dtype=np.int64)  # [1]: states numbered
    for k in range(len(begin)):
        _number_state_kernel(begin[k], keys, slots, counts)
    state = 0
    while state < counts[1] and starts[state] <= max_transitions:
        first = starts[state]
        while first + room > len(tokens):
            tokens, targets = _longer_kernel(tokens), _longer_kernel(targets)
        end = _read_row_kernel(keys[state], node_count, reader, stack, first, tokens, targets)
        if counts[1] + end - first + 1 > len(keys):
            keys, slots = _longer_keys_kernel(counts[1] + end - first + 1, keys, slots, counts[1])
        for k in range(first, end):
            targets[k] = _number_state_kernel(targets[k], keys, slots, counts)
        if state + 1 >= len(starts):
            starts, behind = _longer_kernel(starts), _longer_kernel(behind)
        place, node = keys[state] // node_count, keys[state] % node_count
        behind[state] = -1
        if reader.can_stop[place] & BORDERS and not reader.terminal[node]:
            behind[state] = _number_state_kernel(np.int64(marker[place]) * node_count + root, keys, slots, counts)
        starts[state + 1] = end
        state += 1
    total = starts[state]
    return (
        *(keys[: counts[1]].copy(), slots, starts[: state + 1].copy()),
        *(tokens[:total].copy(), targets[:total].copy(), behind[:state].copy()),
    )


@kernel
def _number_pairs_kernel(begin, after, fresh, width, state_after, text):  # type: ignore[no-untyped-def]
    """The arrays of `_Pairs`. The pairs of the keys `begin` with the bigram state `after` come first."""
    keys, slots = np.empty(1024, dtype=np.int64), np.full(2048, -1, dtype=np.int32)
    counts = np.zeros(2, dtype=np.int64)
    for k in range(len(begin)):
        state = np.int64(_find_state_kernel(begin[k], text.keys, text.slots))
        _number_state_kernel(state * width + after, keys, slots, counts)
    of_entry = np.empty(len(text.tokens), dtype=np.int32)
    behind = np.full(len(text.behind), -1, dtype=np.int32)
    for number in range(len(text.behind)):
        least = counts[1] + text.starts[number + 1] - text.starts[number] + 1
        if least > len(keys):
            keys, slots = _longer_keys_kernel(least, keys, slots, counts[1])
        for k in range(text.starts[number], text.starts[number + 1]):
            pair = np.int64(text.targets[k]) * width + state_after[text.tokens[k]]
            of_entry[k] = _number_state_kernel(pair, keys, slots, counts)
        if text.behind[number] >= 0:
            pair = np.int64(text.behind[number]) * width + fresh
            behind[number] = _number_state_kernel(pair, keys, slots, counts)
    return keys[: counts[1]].copy(), slots, of_entry, behind


@kernel
def _visit_pairs_kernel(  # type: ignore[no-untyped-def]
    queue, places, max_pairs, width, fresh, text, pairs, list_starts, interval_starts, interval_ends, order,
    forbidden, visited, entries, left,
):  # fmt: skip
    """Go on breadth-first for some `EDGES_AT_A_TIME`; returns how many edges were looked at.

    `forbidden`: bool, shape (V,), all False, and so again afterwards. With `entries` (all entries, else empty) those
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
                    forbidden[order[number]] = True
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
                if forbidden[text.tokens[k]]:
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
                if not forbidden[text.tokens[k]] and not visited[pairs.of_entry[k]]:
                    visited[pairs.of_entry[k]] = True
                    queue[tail] = pairs.of_entry[k]
                    tail += 1
        if after < fresh:
            for k in range(list_starts[after], list_starts[after + 1]):
                for number in range(interval_starts[k], interval_ends[k]):
                    forbidden[order[number]] = False
        target = pairs.behind[state]
        if after != fresh and target >= 0 and not visited[target]:
            visited[target] = True
            queue[tail] = target
            tail += 1
    places[0], places[1] = head, tail
    return edges


@kernel
def _sort_entries_kernel(starts, of_entry, behind, pair_count):  # type: ignore[no-untyped-def]
    """The arrays of `_Incoming`."""
    entry_starts, border_starts = np.zeros(pair_count + 1, dtype=np.int64), np.zeros(pair_count + 1, dtype=np.int64)
    for k in range(len(of_entry)):
        entry_starts[of_entry[k] + 1] += 1
    for state in range(len(behind)):
        if behind[state] >= 0:
            border_starts[behind[state] + 1] += 1
    for pair in range(pair_count):
        entry_starts[pair + 1] += entry_starts[pair]
        border_starts[pair + 1] += border_starts[pair]
    entries, sources = np.empty(len(of_entry), dtype=np.int64), np.empty(len(of_entry), dtype=np.int32)
    borders = np.empty(border_starts[pair_count], dtype=np.int32)
    free, free_borders = entry_starts.copy(), border_starts.copy()
    for state in range(len(behind)):
        for k in range(starts[state], starts[state + 1]):
            pair = of_entry[k]
            entries[free[pair]], sources[free[pair]] = k, state
            free[pair] += 1
        pair = behind[state]
        if pair >= 0:
            borders[free_borders[pair]] = state
            free_borders[pair] += 1
    return entry_starts, entries, sources, border_starts, borders


@kernel
def _is_forbidden_kernel(after, number, list_starts, interval_starts, interval_ends):  # type: ignore[no-untyped-def]
    """Whether a token, by its forest number (-1: none), is in the list of a state. O(log(intervals))."""
    low, high = list_starts[after], list_starts[after + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if interval_ends[middle] <= number:
            low = middle + 1
        else:
            high = middle
    return low < end and interval_starts[low] <= number


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
        for k in range(incoming.starts[pair], incoming.starts[pair + 1]):
            state = incoming.sources[k]
            begin = first[state]
            edges += remaining[state] + 1
            placed = number[text.tokens[incoming.entries[k]]]
            kept = begin
            for place in range(begin, begin + remaining[state]):
                source = waiting[place]
                if relevant[source]:
                    continue
                after = pairs.keys[source] % width
                if after < fresh and _is_forbidden_kernel(after, placed, list_starts, interval_starts, interval_ends):
                    waiting[kept] = source
                    kept += 1
                else:
                    relevant[source] = True
                    queue[tail] = source
                    tail += 1
            remaining[state] = kept - begin
        for k in range(incoming.border_starts[pair], incoming.border_starts[pair + 1]):
            state = incoming.borders[k]
            begin = first[state]
            edges += remaining[state] + 1
            kept = begin
            for place in range(begin, begin + remaining[state]):
                source = waiting[place]
                if relevant[source]:
                    continue
                if pairs.keys[source] % width == fresh:
                    waiting[kept] = source
                    kept += 1
                else:
                    relevant[source] = True
                    queue[tail] = source
                    tail += 1
            remaining[state] = kept - begin
    places[0], places[1] = head, tail


@kernel
def _write_relevant_kernel(key, text, of_entry, relevant, forbidden, out):  # type: ignore[no-untyped-def]
    """See `RelevantPairs.write_mask`."""
    state = _find_state_kernel(key, text.keys, text.slots)
    if state < 0:
        return
    for k in range(text.starts[state], text.starts[state + 1]):
        if relevant[of_entry[k]]:
            word, bit = text.tokens[k] >> 5, np.uint32(text.tokens[k] & 31)
            out[word] |= np.int32(np.uint32(1) << bit) & ~forbidden[word]
