"""Which states of an automaton matter, and `trim`, which keeps only those.

A state is *live* iff it can be reached from the start and acceptance can be reached from it. Both searches are
breadth-first, one forwards, one backwards. They and minimisation work on the *moves*, a list of the transitions that do
not die: often a tenth of the table, if there are many byte classes. So the table is read once, and a new one written
once, at the end.

Kernels of this package take writable C-contiguous arrays only: numba would compile them anew for the read-only ones
that a `Dfa` holds. The exceptions are `_list_moves_kernel` and `_live_part_kernel`, which take read-only automata only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

Table = npt.NDArray[np.int32]
States = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


#: Work (`tokdfa.core.budget`) of an entry of a table, in nanoseconds.
NS_PER_ENTRY = 10


class Moves(NamedTuple):
    """The transitions that do not die, by ascending source and then by ascending label; all arrays are int32.

    ``offsets``, shape (states + 1,): the moves of state s are ``offsets[s] .. offsets[s + 1] - 1``; ``sources``,
    ``labels`` and ``targets``, an entry each. A label is the rank of a byte class, classes ordered by smallest byte.
    """

    offsets: States
    sources: States
    labels: States
    targets: States


class LivePart(NamedTuple):
    """The live states of an automaton, numbered breadth-first from its starts.

    ``moves``; ``labels_of_bytes``: uint8, shape (256,); ``accepting``: bool, shape (live states,); ``starts``: int32,
    the new number of each start, -1 if nothing is accepted from there; ``order``: int32, the old number of each state.
    """

    moves: Moves
    labels_of_bytes: npt.NDArray[np.uint8]
    accepting: Flags
    starts: States
    order: States


def distance_to_accept(dfa: Dfa) -> States:
    """The smallest number of bytes from each state to acceptance: int32, shape (states,), -1 where there is no way."""
    spend(NS_PER_ENTRY * dfa.transitions.size)
    _, sources, _, targets, _ = _list_moves_kernel(dfa.transitions, dfa.byte_class)
    distances = np.where(dfa.accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(sources, targets, distances)
    return distances


def live_states(dfa: Dfa) -> Flags:
    """Which states can be reached from the start and reach acceptance: bool, shape (states,)."""
    live = np.zeros(dfa.state_count, dtype=np.bool_)
    if dfa.state_count:
        live[live_part(dfa.transitions, dfa.byte_class, dfa.accepting, [dfa.start]).order] = True
    return live


def coaccessible_states(offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], accepting: Flags) -> Flags:
    """bool, shape (states,): from which states acceptance can be reached along ``targets[offsets[s]:offsets[s + 1]]``.

    O(transitions), of any automaton, whatever its letters are.
    """
    sources = np.repeat(np.arange(len(accepting), dtype=np.int32), np.diff(offsets))
    distances = np.where(accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(sources, targets.astype(np.int32), distances)
    return distances >= 0


def leading_to(table: Table, wanted: Flags) -> Flags:
    """bool, shape (states,): the states that lead to those that are wanted, these included. O(entries).

    `table`: int32, shape (states, letters), -1 where nothing goes on.
    """
    leads = table >= 0
    return coaccessible_states(np.append(0, np.cumsum(leads.sum(axis=1))), table[leads], wanted)


def trim(dfa: Dfa) -> Dfa:
    """The live part of `dfa`: same language, states numbered breadth-first from start 0, coarsest byte classes.

    O(states x classes).
    """
    return trim_table(dfa.transitions, dfa.byte_class, dfa.accepting, dfa.start)


def is_empty(dfa: Dfa) -> bool:
    """Whether no word at all is accepted."""
    return dfa.state_count == 0 or bool(distance_to_accept(dfa)[dfa.start] < 0)


def trim_table(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, start: int) -> Dfa:
    """`trim` for bare arrays; `start` -1 stands for no state."""
    live = live_part(table, byte_class, accepting, [start])
    if not len(live.order):
        return Dfa.empty()
    built, merged = build_table_kernel(*live.moves, live.labels_of_bytes)
    return Dfa.trusted(built, merged, live.accepting, 0)


def live_part(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, starts: Sequence[int]) -> LivePart:
    """What of an automaton is live for one of `starts` (-1: for none). O(states x classes)."""
    spend(NS_PER_ENTRY * table.size)
    given = table.view(), byte_class.view(), accepting.view()
    for array in given:
        array.flags.writeable = False
    moves, *rest = _live_part_kernel(*given, np.array(starts, dtype=np.int32))
    return LivePart(Moves(*moves), *rest)


@kernel
def _live_part_kernel(table, byte_class, accepting, starts):  # type: ignore[no-untyped-def]
    """The fields of `LivePart`."""
    offsets, sources, labels, targets, labels_of_bytes = _list_moves_kernel(table, byte_class)
    states = len(accepting)
    distances = np.empty(states, dtype=np.int32)
    for state in range(states):
        distances[state] = 0 if accepting[state] else -1
    _measure_distances_kernel(sources, targets, distances)
    room = np.empty(states, dtype=np.int32)
    order = room[: _order_states_kernel(offsets, targets, starts, distances >= 0, room)].copy()
    number = np.full(states, -1, dtype=np.int32)
    live_accepting = np.empty(len(order), dtype=np.bool_)
    for place in range(len(order)):
        number[order[place]], live_accepting[place] = place, accepting[order[place]]
    for place in range(len(starts)):
        starts[place] = number[starts[place]] if starts[place] >= 0 else -1
    moves = select_moves_kernel(offsets, labels, targets, order, number)
    return moves, labels_of_bytes, live_accepting, starts, order


@kernel
def _list_moves_kernel(table, byte_class):  # type: ignore[no-untyped-def]
    """The arrays of `Moves`, and the label of each byte: uint8, shape (256,)."""
    states, classes = table.shape
    label_of = np.full(classes, -1, dtype=np.int64)
    columns = np.empty(classes, dtype=np.int64)
    labels_of_bytes = np.empty(256, dtype=np.uint8)
    label_count = 0
    for byte in range(256):
        column = byte_class[byte]
        if label_of[column] < 0:
            label_of[column], columns[label_count] = label_count, column
            label_count += 1
        labels_of_bytes[byte] = label_of[column]
    offsets = np.empty(states + 1, dtype=np.int32)
    room = 0
    for entry in table.flat:
        if entry >= 0:
            room += 1
    sources, labels = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    targets = np.empty(room, dtype=np.int32)
    count = 0
    for state in range(states):
        offsets[state] = count
        for label in range(label_count):
            target = table[state, columns[label]]
            if target >= 0:
                sources[count], labels[count], targets[count] = state, label, target
                count += 1
    offsets[states] = count
    return offsets, sources, labels, targets, labels_of_bytes


@kernel
def select_moves_kernel(
    offsets: States, labels: States, targets: States, order: States, number: States
) -> tuple[States, States, States, States]:
    """The moves of the states in `order`, which become 0, 1, ..; targets are renamed by `number`, and dropped at -1."""
    room = 0
    for state in order:
        for move in range(offsets[state], offsets[state + 1]):
            if number[targets[move]] >= 0:
                room += 1
    new_offsets = np.empty(len(order) + 1, dtype=np.int32)
    new_sources, new_labels = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int32)
    new_targets = np.empty(room, dtype=np.int32)
    count = 0
    for index in range(len(order)):
        new_offsets[index] = count
        for move in range(offsets[order[index]], offsets[order[index] + 1]):
            target = number[targets[move]]
            if target >= 0:
                new_sources[count], new_labels[count], new_targets[count] = index, labels[move], target
                count += 1
    new_offsets[len(order)] = count
    return new_offsets, new_sources, new_labels, new_targets


@kernel
def list_incoming_kernel(targets: States, states: int) -> tuple[States, States]:
    """Moves grouped by target: those into state s are ``incoming[offsets[s]:offsets[s + 1]]``, in ascending order.

    Any other number of a move from 0 to `states` - 1 can stand for its target.
    """
    offsets = np.zeros(states + 1, dtype=np.int32)
    for move in range(len(targets)):
        offsets[targets[move] + 1] += 1
    for state in range(states):
        offsets[state + 1] += offsets[state]
    fill = offsets.copy()
    incoming = np.empty(len(targets), dtype=np.int32)
    for move in range(len(targets)):
        incoming[fill[targets[move]]] = move
        fill[targets[move]] += 1
    return offsets, incoming


@kernel
def _measure_distances_kernel(sources: States, targets: States, distances: States) -> None:
    """Breadth-first search backwards. `distances`: 0 at accepting states, -1 elsewhere; filled in place."""
    states = len(distances)
    offsets, incoming = list_incoming_kernel(targets, states)
    queue = np.empty(states, dtype=np.int32)
    count = 0
    for state in range(states):
        if distances[state] == 0:
            queue[count] = state
            count += 1
    head = 0
    while head < count:
        state = queue[head]
        head += 1
        for index in range(offsets[state], offsets[state + 1]):
            source = sources[incoming[index]]
            if distances[source] < 0:
                distances[source] = distances[state] + 1
                queue[count] = source
                count += 1


@kernel
def _order_states_kernel(offsets: States, targets: States, starts: States, waiting: Flags, order: States) -> int:
    """Breadth-first search forwards through the states that wait. Writes `order`, returns how many states it holds."""
    count = 0
    for start in starts:
        if start >= 0 and waiting[start]:
            waiting[start] = False
            order[count] = start
            count += 1
    head = 0
    while head < count:
        state = order[head]
        head += 1
        for move in range(offsets[state], offsets[state + 1]):
            target = targets[move]
            if waiting[target]:
                waiting[target] = False
                order[count] = target
                count += 1
    return count


@kernel
def build_table_kernel(offsets, sources, labels, targets, labels_of_bytes):  # type: ignore[no-untyped-def]
    """(table, byte_class) of the automaton with these moves, equal columns merged. Columns ascend by first bytes."""
    label_count = np.int64(labels_of_bytes.max()) + 1
    starts, moves = list_incoming_kernel(labels, label_count)
    hashes = np.zeros(label_count, dtype=np.int64)
    for move in range(len(labels)):
        hashes[labels[move]] = (hashes[labels[move]] * 1000003) ^ (targets[move] * 8191 + sources[move])
    column_of = np.empty(label_count, dtype=np.uint8)
    kept = np.empty(label_count, dtype=np.int32)
    columns = 0
    for label in range(label_count):
        first, size = starts[label], starts[label + 1] - starts[label]
        column = 0
        while column < columns:
            other = starts[kept[column]]
            if hashes[kept[column]] == hashes[label] and starts[kept[column] + 1] - other == size:
                same = 0
                while (
                    same < size
                    and sources[moves[first + same]] == sources[moves[other + same]]
                    and targets[moves[first + same]] == targets[moves[other + same]]
                ):
                    same += 1
                if same == size:
                    break
            column += 1
        if column == columns:
            kept[columns] = label
            columns += 1
        column_of[label] = column
    table = np.full((len(offsets) - 1, columns), -1, dtype=np.int32)
    for move in range(len(labels)):
        column = column_of[labels[move]]
        if kept[column] == labels[move]:
            table[sources[move], column] = targets[move]
    return table, column_of[labels_of_bytes]
