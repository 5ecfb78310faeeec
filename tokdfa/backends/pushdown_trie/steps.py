"""Steps: the row after a byte, after the bytes of a token, and after each token."""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    M_LONGEST,
    M_STATE,
    NEEDS_POOL,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    machine_at,
    pool_at,
)
from tokdfa.backends.pushdown_trie.closure import (
    close_row,
)
from tokdfa.backends.pushdown_trie.items import step_item
from tokdfa.backends.pushdown_trie.longest import (
    step_longest,
)
from tokdfa.backends.pushdown_trie.rows import (
    BIAS,
    ENDS,
    add_found,
    intern_row,
)
from tokdfa.core.jit import kernel
from tokdfa.program.program import (
    OPERATION,
    SECOND,
    TERMINAL,
)
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT


@kernel
def reads_byte(row, byte, machine):  # type: ignore[no-untyped-def]
    """False if the byte leads nowhere from a row; true of all bytes where that is not known."""
    return machine.row_reads[4 * row + (byte >> 6)] >> np.uint64(byte & 63) & np.uint64(1) != 0


@kernel
def step_row(row, byte, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row after a byte, or DEAD)."""
    target = np.int64(machine.transitions[row * 256 + byte]) - BIAS
    if target != UNKNOWN:
        return OK, target
    if machine.meta[M_LONGEST]:
        return step_longest(row, byte, machine, pool)
    status = close_row(row, machine, pool)
    if status != OK:
        return status, target
    if not reads_byte(row, byte, machine):
        return OK, np.int64(DEAD)
    count = np.int64(0)
    for k in range(machine.live_begin[row], machine.live_end[row]):
        item = machine.live_items[k]
        before = (item >> STACK_BITS) & STATE_MASK
        if before == 0:
            continue  # it takes special tokens
        place = item >> PLACE_SHIFT
        if machine.code[place, OPERATION] != TERMINAL:
            status, count = step_item(item, byte, count, machine, pool)
            if status != OK:
                return status, target
            continue
        state = np.int64(pool.transitions[before * 256 + byte])
        if state == UNKNOWN:
            machine.meta[M_STATE] = before
            return NEEDS_POOL, target
        if state >= 0:
            if pool.flags[state] & ENDS:
                count = add_found(np.int64(machine.code[place, SECOND]), np.int64(0), item & STACK_MASK, count, machine)
            else:
                count = add_found(place, state, item & STACK_MASK, count, machine)
            if count < 0:
                return NEEDS_SCRATCH, target
    if count == 0:
        target = np.int64(DEAD)
    else:
        status, target = intern_row(count, False, np.int64(-1), machine)
        if status != OK:
            return status, target
    machine.transitions[row * 256 + byte] = target + BIAS
    return OK, target


@kernel
def run_bytes(row, data, begin, end, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row after data[begin:end], or DEAD)."""
    for position in range(begin, end):
        status, row = step_row(row, np.int64(data[position]), machine, pool)
        if status != OK or row < 0:
            return status, row
    return OK, row


@kernel
def run_token_kernel(row, token, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """The row after the bytes of a token of the vocabulary: as `run_kernel`; UNKNOWN for a token without bytes."""
    machine, pool = machine_at(machine_address), pool_at(pool_address)
    begin, end = pool.offsets[token], pool.offsets[token + 1]
    if begin == end:
        return np.int64(UNKNOWN)
    status, row = run_bytes(np.int64(row), pool.byte_data, begin, end, machine, pool)
    return row if status == OK else -10 - np.int64(status)


@kernel
def run_kernel(row, data, begin, end, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """The row after data[begin:end]: DEAD if refused, or -10 - status where something is missing."""
    machine, pool = machine_at(machine_address), pool_at(pool_address)
    status, row = run_bytes(row, data, begin, end, machine, pool)
    return row if status == OK else -10 - np.int64(status)


@kernel
def step_all_kernel(row, machine, pool):  # type: ignore[no-untyped-def]
    """Find the rows after every byte. A status."""
    for byte in range(256):
        status, _ = step_row(row, np.int64(byte), machine, pool)
        if status != OK:
            return np.int64(status)
    return np.int64(OK)


@kernel
def walk_rows_kernel(nodes, start, rows, targets, machine, pool):  # type: ignore[no-untyped-def]
    """Write the row after each token, walking the trie from row `start`. A status; calling again begins anew.

    Written out, as `tokdfa.vocabulary.walker` takes 10 to 20 % longer here.
    """
    one, depth_mask = np.uint64(1), np.uint64((1 << DEPTH_BITS) - 1)
    rows[0] = start
    here, stop = np.uint64(0), np.uint64(len(nodes))
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        status, target = step_row(np.int64(rows[depth]), np.int64(node & np.uint64(0xFF)), machine, pool)
        if status != OK:
            return status
        if target < 0:
            here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            continue
        targets[node >> np.uint64(TOKEN_SHIFT)] = target  # the spare id, too, whose entry means nothing
        rows[depth + 1] = target
        here += one
    return OK
