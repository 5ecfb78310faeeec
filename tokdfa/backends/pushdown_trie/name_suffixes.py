"""Tokens that end a name, where other strings may stand in its place, too.

A string that may be a name or any other has the exits of strings (`tokdfa.backends.pushdown_trie.suffix_trie`): what
follows is what follows another string. Wrong is that of tokens with which the string becomes one of the names, since
something else follows that, or the name is refused. There are few: the bytes before their closing quote go on with what
some name goes on with. They are found in the rest of the partition without exits, which has all tokens with a closing
quote, by walking only such bytes, and are decided by what their bytes lead to.
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import OK, PLACE_SHIFT, STACK_BITS, STATE_MASK
from tokdfa.backends.pushdown_trie.names import name_reads
from tokdfa.backends.pushdown_trie.partition_lookup import W_SIZE, mix
from tokdfa.backends.pushdown_trie.steps import step_row
from tokdfa.core.jit import kernel
from tokdfa.program.program import FIRST
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT


@kernel
def decide_names(row, part, signature, words, machine, pool):  # type: ignore[no-untyped-def]
    """(status, nodes visited, the signature): decide the tokens that end a name of the only item of a row, a NAMES.

    `part`: the strict partition without exits of its other state, at the place that is walked.
    """
    nodes, rows, spare = pool.nodes, pool.walk_rows, pool.walk_meta[W_SIZE]
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    item = machine.live_items[machine.live_begin[row]]
    place = item >> PLACE_SHIFT
    base, stop = np.int64(pool.part_nodes[part, 0]), np.int64(pool.part_nodes[part, 1])
    rows[0] = row
    _note_names(item, pool.frame_left[0], machine)
    visited, here, ended = np.int64(0), base, np.int64(1) << 40
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        byte = np.int64(node & np.uint64(0xFF))
        following = base + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
        if depth <= ended:
            ended = np.int64(1) << 40
            left = pool.frame_left[depth]
            if not left[byte >> 6] >> np.uint64(byte & 63) & np.uint64(1):
                here = following
                continue
        visited += 1
        status, target = step_row(np.int64(rows[depth]), byte, machine, pool)
        if status != OK:
            return status, visited, signature
        if depth < ended:
            item = machine.rows.words[machine.rows.begin[target]] if target >= 0 else np.int64(-1)
            if item >> PLACE_SHIFT == place:  # it has no other item, as where it comes from
                _note_names(item, pool.frame_left[depth + 1], machine)
                rows[depth + 1] = target
                here += 1
                continue
            ended = depth
            for below in range(here, following):
                token = np.int64(nodes[below] >> np.uint64(TOKEN_SHIFT))
                if token != spare:
                    words[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
            signature = mix(signature, ~here)
        if target < 0:
            here = following
            continue
        rows[depth + 1] = target
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if token != spare:
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            signature = mix(signature, token)
        here += 1
    return OK, visited, signature


@kernel
def _note_names(item, left, machine):  # type: ignore[no-untyped-def]
    """Write the bytes with which some name of a NAMES goes on to `left`, four words.

    They include the closing quote of a name, be it allowed or not.
    """
    none = np.uint64(0)
    state, at = np.int64((item >> STACK_BITS) & STATE_MASK), np.int64(machine.code[item >> PLACE_SHIFT, FIRST])
    reads = name_reads(state, at, (none, none, none, none), True, machine)
    left[0], left[1], left[2], left[3] = reads[0], reads[1], reads[2], reads[3]
