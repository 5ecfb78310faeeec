"""Which states of a lazy automaton come to an end if only some bytes may be read.

A state stands for an expression. Without intersection, complement and assertions the expression tells: with the other
bytes taken away from its byte sets, it has a text unless it is *nothing*, which `tokdfa.regex.shortest` finds for all
expressions in one pass. With them, an expression whose bound is `NEVER` has none; others are searched, those with the
shortest texts first.

*Always.* If in addition each byte set of the root holds an available byte, so does each of every derivative, as these
are made of parts of the root: then every state comes to an end, whatever was read before.

Cost: O(expressions), once; a search some 20 us a state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.coaccessible import CoaccessibleSearch
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.regex.nodes import K_BYTES, K_CONCAT, K_REPEAT, K_UNION
from tokdfa.regex.shortest import NEVER, ShortestTexts

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.regex.lazy_dfa import LazyDfa

#: What an expression takes, and a row of an automaton, besides what it derives.
NS_PER_NODE, NS_PER_ROW = 2_000, 10_000
#: What a search says past its limit, with the number of states.
NO_WAY = "the vocabulary lacks some bytes as tokens, and no text of a terminal was found among {} states; simplify it"


class LazyLiveness:
    """See the module's docstring. `available`: bool, shape (256,). Not thread-safe, as the automaton is not."""

    def __init__(self, automaton: LazyDfa, available: npt.NDArray[np.bool_]) -> None:
        self._automaton, self._available = automaton, available
        self._bounds = ShortestTexts(automaton.store, available)
        self._columns = np.array(sorted(set(automaton.byte_class[available].tolist())), dtype=np.int64)
        self._search = CoaccessibleSearch(
            self._successors,
            lambda state: bool(automaton.accepting[state]),
            automaton.max_states,
            lambda state: self._bounds.bound(automaton.expression(state)),
            NO_WAY,
            self._outlook,
        )

    @cached_property
    def always(self) -> bool:
        """Whether every state that any bytes lead to surely comes to an end."""
        automaton, store = self._automaton, self._automaton.store
        if not (automaton.bytes_read & ~self._available).any():
            return True
        if store.is_boolean(automaton.root):
            return False
        met, agenda = {automaton.root}, [automaton.root]
        while agenda:
            node = agenda.pop()
            spend(NS_PER_NODE)
            kind, (first, second, _) = store.kind(node), store.fields(node)
            if kind == K_BYTES and not (store.bytes_of(node) & self._available).any():
                return False
            parts = [first, second] if kind == K_CONCAT else [first] if kind == K_REPEAT else []
            parts = store.members(node) if kind == K_UNION else parts
            agenda += [part for part in parts if part not in met]
            met.update(parts)
        return True

    def can_end(self, state: int) -> bool:
        """Whether available bytes lead from a state to an end. Raises LimitExceeded."""
        return self.always or self._search.is_live(state)

    def _outlook(self, state: int) -> bool | None:
        expression = self._automaton.expression(state)
        if self._bounds.bound(expression) >= NEVER:
            return False
        return None if self._automaton.store.is_boolean(expression) else True

    def _successors(self, state: int) -> list[int]:
        automaton, row = self._automaton, state * self._automaton.class_count
        spend(NS_PER_ROW)
        automaton.fill_row(row)
        reached = set(automaton.transitions[row + self._columns].tolist())
        return [target // automaton.class_count for target in sorted(reached) if target >= 0]
