"""The situations of any matcher, and kernels that find where every token leads from one of them.

What both are for: `tokdfa.backends.texts`. `MatcherTexts` answers for any matcher, a token at a time. The grammar
engines find all targets by one walk over the token trie that is like `tokdfa.backends.earley_trie.walk` and
`tokdfa.backends.pushdown_trie.fill`, but writes down where it is at each token.

Cost of a grammar's targets: 5 ns a node visited, 0.4 us where a lexeme ends, and 20 ns for each change of the situation
from one token to the next. From inside a JSON string that is 2 ms for Llama 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.earley_trie.machine import DEAD, NEEDS_SITUATIONS, OK, S_LONGEST, intern_situation, step_kernel
from tokdfa.backends.pushdown_trie.steps import step_row
from tokdfa.core.jit import kernel
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.backends.matcher import StateMatcher
    from tokdfa.mask import Mask

    Int32 = npt.NDArray[np.int32]


class MatcherTexts:
    """The states of any matcher as situations, numbered as they are met. `targets` takes some us a token."""

    def __init__(self, matcher: StateMatcher[Any]) -> None:
        self._matcher = matcher
        self._numbers: dict[Any, int] = {}
        self._states: list[Any] = []

    def number(self, state: Any) -> int:
        """The number of a state, a new one if need be."""
        found = self._numbers.setdefault(state, len(self._states))
        if found == len(self._states):
            self._states.append(state)
        return found

    def step(self, situation: int, token: int) -> int:
        """The situation after a token, -1 if it is not allowed."""
        following = self._matcher._step(self._states[situation], token)
        return -1 if following is None else self.number(following)

    def targets(self, situation: int) -> Int32:
        """The situation after each token, one after another: int32, shape (V,), -1 where a token is not allowed."""
        vocabulary = self._matcher.vocab
        allowed, found = masks.allocate_mask(vocabulary.size), np.full(vocabulary.size, -1, dtype=np.int32)
        self.fill(situation, allowed)
        for token in masks.mask_to_ids(allowed).tolist():
            if token not in vocabulary.end_token_set:
                found[token] = self.step(situation, token)
        return found

    def fill(self, situation: int, out: Mask) -> None:
        """Overwrite `out` with the tokens allowed in a situation."""
        self._matcher._fill(self._states[situation], out)

    def can_end(self, situation: int) -> bool:
        """Whether the text may end."""
        return self._matcher._accepts(self._states[situation])


@kernel
def walk_rows_kernel(nodes, start, rows, targets, machine, pool):  # type: ignore[no-untyped-def]
    """Write the row after each token, walking the trie from row `start`. A status; calling again begins anew."""
    one, depth_mask = np.uint64(1), np.uint64((1 << DEPTH_BITS) - 1)
    rows[0] = start
    here, stop = np.uint64(0), np.uint64(len(nodes))
    while here < stop:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        status, target = step_row(np.int64(rows[depth]), np.int64(node & np.uint64(0xFF)), machine, pool)
        if status != OK:
            return status
        if target < 0:
            here = (node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES)
            continue
        targets[node >> np.uint64(TOKEN_SHIFT)] = target  # the spare id, too, whose entry means nothing
        rows[depth + 1] = target
        here += one
    return OK


@kernel
def walk_targets_kernel(nodes, stack, targets, progress, lexer, rows, machine):  # type: ignore[no-untyped-def]
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
            if status > DEAD:
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
