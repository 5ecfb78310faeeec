"""The ranks of situations: how far an end is, for searches for one (`tokdfa.backends.some_end`).

The rank of a dot is the least number of lexemes that are still to come in its rule, that of an origin point the least
of what its items are at after it, with their own origins'. A situation has the least rank of the items that wait for a
lexeme that is being read. Special tokens count as no way, since no byte reads them.

Cost: O(grammar), once; then O(items), once for each origin point.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.backends.earley_trie.earley_rows import END, ROOT
from tokdfa.backends.some_end import FAR, settle_ranks
from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.grammar.cfg import SpecialTokens

if TYPE_CHECKING:
    from tokdfa.backends.earley_trie.machine import Machine
    from tokdfa.grammar.cfg import Cfg

#: What a symbol of a rule takes.
NS_PER_SYMBOL = 500


class Ranks:
    """See the module's docstring. Not thread-safe."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._origins: dict[int, int] = {ROOT: 0}

    def of_situation(self, situation: int) -> int:
        """The rank of a situation; what a fallback would lead to is left out."""
        row, state, _ = self._machine.view(situation)
        rows, skip = self._machine.rows, self._machine.cfg.skip
        begin, past = rows.segment_begin[row : row + 2].tolist()
        read = set(self._machine.lexer.lexemes_in(state))
        waiting = range(len(self._machine.cfg.lexemes)) if skip in read else read
        segments = [k for k in range(begin, past) if int(rows.segment_symbol[k]) in waiting]
        items = [item for segment in segments for item in self._items_after(segment)]
        settle_ranks((origin for _, origin in items), self._origins, self._ways_out)
        return 1 + min((rest + self._origins[origin] for rest, origin in items), default=FAR)

    def _ways_out(self, origin: int) -> list[tuple[int, int]]:
        """See `settle_ranks`."""
        return self._items_after(int(self._machine.rows.origin_segment[origin]))

    def _items_after(self, segment: int) -> list[tuple[int, int]]:
        """Of each item of a segment the rank of the dot after its symbol, and the origin point."""
        rows = self._machine.rows
        items = slice(*rows.segment_first[segment : segment + 2].tolist())
        dots, origins = rows.item_dot[items].tolist(), rows.item_origin[items].tolist()
        return [(self._dots[dot + 1], origin) for dot, origin in zip(dots, origins, strict=True)]

    @cached_property
    def _dots(self) -> list[int]:
        """The rank of each dot."""
        fewest, rhs = fewest_lexemes(self._machine.cfg), self._machine.rows.rhs.tolist()
        ranks = [0] * len(rhs)
        for dot in reversed(range(len(rhs))):
            if rhs[dot] != END:
                ranks[dot] = min(FAR, fewest[rhs[dot]] + ranks[dot + 1])
        return ranks


def fewest_lexemes(cfg: Cfg) -> list[int]:
    """By symbol, the start's own included as the last: how many lexemes derive from it at least, FAR if none do."""
    fewest = [FAR] * len(cfg.names)
    for symbol, lexeme in enumerate(cfg.lexemes):
        fewest[symbol] = FAR if isinstance(lexeme, SpecialTokens) else 1
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
