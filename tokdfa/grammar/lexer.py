"""The lexer: which lexemes the bytes since the last border may be, or become. One table look-up a byte.

The parser says which lexemes may begin at a place (`Lexer.start_state`), so every lexeme is contextual. Bytes then lead
from lexer state to lexer state: `tokdfa.grammar.lexer_states` says what these are and when a lexeme ends,
`tokdfa.grammar.lexer_components` what they are made of. States are shared by all places, and transitions are made when
they are first needed. A kernel that lacks room, or a component's row, returns what it lacks; `Lexer.supply` supplies
it, and the kernel is called again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.errors import LimitExceeded
from tokdfa.grammar.growth import doubled
from tokdfa.grammar.lexer_components import COMPONENT_FIELDS, Components
from tokdfa.grammar.lexer_states import (
    L_MAX_STATES,
    L_SET_POOL,
    L_SETS,
    L_STATES,
    L_WANTED,
    LEXER_COMPONENT,
    LEXER_FULL,
    START_MARK,
    STATE_FIELDS,
    fill_transition_kernel,
    gather_lexer,
    intern_set_kernel,
    intern_state_kernel,
    longer_slots,
)
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]


class Lexer:
    """The lexer of a grammar. Not thread-safe: kernels write into its arrays, and growing replaces them.

    `max_states` bounds the lexer states, and separately the components that are made on demand.
    """

    # replaced as they grow, see `_build_states`
    transitions: Int32
    accepting: Int32
    completes: Int32
    pool: Int32
    pool_begin: Int32
    state_slots: Int32
    set_pool: Int32
    set_begin: Int32
    set_slots: Int32

    def __init__(self, cfg: Cfg, max_states: int = 250_000) -> None:
        self.cfg, self.max_states = cfg, max_states
        self.components = Components(cfg, max_states)
        #: The classes of bytes, which are those of the components.
        self.byte_class, self.class_count = self.components.byte_class, self.components.class_count
        self._build_states()
        #: What kernels take; replaced by `supply`.
        self.arrays = gather_lexer(self.components, self)

    @property
    def state_count(self) -> int:
        """Lexer states made so far."""
        return int(self.meta[L_STATES])

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        of_components = sum(getattr(self.components, name).nbytes for name in COMPONENT_FIELDS)
        return of_components + sum(getattr(self, name).nbytes for name in STATE_FIELDS)

    def components_of(self, state: int) -> list[int]:
        """The components of a lexer state, in the order of their lexemes."""
        pool = self.pool[self.pool_begin[state] : self.pool_begin[state + 1]].tolist()
        return [component for component in pool if component != START_MARK]

    def is_start(self, state: int) -> bool:
        """Whether `state` is a start state, in which nothing was read."""
        first = self.pool_begin[state]
        return bool(self.pool_begin[state + 1] > first and self.pool[first] == START_MARK)

    def lexemes_of(self, accepting_set: int) -> list[int]:
        """The lexemes of an accepting set, ascending."""
        found: list[int] = self.set_pool[self.set_begin[accepting_set] : self.set_begin[accepting_set + 1]].tolist()
        return found

    def lexemes_in(self, state: int) -> list[int]:
        """The lexeme of each component of a lexer state, ascending."""
        return [int(self.components.component_lexeme[component]) for component in self.components_of(state)]

    def set_of(self, lexemes: Sequence[int]) -> int:
        """The number of the accepting set of these lexemes (ascending)."""
        content = np.array(lexemes, dtype=np.int32)
        if self.meta[L_SETS] + 3 >= len(self.set_begin) or self.meta[L_SET_POOL] + len(content) > len(self.set_pool):
            self.supply(LEXER_FULL)
        return int(intern_set_kernel(content, len(content), self.arrays))

    def start_state(self, lexemes: Sequence[int]) -> int:
        """The lexer state in which exactly these lexemes (ascending) may begin."""
        components = self.components.start_component[np.asarray(lexemes, dtype=np.int64)]
        content = np.concatenate([[START_MARK], components[components >= 0]]).astype(np.int32)
        while True:
            state = intern_state_kernel(content, len(content), self.arrays)
            if state >= 0:
                return int(state)
            self.supply(LEXER_FULL)

    def step(self, state: int, byte: int) -> int:
        """The lexer state after `byte`, or -1 where no component goes on."""
        column = int(self.byte_class[byte])
        while True:
            target = int(self.transitions[state * self.class_count + column])
            if target != UNKNOWN:
                return target
            self.supply(fill_transition_kernel(state, column, self.arrays))

    def supply(self, status: int) -> None:
        """Do what a kernel asked for by `status`: make room, or make a row of a component."""
        if status == LEXER_FULL:
            self._grow()
        elif status == LEXER_COMPONENT:
            self.components.fill_row(int(self.meta[L_WANTED]))
        self.arrays = gather_lexer(self.components, self)

    def _grow(self) -> None:
        """Double what is nearly full. Raises LimitExceeded past `max_states`."""
        states, pool, sets, set_pool = (int(value) for value in self.meta[:4])
        lexemes = len(self.cfg.lexemes)
        if states >= self.max_states:
            raise LimitExceeded(
                f"the lexer has more than {self.max_states} states; simplify the terminals that overlap, lower their"
                " repeat bounds, or raise max_lexer_states",
                limit="max_lexer_states",
                value=self.max_states,
            )
        grown: dict[str, npt.NDArray[Any]] = {}  # all or none, as the budget may end in between
        if 2 * states >= len(self.accepting):
            fills = {"transitions": UNKNOWN, "accepting": -1, "completes": -1, "pool_begin": 0}
            grown |= {name: doubled(getattr(self, name), fill) for name, fill in fills.items()}
            grown["state_slots"] = longer_slots(self.state_slots, self.pool, grown["pool_begin"], states)
        if 2 * pool + 2 * lexemes >= len(self.pool):
            grown["pool"] = doubled(self.pool, 0)
        if 2 * sets >= len(self.set_begin):
            grown["set_begin"] = doubled(self.set_begin, 0)
            grown["set_slots"] = longer_slots(self.set_slots, self.set_pool, grown["set_begin"], sets)
        if 2 * set_pool + 2 * lexemes >= len(self.set_pool):
            grown["set_pool"] = doubled(self.set_pool, 0)
        vars(self).update(grown)

    def _build_states(self) -> None:
        room, lexemes = 64, len(self.cfg.lexemes)
        #: int32, flat: state x classes -> state, DEAD or UNKNOWN.
        self.transitions = np.full(room * self.class_count, UNKNOWN, dtype=np.int32)
        #: int32, shape (room,): the accepting set of a state, -1 for none; the set that ends in it at once.
        self.accepting = np.full(room, -1, dtype=np.int32)
        self.completes = np.full(room, -1, dtype=np.int32)
        #: int32: the components of each state, one state after another; where they begin; a hash table of states.
        self.pool = np.zeros(room * 4 + 4 * lexemes, dtype=np.int32)
        self.pool_begin = np.zeros(room, dtype=np.int32)
        self.state_slots = np.full(4 * room, -1, dtype=np.int32)
        #: int32: the same of the lexemes of accepting sets.
        self.set_pool = np.zeros(room * 4 + 4 * lexemes, dtype=np.int32)
        self.set_begin = np.zeros(room, dtype=np.int32)
        self.set_slots = np.full(4 * room, -1, dtype=np.int32)
        self.meta = np.zeros(7, dtype=np.int64)
        self.meta[L_MAX_STATES] = self.max_states
