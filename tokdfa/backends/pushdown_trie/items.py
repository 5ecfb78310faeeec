"""Items of NAMES and COUNTED: what they do where others follow the automaton of their TERMINAL.

One function for each question, from `string_state` on. Each takes an item of the row's live ones whose instruction is
neither TERMINAL nor TOKEN, unless it says otherwise.

**COUNTED**: JSON strings with bounds on the number of their characters. The state of an item is a count and a state of
an explicit automaton: that of any string, or of those of a pattern. Its states lie in a row in the pool, so an item has
1 + count x states + local number. This stands in place of the product of pattern and length, which has as many states,
each with a row and a partition of its own.

A character is counted where it begins (``characters`` of `tokdfa.backends.pushdown_trie.state_table`). *No dead ends.*
An item lives while the characters that may still begin are no fewer than its state needs before an end. The least count
forbids only the closing quote before it: where there is one, the automaton reaches an end after all greater numbers of
characters, too (`tokdfa.program.json_text.read_characters`); other patterns are left to the product.

Once the least count is reached and there is no greatest, the item is one of the plain TERMINAL. A count that does not
fit an item's 21 bits goes on in another COUNTED (`ProgramBuilder.counted`).

*Masks.* All counts share the partition of the automaton's state: tokens after which the string is open (`strict`), less
those after which more characters are needed than may still be read. *Representatives*: most counts leave the same
tokens as others do: far from both bounds all; near to a bound, if no state needs more characters, those between which
no token's number of characters lies. `clip_row_kernel` gives the row with one count for all that allow the same, so a
long string has few masks.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    M_PLACE,
    NEEDS_CODE,
    NEEDS_SCRATCH,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STACK_MASK,
    STATE_MASK,
    STRICT,
    machine_at,
    pack_item,
    pool_at,
)
from tokdfa.backends.pushdown_trie.names import name_reads, name_string_state, step_name
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ROW_CUT, SHORTEST, WIDE, add_found, core_of, intern_row
from tokdfa.backends.pushdown_trie.state_table import BEGINS, LEAST, MOST, STATES
from tokdfa.core.jit import kernel
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
    NAMES,
    OPERATION,
    SECOND,
    TERMINAL,
    TOKEN,
    UNBOUNDED,
)

QUOTE = 0x22
#: `left` of what may have any number of characters.
ANY_LENGTH = 1 << 40


@kernel
def counted_start(place, machine):  # type: ignore[no-untyped-def]
    """The first state of the automaton of a COUNTED."""
    return np.int64(machine.code[machine.arguments[machine.code[place, FIRST] + COUNTED_TERMINAL], FIRST])


@kernel
def count_left(place, count, machine):  # type: ignore[no-untyped-def]
    """How many characters may begin after so many."""
    arguments, at = machine.arguments, machine.code[place, FIRST]
    return np.int64(arguments[at + COUNTED_CAP]) - count + np.int64(arguments[at + COUNTED_BEYOND])


@kernel
def step_count(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the new count): append what an item (place, state, stack) of COUNTED is after a byte to `found`.

    NEEDS_CODE names the place of code that is not written yet.
    """
    place, state, stack = item
    code, arguments = machine.code, machine.arguments
    at, start = code[place, FIRST], counted_start(place, machine)
    states = np.int64(pool.characters[start, STATES])
    read, local = (state - 1) // states, (state - 1) % states
    target = np.int64(pool.transitions[(start + local) * 256 + byte])
    if target < 0:
        return OK, count
    if pool.flags[target] & ACCEPTS:
        if read < arguments[at + COUNTED_MINIMUM]:
            return OK, count
        return OK, add_found(np.int64(code[place, SECOND]), np.int64(0), stack, count, machine)
    if pool.characters[start + local, BEGINS]:
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
    if count_left(place, read, machine) < pool.characters[target, LEAST]:
        return OK, count
    return OK, add_found(place, 1 + read * states + target - start, stack, count, machine)


@kernel
def count_reads(place, state, reads, machine, pool):  # type: ignore[no-untyped-def]
    """Take out of a set of bytes, which is what the automaton's state reads, those that the count does not allow."""
    start = counted_start(place, machine)
    states = np.int64(pool.characters[start, STATES])
    count, here = (state - 1) // states, start + (state - 1) % states
    begins = np.int64(pool.characters[here, BEGINS])
    left = count_left(place, count, machine) - begins
    if left < pool.characters[start, MOST]:
        for byte in range(256):
            target = np.int64(pool.transitions[here * 256 + byte])
            if target >= 0 and left < pool.characters[target, LEAST] and not pool.flags[target] & ACCEPTS:
                reads[byte >> 6] &= ~(np.uint64(1) << np.uint64(byte & 63))
    if begins and count < machine.arguments[machine.code[place, FIRST] + COUNTED_MINIMUM]:
        reads[0] &= ~(np.uint64(1) << np.uint64(QUOTE))


@kernel
def _clip_count(count, minimum, cap, beyond, needed, least, most):  # type: ignore[no-untyped-def]
    """A count that leaves the same tokens as `count` does, the same for as many others as can be.

    `needed`: so many characters more than it has a token may need.
    """
    left, need = cap - count + beyond, minimum - count
    if left >= len(least) + needed:  # no token is too long
        if need >= len(most):  # and none closes the string
            return np.int64(0)
        return minimum - min(np.int64(most[need]), minimum) if need > 0 else minimum
    if needed:
        return count
    more = left - np.int64(least[left])
    if count + more <= cap and (need <= 0 or need - more >= len(most)):
        return count + more
    return count


@kernel
def clip_row_kernel(row, least, most, machine_address, pool_address):  # type: ignore[no-untyped-def]
    """A row with the mask of `row`, in which counts are those of `_clip_count`; -status where there is no room for it.

    `least` and `most`: `tokdfa.backends.pushdown_trie.lengths.TokenLengths.levels`.
    """
    machine, pool = machine_at(machine_address), pool_at(pool_address)
    begin, end = core_of(row, machine)
    changed = False
    if end - begin > len(machine.found):
        return np.int64(-NEEDS_SCRATCH)
    for k in range(begin, end):
        item = machine.rows.words[k]
        place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
        if machine.code[place, OPERATION] == COUNTED:
            at, start = machine.code[place, FIRST], counted_start(place, machine)
            states, needed = np.int64(pool.characters[start, STATES]), np.int64(pool.characters[start, MOST])
            count = (state - 1) // states
            minimum, cap = machine.arguments[at + COUNTED_MINIMUM], machine.arguments[at + COUNTED_CAP]
            beyond = np.int64(machine.arguments[at + COUNTED_BEYOND])
            clipped = _clip_count(count, np.int64(minimum), np.int64(cap), beyond, needed, least, most)
            if clipped != count:
                changed = True
                item = pack_item(place, state + (clipped - count) * states, item & STACK_MASK)
        machine.found[k - begin] = item
    if not changed:
        return np.int64(row)
    status, found = intern_row(np.int64(end - begin), False, np.int64(-1), machine)
    return found if status == OK else -np.int64(status)


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
        name_reads(state, np.int64(machine.code[place, FIRST]), reads, False, machine)
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
def may_close(item, machine, pool):  # type: ignore[no-untyped-def]
    """Whether a closing quote ends the string that an item is in, but for the names of NAMES."""
    place, state = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
    if machine.code[place, OPERATION] != COUNTED:
        return True
    states = np.int64(pool.characters[counted_start(place, machine), STATES])
    return (state - 1) // states >= machine.arguments[machine.code[place, FIRST] + COUNTED_MINIMUM]


@kernel
def wide_state(item, place, flags, alone, depth, machine, pool):  # type: ignore[no-untyped-def]
    """The state whose partition of a place of the trie serves a live item, of TERMINAL or other, with its kind; or -1.

    `flags`: those of the row. `alone`: the row has no other item. Then a strict partition serves a COUNTED, too, that
    may not read as many characters as a token of `depth` bytes may have, if tokens with too many are taken out
    afterwards. Where the quote that closes the string ends it, the partition of the whole trie is that of the TERMINAL.
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
    if not alone:
        return state | STRICT
    if place == 0 and left - needed >= depth and may_close(item, machine, pool):
        return state | ALONE
    return state | STRICT | ALONE


@kernel
def step_item(item, byte, count, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the new count): append what an item is after a byte to `found`."""
    parts = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK, item & STACK_MASK
    if machine.code[parts[0], OPERATION] == NAMES:
        status, count = OK, step_name(parts, byte, count, machine, pool)
    else:
        status, count = step_count(parts, byte, count, machine, pool)
    return (status, count) if count >= 0 else (NEEDS_SCRATCH, count)
