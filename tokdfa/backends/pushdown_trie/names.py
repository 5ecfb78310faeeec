"""NAMES: how an item reads the spellings of names, and leaves them for any other string.

`tokdfa.backends.pushdown_trie.name_trie` has the states. A step finds the children whose spellings go on with a byte;
it is refused if no allowed name is below any of them.

*Other strings.* If the instruction has a TERMINAL for them, each state has an *other state*
(`tokdfa.backends.pushdown_trie.name_others`). While the bytes spell the beginning of some name of the table, the item
stays here; with a byte that no name goes on with it becomes an item of the TERMINAL, in the state that the other state
leads to. So "any name but these" needs no complement of an automaton, and what a name is worth is decided at its
closing quote.

*Masks.* The other state says how much of the vocabulary stays inside the string: whatever a token does there, in the
trie or out of it, it can go on if the other state can. Only a closing quote is different, since a name may be refused:
so the partition is one that counts tokens as inside only if the terminal is not complete after them (`strict`).
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.name_trie import (
    AT_ROOT,
    BACKSLASH,
    ESCAPED,
    LETTER_U,
    N_FIRST,
    N_HIGH,
    N_LEAST,
    N_LOW,
    N_MOST,
    N_NAME,
    N_PARENT,
    N_PAST,
    N_UNIT,
    PHASES,
    QUOTE,
    RAW,
    START,
    T_NEEDED,
    T_NODES,
    T_ORDER,
    UNICODE,
    WHOLE,
    character,
    is_high,
    must_escape,
    node_above,
    short_escape,
    utf8_byte,
    utf8_length,
)
from tokdfa.core.jit import kernel
from tokdfa.program.program import NAMES_HIGH, NAMES_LOW, NAMES_TABLE

#: What `step_name` says besides a state: the string is another one; it ends here.
LEFT, ENDED = -3, -4


@kernel
def _hex_value(byte):  # type: ignore[no-untyped-def]
    """The value of a hexadecimal digit, or -1."""
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    if 0x41 <= byte <= 0x46:
        return byte - 0x37
    if 0x61 <= byte <= 0x66:
        return byte - 0x57
    return np.int64(-1)


@kernel
def _has_name(node, base, at, machine):  # type: ignore[no-untyped-def]
    """Whether a name of the window of the instruction with arguments `at` is below a node."""
    names, arguments = machine.names, machine.arguments
    low, high = arguments[at + NAMES_LOW], arguments[at + NAMES_HIGH]
    least, most = names[base + node, N_LEAST], names[base + node, N_MOST]
    if most < low or least > high:
        return False
    if low <= least or most <= high:
        return True
    first = machine.tables[arguments[at + NAMES_TABLE], T_ORDER]
    for k in range(names[base + node, N_LOW], names[base + node, N_HIGH]):
        if low <= machine.order[first + k] <= high:
            return True
    return False


@kernel
def _next_character(node, above, base, names):  # type: ignore[no-untyped-def]
    """The node with which the next character after `node` below the node `above` is complete, -1 if there is none.

    `node` -1: the first. A second surrogate is no character.
    """
    if node < 0:
        if is_high(names[base + above, N_UNIT]):
            return np.int64(-1)
        child = np.int64(names[base + above, N_FIRST])
    else:
        parent = np.int64(names[base + node, N_PARENT])
        if parent == above:
            child = node + 1
        elif node + 1 < names[base + parent, N_PAST]:
            return node + 1
        else:
            child = parent + 1
    if child >= names[base + above, N_PAST]:
        return np.int64(-1)
    return np.int64(names[base + child, N_FIRST]) if is_high(names[base + child, N_UNIT]) else child


@kernel
def _goes_on_raw(node, first, read, base, names):  # type: ignore[no-untyped-def]
    """The next byte of a node's character raw, if its first `read` bytes are those of the node `first`; else -1."""
    code = character(node, base, names)
    length = utf8_length(code)
    if length <= read:
        return np.int64(-1)
    if read > 0 and node != first:
        other = character(first, base, names)
        if utf8_length(other) != length or other >> (6 * (length - read)) != code >> (6 * (length - read)):
            return np.int64(-1)
    return utf8_byte(code, length, read)


@kernel
def _goes_on_escaped(node, first, digits, needed, base, names):  # type: ignore[no-untyped-def]
    """The next digit of a node's unit escaped, if its first digits are those of the node `first`; else -1.

    With no digits read it says whether the unit may be escaped at all.
    """
    unit, other = np.int64(names[base + node, N_UNIT]), np.int64(names[base + first, N_UNIT])
    if (needed and not must_escape(unit)) or unit >> (16 - 4 * digits) != other >> (16 - 4 * digits):
        return np.int64(-1)
    return (unit >> (12 - 4 * digits)) & 15


@kernel
def step_name(state, byte, at, machine):  # type: ignore[no-untyped-def]
    """(state after a byte, whether an allowed name is below it); (LEFT, 0); or (ENDED, the index of the name)."""
    names, table = machine.names, machine.arguments[at + NAMES_TABLE]
    base, needed = np.int64(machine.tables[table, T_NODES]), machine.tables[table, T_NEEDED] != 0
    if state == START:
        return (np.int64(AT_ROOT), np.int64(1)) if byte == QUOTE else (np.int64(LEFT), np.int64(0))
    node, phase = (state - AT_ROOT) // PHASES, (state - AT_ROOT) % PHASES
    chosen, live, reached = np.int64(-1), False, phase + 1
    if phase == WHOLE and byte == QUOTE:
        name = np.int64(names[base + node, N_NAME])
        return (np.int64(ENDED), name) if name >= 0 else (np.int64(LEFT), np.int64(0))
    if (phase == WHOLE and byte != BACKSLASH) or RAW <= phase < ESCAPED:
        above = node if phase == WHOLE else node_above(node, phase, base, names)
        here = _next_character(np.int64(-1), above, base, names) if phase == WHOLE else node
        while here >= 0:
            if _goes_on_raw(here, node, phase, base, names) == byte:
                if chosen < 0:
                    chosen = here
                    if utf8_length(character(here, base, names)) == phase + 1:
                        reached = np.int64(WHOLE)
                live = live or _has_name(here, base, at, machine)
            here = _next_character(here, above, base, names)
    else:
        first = np.int64(names[base + node, N_FIRST]) if phase == WHOLE else node
        above = node if phase == WHOLE else np.int64(names[base + node, N_PARENT])
        digits, value = max(phase - UNICODE, np.int64(0)), _hex_value(byte)
        for here in range(first, names[base + above, N_PAST]):
            digit = _goes_on_escaped(here, first, digits, needed, base, names)
            if digit < 0:
                continue
            if phase == ESCAPED and byte != LETTER_U:
                if short_escape(names[base + here, N_UNIT]) != byte:
                    continue
                reached = np.int64(WHOLE)
            elif phase >= UNICODE:
                if digit != value:
                    continue
                if digits == 3:
                    reached = np.int64(WHOLE)
            if chosen < 0:
                chosen = np.int64(here)
                reached = np.int64(ESCAPED) if phase == WHOLE else reached
            live = live or _has_name(here, base, at, machine)
    if chosen < 0:
        return np.int64(LEFT), np.int64(0)
    return AT_ROOT + PHASES * chosen + reached, np.int64(live)


@kernel
def with_byte(byte, reads):  # type: ignore[no-untyped-def]
    """A set of bytes, four words of 64 bits, and a byte."""
    bit = np.uint64(1) << np.uint64(byte & 63)
    first, second, third, fourth = reads
    if byte < 64:
        first |= bit
    elif byte < 128:
        second |= bit
    elif byte < 192:
        third |= bit
    else:
        fourth |= bit
    return first, second, third, fourth


@kernel
def name_reads(state, at, reads, machine):  # type: ignore[no-untyped-def]
    """A set of bytes, without the closing quote of a name that is refused, with all that an allowed name goes on with.

    The set comes with what the other state reads.
    """
    names, arguments = machine.names, machine.arguments
    table = arguments[at + NAMES_TABLE]
    base, needed = np.int64(machine.tables[table, T_NODES]), machine.tables[table, T_NEEDED] != 0
    if state == START:
        return with_byte(np.int64(QUOTE), reads)
    node, phase = (state - AT_ROOT) // PHASES, (state - AT_ROOT) % PHASES
    above = node if phase == WHOLE else node_above(node, phase, base, names)
    if phase == WHOLE and names[base + node, N_NAME] >= 0:
        reads = with_byte(np.int64(QUOTE), reads)
        if not arguments[at + NAMES_LOW] <= names[base + node, N_NAME] <= arguments[at + NAMES_HIGH]:
            reads = (reads[0] & ~(np.uint64(1) << np.uint64(QUOTE)), reads[1], reads[2], reads[3])
    if phase < ESCAPED:
        here = _next_character(np.int64(-1), above, base, names) if phase == WHOLE else node
        while here >= 0:
            byte = _goes_on_raw(here, node, phase, base, names)
            if byte >= 0 and _has_name(here, base, at, machine):
                reads = with_byte(byte, reads)
            here = _next_character(here, above, base, names)
    if phase == WHOLE or phase >= ESCAPED:
        first = np.int64(names[base + node, N_FIRST]) if phase == WHOLE else node
        digits = max(phase - UNICODE, np.int64(0))
        for here in range(first, names[base + above, N_PAST]):
            digit = _goes_on_escaped(here, first, digits, needed, base, names)
            if digit < 0 or not _has_name(here, base, at, machine):
                continue
            if phase == WHOLE:
                reads = with_byte(np.int64(BACKSLASH), reads)
                break
            if phase == ESCAPED:
                reads = with_byte(np.int64(LETTER_U), reads)
                if short_escape(names[base + here, N_UNIT]) >= 0:
                    reads = with_byte(short_escape(names[base + here, N_UNIT]), reads)
            elif digit < 10:
                reads = with_byte(0x30 + digit, reads)
            else:
                reads = with_byte(0x57 + digit, with_byte(0x37 + digit, reads))
    return reads
