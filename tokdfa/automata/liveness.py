"""Which states of an automaton matter, and `trim`, which keeps only those.

A state is *live* iff it can be reached from the start and acceptance can be reached from it. Both searches are
breadth-first, one forwards through the table, one backwards through the transitions listed by their targets.

Kernels of this package take writable C-contiguous arrays only: numba would compile them anew for the read-only ones
that a `Dfa` holds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.automata.byte_classes import merge_equal_columns
from tokdfa.automata.dfa import Dfa
from tokdfa.jit import kernel

Table = npt.NDArray[np.int32]
States = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]


def distance_to_accept(dfa: Dfa) -> States:
    """The smallest number of bytes from each state to acceptance: int32, shape (states,), -1 where there is no way."""
    return _distances(dfa.transitions, dfa.accepting)


def live_states(dfa: Dfa) -> Flags:
    """Which states can be reached from the start and reach acceptance: bool, shape (states,)."""
    live = np.zeros(dfa.state_count, dtype=np.bool_)
    if dfa.state_count:
        table = np.array(dfa.transitions)
        live[_breadth_first(table, dfa.start, _distances(table, dfa.accepting) >= 0)] = True
    return live


def trim(dfa: Dfa) -> Dfa:
    """The live part of `dfa`: same language, states numbered breadth-first from start 0, coarsest byte classes.

    O(states x classes).
    """
    byte_class, representatives = merge_equal_columns(dfa.transitions, dfa.byte_class)
    table = np.take(dfa.transitions, dfa.byte_class[representatives], axis=1)
    return trim_table(table, byte_class, np.array(dfa.accepting), dfa.start)


def is_empty(dfa: Dfa) -> bool:
    """Whether no word at all is accepted."""
    return dfa.state_count == 0 or bool(distance_to_accept(dfa)[dfa.start] < 0)


def trim_table(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, start: int) -> Dfa:
    """`trim` for bare arrays whose classes ascend by their smallest bytes."""
    if start < 0:
        return Dfa.empty()
    order = _breadth_first(table, start, _distances(table, accepting) >= 0)
    if not len(order):
        return Dfa.empty()
    number = np.full(len(table) + 1, -1, dtype=np.int32)  # the last entry is what -1 looks up
    number[order] = np.arange(len(order), dtype=np.int32)
    renumbered = number[table[order]]
    merged_class, representatives = merge_equal_columns(renumbered, byte_class)
    return Dfa(np.take(renumbered, byte_class[representatives], axis=1), merged_class, accepting[order], 0)


def live_edges(table: Table) -> tuple[States, States, States]:
    """The transitions that do not die, by ascending class: (sources, classes, targets), int32, an entry each."""
    classes, sources = np.nonzero(np.ascontiguousarray(table.T) >= 0)
    return sources.astype(np.int32), classes.astype(np.int32), table[sources, classes]


def _distances(table: Table, accepting: Flags) -> States:
    sources, _, targets = live_edges(table)
    distances = np.where(accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(sources, targets, distances)
    return distances


def _breadth_first(table: Table, start: int, keep: Flags) -> States:
    """The states reached through states of `keep`, in breadth-first order; none if the start is not kept."""
    order = np.empty(len(table), dtype=np.int32)
    return order[: _order_states_kernel(table, start, keep, order)]


@kernel
def _list_incoming_kernel(targets: States, states: int) -> tuple[States, States]:
    """Edge numbers grouped by target: those into state s are ``edges[offsets[s]:offsets[s + 1]]``."""
    offsets = np.zeros(states + 1, dtype=np.int32)
    for edge in range(len(targets)):
        offsets[targets[edge] + 1] += 1
    for state in range(states):
        offsets[state + 1] += offsets[state]
    fill = offsets.copy()
    edges = np.empty(len(targets), dtype=np.int32)
    for edge in range(len(targets)):
        edges[fill[targets[edge]]] = edge
        fill[targets[edge]] += 1
    return offsets, edges


@kernel
def _measure_distances_kernel(sources: States, targets: States, distances: States) -> None:
    """Breadth-first search backwards. `distances`: 0 at accepting states, -1 elsewhere; filled in place."""
    states = len(distances)
    offsets, incoming = _list_incoming_kernel(targets, states)
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
def _order_states_kernel(table: Table, start: int, keep: Flags, order: States) -> int:
    """Breadth-first search forwards through kept states. Writes `order`, returns how many states it holds."""
    if not keep[start]:
        return 0
    waiting = keep.copy()
    waiting[start] = False
    order[0] = start
    count = 1
    head = 0
    while head < count:
        state = order[head]
        head += 1
        for column in range(table.shape[1]):
            target = table[state, column]
            if target >= 0 and waiting[target]:
                waiting[target] = False
                order[count] = target
                count += 1
    return count
