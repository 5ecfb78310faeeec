"""The walk of lexer and parser over the token trie, or over the parts of it that a partition leaves open.

What is walked is given as *exits* (see `tokdfa.backends.earley_trie.partition`): ranges of nodes, each with the lexeme
that ended before it. The whole trie is one exit with no lexeme, read from the situation as it is. Exits stand in groups
of one byte, and a group whose byte the next row's lexemes cannot begin with is passed over (`first_byte`). That saves a
tenth to a fifth of a mask; to pass over the first bytes of the whole trie likewise saved nothing, as a node that is
refused costs no more than the question.

The walk is that of `tokdfa.vocabulary.walker`. Its step looks up right where it is what is known already: the lexer's
next state, the row after a lexeme, the state in which that row's lexemes begin. Only what is not known, and what has a
fallback, goes through `tokdfa.backends.earley_trie.machine.step_kernel`, a call of which costs as much as a hundred
nodes (it takes some forty arrays).

`S_ENDS` counts the nodes at which the lexer alone does not decide: a lexeme ends, or a fallback has to be stepped
along.

Source: 000 (lexer states and rows pushed and popped along the walk). Here both lie in a stack indexed by depth, as in
`tokdfa.vocabulary.walk`, so nothing is popped. Cost: 3 to 5 ns a node, 20 ns a node at which a lexeme ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.earley_rows import R_WORK
from tokdfa.backends.earley_trie.earley_scan import NS_PER_ITEM, find_row
from tokdfa.backends.earley_trie.machine import (
    DEAD,
    OK,
    S_ENDS,
    S_LONGEST,
    S_NODES,
    end_lexeme,
    find_target,
    step_kernel,
)
from tokdfa.backends.earley_trie.partition import DEPTH, EXIT_COLUMNS, FIRST, PAST, first_token
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN
from tokdfa.vocabulary.walker import DEAD as NO_TEXT
from tokdfa.vocabulary.walker import set_bit, specialise

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.backends.earley_trie.partition import Partition
    from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]


#: What a walk works on: a trie's nodes; the bytes of all tokens, and where each begins; words of V + 1 bits, in which
#: tokens are allowed; and by depth the row, the lexer state and the fallback.
_WALK_FIELDS = {
    "nodes": ("uint64", 1),
    "data": ("uint8", 1),
    "offsets": ("int64", 1),
    "words": ("uint32", 1),
    "rows": ("int32", 1),
    "states": ("int32", 1),
    "fallbacks": ("int32", 1),
}


class WalkArrays(Struct, fields=tuple(_WALK_FIELDS), declared=_WALK_FIELDS):
    """What a walk over one trie works on."""


_walk_at = struct_at(WalkArrays)


class Walker:
    """Walks a machine over a trie. Holds the scratch arrays of the walk, so not thread-safe.

    `first_byte`: whether exits are passed over by their first byte, which changes no mask.
    """

    def __init__(self, machine: Machine, trie: TokenTrie, first_byte: bool = True) -> None:
        self.machine, self.trie, self.first_byte = machine, trie, first_byte
        #: uint32, V + 1 bits: what the last walk allowed; the spare bit V means nothing.
        self.words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        self._arrays = self._gather(trie)
        self._whole = np.zeros((1, EXIT_COLUMNS), dtype=np.int32)
        self._whole_group = np.array([[-1, -1, 0, 1]], dtype=np.int32)
        self._progress = np.zeros(3, dtype=np.int64)

    def walk_all(self, situation: int, trie: TokenTrie | None = None) -> None:
        """OR the tokens allowed in `situation` into `words`, by a walk over the whole trie.

        `trie`: one of a part of the vocabulary (`TokenTrie.filter`) in place of the whole.
        """
        trie = self.trie if trie is None else trie
        if trie.node_count:
            self._whole[0, PAST] = trie.node_count
            self._walk(self.machine.view(situation), trie, self._whole, self._whole_group)

    def walk_exits(self, row: int, partition: Partition) -> None:
        """OR the tokens that go on through the exits of a partition into `words`."""
        self._walk((row, -1, -1), self.trie, partition.exits, partition.groups)

    def clear_exits(self, partition: Partition) -> None:
        """Clear the tokens behind the exits of a partition in `words`. 1 ns a node."""
        _clear_exits_kernel(self.trie.nodes, partition.exits, self.words)

    def _gather(self, trie: TokenTrie) -> WalkArrays:
        """What a walk over a trie works on. 3 us."""
        spelled, stacks = trie.token_bytes, np.full((3, trie.depth_limit + 2), -1, dtype=np.int32)
        return WalkArrays(trie.nodes, spelled.data, spelled.offsets, self.words, *stacks)

    def _walk(self, begin: tuple[int, int, int], trie: TokenTrie, exits: Int32, groups: Int32) -> None:
        machine = self.machine
        row, state, fallback = begin
        arrays = self._arrays if trie is self.trie else self._gather(trie)
        self._progress[:] = 0
        self._progress[_POSITION] = -1
        while True:
            status = _walk_kernel(
                *(arrays.address, trie.size, exits, groups, row, state, fallback, self.first_byte, self._progress),
                *(machine.lexer.arrays, machine.rows.arrays, machine.arrays),
            )
            if status == OK:
                return
            machine.supply(status)


#: What a node takes, and how many are paid for at once.
NS_PER_NODE, PAID_NODES = 20, 1 << 14
#: What a step returns where something is missing.
STOP = -2
#: What `progress` holds: group, exit, and the node at which the exit's walk goes on, -1 at its beginning.
_GROUP, _EXIT, _POSITION = range(3)


@kernel
def _clear_exits_kernel(nodes, exits, words):  # type: ignore[no-untyped-def]
    five, low_five = np.uint64(5), np.uint64(31)
    for k in range(len(exits)):
        for here in range(exits[k, FIRST], exits[k, PAST]):
            token = nodes[here] >> np.uint64(TOKEN_SHIFT)
            words[token >> five] &= ~(np.uint32(1) << np.uint32(token & low_five))


@kernel
def _peek_start(row, accepting_set, memo_keys, memo_rows, start_state):  # type: ignore[no-untyped-def]
    """(row, lexer state) after a lexeme, if both are known; (-1, -1) if none may stand there; else (UNKNOWN, -1)."""
    following = find_row(row, accepting_set, memo_keys, memo_rows)
    if following < 0:
        return following, np.int32(-1)
    state = start_state[following]
    return (following if state >= 0 else np.int32(UNKNOWN)), state


@kernel
def _depth(nodes, node):  # type: ignore[no-untyped-def]
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
                stack.rows[after], stack.states[after], stack.fallbacks[after] = stack.rows[depth], target, -1
                return np.int64(after)
        elif not accepts:
            return np.int64(NO_TEXT)
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
    next_row, next_state = row, np.int32(target)
    memo_keys, memo_rows, start_state = rows.memo_keys, rows.memo_rows, rows.start_state
    if known:
        if target >= 0 and lexer.completes[target] >= 0:
            parsed = True
            next_row, next_state = _peek_start(row, lexer.completes[target], memo_keys, memo_rows, start_state)
            known = next_row != UNKNOWN
        elif target < 0 and accepted < 0:
            next_row = np.int32(-1)
        elif target < 0 or (machine.meta[S_LONGEST] != 0 and accepted >= 0 and lexer.accepting[target] < 0):
            parsed = True
            after, start = _peek_start(row, accepted, memo_keys, memo_rows, start_state)
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
    next_fallback = np.int64(-1)
    if not known:
        status, new_row, new_state, next_fallback = step_kernel(
            np.int64(row), state, np.int64(fallback), column, lexer, rows, machine
        )
        if status > DEAD:
            stack.rows[depth + 1] = status
            return np.int64(STOP)
        next_row, next_state = np.int32(new_row if status == OK else -1), np.int32(new_state)
    machine.meta[S_ENDS] += parsed
    if next_row < 0:
        return np.int64(NO_TEXT)
    stack.rows[depth + 1], stack.states[depth + 1], stack.fallbacks[depth + 1] = next_row, next_state, next_fallback
    return depth + 1


_walk_situations = specialise(f"{__name__}._walk_situations", step_situation, set_bit, inline=True)


@kernel
def _begin_exit(base, first, past, stack, lexer, rows, machine):  # type: ignore[no-untyped-def]
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
def _walk_kernel(  # type: ignore[no-untyped-def]
    address, spare, exits, groups, row, state, fallback, first_byte, progress, lexer, rows, machine
):
    """Walk all exits, setting bits in `words`. Returns a status; `progress` says where to go on.

    `address`: of the `WalkArrays`; `spare`: the id of nodes without a token.
    """
    stack = _walk_at(address)
    nodes, words = stack.nodes, stack.words
    class_count = np.int64(len(lexer.representatives))
    transitions, byte_class = lexer.transitions, lexer.byte_class
    memo_keys, memo_rows, start_state = rows.memo_keys, rows.memo_rows, rows.start_state
    visited, status = np.int64(0), OK
    first_row, first_state, first_fallback = np.int32(row), np.int32(state), np.int32(fallback)
    group = progress[_GROUP]
    while group < len(groups):
        accepting_set, byte = groups[group, 0], groups[group, 1]
        if accepting_set >= 0:
            first_fallback = np.int32(-1)
            first_row, first_state = _peek_start(np.int32(row), accepting_set, memo_keys, memo_rows, start_state)
            if first_row == UNKNOWN:
                status, made, begun = end_lexeme(np.int64(row), np.int64(accepting_set), lexer, rows, machine)
                if status > DEAD:
                    break
                first_row, first_state = np.int32(made), np.int32(begun)
        status = OK
        if first_row < 0 or (
            first_byte and byte >= 0 and transitions[np.int64(first_state) * class_count + byte_class[byte]] == -1
        ):
            group += 1
            progress[_EXIT], progress[_POSITION] = 0, -1
            continue
        k = max(progress[_EXIT], np.int64(groups[group, 2]))
        while k < groups[group, 3]:
            here, stop = progress[_POSITION], np.int64(exits[k, PAST])
            if here < 0:
                here = np.int64(exits[k, FIRST])
                base = _depth(nodes, here)
                stack.rows[base], stack.states[base], stack.fallbacks[base] = first_row, first_state, first_fallback
                if exits[k, DEPTH] < base:
                    begin = stack.offsets[first_token(nodes, here, spare)]
                    status = _begin_exit(base, begin + exits[k, DEPTH], begin + base, stack, lexer, rows, machine)
                if status == DEAD:
                    status = OK
                    k += 1
                    continue
                if status != OK:
                    break
            while here < stop:
                part = min(stop, here + PAID_NODES)
                here, _, seen, _ = _walk_situations(nodes, here, part, (lexer, rows, machine), stack, words, 0)
                if (visited + seen) // PAID_NODES > visited // PAID_NODES:
                    work = NS_PER_NODE * PAID_NODES + NS_PER_ITEM * rows.meta[R_WORK]
                    rows.meta[R_WORK] = 0
                    pay(work)
                visited += seen
                if here < part:
                    status = int(stack.rows[_depth(nodes, here) + 1])
                    break
            if status != OK:
                progress[_POSITION] = here
                break
            progress[_POSITION] = -1
            k += 1
        if status != OK:
            progress[_EXIT] = k
            break
        group += 1
        progress[_EXIT], progress[_POSITION] = 0, -1
    progress[_GROUP] = group
    machine.meta[S_NODES] += visited
    return status
