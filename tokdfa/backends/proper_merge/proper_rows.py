"""Rows for proper token masks: the tokens that go on from a state inside the piece, read from the piece automaton.

A *state* is a state of the piece automaton (`tokdfa.backends.proper_merge.marked_product`) with a node of the whole
pieces (`tokdfa.proper.whole_pieces`), written as one number, its *key*: state x nodes + node. Its *row* are the tokens
that can be read from it inside the piece, and where they lead: byte tokens one letter at a time, other tokens along the
trie, and at the beginning of a piece the improper tokens that are whole pieces.

`ProperRows` is a store that only grows: states get numbers when something leads to them, and rows in that order. What
is known of their liveness stands beside the rows; `tokdfa.backends.proper_merge.proper_table` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.backends.proper_merge.marked_product import BORDERS, ENDS, INSIDE
from tokdfa.core.budget import hold
from tokdfa.core.interning import COUNT, NEEDS_ROOM, Column, InterningTable, intern_key
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct
from tokdfa.errors import LimitExceeded
from tokdfa.proper.whole_pieces import WHOLE
from tokdfa.token_automata.columns import enlarge
from tokdfa.vocabulary.byte_table import collect_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.proper_merge.marked_product import PieceAutomaton
    from tokdfa.proper.byte_fallback import ByteFallback
    from tokdfa.proper.whole_pieces import WholePieces
    from tokdfa.vocabulary.trie import TokenTrie


class TokenReader(NamedTuple):
    """What reading a row needs; see `PieceAutomaton`, `WholePieces` and `TokenTrie` (ranked nodes)."""

    nodes: npt.NDArray[np.uint64]
    order: npt.NDArray[np.int32]
    whole_nodes: npt.NDArray[np.uint64]
    whole_order: npt.NDArray[np.int32]
    table: npt.NDArray[np.int32]
    classes: int
    byte_class: npt.NDArray[np.uint8]
    fallback_class: npt.NDArray[np.int32]
    fallback_tokens: npt.NDArray[np.int32]
    can_stop: npt.NDArray[np.uint8]
    marker: npt.NDArray[np.int32]
    child_starts: npt.NDArray[np.int32]
    child_ranks: npt.NDArray[np.int32]
    child_nodes: npt.NDArray[np.int32]
    terminal: npt.NDArray[np.bool_]
    root: int
    stack: npt.NDArray[np.int32]


def token_reader(
    automaton: PieceAutomaton,
    fallback: ByteFallback | None,
    trie: TokenTrie,
    whole: WholePieces,
    whole_trie: TokenTrie,
) -> TokenReader:
    """What reads the tokens of `trie` along `automaton`, and those of `whole_trie` as whole pieces."""
    return TokenReader(
        nodes=trie.ranked_nodes,
        order=trie.order,
        whole_nodes=whole_trie.ranked_nodes,
        whole_order=whole_trie.order,
        table=automaton.table,
        classes=automaton.classes,
        byte_class=automaton.byte_class,
        fallback_class=automaton.fallback_class,
        fallback_tokens=np.full(256, -1, dtype=np.int32) if fallback is None else fallback.tokens,
        can_stop=automaton.can_stop,
        marker=automaton.marker,
        child_starts=whole.child_starts,
        child_ranks=trie.rank_of[whole.child_tokens],
        child_nodes=whole.child_nodes,
        terminal=whole.terminal,
        root=whole.root,
        stack=np.empty(max(trie.depth_limit, whole_trie.depth_limit) + 1, dtype=np.int32),
    )


#: What a state has beside its key and where its row begins; what an entry of a row has.
_OF_STATES = {
    "offsets": Column(np.int64, ends=True),
    "live_counts": Column(np.int64),
    "tried": Column(np.int64),
    "status": Column(np.uint8),
    "suspect_starts": Column(np.int64),
    "suspect_ends": Column(np.int64),
}
_OF_ENTRIES = {"tokens": np.int32, "targets": np.int32, "live": np.bool_, "live_tokens": np.int32}
_BYTES_PER_ENTRY = 13
#: What an entry takes, and how many are paid for at once.
NS_PER_ENTRY, PAID_ENTRIES = 20, 1 << 16


class TokenRowArrays(Struct, fields=("states", *_OF_STATES, *_OF_ENTRIES)):
    """What kernels take of `ProperRows`."""


class ProperRows:
    """The rows made so far, those of the first `count` states. Not thread-safe.

    State i has the key ``states.words[i]`` and the entries ``offsets[i] .. offsets[i + 1] - 1``: `tokens`, `targets` (a
    state, -1 for a full one) and `live`; its live tokens are the first ``live_counts[i]`` of `live_tokens` from
    ``offsets[i]`` on, in the order in which they were found. `status` and the suspects from ``suspect_starts[i]`` to
    ``suspect_ends[i] - 1`` say what is known of its liveness; the first ``tried[i]`` live tokens have been tried on
    them, so that the others decide. All these are fields of `struct`.

    With `every_state` full states are numbered, too, and the states behind borders.
    """

    struct: Any

    def __init__(self, reader: TokenReader, node_count: int, max_entries: int, every_state: bool = False) -> None:
        self.reader, self.node_count, self.max_entries, self.every_state = reader, node_count, max_entries, every_state
        self.row_room = len(reader.order) + len(reader.whole_order) + 258
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
        self.count = 0
        self.states = InterningTable(_OF_STATES, keys=True)
        self._entries: list[npt.NDArray[Any]] = [np.zeros(1024, dtype=kind) for kind in _OF_ENTRIES.values()]
        self._gather()

    def _gather(self) -> None:
        self.struct = TokenRowArrays(self.states.struct, *self.states.columns.values(), *self._entries)

    @property
    def entry_count(self) -> int:
        """How many entries the rows have."""
        return int(self.states.columns["offsets"][self.count])

    @property
    def nbytes(self) -> int:
        return self.states.nbytes + sum(array.nbytes for array in self._entries)

    def entries(self, name: str) -> npt.NDArray[Any]:
        """`tokens`, `targets`, `live` or `live_tokens`, a view."""
        return self._entries[list(_OF_ENTRIES).index(name)][: self.entry_count]

    def row(self, state: int) -> slice:
        """Where the entries of a state lie."""
        begin, end = self.states.columns["offsets"][state : state + 2].tolist()
        return slice(begin, end)

    def number(self, key: int) -> int:
        """The number of a state, a new one if need be."""
        before = self.states.struct
        number = self.states.intern([key])
        if self.states.struct is not before:
            self._gather()
        return number

    def number_all(self, keys: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32]) -> None:
        """Write the number of each of `keys` to `numbers`, -1 for full states."""
        shape = self.reader, self.node_count, self.every_state
        while not number_targets_kernel(keys, 0, len(keys), numbers, self.struct, *shape):
            self._grow_states()

    def close(self) -> None:
        """Make the rows of all numbered states and of those that they lead to.

        Raises LimitExceeded past `max_entries`, and forgets all rows.
        """
        while self.count < len(self.states):
            self.count = int(
                _close_kernel(self.count, self.struct, self.reader, self.node_count, self.row_room, self.every_state)
            )
            used, room = self.entry_count, len(self._entries[0])
            if used > self.max_entries:
                count = self.count
                self.clear()  # what is half done cannot be gone on with
                remedy = 'use relevance="fixpoint", or raise' if self.every_state else "raise"
                raise LimitExceeded(
                    f"the proper tokens have more than {self.max_entries} transitions ({count} states done): "
                    f"{remedy} max_transitions",
                    limit="max_transitions",
                    value=self.max_entries,
                )
            if used + self.row_room > room:
                wanted = max(2 * room, used + self.row_room)
                hold(_BYTES_PER_ENTRY * (wanted - room))
                self._entries = [enlarge(array, wanted, used) for array in self._entries]
            self._grow_states()

    def _grow_states(self) -> None:
        """Room for more states if a kernel has asked for it; and the struct of what the arrays are now."""
        self.states.grow()
        self._gather()


@kernel
def read_row_kernel(key, node_count, reader, begin, tokens, keys):  # type: ignore[no-untyped-def]
    """Write the row of a state from index `begin` on: tokens and the keys they lead to. Returns where it ends.

    The arrays need room for all tokens of both tries and 258 more.
    """
    state, node = key // node_count, key % node_count
    if node == WHOLE and node_count > 1:
        return begin
    first = begin
    for byte in range(256):  # byte tokens first: nothing merges with them, which soon clears all suspects
        column = reader.fallback_class[byte]
        if column >= 0:
            target = reader.table[state * reader.classes + column]
            if target >= 0:
                tokens[first] = reader.fallback_tokens[byte]
                keys[first] = target // reader.classes * node_count
                first += 1
    stack = reader.stack
    stack[0] = state * reader.classes
    spare = len(reader.order)
    by_byte = reader.table, reader.byte_class
    nodes = reader.nodes
    _, end, _, _ = collect_tokens_kernel(nodes, 0, len(nodes), by_byte, stack, (tokens, keys, spare), first)
    child, last_child = reader.child_starts[node], reader.child_starts[node + 1]
    for k in range(first, end):
        rank = tokens[k]
        tokens[k] = reader.order[rank]
        keys[k] = keys[k] // reader.classes * node_count
        while child < last_child and reader.child_ranks[child] < rank:
            child += 1
        if child < last_child and reader.child_ranks[child] == rank:
            keys[k] += reader.child_nodes[child]
    if node == reader.root and len(reader.whole_order) > 0:
        first, spare = end, len(reader.whole_order)
        stack[0] = state * reader.classes
        nodes = reader.whole_nodes
        _, stop, _, _ = collect_tokens_kernel(nodes, 0, len(nodes), by_byte, stack, (tokens, keys, spare), first)
        for k in range(first, stop):
            target = keys[k] // reader.classes
            if reader.can_stop[target] & (ENDS | BORDERS):
                tokens[end] = reader.whole_order[tokens[k]]
                keys[end] = target * node_count + WHOLE
                end += 1
    return end


@kernel
def border_key_kernel(key, node_count, reader):  # type: ignore[no-untyped-def]
    """The key of the state behind a border, -1 if none may stand here."""
    state = key // node_count
    if reader.can_stop[state] & BORDERS == 0 or reader.terminal[key % node_count]:
        return np.int64(-1)
    return np.int64(reader.marker[state]) * node_count + reader.root


@kernel
def number_targets_kernel(keys, begin, end, numbers, rows, reader, node_count, every_state):  # type: ignore[no-untyped-def]
    """Write the numbers of keys[begin:end], -1 for full states unless `every_state`; False if there is no room."""
    can_stop, terminal = reader.can_stop, reader.terminal  # numba counts references to all that a call takes
    states = rows.states
    for k in range(begin, end):
        stop = can_stop[keys[k] // node_count]
        is_full = (stop & INSIDE) != 0 or ((stop & (ENDS | BORDERS)) != 0 and not terminal[keys[k] % node_count])
        if is_full and not every_state:  # see `ProperTable.is_full`
            numbers[k] = -1
        else:
            number = intern_key(keys[k], states)
            if number == NEEDS_ROOM:
                return False
            numbers[k] = number
    return True


@kernel
def _close_kernel(state, rows, reader, node_count, room, every_state):  # type: ignore[no-untyped-def]
    """Make the rows of the states from `state` on, until all are done or the next row might not fit.

    Returns the state that it came to.
    """
    work = np.int64(0)
    while state < rows.states.meta[COUNT] and rows.offsets[state] + room <= len(rows.tokens):
        if work > PAID_ENTRIES:
            pay(NS_PER_ENTRY * work)
            work = np.int64(0)
        key, begin = rows.states.words[state], rows.offsets[state]
        end = read_row_kernel(key, node_count, reader, begin, rows.tokens, rows.targets)
        if not number_targets_kernel(rows.targets, begin, end, rows.targets, rows, reader, node_count, every_state):
            break
        border = border_key_kernel(key, node_count, reader) if every_state else np.int64(-1)
        if border >= 0 and intern_key(border, rows.states) == NEEDS_ROOM:
            break
        rows.live[begin:end] = False
        state += 1
        rows.offsets[state] = end
        work += 20 + end - begin
    return state
