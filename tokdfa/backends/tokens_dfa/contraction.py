"""Contraction: from an automaton over bytes and codes to one over bytes and bound tokens.

While an automaton with bound tokens is being built, each bound token is written as a code, a byte string that begins
with a lead, a byte that no text contains (see `tokdfa.backends.tokens_dfa.muting`). In the finished automaton the leads
are no letters of the language any more: following a code from a state is one step, by its bound token. So contraction

1. follows each code from each state: ``bound_targets[state, bound token]``;
2. gives every byte that is a lead a dead column. By byte and not by class: a bound token that is allowed exactly where
   some byte is, leading to the same states, is in one class with it;
3. keeps the states that are reached by bytes and whole bound tokens. The others lie inside codes.

Nothing is minimised or trimmed afterwards: a state may have no way to acceptance by bytes and live by its bound tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.byte_classes import merge_equal_columns
from tokdfa.automata.dfa import Dfa
from tokdfa.errors import LimitExceeded
from tokdfa.token_automata.columns import reached_states

if TYPE_CHECKING:
    from tokdfa.backends.tokens_dfa.muting import Muting

#: Limit on states x bound tokens: 12 bytes each on the way.
MAX_TARGETS = 40_000_000


def contract(dfa: Dfa, muting: Muting) -> tuple[Dfa, npt.NDArray[np.int32]]:
    """The automaton over bytes, and its transitions by bound tokens: int32, shape (states, G), -1 where there is none.

    `dfa`: trim, over bytes and the codes of `muting`. States keep their order and the start. LimitExceeded past
    `MAX_TARGETS`. O(states x (classes + G)).
    """
    bound_tokens = len(muting.codes)
    if not bound_tokens or not dfa.state_count:
        return dfa, np.full((dfa.state_count, bound_tokens), -1, dtype=np.int32)
    codes = np.frombuffer(b"".join(muting.codes), dtype=np.uint8).reshape(bound_tokens, -1)
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
    if dfa.state_count * bound_tokens > MAX_TARGETS:
        raise LimitExceeded(
            f"{bound_tokens} tokens of muted literals times {dfa.state_count} states pass the limit of {MAX_TARGETS} "
            "transitions: set mute_literals=False",
            limit="bound token transitions",
            value=MAX_TARGETS,
        )
    bound_targets = np.repeat(np.arange(dfa.state_count, dtype=np.int32)[:, None], bound_tokens, axis=1)
    dead = np.append(table, np.full((1, table.shape[1]), -1, dtype=np.int32), axis=0)  # its last row is that of -1
    for place in range(codes.shape[1]):
        bound_targets = dead[bound_targets, columns[:, place]]
    everything = np.concatenate([by_bytes, bound_targets], axis=1)
    there = everything >= 0
    offsets = np.append(0, np.cumsum(there.sum(axis=1)))
    kept = np.sort(reached_states(dfa.start, offsets, everything[there])[0])
    number = np.full(dfa.state_count + 1, -1, dtype=np.int32)  # the last entry is what -1 looks up
    number[kept] = np.arange(len(kept), dtype=np.int32)
    transitions = number[by_bytes[kept]]
    merged_class, merged = merge_equal_columns(transitions, byte_class)
    merged_table = np.take(transitions, byte_class[merged], axis=1)
    return Dfa(merged_table, merged_class, dfa.accepting[kept], int(number[dfa.start])), number[bound_targets[kept]]
