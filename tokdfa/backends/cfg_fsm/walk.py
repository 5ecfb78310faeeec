"""Masks by walking: hypothesis sets along the flat token trie.

The walk is that of `tokdfa.vocabulary.walker`, and nothing is popped: the set after a node of depth d lies in an arena
behind the set of its parent, and a node of depth d reads the set that begins at ``begins[d]`` and ends at
``begins[d + 1]``. A subtree whose set is empty is skipped.

Cost: about 20 ns for each node and hypothesis (a *move*), so a lexer state that allows most tokens costs a millisecond.
The other way, `tokdfa.backends.cfg_fsm.speculation`, does that work once for each lexer state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.cfg_fsm.hypotheses import step_kernel
from tokdfa.backends.cfg_fsm.stacks import FULL
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct
from tokdfa.vocabulary.walker import DEAD, set_bit, specialise

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.cfg_fsm.hypotheses import Hypotheses
    from tokdfa.mask import Mask
    from tokdfa.vocabulary.trie import TokenTrie

#: What a move takes, and how many are paid for at once.
NS_PER_MOVE, PAID_MOVES = 20, 1 << 14


class _Sets(Struct, fields=("begins", "arena", "moves")):
    """The stack of a walk: an arena of hypotheses, by depth where each set in it begins, and the moves so far."""


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
        self._moves: npt.NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._arena, self._sets = hypotheses.arena, _Sets(self._begins, hypotheses.arena, self._moves)

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
            if self._arena is not known.arena:
                self._arena, self._sets = known.arena, _Sets(self._begins, known.arena, self._moves)
            self._moves[0] = 0
            position, _, visited, _ = _walk_sets_kernel(
                trie.nodes, position, trie.node_count, (known.lex, known.stacks.struct), self._sets, self._words, 0
            )
            moves = int(self._moves[0])
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
def _step_set(strategy, sets, depth, byte):  # type: ignore[no-untyped-def]
    """Write the set after the byte behind the one before it, and where it ends; FULL, which stops the walk, for room.

    `strategy`: what kernels take of the lexer and of the stacks.
    """
    lex, stacks = strategy
    first, last = sets.begins[depth], sets.begins[depth + np.uint64(1)]
    end = step_kernel(lex, stacks, sets.arena, first, last, lex.byte_class[byte])
    if end == FULL:
        return np.int64(FULL)
    moves = sets.moves[0]
    sets.moves[0] = moves + last - first
    if sets.moves[0] // PAID_MOVES > moves // PAID_MOVES:
        pay(NS_PER_MOVE * PAID_MOVES * (sets.moves[0] // PAID_MOVES - moves // PAID_MOVES))
    if end == last:
        return np.int64(DEAD)
    sets.begins[depth + np.uint64(2)] = end
    return np.int64(end)


_walk_sets_kernel = specialise(f"{__name__}._walk_sets_kernel", _step_set, set_bit)
