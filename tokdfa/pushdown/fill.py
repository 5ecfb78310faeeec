"""The mask of a row: what its wide states allow inside, and a walk over the rest of the trie.

The walk keeps the row at each depth of the trie in a stack, so going back costs nothing; a byte is one look-up where it
was read before. A node with more than `SUBTREE` descendants whose row has a wide state is put off: its partition is
taken, and the rest of what is below it is walked on its own. Where several items are wide, the smallest rest is walked:
a token outside of it is inside one of them. Nodes of a rest at which the item that the rest is of goes on are not put
off for its sake: no token below them stays inside it, or it would not be in the rest.

A partition that serves a string of bounded length counts no characters. So where such a string is all that a row reads,
and its bound is near, tokens that stay inside it but are too long are taken out at the end.

With `use_partitions` false the whole trie is walked: the plain version, for comparison.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.jit import kernel
from tokdfa.pushdown.arrays import (
    M_LONGEST,
    M_NODES,
    M_PLACE,
    M_STATE,
    NEEDS_PARTITION,
    OK,
    PLACE_SHIFT,
    STACK_BITS,
    STATE_MASK,
)
from tokdfa.pushdown.closure import close_row
from tokdfa.pushdown.counted import STATES
from tokdfa.pushdown.form import COUNTED, OPERATION, TEXT
from tokdfa.pushdown.items import item_left, wide_state
from tokdfa.pushdown.json_text import BODY
from tokdfa.pushdown.partition import STATE_PART, find_partition
from tokdfa.pushdown.rows import ACCEPTS, BIAS, ROW_WIDE
from tokdfa.pushdown.steps import step_row
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.pushdown.machine import Machine
    from tokdfa.pushdown.partition import TrieParts
    from tokdfa.vocabulary.trie import TokenTrie

#: A node with more descendants than this is worth a partition of its own.
SUBTREE = 400


class Filler:
    """Fills masks for machines over one vocabulary. Not thread-safe: the pool's lock is held."""

    def __init__(self, trie: TokenTrie | TrieParts, use_partitions: bool = True, use_subtrees: bool = True) -> None:
        self.trie = trie
        self.subtree = SUBTREE if use_partitions and use_subtrees else MAX_NODES
        self.use_partitions = use_partitions
        #: uint32: the mask, and a word for the spare token.
        self.words: npt.NDArray[np.uint32] = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        self._rows: npt.NDArray[np.int32] = np.zeros(trie.depth_limit + 2, dtype=np.int32)
        self._path: npt.NDArray[np.uint8] = np.zeros(trie.depth_limit + 2, dtype=np.uint8)
        self._later: npt.NDArray[np.int32] = np.zeros((64, 3), dtype=np.int32)

    def fill(self, machine: Machine, row: int) -> npt.NDArray[np.int32]:
        """The tokens that may be read from a row: int32 words, valid until the next call; no end or special tokens."""
        partitions = machine.pool.partitions
        drops = partitions.drops
        while True:
            # a mask that needs more partitions than are kept would drop its own for ever: then the trie is walked
            use = self.use_partitions and partitions.drops < drops + 2
            status = _fill_kernel(
                row, use, self.subtree if use else MAX_NODES, len(self.trie.nodes), self.trie.depth_limit,
                self.words, self._rows, self._path, self._later, machine.arrays, machine.pool.arrays,
            )  # fmt: skip
            if status == OK:
                break
            if status == NEEDS_LATER:
                self._later = np.zeros((2 * len(self._later), 3), dtype=np.int32)
            else:
                machine.supply(status)
        if use and machine.program.counts:
            self._take_out_long(machine, row)
        size = self.trie.size
        words = self.words[: (size + 31) // 32].view(np.int32)
        if size & 31:
            words[-1] &= np.int32((1 << (size & 31)) - 1)  # the spare bit
        return words

    def _take_out_long(self, machine: Machine, row: int) -> None:
        """Take out tokens that stay inside a string, but have more characters than it may still have."""
        pool = machine.pool
        left, state, body = _find_bound_kernel(row, self.trie.depth_limit, machine.arrays, pool.arrays)
        if left >= 0:
            short = pool.lengths.short_tokens(state, body, left, pool.transitions, pool.flags)
            np.bitwise_and(self.words, short, out=self.words)


@kernel
def _find_bound_kernel(row, depth, machine, pool):  # type: ignore[no-untyped-def]
    """(characters left, state, BODY) of a bounded COUNTED that a strict partition served though it is short; or -1s."""
    begin, nothing = machine.live_begin[row], np.int64(-1)
    if machine.live_end[row] - begin != 1:
        return nothing, nothing, nothing
    item = machine.live_items[begin]
    if machine.code[item >> PLACE_SHIFT, OPERATION] != COUNTED:
        return nothing, nothing, nothing
    left = item_left(item, machine)
    wide = wide_state(item, np.int64(0), True, depth, machine, pool)
    if wide < 0 or left >= depth:
        return nothing, nothing, nothing
    state = wide & STATE_PART
    local = (((item >> STACK_BITS) & STATE_MASK) - 1) % STATES
    return left, state, state - local + BODY


#: Status of `_fill_kernel` besides those of the machine: too many subtrees were put off.
NEEDS_LATER = 100


@kernel
def _take_inside(part, words, pool):  # type: ignore[no-untyped-def]
    """Set the tokens of a partition that stay inside."""
    dense = pool.part_dense[part]
    if dense >= 0:
        for k in range(len(words)):
            words[k] |= pool.dense[dense, k]
        return
    for k in range(pool.part_ids[part, 0], pool.part_ids[part, 1]):
        token = pool.ids[k]
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def is_alone(row, machine, pool):  # type: ignore[no-untyped-def]
    """Whether a closed row has one item, whose text is not complete.

    With the longest match a text that dies may have had another end, which its row falls back on.
    """
    begin = machine.live_begin[row]
    if machine.live_end[row] - begin != 1 or machine.meta[M_LONGEST]:
        return False
    item = machine.live_items[begin]
    is_text = machine.code[item >> PLACE_SHIFT, OPERATION] == TEXT
    return not (is_text and pool.flags[(item >> STACK_BITS) & STATE_MASK] & ACCEPTS)


@kernel
def _begin_place(place, row, passed, depth, words, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the partition whose rest is to be walked or -1: none, the state it is of) in a wide row at a place.

    What is inside of the row's wide states is set, but for the state `passed`, inside of which nothing is.
    """
    best, least, chosen = np.int64(-1), np.int64(1) << 40, np.int64(-1)
    last = np.int64(-1)
    alone = is_alone(row, machine, pool)
    for k in range(machine.live_begin[row], machine.live_end[row]):
        wide = wide_state(machine.live_items[k], place, alone, depth, machine, pool)
        state = wide & STATE_PART
        if wide < 0 or state == passed:
            continue
        known = np.int64(pool.alike[state])
        if known >= 0:
            known |= wide & ~STATE_PART
            if known == last:
                continue
        last = known
        part = find_partition(place, known, pool) if known >= 0 else np.int64(-1)
        if part < 0:
            machine.meta[M_PLACE], machine.meta[M_STATE] = place, wide
            return NEEDS_PARTITION, best, chosen
        _take_inside(part, words, pool)
        size = np.int64(pool.part_nodes[part, 1]) - np.int64(pool.part_nodes[part, 0])
        if size < least:
            best, least, chosen = part, size, state
    return OK, best, chosen


@kernel
def _has_other_wide(row, passed, depth, machine, pool):  # type: ignore[no-untyped-def]
    """Whether a row has a wide state besides `passed` that serves at a place below the root of the trie."""
    for k in range(machine.live_begin[row], machine.live_end[row]):
        wide = wide_state(machine.live_items[k], np.int64(1), False, depth, machine, pool)
        if wide >= 0 and wide & STATE_PART != passed:
            return True
    return False


@kernel
def _fill_kernel(  # type: ignore[no-untyped-def]
    start, use_partitions, subtree, node_count, depth_limit, words, rows, path, later, machine, pool
):
    """Write the mask of row `start`. A status; whatever it is, calling again begins anew."""
    one, depth_mask = np.uint64(1), np.uint64((1 << DEPTH_BITS) - 1)
    nodes = pool.nodes
    words[:] = 0
    later[0, 0], later[0, 1], later[0, 2] = 0, start, -1
    waiting = 1
    visited = np.int64(0)
    while waiting > 0:
        waiting -= 1
        place, row = np.int64(later[waiting, 0]), np.int64(later[waiting, 1])
        status = close_row(row, machine, pool)
        if status != OK:
            return status
        here, stop, base = np.uint64(0), np.uint64(node_count), np.uint64(0)
        of_state = np.int64(-1)
        if use_partitions and machine.row_flags[row] & ROW_WIDE:
            passed = np.int64(later[waiting, 2])
            status, part, of_state = _begin_place(place, row, passed, depth_limit, words, machine, pool)
            if status != OK:
                return status
            if part >= 0:  # else, where nothing serves, the whole trie; what is put off below has something that does
                here, stop = np.uint64(pool.part_nodes[part, 0]), np.uint64(pool.part_nodes[part, 1])
                base = here
        rows[0] = row
        while here < stop:
            node = nodes[here]
            depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
            before = np.int64(rows[depth])
            byte = np.int64(node & np.uint64(0xFF))
            target = np.int64(machine.transitions[before * 256 + byte]) - BIAS
            visited += 1
            path[depth] = byte
            if target == UNKNOWN:
                status, target = step_row(before, byte, machine, pool)
                if status != OK:
                    return status
            following = base + ((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
            if target < 0:
                here = following
                continue
            token = node >> np.uint64(TOKEN_SHIFT)
            words[token >> np.uint64(5)] |= np.uint32(1) << np.uint32(token & np.uint64(31))
            if np.int64(following - here) > subtree:
                status = close_row(target, machine, pool)
                if status != OK:
                    return status
                passed = of_state
                for k in range(depth + 1):
                    if passed >= 0:
                        passed = np.int64(pool.transitions[passed * 256 + path[k]])
                if machine.row_flags[target] & ROW_WIDE and _has_other_wide(target, passed, depth_limit, machine, pool):
                    if waiting >= len(later):
                        return NEEDS_LATER
                    later[waiting, 0], later[waiting, 1], later[waiting, 2] = here + one, target, passed
                    waiting += 1
                    here = following
                    continue
            rows[depth + 1] = target
            here += one
    machine.meta[M_NODES] += visited
    return OK
