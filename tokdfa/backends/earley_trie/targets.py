"""Where every token leads from a situation, by one walk over the token trie.

For the proper filter, which asks all tokens at once (`tokdfa.backends.situation_source`). The walk is like that of
`tokdfa.backends.earley_trie.walk`, but the situation is written down at each token. Tokens next to each other mostly
lead to the same one, which is then not looked up again.

Cost: 5 ns a node visited, 0.4 us where a lexeme ends, and 20 ns for each change of the situation from one token to the
next. From inside a JSON string that is 2 ms for Llama 3. Written out, as `tokdfa.vocabulary.walker` takes half as long
again here: its `take` reads the situation out of the stack, where this has it at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.lexer import NEEDS_SITUATIONS, OK, REFUSED
from tokdfa.backends.earley_trie.machine import S_LONGEST, intern_situation, step_kernel
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.vocabulary.trie import TokenTrie


def targets_of(machine: Machine, trie: TokenTrie, situation: int) -> npt.NDArray[np.int32]:
    """int32, shape (V,): the situation after each token, -1 where a token is not allowed. Special tokens are not.

    The machine's lock is held. Raises what the machine raises.
    """
    stack = np.empty((trie.depth_limit + 2, 3), dtype=np.int32)
    stack[0] = machine.view(situation)
    found = np.full(trie.size + 1, -1, dtype=np.int32)
    progress = np.zeros(1, dtype=np.int64)

    def walk() -> int:
        lexer, rows = machine.lexer.arrays, machine.rows.arrays
        return -_walk_targets_kernel(trie.nodes, stack, found, progress, lexer, rows, machine.arrays)

    machine.supplied(walk)
    return found[:-1]


@kernel
def _walk_targets_kernel(nodes, stack, targets, progress, lexer, rows, machine):  # type: ignore[no-untyped-def]
    """Write the situation after each token, walking the trie from the situation in ``stack[0]``.

    `targets` has room for the spare id, too, whose entry means nothing. Returns a status of
    `tokdfa.backends.earley_trie.machine`; ``progress[0]`` says at which node to go on.
    """
    one, depth_mask = np.uint64(1), np.uint64((1 << DEPTH_BITS) - 1)
    class_count = np.int64(len(lexer.representatives))
    transitions, accepting, completes = lexer.transitions, lexer.accepting, lexer.completes
    longest = machine.meta[S_LONGEST] != 0
    spare = len(targets) - 1
    known_row, known_state, known_number = np.int64(-1), np.int64(-1), np.int64(-1)
    here, stop = np.uint64(progress[0]), np.uint64(len(nodes))
    status = OK
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        column = np.int64(lexer.byte_class[node & np.uint64(0xFF)])
        row, state, fallback = np.int64(stack[depth, 0]), np.int64(stack[depth, 1]), np.int64(stack[depth, 2])
        target = np.int64(transitions[state * class_count + column])
        accepts = accepting[state] >= 0
        alive = True
        if fallback < 0 and target == -1 and not accepts:
            alive = False
        elif (
            fallback < 0
            and target >= 0
            and completes[target] < 0
            and not (longest and accepts and accepting[target] < 0)
        ):
            state = target  # the lexeme goes on, and nothing else can be meant
        else:
            status, row, state, fallback = step_kernel(row, state, fallback, column, lexer, rows, machine)
            if status > REFUSED:
                break
            alive, status = status == OK, OK
        if not alive:
            here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            continue
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if token != spare:
            if fallback >= 0 or row != known_row or state != known_state:
                number = intern_situation(row, state, fallback, machine)
                if number < 0:
                    status = NEEDS_SITUATIONS
                    break
                if fallback < 0:
                    known_row, known_state, known_number = row, state, number
            else:
                number = known_number
            targets[token] = number
        stack[depth + 1, 0], stack[depth + 1, 1], stack[depth + 1, 2] = row, state, fallback
        here += one
    progress[0] = np.int64(here)
    return status
