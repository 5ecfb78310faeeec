"""The trie walk of a grammar: set the bit of every token that the recogniser accepts, of the whole trie or of a part.

What is walked is a *rest*: ranges of nodes, each with the depth at which the current lexeme began, packed in a word
each (`unpack_range`). The whole trie is one range that begins at depth 0, read from the situation as it is. A rest that
an effect leaves (`tokdfa.backends.earley_trie.effects`) is read from the row that follows.

The walk is that of `tokdfa.vocabulary.walker`. Its step looks up right where it is what is known already: the lexer's
next state, the row after a lexeme, the state in which that row's lexemes begin. Only what is not known, and what has a
fallback, goes through `tokdfa.backends.earley_trie.machine.step_kernel`: with all ends of lexemes through it a walk
takes 1.2 to 1.35 times as long (Llama 3, the grammars of `experiments/inputs`).

`S_ENDS` counts the nodes at which the lexer alone does not decide: a lexeme ends, or a fallback has to be stepped
along.

Source: 000 (llguidance; lexer states and rows pushed and popped along the walk). Here both lie in a stack indexed by
depth, as in `tokdfa.vocabulary.byte_table`, so nothing is popped. Cost: 3 to 5 ns a node, 20 ns a node at which a
lexeme ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.earley_rows import R_WORK, rows_at
from tokdfa.backends.earley_trie.earley_scan import NS_PER_ITEM
from tokdfa.backends.earley_trie.lexer import OK, REFUSED, lexer_at
from tokdfa.backends.earley_trie.machine import (
    S_ENDS,
    S_LONGEST,
    S_NODES,
    S_REUSED,
    S_ROW_STACK,
    find_target,
    machine_at,
    step_kernel,
    view_situation,
)
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.core.key_map import look_up
from tokdfa.core.keys import pack_pair
from tokdfa.vocabulary.byte_table import UNKNOWN
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, NEXT_BITS, TOKEN_SHIFT
from tokdfa.vocabulary.walker import DEAD, set_bit, specialise

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.vocabulary.trie import TokenTrie

Int64 = npt.NDArray[np.int64]

#: What a walk works on: a trie's nodes; the bytes of all tokens, and where each begins; words of V + 1 bits, in which
#: tokens are allowed; by depth the row, the lexer state and the fallback, or, if there is none, -1 less the *height*,
#: how many lexemes have ended on the way; and by height what was pushed there last: row, accepting set, the row after
#: them, the state in which its lexemes begin.
_WALK_FIELDS = {
    "nodes": ("uint64", 1),
    "data": ("uint8", 1),
    "offsets": ("int64", 1),
    "words": ("uint32", 1),
    "rows": ("int32", 1),
    "states": ("int32", 1),
    "fallbacks": ("int32", 1),
    "pushed": ("int32", 2),
}


class WalkArrays(Struct, fields=tuple(_WALK_FIELDS), declared=_WALK_FIELDS):
    """What a walk over one trie works on."""


walk_at = struct_at(WalkArrays)


class Walker:
    """Walks a machine over a trie. Holds the scratch arrays of the walk, so not thread-safe."""

    def __init__(self, machine: Machine, trie: TokenTrie) -> None:
        self.machine, self.trie = machine, trie
        #: uint32, V + 1 bits: what the last walk allowed; the spare bit V means nothing.
        self.words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        #: What kernels take.
        self.arrays = self._gather(trie)
        self._progress, self._whole = np.zeros(PROGRESS, dtype=np.int64), whole_rest(trie)

    def walk_all(self, situation: int, trie: TokenTrie | None = None) -> None:
        """OR the tokens allowed in `situation` into `words`, by a walk over the whole trie.

        `trie`: one of a part of the vocabulary (`TokenTrie.filter`) in place of the whole.
        """
        stack, ranges = self.arrays, self._whole
        if trie is not None and trie is not self.trie:
            stack, ranges = self._gather(trie), whole_rest(trie)
        machine, progress = self.machine, self._progress
        progress[RANGE], progress[POSITION] = 0, -1
        while True:
            owners = stack, machine.lexer.arrays, machine.rows.arrays, machine.arrays
            status = _walk_kernel(situation, ranges, self.trie.size, progress, *[owner.address for owner in owners])
            if status == OK:
                return
            machine.supply(int(status))

    def _gather(self, trie: TokenTrie) -> WalkArrays:
        """What a walk over a trie works on. 3 us."""
        spelled, stacks = trie.token_bytes, np.full((3, trie.depth_limit + 2), -1, dtype=np.int32)
        pushed = np.full((trie.depth_limit + 2, 4), -1, dtype=np.int32)
        return WalkArrays(trie.nodes, spelled.data, spelled.offsets, self.words, *stacks, pushed)


def whole_rest(trie: TokenTrie) -> Int64:
    """The rest of a whole token, all of a trie: int64, of one range, or none if it is empty."""
    return np.array([trie.node_count << PAST_SHIFT] if trie.node_count else [], dtype=np.int64)


#: A range of a rest in one word: its first node, the node after its last, and the depth where the lexeme begins. Bytes
#: between that depth and the first node's are given back by the longest match, and read again.
PAST_SHIFT, FIRST_SHIFT = DEPTH_BITS, DEPTH_BITS + NEXT_BITS
#: What a node takes, and how many are paid for at once.
NS_PER_NODE, PAID_NODES = 20, 1 << 14
#: What a step returns where something is missing.
STOP = -2
#: What `progress` holds: the range, and the node at which its walk goes on, -1 at its beginning.
RANGE, POSITION = range(2)
PROGRESS = 2


@kernel
def unpack_range(word):  # type: ignore[no-untyped-def]
    """(first, past, depth) of a range, int64."""
    return word >> FIRST_SHIFT, (word >> PAST_SHIFT) & ((1 << NEXT_BITS) - 1), word & ((1 << DEPTH_BITS) - 1)


@kernel
def first_token(nodes, node, spare):  # type: ignore[no-untyped-def]
    """The first token that has the bytes of a node, its own or one below it."""
    while nodes[node] >> np.uint64(TOKEN_SHIFT) == np.uint64(spare):
        node += 1
    return np.int64(nodes[node] >> np.uint64(TOKEN_SHIFT))


@kernel
def _peek_start(row, accepting_set, fallback, stack, rows, machine):  # type: ignore[no-untyped-def]
    """(row, lexer state) after a lexeme, if both are known; (-1, -1) if none may stand there; else (UNKNOWN, -1)."""
    pushed, height, has_stack = stack.pushed, -1 - fallback, machine.meta[S_ROW_STACK] != 0
    if has_stack and pushed[height, 0] == row and pushed[height, 1] == accepting_set:
        machine.meta[S_REUSED] += 1
        return pushed[height, 2], pushed[height, 3]
    following = look_up(pack_pair(row, accepting_set), rows.memo_keys, rows.memo_rows)
    if following < 0:
        return following, np.int32(-1)
    state = rows.start_state[following]
    if state < 0:
        return np.int32(UNKNOWN), state
    if has_stack:
        pushed[height, 0], pushed[height, 1] = row, accepting_set
        pushed[height, 2], pushed[height, 3] = following, state
    return following, state


@kernel
def depth_of(nodes, node):  # type: ignore[no-untyped-def]
    """The depth of a node, int64."""
    return np.int64((nodes[node] >> np.uint64(DEPTH_SHIFT)) & np.uint64((1 << DEPTH_BITS) - 1))


@kernel
def step_situation(strategy, stack, depth, byte):  # type: ignore[no-untyped-def]
    """Read a byte from the situation at a depth; the result is the depth after it.

    `strategy`: what kernels take of the lexer, of the rows and of the machine. If something is missing the walk stops,
    and ``stack.rows[depth + 1]`` is the status that says what. Here are the nodes at which only the lexer state
    changes, or nothing is left; there are few others.
    """
    lexer, rows, machine = strategy
    state = np.uint64(stack.states[depth])
    column = np.uint64(lexer.byte_class[byte])
    target = lexer.transitions[state * np.uint64(len(lexer.representatives)) + column]
    if target != UNKNOWN and stack.fallbacks[depth] < 0:
        accepts = lexer.accepting[state] >= 0
        if target >= 0:
            follows = np.uint64(target)
            if lexer.completes[follows] < 0 and not (
                accepts and lexer.accepting[follows] < 0 and machine.meta[S_LONGEST] != 0
            ):
                after = depth + np.uint64(1)
                stack.rows[after], stack.states[after] = stack.rows[depth], target
                stack.fallbacks[after] = stack.fallbacks[depth]
                return np.int64(after)
        elif not accepts:
            return np.int64(DEAD)
    return _step_border(stack, np.int64(depth), np.int64(column), lexer, rows, machine)


@kernel
def _step_border(stack, depth, column, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """`step_situation` where a lexeme ends, a fallback has to be stepped along, or a lexer state is not known yet."""
    row, state, fallback = stack.rows[depth], np.int64(stack.states[depth]), stack.fallbacks[depth]
    status, target = find_target(state, column, lexer)
    if status != OK:
        stack.rows[depth + 1] = status
        return np.int64(STOP)
    accepted, known = lexer.accepting[state], fallback < 0
    parsed = not known
    next_row, next_state, next_fallback = row, np.int32(target), np.int64(min(fallback, -1))
    if known:
        if target >= 0 and lexer.completes[target] >= 0:
            parsed = True
            next_row, next_state = _peek_start(row, lexer.completes[target], fallback, stack, rows, machine)
            known = next_row != UNKNOWN
        elif target < 0 and accepted < 0:
            next_row = np.int32(-1)
        elif target < 0 or (machine.meta[S_LONGEST] != 0 and accepted >= 0 and lexer.accepting[target] < 0):
            parsed = True
            after, start = _peek_start(row, accepted, fallback, stack, rows, machine)
            if after == UNKNOWN:
                known = False
            else:
                begun = np.int32(-1)
                if after >= 0:
                    begun = lexer.transitions[np.int64(start) * len(lexer.representatives) + column]
                if target >= 0:
                    known = begun == -1  # else there is a fallback
                elif begun < 0:
                    next_row, known = np.int32(-1), begun != UNKNOWN
                else:
                    next_row, next_state, known = after, begun, lexer.completes[begun] < 0
    next_fallback -= parsed
    if not known:
        status, new_row, new_state, new_fallback = step_kernel(
            np.int64(row), state, np.int64(max(fallback, -1)), column, lexer, rows, machine
        )
        if status > REFUSED:
            stack.rows[depth + 1] = status
            return np.int64(STOP)
        next_row, next_state = np.int32(new_row if status == OK else -1), np.int32(new_state)
        if new_fallback >= 0:
            next_fallback = new_fallback
    machine.meta[S_ENDS] += parsed
    if next_row < 0:
        return np.int64(DEAD)
    stack.rows[depth + 1], stack.states[depth + 1], stack.fallbacks[depth + 1] = next_row, next_state, next_fallback
    return depth + 1


_walk_situations = specialise(f"{__name__}._walk_situations", step_situation, set_bit, inline=True)


@kernel
def _read_again(base, first, past, stack, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """A status: read the bytes data[first:past] from the situation in the stack at depth `base`, and put it there."""
    row, state, fallback = np.int64(stack.rows[base]), np.int64(stack.states[base]), np.int64(stack.fallbacks[base])
    for place in range(first, past):
        column = np.int64(lexer.byte_class[stack.data[place]])
        status, row, state, fallback = step_kernel(row, state, fallback, column, lexer, rows, machine)
        if status != OK:
            return status
    stack.rows[base], stack.states[base], stack.fallbacks[base] = row, state, fallback
    return OK


@kernel
def walk_rest(  # type: ignore[no-untyped-def]
    row, state, fallback, ranges, high, spare, stack, progress, lexer, rows, machine
):
    """A status: walk ranges[:high], from ``progress[RANGE]`` on, from a situation, setting bits in `stack.words`.

    `spare`: the id of nodes without a token; `progress`: where to go on, the first range and -1 to begin with.
    """
    nodes, status = stack.nodes, OK
    visited = np.int64(0)
    while progress[RANGE] < high:
        first, past, depth = unpack_range(ranges[progress[RANGE]])
        here = progress[POSITION]
        if here < 0:
            here, base = first, depth_of(nodes, first)
            stack.rows[base], stack.states[base], stack.fallbacks[base] = row, state, fallback
            if depth < base:
                begin = stack.offsets[first_token(nodes, first, spare)]
                status = _read_again(base, begin + depth, begin + base, stack, lexer, rows, machine)
                if status == REFUSED:
                    here, status = past, OK
                elif status != OK:
                    break
        while here < past:
            part = min(past, here + PAID_NODES)
            here, _, seen, _ = _walk_situations(nodes, here, part, (lexer, rows, machine), stack, stack.words, 0)
            if (visited + seen) // PAID_NODES > visited // PAID_NODES:
                work = NS_PER_NODE * PAID_NODES + NS_PER_ITEM * rows.meta[R_WORK]
                rows.meta[R_WORK] = 0
                pay(work)
            visited += seen
            if here < part:
                status = int(stack.rows[depth_of(nodes, here) + 1])
                break
        if status != OK:
            progress[POSITION] = here
            break
        progress[RANGE], progress[POSITION] = progress[RANGE] + 1, -1
    machine.meta[S_NODES] += visited
    return status


@kernel
def _walk_kernel(  # type: ignore[no-untyped-def]
    situation, ranges, spare, progress, walk_address, lexer_address, rows_address, machine_address
):
    """`walk_rest` of all ranges from a situation, with the addresses of the structs."""
    stack, lexer, rows, machine = (
        walk_at(walk_address),
        lexer_at(lexer_address),
        rows_at(rows_address),
        machine_at(machine_address),
    )
    row, state, fallback = view_situation(np.int64(situation), machine)
    return walk_rest(row, state, fallback, ranges, len(ranges), spare, stack, progress, lexer, rows, machine)
