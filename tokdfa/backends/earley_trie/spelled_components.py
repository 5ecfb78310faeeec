"""Which components of a lexer can still become a lexeme if only some bytes may be read.

Those of explicit automata by coreachability with the other bytes taken away, all at once; those of lazy ones as
`tokdfa.backends.lazy_liveness` says.

Cost: O(components x classes), once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.liveness import leading_to
from tokdfa.backends.lazy_liveness import LazyLiveness
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.grammar.cfg import Lexeme
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.grammar.lexer_components import Components

#: Work (`tokdfa.core.budget`) of an entry of the table of components, in nanoseconds.
NS_PER_ENTRY = 10


class SpelledComponents:
    """See the module's docstring. `available`: bool, shape (256,). Not thread-safe, as the components are not."""

    def __init__(self, components: Components, available: npt.NDArray[np.bool_]) -> None:
        self._components, self._available = components, available
        self._lazy: dict[int, LazyLiveness] = {}  # by id of the automaton, which lexemes share

    @cached_property
    def everywhere(self) -> bool:
        """Whether every component, those not met yet included, surely becomes a lexeme."""
        if self._available.all():
            return True
        symbols = [symbol for symbol, made in self._components.automata.items() if isinstance(made, LazyDfa)]
        return all(map(self._is_surely_spelled, symbols)) and bool(self._explicit.all())

    def can_end(self, component: int) -> bool:
        """Whether available bytes make a lexeme of a component. Raises LimitExceeded."""
        components = self._components
        if component < components.first_lazy:
            return bool(self._explicit[component])
        symbol, state = components.lazy_states[component - components.first_lazy]
        return self._liveness_of(symbol).can_end(state)

    def can_begin(self, symbol: int) -> bool:
        """Whether a lexeme has a text of available bytes; special tokens, which have no bytes, count as such."""
        component = int(self._components.start_component[symbol])
        return component < 0 or self.can_end(component)

    def _liveness_of(self, symbol: int) -> LazyLiveness:
        automaton = self._components.automata[symbol]
        assert isinstance(automaton, LazyDfa)
        if id(automaton) not in self._lazy:
            self._lazy[id(automaton)] = LazyLiveness(automaton, self._available)
        return self._lazy[id(automaton)]

    def _is_surely_spelled(self, symbol: int) -> bool:
        lexeme = self._components.cfg.lexemes[symbol]
        spelled_by = lexeme.spelled_by if isinstance(lexeme, Lexeme) else None
        return (spelled_by is not None and bool(self._available[[*spelled_by]].all())) or self._liveness_of(
            symbol
        ).always

    @cached_property
    def _explicit(self) -> npt.NDArray[np.bool_]:
        """bool, shape (components of explicit automata,): which of them end."""
        components = self._components
        count, classes = components.first_lazy, components.class_count
        table = components.component_table[: count * classes].reshape(-1, classes)
        read = np.flatnonzero((table >= 0).any(axis=0))
        if self._available[np.isin(components.byte_class, read)].all():
            return np.ones(count, dtype=np.bool_)  # every component can become a lexeme, and no other bytes are read
        spend(NS_PER_ENTRY * table.size)
        available = np.unique(components.byte_class[self._available])
        return leading_to(table[:, available], components.component_accepts[:count])
