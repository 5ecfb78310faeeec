"""The ranks of situations: how far an end is, and whether there can be any, by the bytes that may be read.

The rank of a dot is the least number of lexemes that are still to come in its rule, that of an origin point the least
of what its items are at after it, with their own origins'. A situation has the least rank of the items that wait for a
lexeme that is being read, or of its fallback's. What has no way to an end has no rank (`FAR`).

Ranks lead searches for an end (`tokdfa.backends.some_end`), byte by byte: special tokens count as no way then. If
only some bytes may be read (`spelled`), lexemes without a text of these are no way either, and special tokens are one.
Then a situation without a rank is dead. One with a rank need not be live, as the lexing rule may be in the way.

Cost: O(grammar), once; then O(items), once for each origin point.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.grammar.cfg import SpecialTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.backends.earley_trie.spelled_components import SpelledComponents
    from tokdfa.grammar.cfg import Cfg

#: Closes a right side; the origin point of the whole text.
END, ROOT = -1, 0
#: What a symbol of a rule takes; and for the rank of a row that itself, a segment of it, and an item of one or a lexeme
#: that is read.
NS_PER_SYMBOL, NS_PER_ROW, NS_PER_SEGMENT, NS_PER_ITEM = 500, 6_000, 5, 200


class Ranks:
    """See the module's docstring. Not thread-safe."""

    def __init__(self, machine: Machine, spelled: SpelledComponents | None = None) -> None:
        self._machine, self._spelled = machine, spelled
        self._origins: dict[int, int] = {ROOT: 0}

    def of_situation(self, situation: int) -> int:
        """The rank of a situation: of the row and the lexer state, and of what the fallbacks would lead to."""
        rank, link = FAR, situation
        while link >= 0:
            row, state, link = self._machine.view(link)
            rank = min(rank, self._of_row(row, state))
        return rank

    def _of_row(self, row: int, state: int) -> int:
        rows, skip, lexer = self._machine.rows, self._machine.cfg.skip, self._machine.lexer
        read = {
            int(lexer.components.component_lexeme[component])
            for component in lexer.components_of(state)
            if self._spelled is None or self._spelled.can_end(component)
        }
        if skip in read:
            if self._spelled is not None and rows.accepts(row):
                return 1
            read = {symbol for symbol, lexemes in enumerate(self._lexemes) if lexemes < FAR}
        if self._spelled is not None and lexer.is_start(state):
            read |= {symbol for symbol in rows.allowed(row) if self._is_special(symbol)}
        segments = rows.segments(row)
        spend(NS_PER_ROW + NS_PER_SEGMENT * len(segments) + NS_PER_ITEM * len(read))
        items = [item for symbol, segment in segments if symbol in read for item in self._items_after(segment)]
        settle_ranks((origin for _, origin in items), self._origins, self._ways_out)
        return 1 + min((rest + self._origins[origin] for rest, origin in items), default=FAR)

    def _is_special(self, symbol: int) -> bool:
        return isinstance(self._machine.cfg.lexemes[symbol], SpecialTokens)

    def _ways_out(self, origin: int) -> list[tuple[int, int]]:
        """See `settle_ranks`."""
        return self._items_after(self._machine.rows.segment_of(origin))

    def _items_after(self, segment: int) -> list[tuple[int, int]]:
        """Of each item of a segment the rank of the dot after its symbol, and the origin point."""
        items = self._machine.rows.items_in(segment)
        spend(NS_PER_ITEM * len(items))
        return [(self._dots[dot + 1], origin) for dot, origin in items]

    @cached_property
    def _lexemes(self) -> list[int]:
        """By lexeme: 1, or FAR if it is no way."""
        lexemes = range(len(self._machine.cfg.lexemes))
        if self._spelled is None:
            return [FAR if self._is_special(symbol) else 1 for symbol in lexemes]
        return [1 if self._spelled.can_begin(symbol) else FAR for symbol in lexemes]

    @cached_property
    def _dots(self) -> list[int]:
        """The rank of each dot."""
        fewest, rhs = fewest_lexemes(self._machine.cfg, self._lexemes), self._machine.rows.right_sides.tolist()
        ranks = [0] * len(rhs)
        for dot in reversed(range(len(rhs))):
            if rhs[dot] != END:
                ranks[dot] = min(FAR, fewest[rhs[dot]] + ranks[dot + 1])
        return ranks


def fewest_lexemes(cfg: Cfg, lexemes: Sequence[int]) -> list[int]:
    """By symbol, the start's own included as the last: how many lexemes derive from it at least, FAR if none do.

    `lexemes`: as how many each lexeme counts.
    """
    fewest = [*lexemes, *([FAR] * (len(cfg.names) - len(lexemes)))]
    users = defaultdict(list)
    for left, right in cfg.rules:
        for symbol in right:
            users[symbol].append((left, right))
    agenda = list(cfg.rules)
    for left, right in agenda:  # grows on the way
        spend(NS_PER_SYMBOL * (1 + len(right)))
        found = sum(fewest[symbol] for symbol in right)
        if found < fewest[left]:
            fewest[left] = found
            agenda += users[left]
    return [*fewest, fewest[cfg.start]]
