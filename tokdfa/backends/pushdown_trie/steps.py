"""Steps: the row after a byte, after the bytes of a token, and after each token.

With the longest match (`tokdfa.backends.pushdown_trie.rows` has the rule) a row in the middle of a lexeme steps, ends
or falls back: `step_longest`.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    M_LONGEST,
    M_SKIP,
    M_STATE,
    NEEDS_CHAIN,
    NEEDS_POOL,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    machine_at,
    pack_item,
    pool_at,
)
from tokdfa.backends.pushdown_trie.closure import close_row
from tokdfa.backends.pushdown_trie.items import step_item
from tokdfa.backends.pushdown_trie.lone import LEAVES, lone_item, lone_row, step_lone
from tokdfa.backends.pushdown_trie.rows import (
    ACCEPTS,
    BIAS,
    ENDS,
    NOT_ASKED,
    ROW_MIDDLE,
    SHORTEST,
    add_found,
    core_of,
    intern_row,
)
from tokdfa.core.jit import kernel
from tokdfa.core.keys import second_of
from tokdfa.core.sorting import sort_distinct
from tokdfa.program.program import FIRST, NAMES, NAMES_OTHER, OPERATION, SECOND, TERMINAL
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
def make_rows(depth, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row at a depth of the path, or DEAD): make the rows down to there."""
    rows, path = pool.walk_rows, pool.walk_path
    known, status = np.int64(depth), OK
    while rows[known] < 0:
        known -= 1
    target = np.int64(rows[known])
    while known < depth and target >= 0 and status == OK:
        status, target = step_row(target, np.int64(path[known]), machine, pool)
        known += 1
        if status == OK:
            rows[known] = target
    return status, target


@kernel
def end_strings(row, machine):  # type: ignore[no-untyped-def]
    """(status, the row after the terminals and strings of a closed row have ended, not in its names; or DEAD)."""
    count = np.int64(0)
    for k in range(machine.live_begin[row], machine.live_end[row]):
        item = machine.live_items[k]
        place = np.int64(item >> PLACE_SHIFT)
        if machine.code[place, OPERATION] == NAMES:
            place = np.int64(machine.arguments[machine.code[place, FIRST] + NAMES_OTHER])
        if place >= 0:
            count = add_found(np.int64(machine.code[place, SECOND]), np.int64(0), item & STACK_MASK, count, machine)
        if count < 0:
            return NEEDS_SCRATCH, np.int64(DEAD)
    if count == 0:
        return OK, np.int64(DEAD)
    return intern_row(count, False, np.int64(-1), machine)


@kernel
def run_kernel(row, data, begin, end, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """The row after data[begin:end]: DEAD if refused, or -10 - status where something is missing."""
    machine, pool = machine_at(machine_address), pool_at(pool_address)
    item = np.int64(-1)  # a lone one; in place of the row, where that is -1
    for position in range(begin, end):
        byte, status, following = np.int64(data[position]), np.int64(OK), np.int64(LEAVES)
        if row >= 0:
            item = np.int64(-1)
            if machine.transitions[row * 256 + byte] - BIAS == UNKNOWN:
                status = close_row(row, machine, pool)
                item = lone_item(row, machine)
        if item >= 0:
            following = step_lone(item, byte, False, machine)
        if following != LEAVES:
            item, row = following, np.int64(-1)
        else:
            if row < 0:
                status, row = lone_row(item, machine)
            if status == OK:
                status, row = step_row(row, byte, machine, pool)
            item = np.int64(-1)
        if status != OK:
            return -10 - np.int64(status)
        if row < 0 and item < 0:
            return np.int64(DEAD)
    if row < 0:
        status, row = lone_row(item, machine)
        if status != OK:
            return -10 - np.int64(status)
    return row


@kernel
def run_token_kernel(row, token, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """The row after the bytes of a token of the vocabulary: as `run_kernel`; UNKNOWN for a token without bytes."""
    pool = pool_at(pool_address)
    begin, end = pool.offsets[token], pool.offsets[token + 1]
    if begin == end:
        return np.int64(UNKNOWN)
    return run_kernel(np.int64(row), pool.byte_data, begin, end, machine_address, pool_address)


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


@kernel
def step_longest(row, byte, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row after a byte, or DEAD) by longest match. The links of the chain are stepped inmost first."""
    chain, unknown = pool.chain, np.int64(UNKNOWN)
    links = np.int64(0)
    result = np.int64(DEAD)
    here = np.int64(row)
    while here >= 0:
        known = np.int64(machine.transitions[here * 256 + byte]) - BIAS
        if known != UNKNOWN:
            result = known
            break
        if links >= len(chain):
            return NEEDS_CHAIN, unknown
        chain[links] = here
        links += 1
        status = close_row(here, machine, pool)
        if status != OK:
            return status, unknown
        status, count, together, _ = _put_inside(here, byte, machine, pool)
        if status != OK:
            return status, unknown
        if count > 0 and together & ACCEPTS:
            break
        following = np.int64(-1)
        if machine.row_flags[here] & ROW_MIDDLE:
            status, following = end_row(here, machine, pool)
            if status != OK:
                return status, unknown
            if following < 0:
                following = np.int64(machine.row_fallback[here])
        here = following
    for link in range(links - 1, -1, -1):
        here = np.int64(chain[link])
        status, count, together, common = _put_inside(here, byte, machine, pool)
        if status != OK:
            return status, unknown
        if count > 0:
            if together & (ENDS << 8) or common & ENDS:  # nothing can be longer: the lexeme has ended
                count = _put_ended(count, machine, pool)
                if count < 0:
                    return NEEDS_SCRATCH, unknown
                status, result = intern_row(count, False, np.int64(-1), machine)
            else:
                fallback = np.int64(-1) if together & ACCEPTS else result
                status, result = _intern_middle(count, fallback, machine)
            if status != OK:
                return status, unknown
        machine.transitions[here * 256 + byte] = result + BIAS
    return OK, result


@kernel
def _put_inside(row, byte, machine, pool):  # type: ignore[no-untyped-def]
    """(status, how many items go on in their lexemes: found[:count], flags that some of them have, that all have)."""
    count, together, common = np.int64(0), np.int64(0), np.int64(ACCEPTS | ENDS)
    for k in range(machine.live_begin[row], machine.live_end[row]):
        item = machine.live_items[k]
        before = (item >> STACK_BITS) & STATE_MASK
        if before == 0:
            continue
        state = np.int64(pool.transitions[before * 256 + byte])
        if state == UNKNOWN:
            machine.meta[M_STATE] = before
            return NEEDS_POOL, count, together, common
        if state >= 0:
            if count >= len(machine.found):
                return NEEDS_SCRATCH, count, together, common
            machine.found[count] = pack_item(item >> PLACE_SHIFT, state, item & STACK_MASK)
            count += 1
            flags = np.int64(pool.flags[state])
            common &= flags
            together |= flags
            if flags & SHORTEST and flags & ACCEPTS:
                together |= ENDS << 8
    return OK, count, together, common


@kernel
def _intern_middle(count, fallback, machine):  # type: ignore[no-untyped-def]
    """(status, the row in the middle of a lexeme). A fallback with the same items lives and dies with it: left out."""
    count = sort_distinct(machine.found, 0, count)
    while fallback >= 0:
        begin, end = core_of(fallback, machine)
        same = machine.row_flags[fallback] & ROW_MIDDLE != 0 and end - begin == count
        for k in range(count):
            same = same and machine.rows.words[begin + k] == machine.found[k]
        if not same:
            break
        fallback = np.int64(machine.row_fallback[fallback])
    return intern_row(count, True, fallback, machine)


@kernel
def end_row(row, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the border after the terminals that may end in a row in the middle of a lexeme, -1 if none may)."""
    if machine.row_ended[row] != NOT_ASKED:
        return OK, np.int64(machine.row_ended[row])
    begin, end = core_of(row, machine)
    count = np.int64(0)
    for k in range(begin, end):
        machine.found[k - begin] = machine.rows.words[k]  # there is room: the row's core was made there
    count = _put_ended(end - begin, machine, pool)
    if count < 0:
        return NEEDS_SCRATCH, np.int64(-1)
    border = np.int64(-1)
    if count:
        status, border = intern_row(count, False, np.int64(-1), machine)
        if status != OK:
            return status, border
    machine.row_ended[row] = border
    return OK, border


@kernel
def border_of(row, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row, closed, in which the next lexeme may begin): `row` itself, or in the middle of a lexeme what
    follows if it ends here; -1 if it may not.
    """
    while row >= 0 and machine.row_flags[row] & ROW_MIDDLE:
        status, following = end_row(row, machine, pool)
        if status != OK:
            return status, row
        row = following if following >= 0 else np.int64(machine.row_fallback[row])
    status = close_row(row, machine, pool) if row >= 0 else OK
    return status, row


@kernel
def _put_ended(count, machine, pool):  # type: ignore[no-untyped-def]
    """Replace found[:count], items in lexemes, by what follows those that may end. The new count, or -1: no room.

    A terminal that ends at its first match wins over others.
    """
    found = machine.found
    shortest = False
    for k in range(count):
        flags = pool.flags[(found[k] >> STACK_BITS) & STATE_MASK]
        if flags & ACCEPTS and flags & SHORTEST:
            shortest = True
    kept = np.int64(0)
    for k in range(count):
        flags = pool.flags[(found[k] >> STACK_BITS) & STATE_MASK]
        if flags & ACCEPTS and (not shortest or flags & SHORTEST):
            found[kept] = found[k]
            kept += 1
    # `found` serves as input and output, and one item of a skipped terminal may become many: so the input moves to the
    # end
    if 2 * kept > len(found):
        return np.int64(-1)
    first = len(found) - kept
    for k in range(kept - 1, -1, -1):
        found[first + k] = found[k]
    made = np.int64(0)
    for k in range(kept):
        item = found[first + k]
        place, stack = item >> PLACE_SHIFT, item & STACK_MASK
        if place == machine.meta[M_SKIP]:
            begin, end = core_of(second_of(machine.stacks.words[machine.stacks.begin[stack]]), machine)
            if made + end - begin > first + k:
                return np.int64(-1)
            for source in range(begin, end):
                found[made] = machine.rows.words[source]
                made += 1
        else:
            if made > first + k:
                return np.int64(-1)
            made = add_found(np.int64(machine.code[place, SECOND]), np.int64(0), stack, made, machine)
            if made < 0:
                return made
    return made
