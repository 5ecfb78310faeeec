"""The lexer: which lexemes the bytes since the last border may be, or become. One table look-up a byte.

The parser says which lexemes may begin at a place (`Lexer.start_state`), so every lexeme is contextual. Bytes then lead
from lexer state to lexer state: `tokdfa.backends.earley_trie.lexer_states` says what these are and when a lexeme ends,
`tokdfa.backends.earley_trie.lexer_components` what they are made of. States are shared by all places, and transitions
are made when they are first needed. A kernel that lacks room, or a component's row, says so; `Lexer.supply` supplies
it, and the kernel is called again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.earley_trie.lexer_components import COMPONENT_FIELDS, Components
from tokdfa.backends.earley_trie.lexer_states import (
    L_WANTED,
    OK,
    START_MARK,
    fill_transition_kernel,
    gather_lexer,
    intern_state_kernel,
)
from tokdfa.core.interning import Column, InterningTable, Limit, grow_together
from tokdfa.vocabulary.byte_table import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]


class Lexer:
    """The lexer of a grammar. Not thread-safe: kernels write into its arrays, and growing replaces them.

    `max_states` bounds the lexer states, and separately the components that are made on demand.
    """

    #: Columns of `states`, replaced as it grows. int32, flat: state x classes -> state, DEAD or UNKNOWN; the accepting
    #: set of a state, -1 for none; the set that ends in it at once.
    transitions: Int32
    accepting: Int32
    completes: Int32

    def __init__(self, cfg: Cfg, max_states: int = 250_000) -> None:
        self.cfg, self.max_states = cfg, max_states
        self.components = Components(cfg, max_states)
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
        #: What kernels take; replaced by `supply`.
        self.arrays = gather_lexer(self.components, self)

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
        content = np.concatenate([[START_MARK], components[components >= 0]]).astype(np.int64)
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

    def supply(self) -> None:
        """Do what a kernel has asked for: make a row of a component, or room. Raises LimitExceeded."""
        component, self.meta[L_WANTED] = int(self.meta[L_WANTED]), -1
        if component >= 0:
            self.components.fill_row(component)
        else:
            grow_together(self.states, self.sets)
        self._gather()
