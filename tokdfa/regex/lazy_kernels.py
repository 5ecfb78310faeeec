"""The kernels of lazy automata (`tokdfa.regex.lazy_dfa`): rows of many states, and which of them are live.

Arrays are those of `LazyDfa`, ``nodes`` to ``meta`` those of its expressions, `store` those of its
`DerivativeTable`.
"""

from __future__ import annotations

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.regex.derivative import derive_kernel
from tokdfa.regex.derivative_classes import classify_kernel
from tokdfa.regex.nodes import F_ASSERTS, F_INHABITED, F_NULLABLE, M_STATUS, NOTHING, OK, count_work
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

#: Entry of `live`: not known yet.
UNDECIDED, IS_DEAD, IS_LIVE = 0, 1, 2
#: Indices into `dfa_meta`: states made; state at which exploration stopped; place in a list at which its rows stopped.
D_STATES, D_EXPLORED, D_NEXT = range(3)
#: More status values (see `tokdfa.regex.nodes`): a state with assertions, which only Python code can derive; an array
#: of the automaton or of the store is too short.
NEEDS_PYTHON, FULL = 10, 11


@kernel
def number_states_kernel(raw, transitions):  # type: ignore[no-untyped-def]
    """Write the first rows of `raw` to `transitions` (shape (states, classes)), row offsets as state numbers."""
    states, classes = transitions.shape
    for state in range(states):
        for k in range(classes):
            target = raw[state * classes + k]
            transitions[state, k] = target // classes if target >= 0 else DEAD


@kernel
def fill_rows_kernel(  # type: ignore[no-untyped-def]
    nodes,
    arguments,
    table,
    scratch,
    meta,
    store,
    expressions,
    state_of,
    raw,
    transitions,
    accepting,
    live,
    dfa_meta,
    states,
    every,
    limit,
):
    """Derive the rows of `states`, or of `every` state there is, making states as they turn up.

    Goes on at place ``dfa_meta[D_NEXT]`` of `states`, or at state ``dfa_meta[D_EXPLORED]``, and leaves there where it
    stopped. Returns OK, FULL (an array is too short: grow and call again) or NEEDS_PYTHON (the state has assertions).
    A row is written only when all of it is known.
    """
    representatives = store.representatives
    classes = len(representatives)
    targets = store.room  # by local class
    progress = D_EXPLORED if every else D_NEXT
    while dfa_meta[progress] < (dfa_meta[D_STATES] if every else len(states)):
        state = dfa_meta[progress] if every else np.int64(states[dfa_meta[progress]])
        expression = np.int64(expressions[state])
        if raw[state * classes] == UNKNOWN:
            if nodes[expression, 0] & F_ASSERTS:
                return NEEDS_PYTHON
            partition = classify_kernel(nodes, arguments, meta, store, expression)
            if meta[M_STATUS] != OK:
                return FULL
            count_work(meta, 1 + classes // 16)
            local_class = store.partitions[partition]
            taken = 0
            for k in range(classes):
                if local_class[k] < taken:
                    continue
                taken += 1
                byte = np.int64(representatives[k])
                derived = derive_kernel(nodes, arguments, table, scratch, meta, store, expression, k, byte)
                if meta[M_STATUS] != OK:
                    return FULL
                if derived == NOTHING:
                    targets[local_class[k]] = DEAD
                    continue
                if derived >= len(state_of):
                    return FULL
                target = np.int64(state_of[derived])
                if target < 0:
                    target = dfa_meta[D_STATES]
                    if target >= len(accepting) or target >= limit:
                        return FULL
                    word = nodes[derived, 0]
                    dfa_meta[D_STATES] = target + 1
                    expressions[target] = derived
                    raw[target * classes] = UNKNOWN
                    for entry in range(target * classes, (target + 1) * classes):
                        transitions[entry] = UNKNOWN
                    state_of[derived] = target
                    accepting[target] = word & F_NULLABLE != 0
                    live[target] = IS_LIVE if word & F_INHABITED else UNDECIDED
                targets[local_class[k]] = target * classes
            for k in range(classes):
                raw[state * classes + k] = targets[local_class[k]]
        dfa_meta[progress] += 1
    return OK


@kernel
def settle_rows_kernel(raw, transitions, live, states, undecided, classes):  # type: ignore[no-untyped-def]
    """Write the rows of `transitions` all whose targets are decided; the number of `undecided` targets of the others.

    A target is in `undecided` (room for a row at least) as often as it was met; where that is full, the rest is left.
    """
    count = np.int64(0)
    for k in range(len(states)):
        row, before = np.int64(states[k]) * classes, count
        if transitions[row] != UNKNOWN:
            continue
        if count + classes > len(undecided):
            return count
        for entry in range(row, row + classes):
            if raw[entry] >= 0 and live[raw[entry] // classes] == UNDECIDED:
                undecided[count] = raw[entry] // classes
                count += 1
        if count == before:
            for entry in range(row, row + classes):
                transitions[entry] = raw[entry] if raw[entry] >= 0 and live[raw[entry] // classes] == IS_LIVE else DEAD
    return count


@kernel
def descend_kernel(raw, live, expressions, bounds, reached, begin, end, classes):  # type: ignore[no-untyped-def]
    """Mark as live those of reached[:end] that lead to a live state, over others of them; take a step from the rest.

    Raw rows of reached[:end] are known. From each of reached[begin:end] that is not decided now, the target with the
    shortest texts (`bounds`) is added to `reached`, if it was not reached before; how many there are then.
    """
    changed = True
    while changed:
        changed = False
        for k in range(end - 1, -1, -1):  # backwards: what is reached later is nearer to the ends of texts
            state = np.int64(reached[k])
            if live[state] != UNDECIDED:
                continue
            for entry in range(state * classes, (state + 1) * classes):
                if raw[entry] >= 0 and live[raw[entry] // classes] == IS_LIVE:
                    live[state] = IS_LIVE
                    changed = True
                    break
    met = np.zeros(len(live), dtype=np.bool_)
    for k in range(end):
        met[reached[k]] = True
    count = end
    for k in range(begin, end):
        state = np.int64(reached[k])
        if live[state] != UNDECIDED:
            continue
        best = np.int64(-1)
        for entry in range(state * classes, (state + 1) * classes):
            target = np.int64(raw[entry]) // classes if raw[entry] >= 0 else np.int64(-1)
            if target < 0 or live[target] != UNDECIDED:
                continue
            if best < 0 or bounds[expressions[target]] < bounds[expressions[best]]:
                best = target
        if best >= 0 and not met[best]:
            met[best] = True
            reached[count] = best
            count += 1
    return count
