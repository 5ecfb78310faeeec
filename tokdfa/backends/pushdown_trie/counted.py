"""COUNTED: JSON strings with bounds on the number of their characters.

The state of an item is a count and a state of the automaton of JSON strings (`tokdfa.program.json_text`), whose states
lie in a row in the pool: 1 + count x STATES + local number. A character is counted where it begins, with the byte that
leaves BODY. So at the greatest count BODY reads only the closing quote, and below the least one it does not read that.

Once the least count is reached and there is no greatest, the item is one of the plain TERMINAL of strings. A count that
does not fit an item's 21 bits goes on in another COUNTED (`ProgramBuilder.counted`).

*Masks.* All counts share the partition of the automaton's state: tokens after which the string is open (`strict`), less
those with more characters than may still be read. *Representatives*: most counts leave the same tokens as others do:
far from both bounds all, near to a bound those between which no token's number of characters lies. `clip_row_kernel`
gives the row with one count for all that allow the same, so a long string has few masks.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    M_PLACE,
    NEEDS_CODE,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    machine_at,
    pack_item,
)
from tokdfa.backends.pushdown_trie.rows import add_found, intern_row, kernel_of
from tokdfa.core.jit import kernel
from tokdfa.program.json_text import BODY, END
from tokdfa.program.program import (
    ANY,
    COUNTED,
    COUNTED_BEYOND,
    COUNTED_CAP,
    COUNTED_MINIMUM,
    COUNTED_NEXT,
    COUNTED_TERMINAL,
    FIRST,
    LAZY,
    OPERATION,
    SECOND,
    UNBOUNDED,
)

#: States of the larger automaton of JSON strings.
STATES = 22
QUOTE = 0x22


@kernel
def step_count(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the new count): append what an item (place, state, stack) of COUNTED is after a byte to `found`.

    NEEDS_CODE names the place of code that is not written yet.
    """
    place, state, stack = item
    code, arguments = machine.code, machine.arguments
    at = code[place, FIRST]
    start = np.int64(code[arguments[at + COUNTED_TERMINAL], FIRST])
    read, local = (state - 1) // STATES, (state - 1) % STATES
    target = np.int64(pool.transitions[(start + local) * 256 + byte])
    if target < 0:
        return OK, count
    following = target - start
    if following == END:
        if read < arguments[at + COUNTED_MINIMUM]:
            return OK, count
        return OK, add_found(np.int64(code[place, SECOND]), np.int64(0), stack, count, machine)
    if local == BODY:
        if read == arguments[at + COUNTED_CAP]:
            place, read = np.int64(arguments[at + COUNTED_NEXT]), np.int64(0)
            if place < 0:
                return OK, count
            while code[place, OPERATION] == ANY:
                place = np.int64(machine.alternatives[code[place, FIRST]])
            if code[place, OPERATION] == LAZY:
                machine.meta[M_PLACE] = place
                return NEEDS_CODE, count
            at = code[place, FIRST]
        read += 1
        if arguments[at + COUNTED_BEYOND] == UNBOUNDED and read >= arguments[at + COUNTED_MINIMUM]:
            return OK, add_found(np.int64(arguments[at + COUNTED_TERMINAL]), target, stack, count, machine)
    return OK, add_found(place, 1 + read * STATES + following, stack, count, machine)


@kernel
def count_reads(place, state, reads, machine):  # type: ignore[no-untyped-def]
    """Take out of a set of bytes, which is what the automaton's state reads, those that the count does not allow."""
    at = machine.code[place, FIRST]
    count, local = (state - 1) // STATES, (state - 1) % STATES
    if local != BODY:
        return
    quote = np.uint64(1) << np.uint64(QUOTE)
    if count == machine.arguments[at + COUNTED_CAP] and machine.arguments[at + COUNTED_NEXT] < 0:
        reads[0] &= quote
        reads[1:] = 0
    if count < machine.arguments[at + COUNTED_MINIMUM]:
        reads[0] &= ~quote


@kernel
def _clip_count(count, minimum, cap, beyond, least, most):  # type: ignore[no-untyped-def]
    """A count that leaves the same tokens as `count` does, the same for as many others as can be."""
    left, need = cap - count + beyond, minimum - count
    if left >= len(least):  # no token is too long
        if need >= len(most):  # and none closes the string
            return np.int64(0)
        return minimum - min(np.int64(most[need]), minimum) if need > 0 else minimum
    more = left - np.int64(least[left])
    if count + more <= cap and (need <= 0 or need - more >= len(most)):
        return count + more
    return count


@kernel
def clip_row_kernel(row, least, most, machine_address):  # type: ignore[no-untyped-def]
    """A row with the mask of `row`, in which counts are those of `_clip_count`; -status where there is no room for it.

    `least` and `most`: `tokdfa.backends.pushdown_trie.lengths.TokenLengths.levels`.
    """
    machine = machine_at(machine_address)
    begin, end = kernel_of(row, machine)
    changed = False
    if end - begin > len(machine.found):
        return np.int64(-NEEDS_SCRATCH)
    for k in range(begin, end):
        item = machine.rows.words[k]
        place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
        if machine.code[place, OPERATION] == COUNTED:
            at, count = machine.code[place, FIRST], (state - 1) // STATES
            minimum, cap = machine.arguments[at + COUNTED_MINIMUM], machine.arguments[at + COUNTED_CAP]
            beyond = np.int64(machine.arguments[at + COUNTED_BEYOND])
            clipped = _clip_count(count, np.int64(minimum), np.int64(cap), beyond, least, most)
            if clipped != count:
                changed = True
                item = pack_item(place, state + (clipped - count) * STATES, item & STACK_MASK)
        machine.found[k - begin] = item
    if not changed:
        return np.int64(row)
    status, found = intern_row(np.int64(end - begin), False, np.int64(-1), machine)
    return found if status == OK else -np.int64(status)
