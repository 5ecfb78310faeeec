"""The walk of lexer and parser over the token trie, or over the parts of it that a partition leaves open.

What is walked is given as *exits* (see `tokdfa.grammar.partition`): ranges of nodes, each with the lexeme that ended
before it. The whole trie is one exit with no lexeme, read from the situation as it is. Exits stand in groups of one
byte, and a group whose byte the next row's lexemes cannot begin with is passed over (`first_byte`). That saves a tenth
to a fifth of a mask; to pass over the first bytes of the whole trie likewise saved nothing, as a node that is refused
costs no more than the question.

The loop looks up right where it is what is known already: the lexer's next state, the row after a lexeme, the state in
which that row's lexemes begin. Only what is not known, and what has a fallback, goes through
`tokdfa.grammar.machine.step_kernel`, a call of which costs as much as a hundred nodes (it takes some forty arrays).

`S_ENDS` counts the nodes at which the lexer alone does not decide: a lexeme ends, or a fallback has to be stepped
along.

Source: 000 (lexer states and rows pushed and popped along the walk). Here both lie in a stack indexed by depth, as in
`tokdfa.vocabulary.walk`, so nothing is popped. Cost: 3 to 5 ns a node, 20 ns a node at which a lexeme ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.grammar.earley_rows import R_WORK
from tokdfa.grammar.earley_scan import NS_PER_ITEM, find_row
from tokdfa.grammar.machine import DEAD, OK, S_ENDS, S_LONGEST, S_NODES, end_lexeme, find_target, step_kernel
from tokdfa.grammar.partition import BEGIN, DEPTH, EXIT_COLUMNS, FIRST, PAST
from tokdfa.jit import kernel
from tokdfa.kernel_budget import pay
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.grammar.machine import Machine
    from tokdfa.grammar.partition import Partition
    from tokdfa.vocabulary.trie import TokenTrie

Int32 = npt.NDArray[np.int32]


class Walker:
    """Walks a machine over a trie. Holds the scratch arrays of the walk, so not thread-safe.

    `first_byte`: whether exits are passed over by their first byte, which changes no mask.
    """

    def __init__(self, machine: Machine, trie: TokenTrie, first_byte: bool = True) -> None:
        self.machine, self.trie, self.first_byte = machine, trie, first_byte
        self.stack = np.full((trie.depth_limit + 2, 3), -1, dtype=np.int32)
        #: uint32, V + 1 bits: what the last walk allowed; the spare bit V means nothing.
        self.words = np.zeros(trie.size // 32 + 1, dtype=np.uint32)
        self._whole = np.zeros((1, EXIT_COLUMNS), dtype=np.int32)
        self._whole_group = np.array([[-1, -1, 0, 1]], dtype=np.int32)
        self._nothing = np.zeros(0, dtype=np.uint8)
        self._progress = np.zeros(3, dtype=np.int64)

    def walk_all(self, situation: int, trie: TokenTrie | None = None) -> None:
        """OR the tokens allowed in `situation` into `words`, by a walk over the whole trie.

        `trie`: one of a part of the vocabulary (`TokenTrie.filter`) in place of the whole.
        """
        trie = self.trie if trie is None else trie
        if trie.node_count:
            self._whole[0, PAST] = trie.node_count
            self._walk(self.machine.view(situation), trie, self._whole, self._whole_group, self._nothing)

    def walk_exits(self, row: int, partition: Partition) -> None:
        """OR the tokens that go on through the exits of a partition into `words`."""
        self._walk((row, -1, -1), self.trie, partition.exits, partition.groups, partition.again)

    def clear_exits(self, partition: Partition) -> None:
        """Clear the tokens behind the exits of a partition in `words`. 1 ns a node."""
        _clear_exits_kernel(self.trie.nodes, partition.exits, self.words)

    def _walk(
        self,
        begin: tuple[int, int, int],
        trie: TokenTrie,
        exits: Int32,
        groups: Int32,
        again: npt.NDArray[np.uint8],
    ) -> None:
        machine = self.machine
        row, state, fallback = begin
        self._progress[:] = 0
        self._progress[_POSITION] = -1
        while True:
            status = _walk_kernel(
                *(trie.nodes, exits, groups, again, row, state, fallback, self.first_byte),
                *(self.stack, self.words, self._progress),
                *(machine.lexer.arrays, machine.rows.arrays, machine.arrays),
            )
            if status == OK:
                return
            machine.supply(status)


#: What a node takes, and how many are paid for at once.
NS_PER_NODE, PAID_NODES = 20, 1 << 14
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
def _walk_kernel(  # type: ignore[no-untyped-def]
    nodes, exits, groups, again, row, state, fallback, first_byte, stack, words, progress, lexer, rows, machine
):
    """Walk all exits, setting bits in `words`. Returns a status; `progress` says where to go on."""
    one, five, low_five = np.uint64(1), np.uint64(5), np.uint64(31)
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    class_count = np.int64(len(lexer.representatives))
    transitions, accepting, completes, byte_class = (
        lexer.transitions,
        lexer.accepting,
        lexer.completes,
        lexer.byte_class,
    )
    memo_keys, memo_rows, start_state = rows.memo_keys, rows.memo_rows, rows.start_state
    longest = machine.meta[S_LONGEST] != 0
    visited, ended, status = np.int64(0), np.int64(0), OK
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
            first, stop = np.uint64(exits[k, FIRST]), np.uint64(exits[k, PAST])
            here = first
            if progress[_POSITION] >= 0:
                here = np.uint64(progress[_POSITION])
            else:
                base = (nodes[first] >> np.uint64(DEPTH_SHIFT)) & depth_mask
                stack[base, 0], stack[base, 1], stack[base, 2] = first_row, first_state, first_fallback
                for place in range(np.int64(base) - exits[k, DEPTH]):
                    column = np.int64(byte_class[again[exits[k, BEGIN] + place]])
                    status, new_row, new_state, new_fallback = step_kernel(
                        np.int64(stack[base, 0]),
                        np.int64(stack[base, 1]),
                        np.int64(stack[base, 2]),
                        column,
                        lexer,
                        rows,
                        machine,
                    )
                    if status != OK:
                        break
                    stack[base, 0], stack[base, 1], stack[base, 2] = new_row, new_state, new_fallback
                if status == DEAD:
                    status = OK
                    k += 1
                    continue
                if status != OK:
                    break
            while here < stop:
                node = nodes[here]
                depth = (node >> np.uint64(DEPTH_SHIFT)) & depth_mask
                column = np.int64(byte_class[node & np.uint64(0xFF)])
                here_row, here_state, here_fallback = stack[depth, 0], stack[depth, 1], stack[depth, 2]
                target = transitions[np.int64(here_state) * class_count + column]
                if target == UNKNOWN:
                    status, made = find_target(np.int64(here_state), column, lexer)
                    if status != OK:
                        break
                    target = np.int32(made)
                alive, known, parsed = True, here_fallback < 0, here_fallback >= 0
                next_row, next_state, next_fallback = here_row, target, np.int32(-1)
                if known:
                    accepted = accepting[here_state]
                    if target >= 0 and completes[target] >= 0:
                        parsed = True
                        next_row, next_state = _peek_start(
                            here_row, completes[target], memo_keys, memo_rows, start_state
                        )
                        alive, known = next_row >= 0, next_row != UNKNOWN
                    elif target < 0 and accepted < 0:
                        alive = False
                    elif target < 0 or (longest and accepted >= 0 and accepting[target] < 0):
                        parsed = True
                        after, start = _peek_start(here_row, accepted, memo_keys, memo_rows, start_state)
                        if after == UNKNOWN:
                            known = False
                        else:
                            begun = transitions[np.int64(start) * class_count + column] if after >= 0 else np.int32(-1)
                            if target >= 0:
                                known = begun == -1  # else there is a fallback
                            elif begun < 0:
                                alive, known = False, begun != UNKNOWN
                            else:
                                next_row, next_state, known = after, begun, completes[begun] < 0
                if not known:
                    status, new_row, new_state, new_fallback = step_kernel(
                        np.int64(here_row), np.int64(here_state), np.int64(here_fallback), column, lexer, rows, machine
                    )
                    if status > DEAD:
                        break
                    alive, status = status == OK, OK
                    next_row, next_state = np.int32(new_row), np.int32(new_state)
                    next_fallback = np.int32(new_fallback)
                visited += 1
                ended += parsed
                if visited & PAID_NODES - 1 == 0:
                    work = NS_PER_NODE * PAID_NODES + NS_PER_ITEM * rows.meta[R_WORK]
                    rows.meta[R_WORK] = 0
                    pay(work)
                if alive:
                    stack[depth + one, 0] = next_row
                    stack[depth + one, 1] = next_state
                    stack[depth + one, 2] = next_fallback
                    token = node >> np.uint64(TOKEN_SHIFT)
                    words[token >> five] |= np.uint32(1) << np.uint32(token & low_five)
                    here += one
                else:
                    here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            if status != OK:
                progress[_POSITION] = np.int64(here)
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
    machine.meta[S_ENDS] += ended
    return status
