"""Which rows of a lazy automaton a partition of the vocabulary needs, found by walking on where one was lacking.

A walk of a lazy automaton over the trie comes to states whose rows nobody has made. Making them and walking again
would visit the whole trie once for each step of the longest way into what is new. Instead each place where the walk
stopped is noted, and when the rows are made, only what is below these places is walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.budget import spend
from tokdfa.jit import kernel
from tokdfa.pushdown import lazy_rows
from tokdfa.pushdown.partition import NODE_WORK
from tokdfa.pushdown.rows import ACCEPTS
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.pushdown.pool import Pool

#: Places that are noted in one round at most; whoever needs the rest finds them lacking later.
MAX_PLACES = 16_384


def make_lacking_rows(pool: Pool, place: int, state: int, strict: bool, within: int = -1) -> None:
    """Make the rows that the partition of a place of the pool's tries by a state needs.

    `within`: a partition of the whole trie, all of whose tokens are inside. `strict`: not those needed only after a
    complete text. The row of a state that ends a text is made before what is below is walked, as exits depend on
    whether it can go on. Raises what making a row raises.
    """
    parts = pool.partitions
    begin, end = parts.extent(place) if within < 0 else parts.part_nodes[within, :2].tolist()
    origin = begin if within >= 0 else parts.base_of(place - 1) if place else 0
    agenda = np.array([(begin, end, state)], dtype=np.int32)
    while len(agenda):
        found = np.empty((MAX_PLACES, 3), dtype=np.int32)
        stack = np.zeros(parts.trie.depth_limit + 2, dtype=np.int32)
        spend(NODE_WORK * int((agenda[:, 1] - agenda[:, 0]).sum()))
        count = _find_lacking_kernel(parts.nodes, origin, agenda, pool.transitions, pool.flags, strict, stack, found)
        agenda = found[:count]
        pool.fill_rows(agenda[:, 2])


@kernel
def _find_lacking_kernel(  # type: ignore[no-untyped-def]
    nodes, origin, agenda, transitions, flags, strict, stack, found
):
    """How many places are written to `found`: (node, node after what is below it, the state whose row is lacking).

    `agenda`: the same, for what is to be walked, all in the trie that begins at node `origin`.
    """
    low_byte, depth_mask = np.uint64(0xFF), np.uint64((1 << DEPTH_BITS) - 1)
    count = np.int64(0)
    for entry in range(len(agenda)):
        here, end = np.int64(agenda[entry, 0]), np.int64(agenda[entry, 1])
        if here >= end:
            continue
        base = np.int64((nodes[here] >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        stack[0] = agenda[entry, 2]
        while here < end:
            node = nodes[here]
            depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base
            before = np.int64(stack[depth])
            target = np.int64(transitions[before * 256 + np.int64(node & low_byte)])
            after = np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)) + origin
            if target == UNKNOWN:
                if count == len(found):
                    return count
                found[count, 0], found[count, 1], found[count, 2] = here, after, before
                count += 1
            if target < 0 or (strict and flags[target] & ACCEPTS != 0):
                here = after
                continue
            if flags[target] & ACCEPTS and transitions[target * 256] == UNKNOWN:  # may it go on?
                if count == len(found):
                    return count
                found[count, 0], found[count, 1], found[count, 2] = here + 1, after, target
                count += 1
                here = after
                continue
            stack[depth + 1] = target
            here += 1
    return count


def _warm_up() -> None:
    """Compile what only lazy automata need."""
    agenda, stack = np.zeros((0, 3), dtype=np.int32), np.zeros(2, dtype=np.int32)
    nodes, transitions = np.zeros(1, dtype=np.uint64), np.zeros(256, dtype=np.int32)
    _find_lacking_kernel(nodes, 0, agenda, transitions, np.zeros(1, dtype=np.uint8), False, stack, agenda)
    lazy_rows._warm_up()
