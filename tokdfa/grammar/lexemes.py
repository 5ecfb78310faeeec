"""Questions about expressions that are to be lexemes: which is empty, and what is one without its empty text.

A lexeme never matches the empty text (`tokdfa.grammar.cfg`), so a terminal that may be empty becomes a choice between
nothing and the lexeme `without_empty`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.expression import ANY_BYTE, ANY_BYTES, EMPTY, NOTHING
from tokdfa.regex.lazy_dfa import LazyDfa
from tokdfa.regex.nodes import F_INHABITED

if TYPE_CHECKING:
    from tokdfa.regex.expression import ExpressionStore

#: States that the search for a text of an intersection or complement may make.
MAX_PROOF_STATES = 100_000


def matches_nothing(store: ExpressionStore, expression: int) -> bool:
    """Whether no text matches. O(1) without intersections and complements; with them a search that stops at a text.

    Raises LimitExceeded if the search makes more than `MAX_PROOF_STATES` states.
    """
    if store.is_boolean(expression):
        return LazyDfa(store, expression, MAX_PROOF_STATES).is_empty
    return not store.nodes[expression, 0] & F_INHABITED


def without_empty(store: ExpressionStore, expression: int) -> int:
    """The expression of all texts of `expression` but the empty one.

    Of ``e?``, ``e*`` and ``e{,n}`` it is written without an intersection, which keywords and counters are read faster
    without; else it is the intersection with "any bytes, one or more", which is gone after the first byte.
    """
    if not store.nullable(expression):
        return expression
    match store.view(expression):
        case ("empty",):
            return NOTHING
        case ("union", members):
            rest = store.union(member for member in members if member != EMPTY)
            if rest != expression:
                return without_empty(store, rest)
        case ("repeat", body, _, high) if not store.nullable(body):
            return store.repeat(body, 1, high)
    return store.intersection([expression, store.concat(ANY_BYTE, ANY_BYTES)])
