"""A regular constraint as a grammar of one lexeme, for engines that take grammars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.regex.compile import lower_constraint
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    from tokdfa.constraint import Constraint


def regular_cfg(constraint: Constraint) -> Cfg:
    """text -> lexeme, and text -> nothing if the constraint allows the empty text.

    The lexeme may then be nullable, which a lexer does not mind: it never ends a lexeme before its first byte.
    Raises RegexSyntaxError, RegexUnsupported or EmptyLanguageError.
    """
    store = ExpressionStore()
    expression = lower_constraint(constraint, store)
    automaton = LazyDfa(store, expression)
    if automaton.is_empty:
        raise EmptyLanguageError(f"no text matches {constraint.name!r}; nothing could be generated")
    rules: list[tuple[int, tuple[int, ...]]] = [(1, (0,))]
    if automaton.accepting[0]:
        rules.append((1, ()))
    return Cfg((Lexeme(constraint.name, expression),), (constraint.name, "text"), tuple(rules), 1, -1, store)
