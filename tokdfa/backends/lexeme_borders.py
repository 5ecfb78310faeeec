"""Where lexemes that stand side by side can be told apart, if the longest match decides where a lexeme ends.

Words. A *border* between two lexemes is *clean* if the byte behind it continues nothing that was being read before it:
then the first one has surely ended there. Lexemes *meet* if they may begin at one place of a text; what they all read
from there is one state of the lexer (`tokdfa.grammar.lexer`).

`Borders.allowed` says of two lexemes whether, however far the first one has been read, it can be read on to a clean
border before the second. Skipped text may stand between the two. The answer is on the safe side: which lexemes meet is
known from what may follow what, not from the text before; so lexemes may seem to meet that never do, and clean borders
may be missed. It is never wrong the other way.

Automata with many states are replaced by smaller ones that read more (`widened`): more seems to be continued so.

Cost: a transition of 30 ns for each state and class of bytes of the lexer, for every set of lexemes that meet.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.cfg import Lexeme
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.grammar.lexer import Lexer
from tokdfa.grammar.lexer_components import Components
from tokdfa.regex.expression import ANY_BYTES, EMPTY
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.byte_table import DEAD

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tokdfa.grammar.cfg import Cfg
    from tokdfa.regex.expression import ExpressionStore

    Bools = npt.NDArray[np.bool_]

#: States of the lexer at most, beyond one for each state of a lexeme's automaton.
MOST_STATES = 20_000
#: Repetitions beyond which a bounded one is taken for an unbounded one, where an automaton has too many states.
KEPT_REPEATS = 2
#: What a state takes, beside its transitions, and what an expression takes that is widened.
NS_PER_STATE, NS_PER_EXPRESSION = 1_000, 20_000


class Borders:
    """See the module's docstring. `longest`: the lexing rule, or `one_byte`. `available`: bool, shape (256,), the bytes
    that texts may be made of, which end every lexeme; None: all. `components`: those of the grammar, if they are made.

    Raises LimitExceeded for lexemes that overlap in too many ways.
    """

    def __init__(
        self, cfg: Cfg, longest: bool, available: Bools | None = None, components: Components | None = None
    ) -> None:
        self.cfg, self._longest = cfg, longest
        if components is None:
            components = Components(cfg, 1 << 20)
        lazy = {symbol: one for symbol, one in components.automata.items() if isinstance(one, LazyDfa)}
        #: The lexemes whose automata are replaced; what they begin with is known all the same.
        self._widened, self._starts = frozenset(lazy), components.automata.starts
        if lazy:
            components, self._exact = Components(_with_small_automata(cfg, lazy, self._starts), 1 << 20), lazy
        self._components = components
        self._lexer = Lexer(cfg, MOST_STATES + len(components.component_accepts), components)
        self._usable = np.ones(components.class_count, dtype=np.bool_)
        if available is not None:
            self._usable[:] = False
            self._usable[components.byte_class[available]] = True
        self._explored, self._begins = 0, dict[int, list[int]]()

    # Which lexemes end together.

    def read(self, meeting: Iterable[int]) -> set[tuple[int, ...]]:
        """Read what these lexemes may be when they meet. Returns sets of lexemes that may end together, of two or more.

        `meeting`: each a set of lexemes, as bits.
        """
        lexer, before = self._lexer, self._lexer.state_count
        for lexemes in meeting:
            symbols = [symbol for symbol in bits_of(lexemes) if self._components.start_component[symbol] >= 0]
            self._begins[lexer.start_state(symbols)] = symbols
        while self._explored < lexer.state_count:
            first, self._explored = self._explored, lexer.state_count
            lexer.explore(first)
            spend(NS_PER_STATE * (lexer.state_count - first))
            for state in range(first, lexer.state_count):
                self._go_on_without_lazy(state)
        vars(self).pop("_graph", None)
        found = {self._ended(state) for state in range(before, lexer.state_count)}
        return {lexemes for lexemes in found if len(lexemes) > 1}

    def _go_on_without_lazy(self, state: int) -> None:
        """Where a lazy lexeme ends, a text goes on at places where it may not stand but what meets it may."""
        completed = self._lexer.completing_set(state)
        if completed < 0:
            return
        ended = set(self._lexer.lexemes_of(completed))
        lexeme_of = self._components.component_lexeme
        left = [one for one in self._lexer.components_of(state) if int(lexeme_of[one]) not in ended]
        if left:
            self._lexer.state_of(left)

    def _ended(self, state: int) -> tuple[int, ...]:
        """The lexemes that are read if they end in a state."""
        lexer = self._lexer
        found = lexer.completing_set(state)
        found = found if found >= 0 else lexer.accepting_set(state)
        lexemes = tuple(lexer.lexemes_of(found)) if found >= 0 else ()
        return (self.cfg.skip,) if not self._longest and self.cfg.skip in lexemes else lexemes

    # What continues a lexeme.

    @cached_property
    def _graph(self) -> _Graph:
        lexer, count = self._lexer, self._lexer.state_count
        table, is_over = lexer.targets, lexer.completes >= 0
        targets = np.where(is_over[:, None] | (table < 0), DEAD, table)
        has, ends = np.zeros((2, len(self.cfg.lexemes), count), dtype=np.bool_)
        components, sizes = lexer.contents()
        has[self._components.component_lexeme[components], np.repeat(np.arange(count), sizes)] = True
        has[:, is_over] = False
        for state in np.flatnonzero(lexer.accepting >= 0).tolist():
            ends[list(self._ended(state)), state] = True
        spend(count * (NS_PER_STATE + lexer.class_count + len(self.cfg.lexemes)))
        return _Graph(targets, targets >= 0, has, ends, self._usable)

    def can_be_chosen(self, symbol: int) -> bool:
        """Whether a lexeme can be read to its end wherever it may begin: no lazy one that it meets ends it before."""
        if not self._may_be_cut or self._is_special(symbol):
            return True
        graph = self._graph
        return symbol not in self._widened and bool(
            graph.leading_to(symbol, graph.ends[symbol])[graph.has[symbol]].all()
        )

    @property
    def all_apart(self) -> bool:
        """Whether there is a clean border between any two lexemes."""
        return bool(self.allowed.all()) and all(map(self.can_be_chosen, range(len(self.cfg.lexemes))))

    @cached_property
    def _may_be_cut(self) -> bool:
        return bool(self._components.is_lazy.any()) or (not self._longest and self.cfg.skip >= 0)

    @cached_property
    def kinds(self) -> tuple[list[int], Bools]:
        """(by lexeme what it begins with, as a number, -1: a special token; of each number the classes of bytes before
        which a border is clean: those that skipped text begins with, too, if that can be read on to a clean border).
        """
        distinct, which = np.unique(self._first_classes & self._usable, axis=0, return_inverse=True)
        numbers = [-1 if self._is_special(symbol) else kind for symbol, kind in enumerate(which.ravel().tolist())]
        return numbers, self._behind_skipped(distinct)

    def _behind_skipped(self, kinds: Bools) -> Bools:
        """`kinds`, each with the classes that skipped text before it may begin with."""
        skip = self.cfg.skip
        if skip < 0 or skip in self._widened:
            return kinds
        graph, begins = self._graph, np.array([state for state, symbols in self._begins.items() if skip in symbols])
        firsts = np.flatnonzero(self._first_classes[skip] & self._usable)
        behind = graph.targets[np.ix_(begins, firsts)]
        while True:
            leads = graph.leading_to(skip, graph.ends[skip] & graph.is_clean(kinds))
            more = kinds.copy()
            more[:, firsts] |= leads[:, behind].all(axis=1)
            if (more == kinds).all():
                return kinds
            kinds = more

    @cached_property
    def _continued(self) -> tuple[Bools, Bools]:
        """By lexeme the classes that continue something at one of its ends, and at each of them."""
        graph = self._graph
        some = np.zeros((len(self.cfg.lexemes), self._lexer.class_count), dtype=np.bool_)
        every = np.ones_like(some)
        for symbol, ends in enumerate(graph.ends):
            goes_on = graph.goes_on[ends]
            some[symbol], every[symbol] = goes_on.any(axis=0), goes_on.all(axis=0) & (len(goes_on) > 0)
        return some, every

    @cached_property
    def allowed(self) -> Bools:
        """Whether there is a clean border behind a lexeme, see the module's docstring: bool, lexemes x kinds of what
        follows.
        """
        kinds, (some, every) = self.kinds[1].T.astype(np.float32), self._continued
        found = (~some).astype(np.float32) @ kinds > 0
        found &= np.array([self.can_be_chosen(symbol) for symbol in range(len(found))])[:, None]
        possible = (~every).astype(np.float32) @ kinds > 0
        doubtful = possible & ~found
        doubtful[sorted(self._widened)] = False
        for symbol in np.flatnonzero(doubtful.any(axis=1)).tolist():
            asked = np.flatnonzero(doubtful[symbol])
            found[symbol, asked] = self._can_read_on(symbol, self.kinds[1][asked])
        found[self._components.start_component < 0] = True
        return found

    def may_precede(self, symbol: int, other: int) -> bool:
        """Whether a border between two lexemes, without skipped text, is possible at all; True if in doubt."""
        components = self._components
        if self._is_special(symbol) or self._is_special(other) or self._may_be_cut or symbol in self._widened:
            return True
        ends = np.flatnonzero(components.component_accepts & (components.component_lexeme == symbol))
        targets = components.component_table.reshape(-1, self._lexer.class_count)[ends]
        grows = ((targets >= 0) & components.component_accepts[targets]).all(axis=0)
        return bool((self._first_classes[other] & ~grows).any())

    def _can_read_on(self, symbol: int, kinds: Bools) -> Bools:
        """By kind: whether every state in which a lexeme is read leads to an end of it that is clean before that."""
        graph = self._graph
        leads = graph.leading_to(symbol, graph.ends[symbol] & graph.is_clean(kinds))
        return np.asarray(leads[:, graph.has[symbol]].all(axis=1))

    @cached_property
    def _first_classes(self) -> Bools:
        """By lexeme the classes of bytes that it may begin with: bool, shape (lexemes, classes)."""
        components, count = self._components, self._lexer.class_count
        table = components.component_table.reshape(-1, count)
        first = table[components.start_component] >= 0
        first[components.start_component < 0] = False
        for symbol in self._widened:
            automaton, start = self._exact[symbol], self._starts.get(symbol, 0)
            reads = np.array([automaton.step(start, byte) >= 0 for byte in range(256)])
            first[symbol] = True
            first[symbol, components.byte_class[~reads]] = False
        return first

    def _is_special(self, symbol: int) -> bool:
        return int(self._components.start_component[symbol]) < 0


class _Graph:
    """The states of the lexer. `targets`: int32, state x classes, DEAD or where a lexeme ends at once; `goes_on`: bool,
    where it is not; `has`, `ends`: bool, lexemes x states, whether a lexeme is still read there, and whether
    it may end; `usable`: bool, the classes that texts may be made of.
    """

    def __init__(self, targets: npt.NDArray[np.int32], goes_on: Bools, has: Bools, ends: Bools, usable: Bools) -> None:
        self.targets, self.goes_on, self.has, self.ends, self._usable = targets, goes_on, has, ends, usable

    def is_clean(self, kinds: Bools) -> Bools:
        """Whether some of the classes of each kind go on from no state: bool, kinds x states."""
        return kinds.astype(np.float32) @ (~self.goes_on.T).astype(np.float32) > 0

    def leading_to(self, symbol: int, wanted: Bools) -> Bools:
        """The states `wanted`, and those in which a lexeme is read and from which it can be read on to one of them.

        `wanted`: bool, shape (..., states).
        """
        inside = np.flatnonzero(self.has[symbol])
        targets, goes_on = self.targets[inside], self.goes_on[inside] & self._usable
        reached = wanted.copy()
        while True:
            more = reached[..., inside] | (reached[..., targets] & goes_on).any(axis=-1)
            spend(more.size * len(self._usable))
            if (more == reached[..., inside]).all():
                return reached
            reached[..., inside] = more


def bits_of(members: int) -> list[int]:
    """The numbers of the bits that are set, ascending."""
    found = []
    while members:
        least = members & -members
        found.append(least.bit_length() - 1)
        members ^= least
    return found


def _with_small_automata(cfg: Cfg, lazy: dict[int, LazyDfa], starts: dict[int, int]) -> Cfg:
    """The grammar with explicit automata for these lexemes, which read what they read, or more."""
    lexemes = list(cfg.lexemes)
    for symbol, automaton in lazy.items():
        lexeme = lexemes[symbol]
        assert isinstance(lexeme, Lexeme)
        small = _small_automaton(automaton, starts.get(symbol, 0))
        lexemes[symbol] = replace(lexeme, automaton=partial(_from_its_start, small))
    return replace(cfg, lexemes=tuple(lexemes))


def _from_its_start(automaton: Dfa) -> tuple[Dfa, int]:
    return automaton, 0


def _small_automaton(automaton: LazyDfa, start: int) -> Dfa:
    """An explicit automaton that reads what a lazy one reads from `start` on, or more."""
    try:
        wide = LazyDfa(automaton.store, widened(automaton.store, automaton.expression(start)), EXPLICIT_STATES)
        return minimize(wide.to_dfa(EXPLICIT_STATES))
    except LimitExceeded as error:
        if error.limit != "max_states":
            raise
    reads, byte_class = np.unique(automaton.bytes_read, return_inverse=True)
    row = np.where(reads, 1, DEAD).astype(np.int32)
    return Dfa(np.array([row, row]), byte_class.astype(np.uint8), np.array([False, True]), 0)


def widened(store: ExpressionStore, expression: int) -> int:
    """An expression that contains the texts of another one, or more, with few states: repetitions have no bounds."""
    made: dict[int, int] = {}
    agenda = [expression]
    while agenda:
        here = agenda[-1]
        kind, *parts = store.view(here)
        below = parts[0] if kind in ("union", "intersection") else parts[: {"concat": 2, "repeat": 1}.get(kind, 0)]
        missing = [part for part in below if part not in made]
        if missing:
            agenda += missing
            continue
        agenda.pop()
        if here in made:
            continue
        spend(NS_PER_EXPRESSION)
        made[here] = _widened_node(store, here, kind, parts, made)
    return made[expression]


def _widened_node(store: ExpressionStore, node: int, kind: str, parts: list, made: dict[int, int]) -> int:  # type: ignore[type-arg]
    """`widened` of a node whose parts are widened."""
    if kind == "union":
        return store.union([made[part] for part in parts[0]])
    if kind == "intersection":
        return store.intersection([made[part] for part in parts[0]])
    if kind == "concat":
        return store.concat(made[parts[0]], made[parts[1]])
    if kind == "repeat":
        part, low, high = parts
        if low > KEPT_REPEATS or (high or 0) > KEPT_REPEATS:
            low, high = min(low, 1), None
        return store.repeat(made[part], low, high)
    if kind in ("look_ahead", "assertion"):
        return EMPTY  # where it holds, and where it does not
    return ANY_BYTES if kind == "complement" else node
