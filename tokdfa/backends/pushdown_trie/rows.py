"""Rows: the sets of items, each a place where the program may be, interned by content.

Words. An *item* is a place of the program, a state of what is read there (0: nothing), and a return stack. For TERMINAL
the state is one of the pool, for NAMES and COUNTED one of their own (`tokdfa.backends.pushdown_trie.names`,
`tokdfa.backends.pushdown_trie.items`). A *row* is the set of items after some bytes. Its *core* holds the items as
the last byte left them (kernel items, to LR parsers); its *live* items are those that can read, found by *closure*:
calls are entered, returns taken, alternatives spread, and a terminal that may end is left. Rows are interned by core,
behind whose items stands whether it is in the middle and its fallback (see below); they are closed once, and stepped
once for each byte; so a matcher's state is the number of a row, and what was found out about a row holds wherever it
comes up again.

Closure merges calls of the same frame (`tokdfa.backends.pushdown_trie.stacks`), so left recursion and empty rules come
to an end: there are finitely many (place, state, stack or frame). A frame that returns before anything was read returns
to all its callers, those that turn up later included.

**Longest match** (`Program.longest`; `tokdfa.backends.earley_trie.machine` says the rule and why). Then a row is either
a *border*, at which lexemes may begin, or in the *middle* of a lexeme, for all its items alike. In the middle nothing
is closed: terminals go on while any can. If none can, the row that follows the terminals that may end here takes the
byte; it is the border ``row_ended``. Where terminals that may end are left for some that may not yet, the row keeps
what ending there would have led to as its *fallback*, which is stepped along and takes over if the terminals die. A
skipped terminal is an item whose stack says to which border it returns.

Before a row is interned its items are moved on where there is no choice: past a terminal that cannot go on, out of a
frame with one caller, into a tail call. So rows that mean the same are more often equal.

Source: ours; a pushdown automaton determinised lazily, as a regex's NFA is by sets of states.
``row_reads`` is the set of bytes that lead on from a closed row, or more. So most bytes are refused by a look at it,
and a row touches few lines of its transitions, 1 kB that is rarely in a cache.

Cost: about 0.3 µs a new row. A transition is kept as target + BIAS, so that 0 is one that is not known, and the array
can be reserved at once for all rows that there may be: memory is taken page by page when rows come to be, nothing is
ever copied, and other threads may read transitions while rows are made.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    M_MAX_ITEMS,
    M_MET,
    M_ROWS,
    NEEDS_ITEMS,
    NEEDS_ROWS,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    pack_item,
)
from tokdfa.backends.pushdown_trie.stacks import (
    ROOT,
    ROW_PLACE,
    SORTED_ITEMS,
)
from tokdfa.core.interning import intern
from tokdfa.core.jit import kernel
from tokdfa.core.keys import first_of, second_of
from tokdfa.core.sorting import sort_distinct
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    FIRST,
    NAMES,
    OPERATION,
    RETURN,
    SECOND,
    TERMINAL,
)

#: Flags of a state of the pool: its terminal may end; it cannot go on; it reads many bytes; it ends where it first may;
#: it reads few bytes, but some of them over and over, or many of these lead to such a state.
ACCEPTS, ENDS, WIDE, SHORTEST, LOOPS = 1, 2, 4, 8, 16
#: Flags of a row: the text may end here (of borders); in the middle of a lexeme; partitions of its items pay; it takes
#: special tokens; a terminal that ends at its first match may cut the others off, whatever these allow by themselves;
#: an item of its core is of COUNTED.
ROW_ACCEPTS, ROW_MIDDLE, ROW_WIDE, ROW_TOKENS, ROW_CUT, ROW_COUNTED = 1, 2, 4, 8, 16, 32
#: `live_end` of a row that is not closed; `row_ended` of one that was not asked.
OPEN, NOT_ASKED = -1, -2
#: Added to the target of a transition of a row: 0 is UNKNOWN, 1 DEAD.
BIAS = 2
#: A word of `row_reads` of a row that is not closed.
ALL_BITS = np.uint64(0xFFFFFFFFFFFFFFFF)
#: Moves of an item that leave no choice, at most; more than any program has frames in a chain.
MAX_MOVES = 1_000


@kernel
def add_found(place, state, stack, count, machine):  # type: ignore[no-untyped-def]
    """Append an item to `found`, moved on where there is no choice. The new count, or -1: no room."""
    code, stacks = machine.code, machine.stacks
    if state == 0:  # nothing is read yet; the state stays 0 where the instruction reads no bytes
        operation = code[place, OPERATION]
        for _ in range(MAX_MOVES):
            if operation == RETURN and stack != ROOT:
                entry = stacks.words[stacks.begin[stack]]
                if stacks.begin[stack + 1] - stacks.begin[stack] != 1 or first_of(entry) == ROW_PLACE:
                    break
                place, stack = first_of(entry), second_of(entry)
            elif operation == CALL and code[code[place, SECOND], OPERATION] == RETURN:
                place = np.int64(machine.entries[code[place, FIRST]])
            elif operation == ANY and code[place, SECOND] - code[place, FIRST] == 1:
                place = np.int64(machine.alternatives[code[place, FIRST]])
            else:
                break
            operation = code[place, OPERATION]
        if operation == TERMINAL:
            state = np.int64(code[place, FIRST])
        elif operation in (NAMES, COUNTED):
            state = np.int64(1)
    if count >= len(machine.found):
        return np.int64(-1)
    machine.found[count] = pack_item(place, state, stack)
    return count + 1


@kernel
def intern_row(count, middle, fallback, machine):  # type: ignore[no-untyped-def]
    """(status, the row with core found[:count], which need not be sorted)."""
    meta, found = machine.meta, machine.found
    meta[M_MET] += SORTED_ITEMS * count
    count = sort_distinct(found, 0, count)
    if count > meta[M_MAX_ITEMS]:
        return NEEDS_ITEMS, np.int64(-1)
    if count >= len(found):
        return NEEDS_SCRATCH, np.int64(-1)
    kind = np.int64(ROW_MIDDLE) if middle else np.int64(0)
    found[count] = fallback << 8 | kind
    row = intern(found, 0, count + 1, machine.rows)
    if row < meta[M_ROWS]:
        return (OK if row >= 0 else NEEDS_ROWS), row
    for k in range(count):
        if machine.code[found[k] >> PLACE_SHIFT, OPERATION] == COUNTED:
            kind |= ROW_COUNTED
    machine.row_flags[row], machine.row_fallback[row] = kind, fallback
    machine.live_end[row], machine.row_ended[row] = OPEN, NOT_ASKED
    for quarter in range(4):
        machine.row_reads[4 * row + quarter] = ALL_BITS
    meta[M_ROWS] = row + 1
    return OK, row


@kernel
def core_of(row, machine):  # type: ignore[no-untyped-def]
    """Where the items of a row's core begin and end in ``rows.words``."""
    return machine.rows.begin[row], machine.rows.begin[row + 1] - 1
