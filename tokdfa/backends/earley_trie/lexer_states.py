"""Lexer states that are interned by content: what is possible after some bytes, what ends there, and where bytes lead.

Words. A *lexer state* is a set of components (`tokdfa.backends.earley_trie.lexer_components`), at most one for a
lexeme: all that is possible after the bytes read since the lexeme began.

A lexeme *ends* where the parser may go on. What a lexer state says of it (`accepting`): the set of lexemes that match
exactly the bytes read, as the number of an interned *accepting set*, or -1. Longest match: such a lexeme ends only
where the next byte cannot continue any component. Two kinds end at once, which `completes` says: lazy lexemes (then
greedy ones that match too are dropped: 000, llguidance), and sets whose components can none of them go on, which is no
choice but saves a state. What happens when a byte cannot go on and the state does not accept is the parser's business
(`tokdfa.backends.earley_trie.machine`), since there are two rules for it.

A *start state*, in which lexemes may begin, is never the target of a transition, even if its components are: nothing
has been read there, so no lexeme can end. Lexemes never match the empty text, so a start state accepts nothing.

Layout. Two interning tables: ``states``, of components, with a flat table of transitions as in
`tokdfa.vocabulary.byte_table` among its columns; and ``sets``, of the lexemes of accepting sets.
Source: 000 (llguidance; lazy automaton over sets of lexemes); the product of minimal automata instead of a set of
derivatives, interned accepting sets and the start mark are ours. Cost: 20 to 50 ns a component for each new transition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokdfa.backends.earley_trie.lexer_components import COMPONENT_FIELDS
from tokdfa.core.interning import COUNT, TableArrays, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

#: Indices into `meta`: the component whose row a kernel asks for, -1 if it asks for room; moves not paid for.
L_WANTED, L_WORK = range(2)
#: What it takes to move a component by a byte, and how many moves are paid for at once.
NS_PER_MOVE, PAID_MOVES = 5, 1 << 16
#: What kernels of this package return as a status: done; no text goes on here; and what is lacking, which
#: `tokdfa.backends.earley_trie.machine.Machine.supply` supplies. A kernel that returns a number returns such a status
#: negated, so -REFUSED is "none".
OK, REFUSED, NEEDS_LEXER, NEEDS_ROWS, NEEDS_SITUATIONS, NEEDS_CHAIN = range(6)
#: Stands first in the content of a start state.
START_MARK = -1

#: The arrays that kernels take besides those of components; `tokdfa.backends.earley_trie.lexer.Lexer` says what each
#: holds.
STATE_FIELDS = {"transitions": "int32", "accepting": "int32", "completes": "int32", "meta": "int64"}
#: After these: the tables.
TABLE_FIELDS = ("states", "sets")
_DECLARED: dict[str, tuple[str, int] | type[Struct]] = {
    **{name: (dtype, 1) for name, dtype in (COMPONENT_FIELDS | STATE_FIELDS).items()},
    **dict.fromkeys(TABLE_FIELDS, TableArrays),
}


class LexerArrays(Struct, fields=tuple(_DECLARED), declared=_DECLARED):
    """What kernels take: COMPONENT_FIELDS, STATE_FIELDS, TABLE_FIELDS."""


lexer_at = struct_at(LexerArrays)


def gather_lexer(components: Any, states: Any) -> Any:
    """The struct of a lexer's arrays, which are attributes of these two."""
    return LexerArrays(
        *(getattr(components, name) for name in COMPONENT_FIELDS),
        *(getattr(states, name) for name in STATE_FIELDS),
        *(getattr(states, name).struct for name in TABLE_FIELDS),
    )


@kernel
def intern_state_kernel(content, size, lexer):  # type: ignore[no-untyped-def]
    """The state with components content[:size] (a start mark first, if it is one), or -NEEDS_LEXER."""
    lexemes = len(lexer.is_lazy)
    known = lexer.states.meta[COUNT]
    if not has_room(2, 2 * lexemes, lexer.sets):
        return np.int64(-NEEDS_LEXER)
    state = intern(content, 0, size, lexer.states)
    if state < 0:
        return np.int64(-NEEDS_LEXER)
    if state < known or (size and content[0] == START_MARK):
        return state
    ended = np.empty(lexemes, dtype=np.int64)
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
        lexer.accepting[state] = intern(ended, 0, found, lexer.sets)
        if lazy:
            kept = 0
            for k in range(found):
                if lexer.is_lazy[ended[k]]:
                    ended[kept] = ended[k]
                    kept += 1
            lexer.completes[state] = intern(ended, 0, kept, lexer.sets)
        elif all_end:
            lexer.completes[state] = lexer.accepting[state]
    return state


@kernel
def fill_transition_kernel(state, column, lexer):  # type: ignore[no-untyped-def]
    """Make one transition known. Returns OK or NEEDS_LEXER."""
    class_count = len(lexer.representatives)
    first, past = lexer.states.begin[state], lexer.states.begin[state + 1]
    lexer.meta[L_WORK] += 10 + past - first
    if lexer.meta[L_WORK] >= PAID_MOVES:
        work = NS_PER_MOVE * lexer.meta[L_WORK]
        lexer.meta[L_WORK] = 0
        pay(work)
    content = np.empty(past - first, dtype=np.int64)
    size = 0
    for k in range(first, past):
        component = lexer.states.words[k]
        if component == START_MARK:
            continue
        target = lexer.component_table[component * class_count + column]
        if target == UNKNOWN:
            lexer.meta[L_WANTED] = component
            return NEEDS_LEXER
        if target >= 0:
            content[size] = target
            size += 1
    if size == 0:
        lexer.transitions[state * class_count + column] = DEAD
        return OK
    following = intern_state_kernel(content, size, lexer)
    if following < 0:
        return NEEDS_LEXER
    lexer.transitions[state * class_count + column] = following
    return OK
