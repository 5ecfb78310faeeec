"""Rows for proper token masks: the tokens that go on from a state inside the piece, read from the piece automaton.

A *state* is a state of the piece automaton (`tokdfa.backends.proper_merge.marked_product`) with a node of the whole
pieces (`tokdfa.proper.whole_pieces`), written as one number, its *key*: state x nodes + node. Its *row* are the tokens
that can be read from it inside the piece, and where they lead: byte tokens one letter at a time, other tokens along the
trie, and at the beginning of a piece the improper tokens that are whole pieces.

`ProperRows` is a store that only grows: states get numbers when something leads to them, and rows in that order. What
is known of their liveness stands beside the rows; `tokdfa.backends.proper_merge.proper_table` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.backends.proper_merge.marked_product import BORDERS, ENDS, INSIDE
from tokdfa.core.interning import longer_keys, number_key
from tokdfa.core.jit import kernel
from tokdfa.proper.intervals import longer_kernel
from tokdfa.proper.whole_pieces import WHOLE
from tokdfa.vocabulary.walk import collect_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt


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
    child_starts: npt.NDArray[np.int32]
    child_ranks: npt.NDArray[np.int32]
    child_nodes: npt.NDArray[np.int32]
    terminal: npt.NDArray[np.bool_]
    root: int


class ProperRows(NamedTuple):
    """The rows made so far. State i has ``keys[i]`` and the entries ``offsets[i] .. offsets[i + 1] - 1``: `tokens`,
    `targets` (a state, -1 for a full one) and `live`; its live tokens are the first ``live_counts[i]`` of
    `live_tokens` from ``offsets[i]`` on, in the order in which they were found. `slots` finds a state by its key (open
    addressing). `status` and the suspects ``suspects[suspect_starts[i] : suspect_ends[i]]``, ascending, say what is
    known of its liveness; the first ``tried[i]`` live tokens have been tried on them, so that the others decide.
    `counts`: states with rows, states numbered, suspects written.
    """

    keys: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    live: npt.NDArray[np.bool_]
    live_tokens: npt.NDArray[np.int32]
    live_counts: npt.NDArray[np.int64]
    tried: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    suspect_starts: npt.NDArray[np.int64]
    suspect_ends: npt.NDArray[np.int64]
    suspects: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]


def no_rows() -> ProperRows:
    """No states yet, and room for some."""
    states, entries = 64, 1024
    return ProperRows(
        np.empty(states, dtype=np.int64),
        np.full(2 * states, -1, dtype=np.int32),
        np.zeros(states + 1, dtype=np.int64),
        np.empty(entries, dtype=np.int32),
        np.empty(entries, dtype=np.int32),
        np.zeros(entries, dtype=np.bool_),
        np.empty(entries, dtype=np.int32),
        np.zeros(states, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.zeros(states, dtype=np.uint8),
        np.zeros(states, dtype=np.int64),
        np.zeros(states, dtype=np.int64),
        np.empty(entries, dtype=np.int32),
        np.zeros(3, dtype=np.int64),
    )


@kernel
def read_token_kernel(table, byte_class, byte_data, begin, end, row):  # type: ignore[no-untyped-def]
    """The row offset after bytes begin .. end-1, or -1."""
    for position in range(begin, end):
        row = np.int64(table[row + byte_class[byte_data[position]]])
        if row < 0:
            break
    return row


@kernel
def _is_full_kernel(key, node_count, can_stop, terminal):  # type: ignore[no-untyped-def]
    """See `ProperTable.is_full`."""
    stop = can_stop[key // node_count]
    return (stop & INSIDE) != 0 or ((stop & (ENDS | BORDERS)) != 0 and not terminal[key % node_count])


@kernel
def read_row_kernel(key, node_count, reader, stack, begin, tokens, keys):  # type: ignore[no-untyped-def]
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
def number_state_kernel(key, keys, slots, counts):  # type: ignore[no-untyped-def]
    """The number of the state `key`, a new one if need be; there must be room."""
    number, counts[1] = number_key(key, counts[1], keys, slots)
    return number


@kernel
def grow_states_kernel(  # type: ignore[no-untyped-def]
    least, keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried,
    status, suspect_starts, suspect_ends, suspects, counts,
):  # fmt: skip
    """The arrays of `ProperRows` with room for at least `least` states."""
    known = counts[1]
    new_keys, new_slots = longer_keys(least, known, keys)
    room = len(new_keys)
    new_offsets = np.zeros(room + 1, dtype=np.int64)
    new_live_counts, new_tried = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    new_status = np.zeros(room, dtype=np.uint8)
    new_starts, new_ends = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
    new_offsets[: counts[0] + 1] = offsets[: counts[0] + 1]
    new_live_counts[:known], new_tried[:known] = live_counts[:known], tried[:known]
    new_status[:known] = status[:known]
    new_starts[:known], new_ends[:known] = suspect_starts[:known], suspect_ends[:known]
    return (
        *(new_keys, new_slots, new_offsets, tokens, targets, live, live_tokens, new_live_counts, new_tried),
        *(new_status, new_starts, new_ends, suspects, counts),
    )


@kernel
def number_targets_kernel(  # type: ignore[no-untyped-def]
    node_count, reader, found, count,
    keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried,
    status, suspect_starts, suspect_ends, suspects, counts,
):  # fmt: skip
    """The number of each of the first `count` keys in `found`, -1 for full states: int32. There must be room."""
    numbers = np.empty(count, dtype=np.int32)
    for k in range(count):
        if _is_full_kernel(found[k], node_count, reader.can_stop, reader.terminal):
            numbers[k] = -1
        else:
            numbers[k] = number_state_kernel(found[k], keys, slots, counts)
    return numbers


@kernel
def close_kernel(  # type: ignore[no-untyped-def]
    node_count, reader, stack, room, max_transitions,
    keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried,
    status, suspect_starts, suspect_ends, suspects, counts,
):  # fmt: skip
    """Make the rows of all numbered states and of those that they lead to. Returns the arrays of `ProperRows`.

    Stops, with states left, past `max_transitions`.
    """
    while counts[0] < counts[1]:
        state = counts[0]
        begin = offsets[state]
        if begin > max_transitions:
            break
        while begin + room > len(tokens):
            tokens, targets = longer_kernel(tokens), longer_kernel(targets)
            live, live_tokens = longer_kernel(live), longer_kernel(live_tokens)
        end = read_row_kernel(keys[state], node_count, reader, stack, begin, tokens, targets)
        if counts[1] + (end - begin) > len(keys):
            (
                keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried,
                status, suspect_starts, suspect_ends, suspects, counts,
            ) = grow_states_kernel(
                counts[1] + (end - begin),
                *(keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried),
                *(status, suspect_starts, suspect_ends, suspects, counts),
            )  # fmt: skip
        for k in range(begin, end):
            live[k] = False
            if _is_full_kernel(targets[k], node_count, reader.can_stop, reader.terminal):
                targets[k] = -1
            else:
                targets[k] = number_state_kernel(targets[k], keys, slots, counts)
        offsets[state + 1] = end
        counts[0] += 1
    return (
        *(keys, slots, offsets, tokens, targets, live, live_tokens, live_counts, tried),
        *(status, suspect_starts, suspect_ends, suspects, counts),
    )
