"""Closure: the live items of a row, found from its core. `tokdfa.backends.pushdown_trie.rows` says what they are."""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    M_CLOSED,
    M_LIVE,
    M_LONGEST,
    M_MAX_ITEMS,
    M_MET,
    M_PLACE,
    M_PRUNES,
    M_SKIP,
    M_STAMP,
    M_STATE,
    NEEDS_BUDGET,
    NEEDS_CODE,
    NEEDS_ITEMS,
    NEEDS_POOL,
    NEEDS_ROWS,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    pack_item,
)
from tokdfa.backends.pushdown_trie.items import item_reads, string_state
from tokdfa.backends.pushdown_trie.rows import (
    ACCEPTS,
    ENDS,
    OPEN,
    ROW_ACCEPTS,
    ROW_CUT,
    ROW_MIDDLE,
    ROW_TOKENS,
    ROW_WIDE,
    SHORTEST,
    WIDE,
    core_of,
)
from tokdfa.backends.pushdown_trie.stacks import (
    C_NEXT,
    C_PLACE,
    C_STACK,
    F_CALLER,
    F_INDEX,
    F_MEMBER,
    F_OPEN,
    F_RETURNED,
    F_STACK,
    F_STAMP,
    ROOT,
    ROW_PLACE,
    intern_stack,
    pack_entry,
    resolve_frame_kernel,
)
from tokdfa.core.jit import kernel
from tokdfa.core.keys import first_of, second_of
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNTED,
    FIRST,
    LAZY,
    NAMES,
    OPERATION,
    RETURN,
    SECOND,
    TERMINAL,
    TOKEN,
)
from tokdfa.vocabulary.byte_table import UNKNOWN

#: Columns of `work`: an item of a closure; its stack may be ~frame.
W_PLACE, W_STATE, W_STACK = range(3)
#: Once more items are met, they are to be paid for.
MOST_MET = 1 << 18


@kernel
def close_row(row, machine, pool):  # type: ignore[no-untyped-def]
    """Find the live items of a row, once. A status."""
    if machine.live_end[row] != OPEN:
        return OK
    if machine.row_flags[row] & ROW_MIDDLE:
        return _close_middle(row, machine, pool)
    meta, code, work = machine.meta, machine.code, machine.work
    frames, callers = machine.frame_state, machine.callers
    meta[M_STAMP] += 1
    stamp = meta[M_STAMP]
    count, called, met, accepts = np.int64(0), np.int64(0), np.int64(0), False
    begin, end = core_of(row, machine)
    for k in range(begin, end):
        item = machine.rows.words[k]
        count = _push(item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK, item & STACK_MASK, count, machine)
        if count < 0:
            return NEEDS_SCRATCH
    done = 0
    while done < count:
        place, state, stack = (
            np.int64(work[done, W_PLACE]),
            np.int64(work[done, W_STATE]),
            np.int64(work[done, W_STACK]),
        )
        operation, first, second = code[place, OPERATION], np.int64(code[place, FIRST]), np.int64(code[place, SECOND])
        if operation == TERMINAL:
            if state == 0:
                state = first
                work[done, W_STATE] = state
            if pool.flags[state] & ACCEPTS:
                count = _push(second, np.int64(0), stack, count, machine)
        elif operation == ANY:
            for k in range(first, second):
                count = _push(np.int64(machine.alternatives[k]), np.int64(0), stack, count, machine)
                if count < 0:
                    return NEEDS_SCRATCH
        elif operation == CALL:
            if called >= len(callers):
                return NEEDS_SCRATCH
            if frames[first, F_STAMP] != stamp:
                frames[first, F_STAMP] = stamp
                frames[first, F_CALLER] = frames[first, F_STACK] = frames[first, F_MEMBER] = -1
                frames[first, F_RETURNED] = frames[first, F_INDEX] = frames[first, F_OPEN] = 0
                count = _push(np.int64(machine.entries[first]), np.int64(0), ~first, count, machine)
            callers[called, C_PLACE], callers[called, C_STACK] = second, stack
            callers[called, C_NEXT] = frames[first, F_CALLER]
            frames[first, F_CALLER] = called
            called += 1
            if frames[first, F_RETURNED] and count >= 0:
                count = _push(second, np.int64(0), stack, count, machine)
        elif operation == RETURN:
            if stack == ROOT:
                accepts = True
            elif stack > 0:
                met += machine.stacks.begin[stack + 1] - machine.stacks.begin[stack]
                for k in range(machine.stacks.begin[stack], machine.stacks.begin[stack + 1]):
                    entry = machine.stacks.words[k]
                    if first_of(entry) != ROW_PLACE and count >= 0:
                        count = _push(first_of(entry), np.int64(0), second_of(entry), count, machine)
            else:
                frames[~stack, F_RETURNED] = 1
                caller = np.int64(frames[~stack, F_CALLER])
                while caller >= 0 and count >= 0:
                    count = _push(
                        np.int64(callers[caller, C_PLACE]), np.int64(0), np.int64(callers[caller, C_STACK]), count,
                        machine,
                    )  # fmt: skip
                    caller = np.int64(callers[caller, C_NEXT])
                    met += 1
        elif operation == LAZY:
            meta[M_PLACE] = place
            return NEEDS_CODE
        elif operation in (NAMES, COUNTED) and state == 0:
            work[done, W_STATE] = 1
        if count < 0:
            return NEEDS_SCRATCH
        done += 1
    meta[M_MET] += met + count
    status = _write_live(row, count, accepts, machine, pool)
    return NEEDS_BUDGET if status == OK and meta[M_MET] > MOST_MET else status


@kernel
def _push(place, state, stack, count, machine):  # type: ignore[no-untyped-def]
    """Add an item to the closure unless it is there. The new count, or -1: no room.

    The set is emptied before every closure, by a new stamp; an interning table would have to be cleared.
    """
    slots = machine.seen_keys
    if count >= len(machine.work) or 2 * count + 2 >= len(slots):
        return np.int64(-1)
    mask = np.uint64(len(slots) - 1)
    key = (np.uint64(place) << np.uint64(44)) ^ (np.uint64(state) << np.uint64(23)) ^ np.uint64(stack + (1 << 21))
    slot = ((key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    stamp = machine.meta[M_STAMP]
    while machine.seen_stamps[slot] == stamp:
        if slots[slot] == key:
            return count
        slot = (slot + np.uint64(1)) & mask
    slots[slot], machine.seen_stamps[slot] = key, stamp
    machine.work[count, W_PLACE], machine.work[count, W_STATE], machine.work[count, W_STACK] = place, state, stack
    return count + 1


@kernel
def _write_live(row, count, accepts, machine, pool):  # type: ignore[no-untyped-def]
    """Write the items of a closure that can read, with stacks in place of frames, and the row's flags. A status."""
    meta, code, work = machine.meta, machine.code, machine.work
    begin = meta[M_LIVE]
    end = begin
    flags = machine.row_flags[row] | (ROW_ACCEPTS if accepts else 0)
    seen = 0
    for k in range(count):
        place, state, stack = np.int64(work[k, W_PLACE]), np.int64(work[k, W_STATE]), np.int64(work[k, W_STACK])
        operation = code[place, OPERATION]
        if operation == TERMINAL:
            if pool.transitions[state * 256] == UNKNOWN:  # of a lazy automaton: its flags are not known yet
                meta[M_STATE] = state
                return NEEDS_POOL
            if pool.flags[state] & ENDS:
                continue
            seen |= pool.flags[state]
        elif operation in (NAMES, COUNTED):
            string = string_state(pack_item(place, state, 0), machine, pool)
            if string >= 0:
                seen |= pool.flags[string] & WIDE
        elif operation == TOKEN:
            flags |= ROW_TOKENS
        else:
            continue
        if stack < 0:
            status = resolve_frame_kernel(~stack, machine)
            if status != OK:
                return status
            stack = np.int64(machine.frame_state[~stack, F_STACK])
        if end >= len(machine.live_items):
            return NEEDS_ROWS
        machine.live_items[end] = pack_item(place, state, stack)
        end += 1
    is_dead = end == begin and not accepts  # a border at which nothing can be read
    if meta[M_LONGEST] and meta[M_SKIP] >= 0 and not is_dead:
        machine.pairs[0] = pack_entry(ROW_PLACE, row)
        status, stack = intern_stack(np.int64(0), np.int64(1), machine)
        if status != OK:
            return status
        if end >= len(machine.live_items):
            return NEEDS_ROWS
        state = np.int64(code[meta[M_SKIP], FIRST])
        machine.live_items[end] = pack_item(meta[M_SKIP], state, stack)
        seen |= pool.flags[state]
        end += 1
    if end - begin > meta[M_MAX_ITEMS]:
        return NEEDS_ITEMS
    machine.row_flags[row] = flags | _partition_flags(seen, begin, end, machine, pool)
    machine.live_begin[row], machine.live_end[row] = begin, end
    meta[M_LIVE] = end
    meta[M_CLOSED] += 1
    if meta[M_PRUNES]:
        _note_reads(row, machine, pool)
    return OK


@kernel
def _note_reads(row, machine, pool):  # type: ignore[no-untyped-def]
    """Note which bytes live items read: nobody has to step each item to find out that it refuses a byte."""
    noted = machine.row_reads[4 * row : 4 * row + 4]
    noted[:] = 0
    for k in range(machine.live_begin[row], machine.live_end[row]):
        item = machine.live_items[k]
        operation = machine.code[item >> PLACE_SHIFT, OPERATION]
        if operation == TERMINAL:
            for quarter in range(4):
                noted[quarter] |= pool.reads[(item >> STACK_BITS) & STATE_MASK, quarter]
        elif operation != TOKEN:
            item_reads(item, machine, pool)
            for quarter in range(4):
                noted[quarter] |= machine.reads[quarter]


@kernel
def _close_middle(row, machine, pool):  # type: ignore[no-untyped-def]
    """The live items of a row in the middle of a lexeme: its core, but for terminals that cannot go on. A status."""
    begin = machine.meta[M_LIVE]
    end = begin
    seen, may_end = 0, False
    first, past = core_of(row, machine)
    for k in range(first, past):
        item = machine.rows.words[k]
        state = (item >> STACK_BITS) & STATE_MASK
        if pool.transitions[state * 256] == UNKNOWN:
            machine.meta[M_STATE] = state
            return NEEDS_POOL
        flags = pool.flags[state]
        may_end = may_end or flags & ACCEPTS != 0
        if flags & ENDS:
            continue
        if end >= len(machine.live_items):
            return NEEDS_ROWS
        machine.live_items[end] = item
        seen |= flags
        end += 1
    machine.row_flags[row] |= _partition_flags(seen, begin, end, machine, pool)
    machine.live_begin[row], machine.live_end[row] = begin, end
    machine.meta[M_LIVE] = end
    if machine.meta[M_PRUNES] and not may_end and machine.row_fallback[row] < 0:
        _note_reads(row, machine, pool)
    return OK


@kernel
def _partition_flags(seen, begin, end, machine, pool):  # type: ignore[no-untyped-def]
    """ROW_WIDE if partitions may be used; ROW_CUT if those of terminals that end at their first match only. Of two such
    terminals either may cut off the other, and then none is used.
    """
    if not (machine.meta[M_LONGEST] and seen & SHORTEST and end - begin > 1):
        return ROW_WIDE if seen & WIDE else 0
    first, wide = np.int64(-1), 0
    for k in range(begin, end):
        state = (machine.live_items[k] >> STACK_BITS) & STATE_MASK
        if pool.flags[state] & SHORTEST:
            if first >= 0 and state != first:
                return ROW_CUT
            first, wide = state, ROW_WIDE if pool.flags[state] & WIDE else 0
    return ROW_CUT | wide
