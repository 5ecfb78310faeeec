"""Masks by walking: hypothesis sets along the flat token trie.

As in `tokdfa.vocabulary.walk`, nothing is popped: the set after a node of depth d lies in an arena behind the set of
its parent, and a node of depth d reads the set that begins at ``begins[d]`` and ends at ``begins[d + 1]``. A subtree
whose set is empty is skipped.

Cost: about 20 ns for each node and hypothesis (a *move*), so a lexer state that allows most tokens costs a millisecond.
The other way, `tokdfa.cfg_fsm.speculation`, does that work once for each lexer state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.budget import spend
from tokdfa.cfg_fsm.hypotheses import step_kernel
from tokdfa.cfg_fsm.stacks import FULL
from tokdfa.jit import kernel
from tokdfa.kernel_budget import pay
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.cfg_fsm.hypotheses import Hypotheses
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie

#: What a move takes, and how many are paid for at once.
NS_PER_MOVE, PAID_MOVES = 20, 1 << 14


class Walker:
    """Walks one vocabulary's trie for the situations of one grammar. `counters`: work done. Not thread-safe.

    `moves`: how often a hypothesis has been moved by the byte of a node.
    """

    def __init__(self, hypotheses: Hypotheses, trie: TokenTrie) -> None:
        self.hypotheses, self.trie = hypotheses, trie
        self.counters = {"nodes_visited": 0}
        self.moves = 0
        self._words: npt.NDArray[np.uint32] = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        self._begins: npt.NDArray[np.int64] = np.zeros(trie.depth_limit + 2, dtype=np.int64)

    def fill(self, situation: int, out: Mask) -> None:
        """Write the tokens that leave some hypothesis of `situation` open; `out` is int32, shape (ceil(V/32),)."""
        known, trie = self.hypotheses, self.trie
        members = known.members[situation]
        while len(members) > len(known.arena):
            known.make_room()
        known.arena[: len(members)] = members
        self._begins[0], self._begins[1] = 0, len(members)
        self._words[:] = 0
        position = 0
        while True:
            position, visited, moves = _walk_sets_kernel(
                trie.nodes,
                position,
                known.lex,
                known.stacks.struct,
                known.arena,
                self._begins,
                self._words,
            )
            self.counters["nodes_visited"] += visited
            self.moves += moves
            spend(NS_PER_MOVE * (moves & PAID_MOVES - 1))
            if position >= trie.node_count:
                break
            known.make_room()
        out[:] = self._words[: len(out)].view(np.int32)
        if trie.size & 31:
            out[-1] &= np.int32((1 << (trie.size & 31)) - 1)  # the spare bit


@kernel
def _walk_sets_kernel(nodes, position, lex, stacks, arena, begins, words):  # type: ignore[no-untyped-def]
    """Walk from node `position` on, setting bits in `words`.

    Returns (where it stopped for room, nodes visited, moves).
    """
    transitions, byte_class, labels = lex.transitions, lex.byte_class, lex.labels
    ends, taken = lex.ends, stacks.taken
    here, visited, moves = np.int64(position), np.int64(0), np.int64(0)
    while here < len(nodes):
        node = nodes[here]
        depth = np.int64(node >> np.uint64(DEPTH_SHIFT) & np.uint64((1 << DEPTH_BITS) - 1))
        first, last = begins[depth], begins[depth + 1]
        column = byte_class[np.int64(node & np.uint64(0xFF))]
        end = step_kernel(transitions, labels, ends, taken, lex, stacks, arena, first, last, column)
        if end == FULL:
            break
        visited += 1
        paid = moves // PAID_MOVES
        moves += last - first
        if moves // PAID_MOVES > paid:
            pay(NS_PER_MOVE * PAID_MOVES * (moves // PAID_MOVES - paid))
        if end == last:
            here = np.int64(node >> np.uint64(NEXT_SHIFT) & np.uint64(MAX_NODES))
            continue
        begins[depth + 2] = end
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        here += 1
    return here, visited, moves
