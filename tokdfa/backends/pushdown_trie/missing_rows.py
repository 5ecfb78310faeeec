"""Which rows of a lazy automaton a partition of the vocabulary needs, found by resuming the walk at missing rows.

A walk of a lazy automaton over the trie comes to states whose rows nobody has made. Making them and walking again
would visit the whole trie once for each step of the longest way into what is new. Instead each place where the walk
stopped is noted, and when the rows are made, only what is below these places is walked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.partition import NODE_WORK
from tokdfa.backends.pushdown_trie.partition_key import EXITS, STRICT
from tokdfa.backends.pushdown_trie.rows import ACCEPTS
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.backends.pushdown_trie.partition import Partitions

#: Places that are noted in one round at most.
MAX_PLACES = 16_384


def make_missing_rows(
    automata: AutomatonTable, parts: Partitions, place: int, state: int, kind: int = 0, within: int = -1
) -> None:
    """Make the rows that the partition of a place of the tries of `parts` by a state needs.

    `kind`: its bits; with STRICT not what is needed only after a complete text. `within`: a partition of the whole
    trie, all of whose tokens are inside. The row of a state that ends a text is made before what is below is walked, as
    exits depend on whether it can go on. Raises what making a row raises.
    """
    begin, end = parts.extent(place) if within < 0 else parts.part_nodes[within, :2].tolist()
    origin = begin if within >= 0 else parts.base_of(place - 1) if place else 0
    strict, exits = kind & STRICT != 0, kind & EXITS != 0
    agenda = np.array([(begin, end, state)], dtype=np.int32)
    while len(agenda):
        found = np.empty((MAX_PLACES, 3), dtype=np.int32)
        stack = np.zeros(parts.trie.depth_limit + 2, dtype=np.int32)
        spend(NODE_WORK * int((agenda[:, 1] - agenda[:, 0]).sum()))
        count = _find_missing_kernel(
            parts.nodes, origin, agenda, automata.transitions, automata.flags, strict, exits, stack, found
        )
        automata.fill_rows(found[:count, 2])
        if count < MAX_PLACES:  # else the same once more, for what was not noted
            agenda = found[:count]


@kernel
def _find_missing_kernel(  # type: ignore[no-untyped-def]
    nodes, origin, agenda, transitions, flags, strict, exits, stack, found
):
    """How many places are written to `found`: (node, node after what is below it, the state whose row is missing).

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
            if target < 0:
                here = after
                continue
            if flags[target] & ACCEPTS:
                is_missing = transitions[target * 256] == UNKNOWN and (exits or not strict)  # may it go on?
                if is_missing:
                    if count == len(found):
                        return count
                    found[count, 0], found[count, 1], found[count, 2] = after if strict else here + 1, after, target
                    count += 1
                if is_missing or strict:
                    here = after
                    continue
            stack[depth + 1] = target
            here += 1
    return count


def warm_up() -> None:
    """Compile what only lazy automata need."""
    agenda, stack = np.zeros((0, 3), dtype=np.int32), np.zeros(2, dtype=np.int32)
    nodes, transitions = np.zeros(1, dtype=np.uint64), np.zeros(256, dtype=np.int32)
    _find_missing_kernel(nodes, 0, agenda, transitions, np.zeros(1, dtype=np.uint8), False, False, stack, agenda)
