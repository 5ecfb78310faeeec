"""Names of lexer states: two that agree on all strings as long as a token have one name, and so one division.

A name is made of those of the state's components (`tokdfa.regex.state_names`). Equal names mean that the states agree
so far, whatever they do later, in different grammars, too.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.state_names import ExpressionNames, name_states

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine


class StateNames:
    """Names of the lexer states of a machine, see the module's page: states of one name have one division.

    `depth`: bytes of the longest token of the vocabulary.
    """

    def __init__(self, machine: Machine, depth: int) -> None:
        self._machine, self._depth = machine, max(depth, 1)
        self._of_component: dict[int, str] = {}
        self._of_lexeme: dict[int, npt.NDArray[np.uint64]] = {}
        self._expressions: dict[int, ExpressionNames] = {}  # by the id of a store

    def describe(self, state: int) -> tuple[str, tuple[int, ...]]:
        """(the name of a lexer state, 64 hex digits; its lexemes in an order that the name implies).

        ("", ()) for a state without a name. Lexemes that are named alike behave alike, so their order does not matter.
        """
        lexer = self._machine.lexer
        parts = []
        for component in lexer.components_of(state):
            name = self._of_component.get(component)
            if name is None:
                name = self._of_component[component] = self._name(component)
            if not name:
                return "", ()
            parts.append((name, int(lexer.components.component_lexeme[component])))
        parts.sort()
        rule = f"depth={self._depth} longest={int(self._machine.longest)} start={lexer.is_start(state)}"
        text = "|".join([rule, *(name for name, _ in parts)])
        return hashlib.sha256(text.encode()).hexdigest(), tuple(lexeme for _, lexeme in parts)

    def _name(self, component: int) -> str:
        """What a component is, whatever its number; "" for one without a name."""
        components = self._machine.lexer.components
        symbol, explicit = int(components.component_lexeme[component]), components.first_lazy
        if component >= explicit:
            automaton = components.automata[symbol]
            assert isinstance(automaton, LazyDfa)
            expression = automaton.expression(components.lazy_states[component - explicit][1])
            store = automaton.store
            names = self._expressions.setdefault(id(store), ExpressionNames(store, self._depth))
            described = names.describe(expression)
            return f"{described} {bool(components.is_lazy[symbol])}" if described else ""
        first, past = np.searchsorted(components.component_lexeme[:explicit], [symbol, symbol + 1]).tolist()
        if symbol not in self._of_lexeme:
            rows = components.component_table.reshape(-1, components.class_count)[first:past]
            accepting = components.component_accepts[first:past]
            self._of_lexeme[symbol] = name_states(rows, accepting, components.byte_class, self._depth, first)
        return f"{self._of_lexeme[symbol][component - first].tobytes().hex()} {bool(components.is_lazy[symbol])}"
