"""Expressions that are empty because few of their parts are: a proof that needs no search of the whole.

"a, and neither b nor c nor d" is empty once b has all that a has, as where a text is to contain one of several words
and has another (``oneOf`` in JSON Schema). To see that by derivatives of the whole, one for each combination of states
of all four, takes thousands; those of a & ~b are few. So an intersection is looked at in pairs of something that it
demands and something that it excludes. A union that is excluded excludes each of its parts.

Source: ours; that an intersection is empty if that of some of its parts is needs no source. Cost: 20 µs a state of a
pair, up to MOST_STATES, once for a pair.
"""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

from tokdfa.regex.nodes import K_COMPLEMENT, K_CONCAT, K_INTERSECTION, K_UNION
from tokdfa.regex.shortest import ShortestTexts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tokdfa.regex.expression import ExpressionStore

#: Pairs of an intersection that are looked at, and states of each.
MOST_PAIRS, MOST_STATES = 16, 256


class EmptyParts:
    """What was found out about pairs of parts. `proves_empty`: `tokdfa.regex.lazy_dfa.LazyDfa.proves_empty`."""

    def __init__(self, store: ExpressionStore, proves_empty: Callable[[int, int], bool]) -> None:
        self._store, self._proves_empty = store, proves_empty
        self._shortest = ShortestTexts(store)
        self._found: dict[int, bool] = {}  # pair -> whether it was proved empty

    def has_empty_part(self, expression: int) -> bool:
        """Whether an expression is empty because some of its parts are; False says nothing."""
        store = self._store
        if store.has_assertions(expression) or not store.is_boolean(expression):
            return False
        while store.kind(expression) == K_CONCAT:
            head, expression, _ = store.fields(expression)
            if self.has_empty_part(head):
                return True
        if store.kind(expression) == K_UNION:
            return all(map(self.has_empty_part, store.members(expression)))
        return store.kind(expression) == K_INTERSECTION and any(map(self._is_empty, self._pairs(expression)))

    def _pairs(self, intersection: int) -> Iterator[int]:
        store, demanded, excluded = self._store, [], []
        for part in store.members(intersection):
            if store.kind(part) == K_COMPLEMENT:
                inside = store.fields(part)[0]
                excluded += store.members(inside) if store.kind(inside) == K_UNION else [inside]
            else:
                demanded.append(part)
        excluded.sort(key=self._shortest.bound)  # what has short texts is likelier to have all
        for one, other in islice(product(demanded, excluded), MOST_PAIRS):
            yield store.intersection([one, store.complement(other)])

    def _is_empty(self, pair: int) -> bool:
        if pair not in self._found:
            self._found[pair] = self._proves_empty(pair, MOST_STATES)
        return self._found[pair]
