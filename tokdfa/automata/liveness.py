"""Which states of an automaton matter, and `trim`, which keeps only those.

A state is *live* iff it can be reached from the start and acceptance can be reached from it. Both searches are
breadth-first, one forwards, one backwards. They and minimisation work on the *moves*, a list of the transitions that do
not die: often a tenth of the table, if there are many byte classes. So the table is read once, and a new one written
once, at the end.

Kernels of this package take writable C-contiguous arrays only: numba would compile them anew for the read-only ones
that a `Dfa` holds. The one exception is `_list_moves_kernel`, which takes read-only tables only.
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


class Moves(NamedTuple):
    """The transitions that do not die, by ascending source and then by ascending label; all arrays are int32.

    ``offsets``, shape (states + 1,): the moves of state s are ``offsets[s] .. offsets[s + 1] - 1``; ``sources``,
    ``labels`` and ``targets``, an entry each. A label is the rank of a byte class, classes ordered by smallest byte.
    """

    offsets: States
    sources: States
    labels: States
    targets: States


def distance_to_accept(dfa: Dfa) -> States:
    """The smallest number of bytes from each state to acceptance: int32, shape (states,), -1 where there is no way."""
    moves, _ = list_moves(dfa.transitions, dfa.byte_class)
    return _distances(moves, dfa.accepting)


def live_states(dfa: Dfa) -> Flags:
    """Which states can be reached from the start and reach acceptance: bool, shape (states,)."""
    live = np.zeros(dfa.state_count, dtype=np.bool_)
    if dfa.state_count:
        moves, _ = list_moves(dfa.transitions, dfa.byte_class)
        live[_breadth_first(moves, [dfa.start], dfa.accepting)] = True
    return live


def coaccessible_states(offsets: npt.NDArray[np.integer], targets: npt.NDArray[np.integer], accepting: Flags) -> Flags:
    """bool, shape (states,): from which states acceptance can be reached along ``targets[offsets[s]:offsets[s + 1]]``.

    O(transitions), of any automaton, whatever its letters are.
    """
    sources = np.repeat(np.arange(len(accepting), dtype=np.int32), np.diff(offsets))
    distances = np.where(accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(sources, targets.astype(np.int32), distances)
    return distances >= 0


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
    moves, labels_of_bytes, accepting, _ = live_part(table, byte_class, accepting, [start])
    return build_dfa(moves, labels_of_bytes, accepting)


def live_part(
    table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, starts: Sequence[int]
) -> tuple[Moves, npt.NDArray[np.uint8], Flags, States]:
    """The moves between states that are live for one of `starts` (-1: for none), numbered breadth-first from these; the
    label of each byte; who accepts; the new number of each start, -1 if nothing is accepted from there.
    """
    moves, labels_of_bytes = list_moves(table, byte_class)
    order = _breadth_first(moves, starts, accepting)
    number = np.full(len(table) + 1, -1, dtype=np.int32)  # the last is that of no state
    number[order] = np.arange(len(order), dtype=np.int32)
    return select_moves(moves, order, number), labels_of_bytes, accepting[order], number[starts]


def list_moves(table: Table, byte_class: npt.NDArray[np.uint8]) -> tuple[Moves, npt.NDArray[np.uint8]]:
    """The moves of a table, and the label of each byte: uint8, shape (256,). O(states x classes)."""
    spend(10 * table.size)
    _, firsts, places = np.unique(byte_class, return_index=True, return_inverse=True)
    order = np.argsort(firsts)  # the classes by ascending smallest byte
    columns, labels_of_bytes = byte_class[firsts[order]].astype(np.int32), np.argsort(order).astype(np.uint8)[places]
    frozen = table.view()
    frozen.flags.writeable = False
    return Moves(*_list_moves_kernel(frozen, columns)), labels_of_bytes


def select_moves(moves: Moves, order: States, number: States) -> Moves:
    """The moves of the states in `order`, which become 0, 1, ..; targets are renamed by `number`, and dropped at -1."""
    return Moves(*_select_moves_kernel(moves.offsets, moves.labels, moves.targets, order, number))


def build_dfa(moves: Moves, labels_of_bytes: npt.NDArray[np.uint8], accepting: Flags) -> Dfa:
    """The automaton with these moves and start 0, equal columns merged; without states, the empty one."""
    if not len(accepting):
        return Dfa.empty()
    table, column_of = _fill_table_kernel(*moves, int(labels_of_bytes.max()) + 1)
    table.flags.writeable = False  # spares a copy
    return Dfa(table, column_of[labels_of_bytes], accepting, 0)


def _distances(moves: Moves, accepting: Flags) -> States:
    distances = np.where(accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(moves.sources, moves.targets, distances)
    return distances


def _breadth_first(moves: Moves, starts: Sequence[int], accepting: Flags) -> States:
    """The live states in breadth-first order."""
    order = np.empty(len(accepting), dtype=np.int32)
    live = _distances(moves, accepting) >= 0
    count = _order_states_kernel(moves.offsets, moves.targets, np.array(starts, dtype=np.int32), live, order)
    return order[:count]


@kernel
def _list_moves_kernel(table: Table, columns: States) -> tuple[States, States, States, States]:
    """The arrays of `Moves`; a move's label is the place of its column in `columns`."""
    states = len(table)
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
        for label in range(len(columns)):
            target = table[state, columns[label]]
            if target >= 0:
                sources[count], labels[count], targets[count] = state, label, target
                count += 1
    offsets[states] = count
    return offsets, sources, labels, targets


@kernel
def _select_moves_kernel(
    offsets: States, labels: States, targets: States, order: States, number: States
) -> tuple[States, States, States, States]:
    """See `select_moves`."""
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
def _fill_table_kernel(
    offsets: States, sources: States, labels: States, targets: States, label_count: int
) -> tuple[Table, npt.NDArray[np.uint8]]:
    """(the table with one column for all labels that have the same moves, the column of each label).

    Columns ascend by their first labels.
    """
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
    return table, column_of
