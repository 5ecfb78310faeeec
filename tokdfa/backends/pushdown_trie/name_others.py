"""The states of the TERMINAL that reads any other string, beside those of a NAMES.

If an instruction has a TERMINAL for other strings, each node of its trie has an *other state*: that of the TERMINAL's
automaton after the same characters; so has each phase, found by reading the few bytes of the spelling that are read
from the other state of the node above. What follows from that: `tokdfa.backends.pushdown_trie.names`.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.name_trie import (
    AT_ROOT,
    BACKSLASH,
    ESCAPED,
    LETTER_U,
    N_PARENT,
    N_UNIT,
    PHASES,
    QUOTE,
    RAW,
    T_NODES,
    WHOLE,
    character,
    node_above,
    short_escape,
    utf8_byte,
    utf8_length,
)
from tokdfa.core.jit import kernel
from tokdfa.program.program import NAMES_PAIR, NAMES_TABLE
from tokdfa.vocabulary.walk import DEAD, UNKNOWN


@kernel
def _escape_byte(unit, place):  # type: ignore[no-untyped-def]
    """Byte `place` of the escape with four digits."""
    if place < 2:
        return np.int64(BACKSLASH) if place == 0 else np.int64(LETTER_U)
    digit = np.int64((unit >> (20 - 4 * place)) & 15)
    return 0x30 + digit if digit < 10 else 0x57 + digit


@kernel
def _run_raw(state, code, count, transitions):  # type: ignore[no-untyped-def]
    """(state, UNKNOWN or DEAD after the first `count` bytes of a character raw; the last state before it)."""
    before, length = state, utf8_length(code)
    for place in range(count):
        if state < 0:
            break
        before = state
        state = np.int64(transitions[state * 256 + utf8_byte(code, length, place)])
    return state, before


@kernel
def _run_escape(state, unit, count, transitions):  # type: ignore[no-untyped-def]
    """As `_run_raw`, for the escape with four digits."""
    before = state
    for place in range(count):
        if state < 0:
            break
        before = state
        state = np.int64(transitions[state * 256 + _escape_byte(unit, place)])
    return state, before


@kernel
def other_state(state, at, machine, pool):  # type: ignore[no-untyped-def]
    """(the state of the TERMINAL for other strings after the same characters, UNKNOWN or DEAD; a state without its
    row).

    DEAD, too, if there is no such TERMINAL.
    """
    names, other_states, pair = machine.names, machine.other_states, machine.arguments[at + NAMES_PAIR]
    if pair < 0:
        return np.int64(DEAD), np.int64(-1)
    begin = np.int64(machine.other_begin[pair])
    if state < AT_ROOT:
        return np.int64(other_states[begin]), np.int64(-1)
    node, phase = (state - AT_ROOT) // PHASES, (state - AT_ROOT) % PHASES
    if phase == WHOLE:
        return np.int64(other_states[begin + 1 + node]), np.int64(-1)
    base = np.int64(machine.tables[machine.arguments[at + NAMES_TABLE], T_NODES])
    above = np.int64(other_states[begin + 1 + node_above(node, phase, base, names)])
    if phase < ESCAPED:
        return _run_raw(above, character(node, base, names), phase, pool.transitions)
    return _run_escape(above, np.int64(names[base + node, N_UNIT]), phase - ESCAPED + 1, pool.transitions)


@kernel
def find_other_states_kernel(start, base, past, names, other_states, transitions):  # type: ignore[no-untyped-def]
    """Write the other states of names[base:past], a table's nodes; -1, or the state whose row is missing.

    The first is `start`, where the TERMINAL for other strings begins; then one for each node, by the spelling that a
    printer would choose: raw if that may be, else the shortest escape.
    """
    other_states[0] = start
    state, before = np.int64(transitions[start * 256 + QUOTE]), np.int64(start)
    for node in range(past - base):
        if node > 0:
            unit = np.int64(names[base + node, N_UNIT])
            code = character(np.int64(node), base, names)
            length = utf8_length(code)
            if length > 0:
                above = np.int64(other_states[1 + node_above(np.int64(node), np.int64(RAW), base, names)])
                state, before = _run_raw(above, code, length, transitions)
            else:
                above = np.int64(other_states[1 + names[base + node, N_PARENT]])
                short = short_escape(unit)
                if short >= 0 and above >= 0:
                    state, before = _run_escape(above, unit, 1, transitions)
                    if state >= 0:
                        before = state
                        state = np.int64(transitions[state * 256 + short])
                else:
                    state, before = _run_escape(above, unit, 6, transitions)
        if state == UNKNOWN:
            return before
        other_states[1 + node] = state
    return np.int64(-1)
