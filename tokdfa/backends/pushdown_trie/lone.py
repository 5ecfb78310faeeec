"""Rows of one item, read on without rows: within a key of a closed object or a constant all rows are of this kind.

While an item of NAMES without other strings is the only live one, and its name goes on, the row after each byte is the
same item in another state. So what reads several bytes, a token or a path of the trie, follows the item; the rows on
the way, which cost ten times as much, are not made. A row is made where the name ends, and where a token ends that is
taken. With the longest match no item is followed: there a row is more than its items.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    M_LONGEST,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    STATE_PART,
    STRICT,
    pack_item,
)
from tokdfa.backends.pushdown_trie.branches import enter_branch
from tokdfa.backends.pushdown_trie.names import ENDED, name_reads, step_trie
from tokdfa.backends.pushdown_trie.rows import intern_row
from tokdfa.core.jit import kernel
from tokdfa.program.program import FIRST, NAMES, NAMES_OTHER, OPERATION, TERMINAL
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

#: What `walk_guides` has for a lone item, less the item; -1: no guide.
LONE = -2
#: What `step_lone` says where the name ends: the row of the item is to be stepped.
LEAVES = -2


@kernel
def lone_item(row, machine):  # type: ignore[no-untyped-def]
    """The item of a closed row that has no other live one, if it can be followed; else -1."""
    begin = machine.live_begin[row]
    if machine.live_end[row] - begin != 1 or machine.meta[M_LONGEST]:
        return np.int64(-1)
    item = machine.live_items[begin]
    place = item >> PLACE_SHIFT
    if machine.code[place, OPERATION] != NAMES or machine.arguments[machine.code[place, FIRST] + NAMES_OTHER] >= 0:
        return np.int64(-1)
    return item


@kernel
def guide_alone(row, machine):  # type: ignore[no-untyped-def]
    """The guide of a closed row that has one live item; -1 for others."""
    begin = machine.live_begin[row]
    if machine.live_end[row] - begin != 1 or machine.meta[M_LONGEST]:
        return np.int64(-1)
    item = machine.live_items[begin]
    if machine.code[item >> PLACE_SHIFT, OPERATION] == TERMINAL:
        return ((item >> STACK_BITS) & STATE_MASK) | STRICT | ALONE
    return LONE - lone_item(row, machine)


@kernel
def enter_guided(guide, here, end, frame, pool):  # type: ignore[no-untyped-def]
    """As `enter_branch`, for what the state of a guide reads."""
    state = guide & STATE_PART
    if pool.transitions[state * 256] == UNKNOWN:
        return frame
    return enter_branch(here, pool.reads.reshape(-1), 4 * state, end, frame, pool)


@kernel
def step_lone(item, byte, every, machine):  # type: ignore[no-untyped-def]
    """The lone item after a byte; DEAD; or LEAVES. `every`: refused names are followed, too."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    target, what = step_trie(state, byte, np.int64(machine.code[place, FIRST]), machine)
    if target == ENDED:
        return np.int64(LEAVES)
    return pack_item(place, target, item & STACK_MASK) if target >= 0 and (what or every) else np.int64(DEAD)


@kernel
def lone_reads(item, reads, at, every, machine):  # type: ignore[no-untyped-def]
    """Write the set of bytes that a lone item reads to four words of `reads`, from `at` on; nothing for -1."""
    if item < 0:
        return
    machine.reads[:] = 0
    state, names = (item >> STACK_BITS) & STATE_MASK, np.int64(machine.code[item >> PLACE_SHIFT, FIRST])
    name_reads(state, names, machine.reads, every, machine)
    for quarter in range(4):
        reads[at + quarter] = machine.reads[quarter]


@kernel
def lone_row(item, machine):  # type: ignore[no-untyped-def]
    """(status, the row of a lone item)."""
    machine.found[0] = item
    return intern_row(np.int64(1), False, np.int64(-1), machine)
