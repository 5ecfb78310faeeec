"""Contraction: from an automaton over bytes and codes to one over bytes and ghosts.

While an automaton with ghosts is being built, each ghost is written as a code, a byte string that begins with a lead,
a byte that no text contains (see `tokdfa.backends.tokens_dfa.muting`). In the finished automaton the leads are no
letters of the language any more: following a code from a state is one step, by its ghost. So contraction

1. follows each code from each state: ``ghost_targets[state, ghost]``;
2. gives every byte that is a lead a dead column. By byte and not by class: a ghost that is allowed exactly where some
   byte is, leading to the same states, is in one class with it;
3. keeps the states that are reached by bytes and whole ghosts. The others lie inside codes.

Nothing is minimised or trimmed afterwards: a state may have no way to acceptance by bytes and live by its ghosts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.byte_classes import merge_equal_columns
from tokdfa.automata.dfa import Dfa
from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded

if TYPE_CHECKING:
    from tokdfa.backends.tokens_dfa.muting import Muting

#: Limit on states x ghosts: 400 MB of targets.
MAX_TARGETS = 100_000_000


def contract(dfa: Dfa, muting: Muting) -> tuple[Dfa, npt.NDArray[np.int32]]:
    """The automaton over bytes, and its transitions by ghosts: int32, shape (states, G), -1 where there is none.

    `dfa`: trim, over bytes and the codes of `muting`. States keep their order and the start. LimitExceeded past
    `MAX_TARGETS`. O(states x (classes + G)), mostly one table read for a code that does not begin in a state.
    """
    ghosts = len(muting.codes)
    if not ghosts or not dfa.state_count:
        return dfa, np.full((dfa.state_count, ghosts), -1, dtype=np.int32)
    codes = np.frombuffer(b"".join(muting.codes), dtype=np.uint8).reshape(ghosts, -1)
    is_lead = np.zeros(256, dtype=np.bool_)
    is_lead[codes[:, 0]] = True
    table, byte_class = np.array(dfa.transitions), np.array(dfa.byte_class)
    columns = byte_class[codes]
    by_bytes = table.copy()
    if dfa.class_count < 256:  # else each lead has a class of its own already
        by_bytes = np.concatenate([table, np.empty((dfa.state_count, 1), dtype=np.int32)], axis=1)
        byte_class[is_lead] = dfa.class_count
    without_text = np.ones(by_bytes.shape[1], dtype=np.bool_)
    without_text[byte_class[~is_lead]] = False
    by_bytes[:, without_text] = -1

    reached = np.zeros(dfa.state_count, dtype=np.bool_)
    most = MAX_TARGETS // ghosts
    if _reach_states_kernel(table, by_bytes, columns, dfa.start, most, reached) > most:
        raise LimitExceeded(
            f"{ghosts} tokens of muted literals times more than {most} states pass the limit of {MAX_TARGETS} "
            "transitions: set mute_literals=False",
            limit="ghost transitions",
            value=MAX_TARGETS,
        )
    kept = np.flatnonzero(reached)
    number = np.full(dfa.state_count + 1, -1, dtype=np.int32)  # the last entry is what -1 looks up
    number[kept] = np.arange(len(kept), dtype=np.int32)
    ghost_targets = np.empty((len(kept), ghosts), dtype=np.int32)
    _follow_codes_kernel(table, columns, kept, number, ghost_targets)

    transitions = number[by_bytes[kept]]
    merged_class, merged = merge_equal_columns(transitions, byte_class)
    merged_table = np.take(transitions, byte_class[merged], axis=1)
    return Dfa(merged_table, merged_class, dfa.accepting[kept], int(number[dfa.start])), ghost_targets


@kernel
def _follow_code_kernel(table, columns, ghost, state):  # type: ignore[no-untyped-def]
    """The state after the code of a ghost, or -1."""
    for place in range(columns.shape[1]):
        state = np.int64(table[state, columns[ghost, place]])
        if state < 0:
            break
    return state


@kernel
def _reach_states_kernel(table, by_bytes, columns, start, most, reached):  # type: ignore[no-untyped-def]
    """Mark what bytes and whole codes reach, breadth-first. Returns how many; stops once there are more than `most`."""
    queue = np.empty(len(reached), dtype=np.int64)
    queue[0] = start
    reached[start] = True
    count = 1
    head = 0
    while head < count <= most:
        state = queue[head]
        head += 1
        for step in range(by_bytes.shape[1] + columns.shape[0]):
            if step < by_bytes.shape[1]:
                target = np.int64(by_bytes[state, step])
            else:
                target = _follow_code_kernel(table, columns, step - by_bytes.shape[1], state)
            if target >= 0 and not reached[target]:
                reached[target] = True
                queue[count] = target
                count += 1
    return count


@kernel
def _follow_codes_kernel(table, columns, states, number, ghost_targets):  # type: ignore[no-untyped-def]
    """Fill the row of each of `states` with the numbers of the states after each code."""
    for row in range(len(states)):
        for ghost in range(columns.shape[0]):
            target = _follow_code_kernel(table, columns, ghost, states[row])
            ghost_targets[row, ghost] = number[target] if target >= 0 else -1


def _warm_up() -> None:
    """Run every kernel of muting once."""
    from tokdfa.automata.algebra import minimize
    from tokdfa.backends.tokens_dfa.muting import compile_muted
    from tokdfa.constraint import Regex
    from tokdfa.vocabulary.vocabulary import Vocabulary

    automaton, muting = compile_muted(Regex("-ab"), Vocabulary([b"-", b"a", b"b", b""], end_tokens=[3]))
    contract(minimize(automaton.to_dfa()), muting)
