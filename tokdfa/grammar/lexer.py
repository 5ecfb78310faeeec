"""The lexer: which lexemes the bytes since the last border may be, or become. One table look-up a byte.

Words. A *component* is one state of one lexeme's automaton. A *lexer state* is a set of components, at most one for a
lexeme: all that is possible after the bytes read since the lexeme began. The parser says which lexemes may begin at a
place (`start_state`), so every lexeme is contextual; states are interned by content and shared by all places, and
transitions are made when they are first needed. The bytes fall into *classes* that no component tells apart.

A lexeme *ends* where the parser may go on. What a lexer state says of it (`accepting`): the set of lexemes that match
exactly the bytes read, as the number of an interned *accepting set*, or -1. Longest match: such a lexeme ends only
where the next byte cannot continue any component. Two kinds end at once, which `completes` says: lazy lexemes (then
greedy ones that match too are dropped, 000), and sets whose components can none of them go on, which is no choice but
saves a state. What happens when a byte cannot go on and the state does not accept is the parser's business
(`tokdfa.grammar.machine`), since there are two rules for it.

A start state is never the target of a transition, even if its components are: nothing has been read there, so no lexeme
can end. Lexemes never match the empty text, so a start state accepts nothing.

Layout. Components of all lexemes are numbered together; their table is flat, int32, row = component x classes. Small
automata are explicit and minimal; large ones (counters up to 100,000) stay lazy, and their rows are filled by Python
code when a kernel asks for them. Most lexemes are literals, or at least a byte set after another: a *chain*. Its
minimal automaton has a state for each of its bytes and one more, so it is written down without deriving or minimising
anything. Lexer states: a pool of components, and a flat table as in `tokdfa.vocabulary.walk`.
Source: 000 (lazy automaton over sets of lexemes); the product of minimal automata instead of a set of derivatives,
interned accepting sets and the start mark are ours. Cost: 20 to 50 ns a component for each new transition; when the
lexer is made, 5 us for a chain and 0.15 ms or more for another lexeme.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.lexeme_automata import byte_sets, read_automata
from tokdfa.jit import Struct, StructType, kernel, register_struct
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.walk import DEAD, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]

#: Indices into `meta`: states, components in the pool, accepting sets, lexemes in their pool; what a kernel asks for;
#: the limit on states.
L_STATES, L_POOL, L_SETS, L_SET_POOL, L_WANTED, L_MAX_STATES = range(6)
#: What a kernel returns: done; an array is too short (`Lexer.grow`); row `meta[L_WANTED]` of a component is unknown.
LEXER_OK, LEXER_FULL, LEXER_COMPONENT = range(3)
#: Stands first in the pool entry of a start state.
START_MARK = -1


#: The arrays that kernels take, in this order; `Lexer` says what each holds.
# fmt: off
LEXER_FIELDS = (
    "byte_class", "representatives", "start_component", "transitions", "accepting", "completes", "pool",
    "pool_begin", "state_slots", "set_pool", "set_begin", "set_slots", "component_table", "component_accepts",
    "component_ends", "component_lexeme", "is_lazy", "meta",
)
# fmt: on


class LexerArrays(Struct):
    """What kernels take: LEXER_FIELDS."""


@register_struct(LexerArrays, LEXER_FIELDS)
class LexerType(StructType):
    """numba's type of LexerArrays."""


class Lexer:
    """The lexer of a grammar. Not thread-safe: kernels write into its arrays, and growing replaces them.

    `max_states` bounds the lexer states, and separately the components that are made on demand.
    """

    # replaced as they grow, see `_build_states` and `_build_components`
    transitions: Int32
    accepting: Int32
    completes: Int32
    pool: Int32
    pool_begin: Int32
    state_slots: Int32
    set_pool: Int32
    set_begin: Int32
    set_slots: Int32
    component_table: Int32
    component_lexeme: Int32
    component_accepts: npt.NDArray[np.bool_]
    component_ends: npt.NDArray[np.bool_]

    def __init__(self, cfg: Cfg, max_states: int = 250_000) -> None:
        self.cfg, self.max_states = cfg, max_states
        self._lazy: list[LazyDfa | None] = []
        self._numbers: dict[tuple[int, int], int] = {}  # (lexeme, state of its lazy automaton) -> component
        self._contents: dict[int, tuple[str, int]] = {}  # lexeme -> (what it is, its first component)
        self._places: list[tuple[int, int]] = []  # the inverse, from component `_first_lazy` on
        self._automata = read_automata(cfg, max_states)
        self.byte_class, self.representatives = self._automata.common_classes()
        self.class_count = len(self.representatives)
        #: int32, shape (lexemes,): the component in which each lexeme starts, -1 for special tokens.
        self.start_component = np.full(len(cfg.lexemes), -1, dtype=np.int32)
        self._build_components()
        self._build_states()
        #: What kernels take; replaced by `supply`.
        self.arrays = self._gather()

    def _gather(self) -> Any:
        return _make_lexer(*(getattr(self, name) for name in LEXER_FIELDS))

    @property
    def state_count(self) -> int:
        """Lexer states made so far."""
        return int(self.meta[L_STATES])

    @property
    def nbytes(self) -> int:
        """Memory of all tables in bytes."""
        return sum(getattr(self, name).nbytes for name in LEXER_FIELDS)

    def components(self, state: int) -> list[int]:
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

    def set_of(self, lexemes: Sequence[int]) -> int:
        """The number of the accepting set of these lexemes (ascending)."""
        content = np.array(lexemes, dtype=np.int32)
        if self.meta[L_SETS] + 3 >= len(self.set_begin) or self.meta[L_SET_POOL] + len(content) > len(self.set_pool):
            self.supply(LEXER_FULL)
        return int(_intern_set(content, len(content), self.arrays))

    def lexemes_in(self, state: int) -> list[int]:
        """The lexeme of each component of a lexer state, ascending."""
        return [int(self.component_lexeme[component]) for component in self.components(state)]

    def content_of(self, component: int) -> str:
        """What a component is, whatever its number: automaton, state, laziness. "" for a lazy automaton's."""
        if component >= self._first_lazy:
            return ""
        symbol = int(self.component_lexeme[component])
        if symbol not in self._contents:
            automaton = self._automata[symbol]
            digest = hashlib.sha256()
            for array in (automaton.transitions, automaton.byte_class, automaton.accepting):  # type: ignore[union-attr]
                digest.update(array.tobytes())
            first = int(np.searchsorted(self.component_lexeme[: self._first_lazy], symbol))
            self._contents[symbol] = f"{digest.hexdigest()} {bool(self.is_lazy[symbol])}", first
        name, first = self._contents[symbol]
        return f"{name} {component - first}"

    def ends_by(self, available: npt.NDArray[np.bool_]) -> bool:
        """Whether every component can still become a lexeme if only the bytes `available` (bool, shape (256,)) come.

        Exact for explicit automata; a lazy one counts only if it reads no other bytes. O(components x classes x longest
        way to an end).
        """
        for automaton in self._automata.values():
            if isinstance(automaton, LazyDfa) and (automaton.bytes_read & ~available).any():
                return False
        table = self.component_table[: self._first_lazy * self.class_count].reshape(-1, self.class_count)
        read = np.flatnonzero((table >= 0).any(axis=0))
        if available[np.isin(self.byte_class, read)].all():
            return True  # every component can become a lexeme, and no other bytes are read
        columns = np.unique(self.byte_class[available])
        table = table[:, columns]
        ends = self.component_accepts[: self._first_lazy].copy()
        while True:
            reached = ends | (ends[table] & (table >= 0)).any(axis=1)
            if (reached == ends).all():
                return bool(ends.all())
            ends = reached

    def start_state(self, lexemes: Sequence[int]) -> int:
        """The lexer state in which exactly these lexemes (ascending) may begin."""
        components = self.start_component[np.asarray(lexemes, dtype=np.int64)]
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
            self._fill_component(int(self.meta[L_WANTED]))
        self.arrays = self._gather()

    def _grow(self) -> None:
        """Double what is nearly full. Raises LimitExceeded past `max_states`."""
        states, pool, sets, set_pool = (int(value) for value in self.meta[:4])
        if states >= self.max_states:
            raise LimitExceeded(
                f"the lexer has more than {self.max_states} states; simplify the terminals that overlap, lower their"
                " repeat bounds, or raise max_lexer_states",
                limit="max_lexer_states",
                value=self.max_states,
            )
        if 2 * states >= len(self.accepting):
            self.transitions = _doubled(self.transitions, UNKNOWN)
            self.accepting, self.completes = _doubled(self.accepting, -1), _doubled(self.completes, -1)
            self.pool_begin = _doubled(self.pool_begin, 0)
            self.state_slots = _rehashed(self.state_slots, self.pool, self.pool_begin, states)
        if 2 * pool + 2 * len(self.start_component) >= len(self.pool):
            self.pool = _doubled(self.pool, 0)
        if 2 * sets >= len(self.set_begin):
            self.set_begin = _doubled(self.set_begin, 0)
            self.set_slots = _rehashed(self.set_slots, self.set_pool, self.set_begin, sets)
        if 2 * set_pool + 2 * len(self.start_component) >= len(self.set_pool):
            self.set_pool = _doubled(self.set_pool, 0)

    def _build_components(self) -> None:
        automata, chains = self._automata, self._automata.chains
        sizes = np.zeros(len(self.cfg.lexemes), dtype=np.int32)
        sizes[list(chains)] = [len(chain) + 1 for chain in chains.values()]
        explicit = {symbol: automaton for symbol, automaton in automata.items() if isinstance(automaton, Dfa)}
        sizes[list(explicit)] = [automaton.state_count for automaton in explicit.values()]
        past = np.cumsum(sizes, dtype=np.int32)
        rows = np.full((int(sizes.sum()), self.class_count), DEAD, dtype=np.int32)
        accepts = np.zeros(len(rows), dtype=np.bool_)
        for symbol, automaton in explicit.items():
            place = slice(past[symbol] - sizes[symbol], past[symbol])
            table = automaton.transitions[:, automaton.byte_class[self.representatives]]
            rows[place] = np.where(table >= 0, table + place.start, DEAD)
            accepts[place] = automaton.accepting
        if chains:
            is_chain = np.zeros(len(sizes), dtype=np.bool_)
            is_chain[list(chains)] = True
            accepts[past[is_chain] - 1] = True
            sources = np.flatnonzero(np.repeat(is_chain, sizes) & ~accepts).astype(np.int32)
            distinct, which = np.unique(np.concatenate(list(chains.values())), return_inverse=True)
            reads = byte_sets(self.cfg.store, distinct)[:, self.representatives]
            rows[sources] = np.where(reads[which], (sources + 1)[:, None], DEAD)
        #: int32, flat: component x classes -> component, DEAD or UNKNOWN.
        self.component_table = rows.ravel()
        #: bool and int32, shape (components,): whether the lexeme may end, whether it must, and which lexeme it is.
        self.component_accepts = accepts
        self.component_ends = accepts & (rows < 0).all(axis=1)
        self.component_lexeme = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.start_component[sizes > 0] = (past - sizes)[sizes > 0]  # minimal automata start in state 0
        self.is_lazy = np.array([getattr(lexeme, "lazy", False) for lexeme in self.cfg.lexemes], dtype=np.bool_)
        self._first_lazy = len(rows)
        for symbol, lazy in automata.items():
            if isinstance(lazy, LazyDfa):
                self.start_component[symbol] = self._number(symbol, 0)

    def _number(self, symbol: int, state: int) -> int:
        """The component of a state of a lazy automaton; a new one has no row yet."""
        found = self._numbers.get((symbol, state))
        if found is None:
            found = self._first_lazy + len(self._places)
            if len(self._places) >= self.max_states:
                raise self._too_many_states(symbol)
            self._numbers[symbol, state] = found
            self._places.append((symbol, state))
            if found >= len(self.component_accepts):
                more = max(64, found)
                self.component_table = np.concatenate(
                    [self.component_table, np.full(more * self.class_count, UNKNOWN, dtype=np.int32)]
                )
                self.component_accepts = np.concatenate([self.component_accepts, np.zeros(more, dtype=np.bool_)])
                self.component_ends = np.concatenate([self.component_ends, np.zeros(more, dtype=np.bool_)])
                self.component_lexeme = np.concatenate([self.component_lexeme, np.zeros(more, dtype=np.int32)])
            automaton = self._automata[symbol]
            assert isinstance(automaton, LazyDfa)
            self.component_accepts[found] = automaton.accepting[state]
            self.component_lexeme[found] = symbol
        return found

    def _too_many_states(self, symbol: int) -> LimitExceeded:
        return LimitExceeded(
            f"the terminal {self.cfg.names[symbol]} needs more than {self.max_states} states; lower its repeat bounds,"
            " or raise max_lexer_states",
            limit="max_lexer_states",
            value=self.max_states,
        )

    def _fill_component(self, component: int) -> None:
        symbol, state = self._places[component - self._first_lazy]
        automaton = self._automata[symbol]
        assert isinstance(automaton, LazyDfa)
        row = state * automaton.class_count
        try:
            automaton.fill_row(row)
        except LimitExceeded as error:
            raise self._too_many_states(symbol) from error
        targets = automaton.transitions[row : row + automaton.class_count].copy()
        for place in np.flatnonzero(targets >= 0).tolist():
            targets[place] = self._number(symbol, int(targets[place]) // automaton.class_count)
        begin = component * self.class_count
        self.component_table[begin : begin + self.class_count] = targets[automaton.byte_class[self.representatives]]

    def _build_states(self) -> None:
        room, lexemes = 64, len(self.start_component)
        #: int32, flat: state x classes -> state, DEAD or UNKNOWN.
        self.transitions = np.full(room * self.class_count, UNKNOWN, dtype=np.int32)
        #: int32, shape (room,): the accepting set of a state, -1 for none; the set that ends in it at once.
        self.accepting = np.full(room, -1, dtype=np.int32)
        self.completes = np.full(room, -1, dtype=np.int32)
        self.pool = np.zeros(room * 4 + 4 * lexemes, dtype=np.int32)
        self.pool_begin = np.zeros(room, dtype=np.int32)
        self.state_slots = np.full(4 * room, -1, dtype=np.int32)
        self.set_pool = np.zeros(room * 4 + 4 * lexemes, dtype=np.int32)
        self.set_begin = np.zeros(room, dtype=np.int32)
        self.set_slots = np.full(4 * room, -1, dtype=np.int32)
        self.meta = np.zeros(6, dtype=np.int64)
        self.meta[L_MAX_STATES] = self.max_states


def _doubled(array: npt.NDArray[Any], fill: int) -> npt.NDArray[Any]:
    grown = np.full(2 * len(array), fill, dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def _rehashed(slots: Int32, pool: Int32, begin: Int32, count: int) -> Int32:
    """A hash table of twice the size with the first `count` entries of a pool."""
    grown = np.full(2 * len(slots), -1, dtype=np.int32)
    _fill_slots_kernel(grown, pool, begin, count)
    return grown


@kernel
def _make_lexer(  # type: ignore[no-untyped-def]
    byte_class,
    representatives,
    start_component,
    transitions,
    accepting,
    completes,
    pool,
    pool_begin,
    state_slots,
    set_pool,
    set_begin,
    set_slots,
    component_table,
    component_accepts,
    component_ends,
    component_lexeme,
    is_lazy,
    meta,
):
    return LexerArrays(
        byte_class,
        representatives,
        start_component,
        transitions,
        accepting,
        completes,
        pool,
        pool_begin,
        state_slots,
        set_pool,
        set_begin,
        set_slots,
        component_table,
        component_accepts,
        component_ends,
        component_lexeme,
        is_lazy,
        meta,
    )


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
def _intern_set(content, size, lexer):  # type: ignore[no-untyped-def]
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
        lexer.accepting[state] = _intern_set(ended, found, lexer)
        if lazy:
            kept = 0
            for k in range(found):
                if lexer.is_lazy[ended[k]]:
                    ended[kept] = ended[k]
                    kept += 1
            lexer.completes[state] = _intern_set(ended, kept, lexer)
        elif all_end:
            lexer.completes[state] = lexer.accepting[state]
    return state


@kernel
def fill_transition_kernel(state, column, lexer):  # type: ignore[no-untyped-def]
    """Make one transition known. Returns LEXER_OK, LEXER_FULL or LEXER_COMPONENT."""
    class_count = len(lexer.representatives)
    first, past = lexer.pool_begin[state], lexer.pool_begin[state + 1]
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
