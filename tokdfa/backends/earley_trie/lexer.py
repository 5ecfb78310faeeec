"""The lexer: which lexemes the bytes since the last border may be, or become. One table look-up a byte.

The parser says which lexemes may begin at a place (`Lexer.start_state`), so every lexeme is contextual. Bytes then lead
from lexer state to lexer state. States are interned by content, shared by all places, and transitions made when they
are first needed. A kernel that lacks room, or a component's row, says so; `Lexer.supply` supplies it, and the kernel is
called again.

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

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.lexer_components import COMPONENT_FIELDS, Components
from tokdfa.core.interning import COUNT, Column, InterningTable, Limit, TableArrays, grow_together, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_budget import pay
from tokdfa.core.kernel_struct import Struct, struct_at
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]

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

#: The arrays that kernels take besides those of components; `Lexer` says what each
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


class Lexer:
    """The lexer of a grammar. Not thread-safe: kernels write into its arrays, and growing replaces them.

    `max_states` bounds the lexer states, and separately the components that are made on demand. `components`: those of
    the grammar, if they are made already.
    """

    #: Columns of `states`, replaced as it grows. int32, flat: state x classes -> state, DEAD or UNKNOWN; the accepting
    #: set of a state, -1 for none; the set that ends in it at once.
    transitions: Int32
    accepting: Int32
    completes: Int32

    def __init__(self, cfg: Cfg, max_states: int = 250_000, components: Components | None = None) -> None:
        self.cfg, self.max_states = cfg, max_states
        self.components = components or Components(cfg, max_states)
        #: The classes of bytes, which are those of the components.
        self.byte_class, self.class_count = self.components.byte_class, self.components.class_count
        room, lexemes = 64, len(cfg.lexemes)
        columns = {
            "transitions": Column(np.int32, self.class_count, UNKNOWN, flat=True),
            "accepting": Column(np.int32, fill=-1),
            "completes": Column(np.int32, fill=-1),
        }
        limit = Limit(
            max_states,
            "max_lexer_states",
            f"the lexer has more than {max_states} states; simplify the terminals that overlap, lower their repeat"
            " bounds, or raise max_lexer_states",
        )
        #: The components of each state, and the lexemes of each accepting set.
        self.states = InterningTable(columns, entries=room, words=4 * room + 4 * lexemes, limit=limit)
        self.sets = InterningTable(entries=room, words=4 * room + 4 * lexemes)
        self.meta = np.array([-1, 0], dtype=np.int64)
        self._gather()

    def _gather(self) -> None:
        """Have kernels take the arrays as they are now."""
        self.transitions, self.accepting, self.completes = self.states.columns.values()
        #: What kernels take (a `LexerArrays`); replaced by `supply`.
        self.arrays: Any = LexerArrays(
            *(getattr(self.components, name) for name in COMPONENT_FIELDS),
            *(getattr(self, name) for name in STATE_FIELDS),
            *(getattr(self, name).struct for name in TABLE_FIELDS),
        )

    @property
    def state_count(self) -> int:
        """Lexer states made so far."""
        return self.states.count

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        of_components = sum(getattr(self.components, name).nbytes for name in COMPONENT_FIELDS)
        return of_components + self.states.nbytes + self.sets.nbytes

    def components_of(self, state: int) -> list[int]:
        """The components of a lexer state, in the order of their lexemes."""
        return [component for component in self.states.content(state).tolist() if component != START_MARK]

    def is_start(self, state: int) -> bool:
        """Whether `state` is a start state, in which nothing was read."""
        return self.states.content(state)[:1].tolist() == [START_MARK]

    def lexemes_of(self, accepting_set: int) -> list[int]:
        """The lexemes of an accepting set, ascending."""
        found: list[int] = self.sets.content(accepting_set).tolist()
        return found

    def lexemes_in(self, state: int) -> list[int]:
        """The lexeme of each component of a lexer state, ascending."""
        return [int(self.components.component_lexeme[component]) for component in self.components_of(state)]

    def set_of(self, lexemes: Sequence[int]) -> int:
        """The number of the accepting set of these lexemes (ascending)."""
        try:
            return self.sets.intern(lexemes)
        finally:
            self._gather()

    def start_state(self, lexemes: Sequence[int]) -> int:
        """The lexer state in which exactly these lexemes (ascending) may begin."""
        components = self.components.start_component[np.asarray(lexemes, dtype=np.int64)]
        return self.state_of([START_MARK, *components[components >= 0].tolist()])

    def state_of(self, components: Sequence[int]) -> int:
        """The lexer state of these components, in the order of their lexemes (a start mark first: a start state)."""
        content = np.array(components, dtype=np.int64)
        while True:
            state = intern_state_kernel(content, len(content), self.arrays)
            if state >= 0:
                return int(state)
            self.supply()

    def step(self, state: int, byte: int) -> int:
        """The lexer state after `byte`, or -1 where no component goes on."""
        column = int(self.byte_class[byte])
        while True:
            target = int(self.transitions[state * self.class_count + column])
            if target != UNKNOWN:
                return target
            if fill_transition_kernel(state, column, self.arrays) != OK:
                self.supply()

    def explore(self, state: int = 0) -> None:
        """Make the transitions of `state` and of all states behind it, but for those in which a lexeme ends at once."""
        while (state := int(explore_kernel(np.int64(state), self.arrays))) < self.state_count:
            self.supply()

    def supply(self) -> None:
        """Do what a kernel has asked for: make a row of a component, or room. Raises LimitExceeded."""
        component, self.meta[L_WANTED] = int(self.meta[L_WANTED]), -1
        if component >= 0:
            self.components.fill_row(component)
        else:
            grow_together(self.states, self.sets)
        self._gather()


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
def explore_kernel(state, lexer):  # type: ignore[no-untyped-def]
    """Make all transitions of `state`, and of those behind it and made so far or on the way, but for states in which a
    lexeme ends at once. Returns the first state that lacks some: the number of states, or one that needs the lexer.
    """
    class_count = len(lexer.representatives)
    while state < lexer.states.meta[COUNT]:
        if lexer.completes[state] < 0:
            for column in range(class_count):
                if (
                    lexer.transitions[state * class_count + column] == UNKNOWN
                    and fill_transition_kernel(state, column, lexer) != OK
                ):
                    return np.int64(state)
        state += 1
    return np.int64(state)


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
