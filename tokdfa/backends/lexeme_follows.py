"""Which lexemes may follow which in a grammar, and so which may meet (`tokdfa.backends.lexeme_borders`).

Two lexemes may meet if both may follow one, or begin a text, or follow two that end together. That is more than rows
of a parser show, as it is asked of the lexeme before alone. Sets of lexemes are bits of an int.

Source: FIRST and FOLLOW (Aho, Sethi, Ullman, "Compilers", section 4.4). Cost: about 0.4 us a symbol of the rules, and
as much a lexeme for every round of `Follows.meet`, of which there are a few.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.grammar.simplify import nullable_symbols

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tokdfa.backends.lexeme_borders import Borders
    from tokdfa.grammar.cfg import Cfg

#: What a symbol of a rule takes each time it is looked at.
NS_PER_SYMBOL = 400


class Follows:
    """What may follow what in a grammar: sets of symbols as bits.

    `first`, `last`: the lexemes with which what a symbol derives begins and ends; `behind`: by lexeme those that may be
    read behind it, `start` those that a text may begin with.
    """

    def __init__(self, cfg: Cfg) -> None:
        self.cfg, self.nullable = cfg, nullable_symbols(cfg)
        count = len(cfg.lexemes)
        self.first, self.last = self._ends(1), self._ends(-1)
        after = self._after()
        self.behind, self.start = after[:count], self.first[cfg.start]
        if cfg.skip >= 0:
            self.behind = [found | 1 << cfg.skip for found in self.behind]
            self.start |= 1 << cfg.skip

    def meet(self, borders: Borders) -> None:
        """Have `borders` read all lexemes that may meet: those behind one, and behind several that end together.

        Of lexemes that end together, what may follow one may follow each. If one of them is skipped text, what could be
        read before it goes on, too.
        """
        skip, sources = self.cfg.skip, defaultdict[int, set[int]](set)
        found, known = [*self.behind, self.start], set[int]()  # the last one: behind nothing
        beside_skip = 0  # what may end together with skipped text
        while new := set(found) - known:
            known |= new
            for lexemes in borders.read(sorted(new)):
                _join(sources, lexemes)
                if skip in lexemes:
                    beside_skip |= sum(1 << symbol for symbol in lexemes if symbol != skip)
            gather(found, sources)
            while more := [
                last for last, behind in enumerate(found) if behind & beside_skip and last not in sources[skip]
            ]:
                _join(sources, (skip, *more))
                gather(found, sources)
        self.behind, self.start = found[:-1], found[-1]

    def _ends(self, direction: int) -> list[int]:
        """By symbol the lexemes at one end of what it derives."""
        count = len(self.cfg.lexemes)
        found = [1 << symbol if symbol < count else 0 for symbol in range(len(self.cfg.names))]
        sources = defaultdict[int, set[int]](set)
        for left, right in self.cfg.rules:
            for symbol in right[::direction]:
                sources[left].add(symbol)
                if symbol not in self.nullable:
                    break
        gather(found, sources)
        return found

    def _after(self) -> list[int]:
        """By symbol the lexemes that may come next behind it."""
        found, sources = [0] * len(self.cfg.names), defaultdict[int, set[int]](set)
        for left, right in self.cfg.rules:
            after, is_last = 0, True
            for symbol in reversed(right):
                spend(NS_PER_SYMBOL)
                found[symbol] |= after
                if is_last:
                    sources[symbol].add(left)
                is_last = is_last and symbol in self.nullable
                after = self.first[symbol] | (after if symbol in self.nullable else 0)
        gather(found, sources)
        return found


def _join(sources: dict[int, set[int]], symbols: Sequence[int]) -> None:
    """Let the sets of some symbols be gathered from each other."""
    for symbol in symbols:
        sources[symbols[0]].add(symbol)
        sources[symbol].add(symbols[0])


def gather(found: list[int], sources: Mapping[int, Collection[int]]) -> None:
    """Add to the set of each symbol those of its sources, of their sources, and so on.

    Symbols that are sources of each other have one set. By strongly connected components (Tarjan, "Depth-first search
    and linear graph algorithms", 1972), each behind those that it draws from, so that every edge is followed once.
    """
    order, lowest, unfinished = dict[int, int](), dict[int, int](), list[int]()
    for root in sources:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        unfinished.append(root)
        path = [(root, iter(sources[root]))]
        while path:
            symbol, rest = path[-1]
            for source in rest:
                spend(NS_PER_SYMBOL)
                if source not in sources:
                    found[symbol] |= found[source]
                elif source not in order:
                    order[source] = lowest[source] = len(order)
                    unfinished.append(source)
                    path.append((source, iter(sources[source])))
                    break
                else:
                    found[symbol] |= found[source]
                    lowest[symbol] = min(lowest[symbol], lowest[source])
            else:
                path.pop()
                if lowest[symbol] == order[symbol]:
                    member = -1
                    while member != symbol:
                        member = unfinished.pop()
                        found[member], lowest[member] = found[symbol], len(found)
                if path:
                    above = path[-1][0]
                    found[above] |= found[symbol]
                    lowest[above] = min(lowest[above], lowest[symbol])
