"""The automata of all lexemes in one table: what a lexer state is made of.

Words. A *component* is one state of one lexeme's automaton. The bytes fall into *classes* that no component tells
apart.

Layout. Components of all lexemes are numbered together; their table is flat, int32, row = component x classes. Those of
explicit automata come first, lexeme by lexeme. Large automata (counters up to 100,000) stay lazy: their states get a
number when they are met, and a row when compiled code asks for it. Which automata are small enough, and how those of
literals are written down at once, says `tokdfa.grammar.lexeme_automata`.

Cost: 5 us for a chain; other lexemes 0.5 to 2 ms together, 0.15 ms or more each where they are made one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.automata.dfa import Dfa
from tokdfa.core.budget import hold
from tokdfa.errors import LimitExceeded
from tokdfa.grammar.lexeme_automata import Part, byte_sets, read_automata
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN

if TYPE_CHECKING:
    from tokdfa.grammar.cfg import Cfg

Int32 = npt.NDArray[np.int32]


class Components:
    """The components of a grammar's lexemes. Not thread-safe: `fill_row` replaces arrays that are full.

    `max_states` bounds the components that are made on demand. Raises EmptyLanguageError, which names the terminal.
    """

    # replaced as they grow, see `_build`
    component_table: Int32
    component_lexeme: Int32
    component_accepts: npt.NDArray[np.bool_]
    component_ends: npt.NDArray[np.bool_]

    def __init__(self, cfg: Cfg, max_states: int) -> None:
        self.cfg, self.max_states = cfg, max_states
        self._numbers: dict[tuple[int, int], int] = {}  # (lexeme, state of its lazy automaton) -> component
        #: The inverse of numbering: (lexeme, state of its lazy automaton) of each component from `first_lazy` on.
        self.lazy_states: list[tuple[int, int]] = []
        self.automata = read_automata(cfg, max_states)
        #: uint8, shape (256,): byte -> class; int32, shape (classes,): a byte of each class.
        self.byte_class, self.representatives = self.automata.common_classes()
        self.class_count = len(self.representatives)
        #: int32, shape (lexemes,): the component in which each lexeme starts, -1 for special tokens.
        self.start_component = np.full(len(cfg.lexemes), -1, dtype=np.int32)
        self._build()

    def fill_row(self, component: int) -> None:
        """Make the row of a state of a lazy automaton. Raises LimitExceeded, which names the terminal."""
        symbol, state = self.lazy_states[component - self.first_lazy]
        automaton = self.automata[symbol]
        assert isinstance(automaton, LazyDfa)
        row = state * automaton.class_count
        try:
            automaton.fill_row(row)
        except LimitExceeded as error:
            if error.limit != "max_states":
                raise
            raise self._too_many_states(symbol) from error
        targets = automaton.transitions[row : row + automaton.class_count].copy()
        for place in np.flatnonzero(targets >= 0).tolist():
            targets[place] = self._number(symbol, int(targets[place]) // automaton.class_count)
        begin = component * self.class_count
        self.component_table[begin : begin + self.class_count] = targets[automaton.byte_class[self.representatives]]

    def _build(self) -> None:
        """Number the states of chains and explicit automata, and the starts of lazy ones."""
        automata, chains = self.automata, self.automata.chains
        sizes = np.zeros(len(self.cfg.lexemes), dtype=np.int32)
        sizes[list(chains)] = [len(chain) + 1 for chain in chains.values()]
        explicit = {symbol: automaton for symbol, automaton in automata.items() if isinstance(automaton, Dfa | Part)}
        sizes[list(explicit)] = [len(automaton.accepting) for automaton in explicit.values()]
        past = np.cumsum(sizes, dtype=np.int32)
        hold(int(sizes.sum()) * (4 * self.class_count + 6))
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
        for symbol in explicit.keys() & automata.starts.keys():
            self.start_component[symbol] += automata.starts[symbol]
        self.is_lazy = np.array([getattr(lexeme, "lazy", False) for lexeme in self.cfg.lexemes], dtype=np.bool_)
        #: Components from here on belong to lazy automata.
        self.first_lazy = len(rows)
        for symbol, lazy in automata.items():
            if isinstance(lazy, LazyDfa):
                self.start_component[symbol] = self._number(symbol, automata.starts.get(symbol, 0))

    def _number(self, symbol: int, state: int) -> int:
        """The component of a state of a lazy automaton; a new one has no row yet."""
        found = self._numbers.get((symbol, state))
        if found is None:
            found = self.first_lazy + len(self.lazy_states)
            if len(self.lazy_states) >= self.max_states:
                raise self._too_many_states(symbol)
            if found >= len(self.component_accepts):
                more = max(64, found)
                hold(more * (4 * self.class_count + 10))
                self.component_table = np.concatenate(
                    [self.component_table, np.full(more * self.class_count, UNKNOWN, dtype=np.int32)]
                )
                self.component_accepts = np.concatenate([self.component_accepts, np.zeros(more, dtype=np.bool_)])
                self.component_ends = np.concatenate([self.component_ends, np.zeros(more, dtype=np.bool_)])
                self.component_lexeme = np.concatenate([self.component_lexeme, np.zeros(more, dtype=np.int32)])
            self._numbers[symbol, state] = found
            self.lazy_states.append((symbol, state))
            automaton = self.automata[symbol]
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
