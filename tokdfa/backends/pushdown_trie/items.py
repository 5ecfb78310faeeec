"""What items of NAMES and COUNTED do where others follow the automaton of their TERMINAL: one function for each
question.

Each takes an item of the row's live ones whose instruction is neither TERMINAL nor TOKEN, unless it says otherwise.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    M_PLACE,
    M_STATE,
    NEEDS_CODE,
    NEEDS_POOL,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    STRICT,
)
from tokdfa.backends.pushdown_trie.counted import ENDED as STRING_ENDED
from tokdfa.backends.pushdown_trie.counted import REFUSED, STATES, count_left, count_reads, step_count
from tokdfa.backends.pushdown_trie.name_others import other_state
from tokdfa.backends.pushdown_trie.names import ENDED, LEFT, name_reads, step_name
from tokdfa.backends.pushdown_trie.rows import ENDS, WIDE, add_found
from tokdfa.core.jit import kernel
from tokdfa.program.program import (
    COUNTED,
    COUNTED_TERMINAL,
    FIRST,
    NAMES,
    NAMES_HIGH,
    NAMES_LOW,
    NAMES_OTHER,
    NAMES_TARGETS,
    OPERATION,
    SECOND,
    TERMINAL,
    TOKEN,
)
from tokdfa.vocabulary.walk import UNKNOWN

#: `left` of an item whose tokens may have any number of characters.
ANY_LENGTH = 1 << 40


@kernel
def terminal_state(item, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the state of the automaton of strings that an item is in, or DEAD: it is in none)."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    at = machine.code[place, FIRST]
    if machine.code[place, OPERATION] == COUNTED:
        start = np.int64(machine.code[machine.arguments[at + COUNTED_TERMINAL], FIRST])
        return OK, start + (state - 1) % STATES
    terminal, missing = other_state(state, at, machine, pool)
    if terminal == UNKNOWN or (terminal >= 0 and pool.transitions[terminal * 256] == UNKNOWN):
        machine.meta[M_STATE] = missing if terminal == UNKNOWN else terminal
        return NEEDS_POOL, terminal
    return OK, terminal


@kernel
def item_reads(item, machine, pool):  # type: ignore[no-untyped-def]
    """The set of bytes that an item reads, four words; what `terminal_state` needs must be there."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    _, terminal = terminal_state(item, machine, pool)
    none = np.uint64(0)
    reads = (none, none, none, none)
    if terminal >= 0:
        reads = (pool.reads[terminal, 0], pool.reads[terminal, 1], pool.reads[terminal, 2], pool.reads[terminal, 3])
    if machine.code[place, OPERATION] == NAMES:
        return name_reads(state, np.int64(machine.code[place, FIRST]), reads, machine)
    return count_reads(place, state, reads, machine)


@kernel
def item_left(item, machine):  # type: ignore[no-untyped-def]
    """How many characters may begin in the string that an item is in."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    if machine.code[place, OPERATION] == COUNTED:
        return count_left(place, state, machine)
    return np.int64(ANY_LENGTH)


@kernel
def wide_state(item, place, alone, depth, machine, pool):  # type: ignore[no-untyped-def]
    """The state whose partition of a place of the trie serves a live item, of TERMINAL or other, with its kind; or -1.

    `alone`: the row has no other item. Then a strict partition serves a COUNTED, too, that may not read as many
    characters as a token of `depth` bytes may have, if tokens with too many are taken out afterwards.
    """
    if machine.code[item >> PLACE_SHIFT, OPERATION] == TERMINAL:
        state = (item >> STACK_BITS) & STATE_MASK
        if not pool.flags[state] & WIDE:
            return np.int64(-1)
        return state | ALONE if alone else state
    if machine.code[item >> PLACE_SHIFT, OPERATION] == TOKEN:
        return np.int64(-1)
    _, state = terminal_state(item, machine, pool)
    if state < 0 or not pool.flags[state] & WIDE:
        return np.int64(-1)
    if item_left(item, machine) < depth and not (alone and place == 0):
        return np.int64(-1)
    return state | STRICT | ALONE if alone else state | STRICT


@kernel
def step_item(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the new count): append what an item is after a byte to `found`."""
    place, state, stack = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK, item & STACK_MASK
    if machine.code[place, OPERATION] == NAMES:
        return _step_names(place, state, stack, byte, count, machine, pool)
    kind, target, following = step_count(place, state, byte, machine, pool)
    if kind == REFUSED:
        return OK, count
    if kind == STRING_ENDED:
        target, following = np.int64(machine.code[place, SECOND]), np.int64(0)
    elif following == 0:
        machine.meta[M_PLACE] = target
        return NEEDS_CODE, count
    count = add_found(target, following, stack, count, machine)
    return (OK, count) if count >= 0 else (NEEDS_SCRATCH, count)


@kernel
def _step_names(place, state, stack, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """`step_item` of NAMES."""
    code, arguments = machine.code, machine.arguments
    at = np.int64(code[place, FIRST])
    other = np.int64(arguments[at + NAMES_OTHER])
    following, what = step_name(state, byte, at, machine)
    if following == ENDED:
        if not arguments[at + NAMES_LOW] <= what <= arguments[at + NAMES_HIGH]:
            return OK, count
        place = np.int64(arguments[arguments[at + NAMES_TARGETS] + what - arguments[at + NAMES_LOW]])
        following = np.int64(0)
    elif following == LEFT:
        if other < 0:
            return OK, count
        terminal, missing = other_state(state, at, machine, pool)
        if terminal >= 0:
            missing = terminal
            terminal = np.int64(pool.transitions[terminal * 256 + byte])
        if terminal == UNKNOWN:
            machine.meta[M_STATE] = missing
            return NEEDS_POOL, count
        if terminal < 0:
            return OK, count
        place, following = other, terminal
        if pool.flags[terminal] & ENDS:
            place, following = np.int64(code[other, SECOND]), np.int64(0)
    elif what == 0:
        terminal, missing = other_state(following, at, machine, pool)
        if terminal == UNKNOWN:
            machine.meta[M_STATE] = missing
            return NEEDS_POOL, count
        if terminal < 0:
            return OK, count
    count = add_found(place, following, stack, count, machine)
    return (OK, count) if count >= 0 else (NEEDS_SCRATCH, count)
