"""Lexer states that are interned by content: what is possible after some bytes, what ends there, and where bytes lead.

Words. A *lexer state* is a set of components (`tokdfa.grammar.lexer_components`), at most one for a lexeme: all that is
possible after the bytes read since the lexeme began.

A lexeme *ends* where the parser may go on. What a lexer state says of it (`accepting`): the set of lexemes that match
exactly the bytes read, as the number of an interned *accepting set*, or -1. Longest match: such a lexeme ends only
where the next byte cannot continue any component. Two kinds end at once, which `completes` says: lazy lexemes (then
greedy ones that match too are dropped, 000), and sets whose components can none of them go on, which is no choice but
saves a state. What happens when a byte cannot go on and the state does not accept is the parser's business
(`tokdfa.grammar.machine`), since there are two rules for it.

A *start state*, in which lexemes may begin, is never the target of a transition, even if its components are: nothing
has been read there, so no lexeme can end. Lexemes never match the empty text, so a start state accepts nothing.

Layout. A pool of components, and a flat table of transitions as in `tokdfa.vocabulary.walk`; a pool of lexemes for the
accepting sets. Each pool has a hash table over its contents.
Source: 000 (lazy automaton over sets of lexemes); the product of minimal automata instead of a set of derivatives,
interned accepting sets and the start mark are ours. Cost: 20 to 50 ns a component for each new transition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.grammar.lexer_components import COMPONENT_FIELDS
from tokdfa.jit import kernel
from tokdfa.kernel_budget import pay
from tokdfa.kernel_struct import Struct
from tokdfa.vocabulary.walk import DEAD, UNKNOWN

Int32 = npt.NDArray[np.int32]

#: Indices into `meta`: states, components in the pool, accepting sets, lexemes in their pool; what a kernel asks for;
#: the limit on states.
L_STATES, L_POOL, L_SETS, L_SET_POOL, L_WANTED, L_MAX_STATES, L_WORK = range(7)
#: What it takes to move a component by a byte, and how many moves are paid for at once.
NS_PER_MOVE, PAID_MOVES = 5, 1 << 16
#: What a kernel returns: done; an array is too short; row `meta[L_WANTED]` of a component is unknown.
#: `tokdfa.grammar.lexer.Lexer.supply` does what the last two ask for.
LEXER_OK, LEXER_FULL, LEXER_COMPONENT = range(3)
#: Stands first in the pool entry of a start state.
START_MARK = -1

#: The arrays that kernels take besides those of components; `tokdfa.grammar.lexer.Lexer` says what each holds.
# fmt: off
STATE_FIELDS = (
    "transitions", "accepting", "completes", "pool", "pool_begin", "state_slots", "set_pool", "set_begin", "set_slots",
    "meta",
)
# fmt: on


class LexerArrays(Struct, fields=COMPONENT_FIELDS + STATE_FIELDS):
    """What kernels take: COMPONENT_FIELDS, then STATE_FIELDS."""


def gather_lexer(components: Any, states: Any) -> Any:
    """The struct of a lexer's arrays, which are attributes of these two."""
    return LexerArrays(
        *(getattr(components, name) for name in COMPONENT_FIELDS), *(getattr(states, name) for name in STATE_FIELDS)
    )


def longer_slots(slots: Int32, pool: Int32, begin: Int32, count: int) -> Int32:
    """A hash table twice as long as `slots` with the first `count` entries of a pool. Linear in the pool."""
    grown = np.full(2 * len(slots), -1, dtype=np.int32)
    _fill_slots_kernel(grown, pool, begin, count)
    return grown


@kernel
def _hash_content(content, begin, end):  # type: ignore[no-untyped-def]
    """A hash of content[begin:end], non-negative int64 (FNV-1a over the entries, and a final mix)."""
    value = np.uint64(14695981039346656037)
    for k in range(begin, end):
        value = (value ^ np.uint64(np.uint32(content[k]))) * np.uint64(1099511628211)
    value ^= value >> np.uint64(29)
    return np.int64(value >> np.uint64(1))


@kernel
def _fill_slots_kernel(slots, pool, begin, count):  # type: ignore[no-untyped-def]
    """Enter the pool's first `count` entries into an empty table of a size that is a power of two."""
    mask = len(slots) - 1
    for entry in range(count):
        slot = _hash_content(pool, begin[entry], begin[entry + 1]) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@kernel
def _find_content(content, size, pool, begin, slots):  # type: ignore[no-untyped-def]
    """(the entry whose content is content[:size], or -1; the slot where it is or belongs)."""
    mask = len(slots) - 1
    slot = _hash_content(content, 0, size) & mask
    while slots[slot] >= 0:
        entry = slots[slot]
        first = begin[entry]
        if begin[entry + 1] - first == size:
            same = True
            for k in range(size):
                if pool[first + k] != content[k]:
                    same = False
                    break
            if same:
                return entry, slot
        slot = (slot + 1) & mask
    return np.int32(-1), slot


@kernel
def intern_set_kernel(content, size, lexer):  # type: ignore[no-untyped-def]
    """The number of the accepting set content[:size]. The caller has seen to the room."""
    entry, slot = _find_content(content, size, lexer.set_pool, lexer.set_begin, lexer.set_slots)
    if entry >= 0:
        return np.int64(entry)
    entry = lexer.meta[L_SETS]
    first = lexer.set_begin[entry]
    for k in range(size):
        lexer.set_pool[first + k] = content[k]
    lexer.set_begin[entry + 1] = first + size
    lexer.set_slots[slot] = entry
    lexer.meta[L_SETS] = entry + 1
    lexer.meta[L_SET_POOL] = first + size
    return entry


@kernel
def intern_state_kernel(content, size, lexer):  # type: ignore[no-untyped-def]
    """The state with components content[:size] (a start mark first, if it is one), or -1: an array is too short."""
    entry, slot = _find_content(content, size, lexer.pool, lexer.pool_begin, lexer.state_slots)
    if entry >= 0:
        return np.int64(entry)
    state = lexer.meta[L_STATES]
    lexemes = len(lexer.is_lazy)
    if (
        state >= lexer.meta[L_MAX_STATES]
        or state + 2 >= len(lexer.accepting)
        or lexer.meta[L_POOL] + size > len(lexer.pool)
        or lexer.meta[L_SETS] + 3 >= len(lexer.set_begin)
        or lexer.meta[L_SET_POOL] + 2 * lexemes > len(lexer.set_pool)
    ):
        return np.int64(-1)
    first = lexer.pool_begin[state]
    for k in range(size):
        lexer.pool[first + k] = content[k]
    lexer.pool_begin[state + 1] = first + size
    lexer.state_slots[slot] = state
    lexer.meta[L_STATES] = state + 1
    lexer.meta[L_POOL] = first + size
    if size and content[0] == START_MARK:
        return state
    ended = np.empty(lexemes, dtype=np.int32)
    found = 0
    lazy = 0
    all_end = True
    for k in range(size):
        if lexer.component_accepts[content[k]]:
            ended[found] = lexer.component_lexeme[content[k]]
            lazy += lexer.is_lazy[ended[found]]
            found += 1
        all_end &= lexer.component_ends[content[k]]
    if found:
        lexer.accepting[state] = intern_set_kernel(ended, found, lexer)
        if lazy:
            kept = 0
            for k in range(found):
                if lexer.is_lazy[ended[k]]:
                    ended[kept] = ended[k]
                    kept += 1
            lexer.completes[state] = intern_set_kernel(ended, kept, lexer)
        elif all_end:
            lexer.completes[state] = lexer.accepting[state]
    return state


@kernel
def fill_transition_kernel(state, column, lexer):  # type: ignore[no-untyped-def]
    """Make one transition known. Returns LEXER_OK, LEXER_FULL or LEXER_COMPONENT."""
    class_count = len(lexer.representatives)
    first, past = lexer.pool_begin[state], lexer.pool_begin[state + 1]
    lexer.meta[L_WORK] += 10 + past - first
    if lexer.meta[L_WORK] >= PAID_MOVES:
        work = NS_PER_MOVE * lexer.meta[L_WORK]
        lexer.meta[L_WORK] = 0
        pay(work)
    content = np.empty(past - first, dtype=np.int32)
    size = 0
    for k in range(first, past):
        component = lexer.pool[k]
        if component == START_MARK:
            continue
        target = lexer.component_table[component * class_count + column]
        if target == UNKNOWN:
            lexer.meta[L_WANTED] = component
            return LEXER_COMPONENT
        if target >= 0:
            content[size] = target
            size += 1
    if size == 0:
        lexer.transitions[state * class_count + column] = DEAD
        return LEXER_OK
    following = intern_state_kernel(content, size, lexer)
    if following < 0:
        return LEXER_FULL
    lexer.transitions[state * class_count + column] = following
    return LEXER_OK
