"""What items of NAMES and COUNTED do where others follow the automaton of their TERMINAL: one function for each
question.

Each takes an item of the row's live ones whose instruction is neither TERMINAL nor TOKEN, unless it says otherwise.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    STRICT,
)
from tokdfa.backends.pushdown_trie.counted import ANY_LENGTH, count_left, count_reads, counted_start, step_count
from tokdfa.backends.pushdown_trie.names import name_reads, name_string_state, step_name
from tokdfa.backends.pushdown_trie.rows import ROW_CUT, SHORTEST, WIDE
from tokdfa.backends.pushdown_trie.state_table import MOST, STATES
from tokdfa.core.jit import kernel
from tokdfa.program.program import (
    COUNTED,
    FIRST,
    NAMES,
    OPERATION,
    TERMINAL,
    TOKEN,
)


@kernel
def string_state(item, machine, pool):  # type: ignore[no-untyped-def]
    """The state of the automaton of strings that an item is in, or DEAD: it is in none."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    if machine.code[place, OPERATION] == COUNTED:
        start = counted_start(place, machine)
        return start + (state - 1) % np.int64(pool.characters[start, STATES])
    return name_string_state(state, np.int64(machine.code[place, FIRST]), machine, pool)


@kernel
def item_reads(item, machine, pool):  # type: ignore[no-untyped-def]
    """Write the set of bytes that an item reads to `machine.reads`."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    string, reads = string_state(item, machine, pool), machine.reads
    for quarter in range(4):
        reads[quarter] = pool.reads[string, quarter] if string >= 0 else np.uint64(0)
    if machine.code[place, OPERATION] == NAMES:
        name_reads(state, np.int64(machine.code[place, FIRST]), reads, machine)
    else:
        count_reads(place, state, reads, machine, pool)


@kernel
def item_left(item, machine, pool):  # type: ignore[no-untyped-def]
    """How many characters may begin in the string that an item is in, and how many its end may need at most."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    if machine.code[place, OPERATION] != COUNTED:
        return np.int64(ANY_LENGTH), np.int64(0)
    of_automaton = pool.characters[counted_start(place, machine)]
    return count_left(place, (state - 1) // np.int64(of_automaton[STATES]), machine), np.int64(of_automaton[MOST])


@kernel
def wide_state(item, place, flags, alone, depth, machine, pool):  # type: ignore[no-untyped-def]
    """The state whose partition of a place of the trie serves a live item, of TERMINAL or other, with its kind; or -1.

    `flags`: those of the row. `alone`: the row has no other item. Then a strict partition serves a COUNTED, too, that
    may not read as many characters as a token of `depth` bytes may have, if tokens with too many are taken out
    afterwards.
    """
    if machine.code[item >> PLACE_SHIFT, OPERATION] == TERMINAL:
        state = (item >> STACK_BITS) & STATE_MASK
        if not pool.flags[state] & WIDE or (flags & ROW_CUT and not pool.flags[state] & SHORTEST):
            return np.int64(-1)
        return state | ALONE if alone else state
    if machine.code[item >> PLACE_SHIFT, OPERATION] == TOKEN:
        return np.int64(-1)
    state = string_state(item, machine, pool)
    if state < 0 or not pool.flags[state] & WIDE:
        return np.int64(-1)
    left, needed = item_left(item, machine, pool)
    if left - needed < depth and not (alone and place == 0):
        return np.int64(-1)
    return state | STRICT | ALONE if alone else state | STRICT


@kernel
def step_item(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the new count): append what an item is after a byte to `found`."""
    parts = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK, item & STACK_MASK
    if machine.code[parts[0], OPERATION] == NAMES:
        status, count = OK, step_name(parts, byte, count, machine, pool)
    else:
        status, count = step_count(parts, byte, count, machine, pool)
    return (status, count) if count >= 0 else (NEEDS_SCRATCH, count)
