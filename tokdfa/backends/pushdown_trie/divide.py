"""The walk of an automaton over a trie that makes a partition of the vocabulary
(`tokdfa.backends.pushdown_trie.partition`).
"""

from __future__ import annotations

import numpy as np

from tokdfa.backends.pushdown_trie.exits import begin_exits, merge_exit
from tokdfa.backends.pushdown_trie.partition_key import ALONE, EXITS, OWN, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, ENDS
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN


@kernel
def divide_kernel(  # type: ignore[no-untyped-def]
    nodes, origin, begin, end, state, transitions, flags, spare, words, inside, rest, stack, ended, above, numbers,
    counts, links, tokens, exit_counts, way,
):  # fmt: skip
    """-1, or a state whose row is missing: then what the walk has found is of no use.

    `counts`: how many tokens stay inside, and how many nodes the rest has.

    The tokens inside are added to the mask `words`, and the first of them to `inside`, after those that `counts` says
    there are. `origin`: where the trie begins in which the nodes from `begin` to `end` are.

    `rest` is the trie of the others: a node is written when a token below it (or its own) is not inside. By depth:
    `above`, the node on the way; `numbers`, its number in `rest`, for the first `written` of them; `ended`, whether the
    text has been complete on the way. `links` to `way`: of `ExitScratch`; with EXITS, what follows the ends of texts
    that cannot go on is merged there, and is not in `rest`.
    """
    low_byte, depth_mask = np.uint64(0xFF), np.uint64((1 << DEPTH_BITS) - 1)
    kept, staying = np.int64(0), np.int64(counts[0])
    strict, alone, own, exits = state & STRICT != 0, state & ALONE != 0, state & OWN != 0, state & EXITS != 0
    begin_exits(links, exit_counts)
    stack[0], ended[0] = state & STATE_PART, False
    counts[1] = 0
    if begin >= end:
        return np.int64(-1)
    base = np.int64((nodes[begin] >> np.uint64(DEPTH_SHIFT)) & depth_mask)
    written = np.int64(0)
    here = np.int64(begin)
    while here < end:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base
        while written > depth:
            written -= 1
            rest[numbers[written]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
        before = np.int64(stack[depth])
        target = np.int64(-1)
        has_ended = ended[depth]
        if before >= 0:
            target = np.int64(transitions[before * 256 + np.int64(node & low_byte)])
            if target == UNKNOWN:
                return before
            if exits and target >= 0 and not has_ended and flags[target] & ACCEPTS != 0:
                following = origin + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
                if transitions[target * 256] == UNKNOWN:  # whether it can go on is not known yet
                    return target
                if flags[target] & ENDS:
                    merge_exit(nodes, here, following, spare, links, tokens, exit_counts, way)
                    here = following
                    continue
            has_ended = has_ended or (target >= 0 and flags[target] & ACCEPTS != 0)
            if strict and has_ended:
                target = np.int64(-1)
        if target < 0 and ((own and depth == 0) or (alone and not has_ended)):
            here = origin + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
            continue
        above[depth], stack[depth + 1], ended[depth + 1] = here, target, has_ended
        here += 1
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if token == spare:
            continue
        if target >= 0:
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            if staying < len(inside):
                inside[staying] = token
            staying += 1
            continue
        while written <= depth:
            label = np.uint64(token) if written == depth else np.uint64(spare)
            letter = nodes[above[written]] & low_byte
            rest[kept] = letter | np.uint64(written) << np.uint64(DEPTH_SHIFT) | label << np.uint64(TOKEN_SHIFT)
            numbers[written] = kept
            written += 1
            kept += 1
    while written > 0:
        written -= 1
        rest[numbers[written]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
    counts[0], counts[1] = staying, kept
    return np.int64(-1)
