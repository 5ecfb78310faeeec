"""The graph of pairs of states that proper sequences go through: where the text is, and what the last token was.

Words. The *text automaton* is the constraint over tokens: its states are the keys of `tokdfa.token_automata.
proper_table`, its transitions their rows, and the markers that lead over a border of pieces. The *bigram automaton* is
that of the proper sequences: a state for each set of tokens that a token may be followed by
(`Canonicity.state_of`), one, `fresh`, for the beginning of a piece, and one for whole pieces, which say nothing about
what follows. A *pair* has a state of each. A token leads from a pair to another iff both automata allow it, a border
from any pair that is not fresh to the fresh pair behind it.

What a token makes of the bigram automaton depends on the token alone. So an *entry* of a row, a token with the text
state it leads to, leads to one and the same pair from whatever pair it is allowed in. Pairs get numbers if entries,
borders or the start lead to them, and beside each entry stands the number of its pair. The edges from pair to pair are
not stored: they are the entries of the text state's row, but for the tokens that the bigram state forbids.

Cost: a trie walk for each text state; O(entries of the rows) memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.backends.proper_merge.marked_product import BORDERS
from tokdfa.backends.proper_merge.proper_rows import number_state_kernel, read_row_kernel
from tokdfa.core.interning import find_slot, longer_keys
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.errors import LimitExceeded
from tokdfa.proper.intervals import longer_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.proper_rows import TokenReader
    from tokdfa.mask import Mask
    from tokdfa.proper.intervals import IntervalLists


class TextRows(NamedTuple):
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


class Pairs(NamedTuple):
    """The pairs that entries, borders and the start lead to. Pair p is ``keys[p]``: state * width + bigram state;
    `slots` finds it. `of_entry`: the pair that each entry of the rows leads to; `behind`: the fresh pair behind a
    border of each state, -1 if there is none.
    """

    keys: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    of_entry: npt.NDArray[np.int32]
    behind: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PairGraph:
    """Text states, pairs, and what connects them. Immutable.

    `state_after`: int32, shape (V,), the bigram state after each token; `fresh`: the one at the beginning of a piece;
    `width`: how many bigram states there are; `begins`: how many pairs the start has, which are the first ones.
    """

    text: TextRows
    pairs: Pairs
    state_after: npt.NDArray[np.int32]
    fresh: int
    width: int
    begins: int

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.text, *self.pairs, self.state_after))

    def find(self, key: int, last: int) -> int:
        """The number of the pair of a text state and the last token, -1 if nothing leads there. 1 us."""
        return int(_find_pair_kernel(key, self.state_after[last], self.width, self.text, self.pairs))

    def row(self, key: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """(tokens, the keys they lead to, the pairs they lead to) of a text state, all int32; empty for one not here.

        The first and the last are views.
        """
        state = int(_find_state_kernel(key, self.text.keys, self.text.slots))
        begin, end = self.text.starts[state : state + 2].tolist() if state >= 0 else (0, 0)
        keys = self.text.keys[self.text.targets[begin:end]].astype(np.int32)
        return self.text.tokens[begin:end], keys, self.pairs.of_entry[begin:end]

    def write_mask(self, key: int, wanted: npt.NDArray[np.bool_], forbidden: Mask, out: Mask) -> None:
        """Set the bits of the tokens that lead from a text state to a wanted pair and are not `forbidden`. O(row).

        `wanted`: bool, shape (pairs,). Other bits of `out` stay as they are.
        """
        _write_wanted_kernel(key, self.text, self.pairs.of_entry, wanted, forbidden, out)


#: What an entry of a row takes, and how many are paid for at once.
NS_PER_ENTRY, PAID_ENTRIES = 20, 1 << 16


def list_rows(
    begin: npt.NDArray[np.int64],
    node_count: int,
    reader: TokenReader,
    marker: npt.NDArray[np.int32],
    stack: npt.NDArray[np.int32],
    room: int,
    max_transitions: int,
) -> TextRows:
    """All text states that tokens and borders lead to from the keys `begin`, which are the first ones.

    `marker`: shape (states of the piece automaton,), where a border leads; `stack`, `room`: what reading a row needs at
    most. Raises LimitExceeded past `max_transitions` entries.
    """
    rows = TextRows(*_list_rows_kernel(begin, node_count, reader, marker, stack, room, max_transitions))
    if len(rows.tokens) > max_transitions:
        raise LimitExceeded(
            f'the token automaton has more than {max_transitions} transitions: use relevance="fixpoint", or raise '
            "max_transitions",
            limit="max_transitions",
            value=max_transitions,
        )
    return rows


def number_pairs(text: TextRows, begin: npt.NDArray[np.int64], last: int, lists: IntervalLists) -> PairGraph:
    """The graph over `text`, from the keys `begin` with the last token `last` (-1: none, a piece begins). O(entries).

    `lists`: the forbidden successors of each bigram state but the two that forbid nothing.
    """
    fresh, width = lists.state_count, lists.state_count + 2
    state_after = np.where(lists.state_of >= 0, lists.state_of, fresh + 1).astype(np.int32)
    after = fresh if last < 0 else int(state_after[last])
    pairs = Pairs(*_number_pairs_kernel(begin, after, fresh, width, state_after, text))
    return PairGraph(text, pairs, state_after, fresh, width, len(begin))


@kernel
def _find_state_kernel(key, keys, slots):  # type: ignore[no-untyped-def]
    """The number of a key, or -1."""
    return slots[find_slot(key, keys, slots)]


@kernel
def _find_pair_kernel(key, after, width, text, pairs):  # type: ignore[no-untyped-def]
    """The number of the pair of a key and a bigram state, or -1."""
    state = np.int64(_find_state_kernel(key, text.keys, text.slots))
    if state < 0:
        return np.int32(-1)
    return _find_state_kernel(state * width + after, pairs.keys, pairs.slots)


@kernel
def _list_rows_kernel(begin, node_count, reader, marker, stack, room, max_transitions):  # type: ignore[no-untyped-def]
    """The arrays of `TextRows`. Stops past `max_transitions`."""
    keys, slots = np.empty(1024, dtype=np.int64), np.full(2048, -1, dtype=np.int32)
    starts, behind = np.zeros(1024, dtype=np.int64), np.full(1024, -1, dtype=np.int32)
    tokens, targets = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    counts = np.zeros(2, dtype=np.int64)  # [1]: states numbered
    for k in range(len(begin)):
        number_state_kernel(begin[k], keys, slots, counts)
    state, work = 0, np.int64(0)
    while state < counts[1] and starts[state] <= max_transitions:
        if work > PAID_ENTRIES:
            pay(NS_PER_ENTRY * work)
            work = np.int64(0)
        first = starts[state]
        while first + room > len(tokens):
            tokens, targets = longer_kernel(tokens), longer_kernel(targets)
        end = read_row_kernel(keys[state], node_count, reader, stack, first, tokens, targets)
        if counts[1] + end - first + 1 > len(keys):
            keys, slots = longer_keys(counts[1] + end - first + 1, counts[1], keys)
        work += 20 + end - first
        for k in range(first, end):
            targets[k] = number_state_kernel(targets[k], keys, slots, counts)
        if state + 1 >= len(starts):
            starts, behind = longer_kernel(starts), longer_kernel(behind)
        place, node = keys[state] // node_count, keys[state] % node_count
        behind[state] = -1
        if reader.can_stop[place] & BORDERS and not reader.terminal[node]:
            key = np.int64(marker[place]) * node_count + reader.root
            behind[state] = number_state_kernel(key, keys, slots, counts)
        starts[state + 1] = end
        state += 1
    total = starts[state]
    return (
        *(keys[: counts[1]].copy(), slots, starts[: state + 1].copy()),
        *(tokens[:total].copy(), targets[:total].copy(), behind[:state].copy()),
    )


@kernel
def _number_pairs_kernel(begin, after, fresh, width, state_after, text):  # type: ignore[no-untyped-def]
    """The arrays of `Pairs`. The pairs of the keys `begin` with the bigram state `after` come first."""
    keys, slots = np.empty(1024, dtype=np.int64), np.full(2048, -1, dtype=np.int32)
    counts = np.zeros(2, dtype=np.int64)
    for k in range(len(begin)):
        state = np.int64(_find_state_kernel(begin[k], text.keys, text.slots))
        number_state_kernel(state * width + after, keys, slots, counts)
    of_entry = np.empty(len(text.tokens), dtype=np.int32)
    behind = np.full(len(text.behind), -1, dtype=np.int32)
    for number in range(len(text.behind)):
        least = counts[1] + text.starts[number + 1] - text.starts[number] + 1
        if least > len(keys):
            keys, slots = longer_keys(least, counts[1], keys)
        for k in range(text.starts[number], text.starts[number + 1]):
            pair = np.int64(text.targets[k]) * width + state_after[text.tokens[k]]
            of_entry[k] = number_state_kernel(pair, keys, slots, counts)
        if text.behind[number] >= 0:
            pair = np.int64(text.behind[number]) * width + fresh
            behind[number] = number_state_kernel(pair, keys, slots, counts)
    return keys[: counts[1]].copy(), slots, of_entry, behind


@kernel
def _write_wanted_kernel(key, text, of_entry, wanted, forbidden, out):  # type: ignore[no-untyped-def]
    """See `PairGraph.write_mask`."""
    state = _find_state_kernel(key, text.keys, text.slots)
    if state < 0:
        return
    for k in range(text.starts[state], text.starts[state + 1]):
        if wanted[of_entry[k]]:
            word, bit = text.tokens[k] >> 5, np.uint32(text.tokens[k] & 31)
            out[word] |= np.int32(np.uint32(1) << bit) & ~forbidden[word]
