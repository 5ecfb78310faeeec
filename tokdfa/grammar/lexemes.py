"""Questions about expressions that are to be lexemes: which is empty, and what is one without its empty text.

A lexeme never matches the empty text (`tokdfa.grammar.cfg`), so a terminal that may be empty becomes a choice between
nothing and the lexeme `without_empty`. Wherever the terminal is written without ``&`` and ``~``, that lexeme is again
written without them, by these laws, where e' is e without the empty text:

- (e | f)' = e' | f';
- (e f g)' = e' f g | f' g | g' if all may be empty, else e f g;
- (e{m,n})' = e{1,n} if e cannot be empty, else e'{1,n}.

An intersection or complement is cut with "any bytes, one or more".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.regex.expression import ANY_BYTE, ANY_BYTES, NOTHING
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
    """The expression of all texts of `expression` but the empty one. O(nodes that may be empty), no recursion."""
    found, pending = {expression}, [expression]
    while pending:
        for part in _parts(store, pending.pop()):
            if part not in found and store.nullable(part):
                found.add(part)
                pending.append(part)
    cut: dict[int, int] = {}
    for part in sorted(found):  # parts have smaller numbers than what they are part of
        cut[part] = _cut(store, part, cut) if store.nullable(part) else part
    return cut[expression]


def _parts(store: ExpressionStore, expression: int) -> list[int]:
    """The parts of which `_cut` needs to know what they are without the empty text."""
    match store.view(expression):
        case ("union", members):
            return list(members)
        case ("concat", _, _):
            heads, tails = _chain(store, expression)
            return [*heads, tails[-1]]
        case ("repeat", body, _, _):
            return [body]
    return []


def _chain(store: ExpressionStore, expression: int) -> tuple[list[int], list[int]]:
    """The parts of a concatenation but the last, and for each what follows it; the last of those is the last part."""
    heads, tails = [], []
    while (view := store.view(expression))[0] == "concat":
        heads.append(view[1])
        tails.append(expression := view[2])
    return heads, tails


def _cut(store: ExpressionStore, expression: int, cut: dict[int, int]) -> int:
    """`without_empty` of a nullable expression; `cut` has that of its nullable parts."""
    match store.view(expression):
        case ("empty",):
            return NOTHING
        case ("union", members):
            return store.union(cut.get(member, member) for member in members)
        case ("concat", _, _):
            heads, tails = _chain(store, expression)
            pieces = [store.concat(cut[head], tail) for head, tail in zip(heads, tails, strict=True)]
            return store.union([*pieces, cut[tails[-1]]])
        case ("repeat", body, _, high):
            return store.repeat(cut.get(body, body), 1, high)
    return store.intersection([expression, store.concat(ANY_BYTE, ANY_BYTES)])
