"""Is every text of a slice the beginning of some text of a lexeme? Decided exactly, within a budget.

Words. A *slice* is a regular language of bytes, given by its automaton (`tokdfa.backends.earley_trie.slices`). A
*component* is a state of a lexeme's automaton, so it stands for what may still come of that lexeme
(`tokdfa.backends.earley_trie.lexer_components`). The slice is *contained* in a component if the component can read
every text of the slice without dying.

Theory. Both automata keep live states only. So each path of the slice's automaton is the beginning of a text of the
slice, and a text is the beginning of one that the component stands for iff the component can read it. Hence the slice
is contained iff no pair (slice state, component) that can be reached from the two starts has a byte with which the
slice goes on and the component does not. That is a search over pairs of states: O(pairs x common byte classes), each
pair met once. It goes depth first, since a lexeme that is too short shows it at the end of the first path.

The budget is the number of pairs met. Past it the search is *given up*, and the slice counts as not contained: a walk
over its tokens is then made that was not needed, and nothing else changes. Answers are remembered for each component.

Source: 000 checks the same by an under-approximation on expressions: both slice and lexeme must be repetitions, whose
bounds are compared as numbers and whose bodies by an emptiness test. That costs nothing for large bounds, where ours
meets a pair or more for each repetition; ours needs no particular form, and is never wrong within its budget.
Cost: 10 to 20 us for the slices of `tokdfa.backends.earley_trie.slices`, which are 9 to 250 pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.byte_classes import common_classes
from tokdfa.backends.earley_trie.lexer_states import L_WANTED, LEXER_COMPONENT
from tokdfa.core.budget import spend
from tokdfa.core.jit import kernel
from tokdfa.core.key_map import find_place, new_map
from tokdfa.errors import LimitExceeded
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.automata.dfa import Dfa
    from tokdfa.backends.earley_trie.lexer import Lexer

#: What a search ends with; the last asks for the row of component `progress[_WANTED]`.
INSIDE, OUTSIDE, GIVEN_UP, _NEEDS_ROW = range(4)
#: What a pair takes.
NS_PER_PAIR = 50
#: Indices into `progress`: pairs on the stack, pairs met, and the component whose row is not made yet.
_TOP, _MET, _WANTED = range(3)


class Containment:
    """Answers for one slice and the components of one lexer. Not thread-safe, as the lexer is not.

    `automaton`: the slice's, with live states only and at least one; `budget`: pairs that one search may meet.
    `searches` and `given_up` count what was done.
    """

    def __init__(self, automaton: Dfa, lexer: Lexer, budget: int) -> None:
        self.lexer, self.budget = lexer, budget
        self.searches, self.given_up = 0, 0
        _, representatives = common_classes(automaton.byte_class, lexer.byte_class)
        self._start = automaton.start
        self._moves = np.take(automaton.transitions, automaton.byte_class[representatives], axis=1)
        self._columns = lexer.byte_class[representatives].astype(np.int64)
        self._slots = new_map(budget, -1)[0]
        self._stack = np.empty(budget, dtype=np.int64)
        self._progress = np.zeros(3, dtype=np.int64)
        self._answers: dict[int, int] = {}

    def answer(self, component: int) -> int:
        """INSIDE, OUTSIDE or GIVEN_UP."""
        found = self._answers.get(component)
        if found is None:
            found = self._answers[component] = self._search(component)
            self.searches += 1
            self.given_up += found == GIVEN_UP
        return found

    def _search(self, component: int) -> int:
        lexer = self.lexer
        spend(len(self._slots))
        self._slots.fill(-1)
        self._progress[_TOP] = self._progress[_MET] = 0
        while True:
            status = _search_pairs_kernel(
                *(self._moves, self._start, self._columns),
                *(lexer.components.component_table, lexer.class_count, component),
                *(self._slots, self._stack, self._progress),
            )
            if status != _NEEDS_ROW:
                spend(NS_PER_PAIR * int(self._progress[_MET]))
                return int(status)
            lexer.meta[L_WANTED] = self._progress[_WANTED]
            try:
                lexer.supply(LEXER_COMPONENT)
            except LimitExceeded as error:  # of the lexer: generation may never come as far as this search has
                if error.limit != "max_lexer_states":
                    raise
                return GIVEN_UP


@kernel
def _search_pairs_kernel(  # type: ignore[no-untyped-def]
    moves, start, columns, table, class_count, component, slots, stack, progress
):
    """Search the pairs from (`start`, `component`), or go on where `progress` says.

    `moves`: int32, shape (slice states, common classes); `columns`: int64, the lexer's class of each common class;
    `table`: the lexer's components. A pair is the key ``component x slice states + slice state``; `slots` is the hash
    table of keys met (-1 is free), `stack` (as long as the budget) holds those not gone on from.
    """
    states = np.int64(len(moves))
    top, met = progress[_TOP], progress[_MET]
    if met == 0:
        stack[0] = np.int64(component) * states + start
        slots[find_place(stack[0], slots)] = stack[0]
        top, met = 1, 1
    while top > 0:
        here = stack[top - 1]
        row = (here // states) * class_count
        if table[row] == UNKNOWN:  # rows are made whole
            progress[_TOP], progress[_MET], progress[_WANTED] = top, met, here // states
            return _NEEDS_ROW
        top -= 1
        for k in range(len(columns)):
            target = moves[here % states, k]
            if target < 0:
                continue
            following = table[row + columns[k]]
            if following < 0:
                progress[_MET] = met
                return OUTSIDE
            key = np.int64(following) * states + target
            slot = find_place(key, slots)
            if slots[slot] < 0:
                if met >= len(stack):
                    progress[_MET] = met
                    return GIVEN_UP
                slots[slot] = key
                stack[top] = key
                top += 1
                met += 1
    progress[_MET] = met
    return INSIDE
