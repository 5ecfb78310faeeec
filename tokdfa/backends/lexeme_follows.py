"""Which lexemes may follow which in a grammar, and so which may meet (`tokdfa.backends.lexeme_borders`).

Two lexemes may meet if both may follow one, or begin a text, or follow two that end together. That is more than rows
of a parser show, as it is asked of the lexeme before alone. Sets of lexemes are bits of an int.

Source: FIRST and FOLLOW (Aho, Sethi, Ullman, "Compilers", section 4.4). Cost: about 0.4 us a symbol of the rules and
round, of which there are a few.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tokdfa.core.budget import spend
from tokdfa.grammar.simplify import nullable_symbols

if TYPE_CHECKING:
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
        self.rules_of: dict[int, list[tuple[int, ...]]] = defaultdict(list)
        for left, right in cfg.rules:
            self.rules_of[left].append(right)
        self.first, self.last = self._ends(1), self._ends(-1)
        after = self._after()
        self.behind, self.start = after[:count], self.first[cfg.start]
        if cfg.skip >= 0:
            self.behind = [found | 1 << cfg.skip for found in self.behind]
            self.start |= 1 << cfg.skip

    def meet(self, borders: Borders) -> None:
        """Have `borders` read all lexemes that may meet: those behind one, and behind several that end together."""
        known, together = set[int](), set[tuple[int, ...]]()
        while new := {self.start, *self.behind} - known:
            known |= new
            together |= borders.read(sorted(new))
            while any(self._join(lexemes) for lexemes in together):
                pass

    def _join(self, together: tuple[int, ...]) -> bool:
        """Let what may follow one of some lexemes that end together follow each; whether that is news.

        If one of them is skipped text, what could be read before it goes on, too.
        """
        before, skip = (self.start, *self.behind), self.cfg.skip
        others = 0
        for symbol in together:
            others |= self.behind[symbol]
        if skip in together:
            bits = sum(1 << symbol for symbol in together if symbol != skip)
            for other, found in enumerate(self.behind):
                if found & bits:
                    others |= found
                    self.behind[other] |= others
            if self.start & bits:
                others |= self.start
                self.start |= others
        for symbol in together:
            self.behind[symbol] |= others
        return before != (self.start, *self.behind)

    def _ends(self, direction: int) -> list[int]:
        """By symbol the lexemes at one end of what it derives."""
        count = len(self.cfg.lexemes)
        found = [1 << symbol if symbol < count else 0 for symbol in range(len(self.cfg.names))]
        users = defaultdict(list)
        for left, right in self.cfg.rules:
            for symbol in right[::direction]:
                users[symbol].append(left)
                if symbol not in self.nullable:
                    break
        agenda = [symbol for symbol in range(count) if symbol in users]
        while agenda:
            symbol = agenda.pop()
            for left in users[symbol]:
                spend(NS_PER_SYMBOL)
                if found[left] | found[symbol] != found[left]:
                    found[left] |= found[symbol]
                    agenda.append(left)
        return found

    def _after(self) -> list[int]:
        """By symbol the lexemes that may come next behind it."""
        found, followers = [0] * len(self.cfg.names), defaultdict(set)
        for left, right in self.cfg.rules:
            after, is_last = 0, True
            for symbol in reversed(right):
                spend(NS_PER_SYMBOL)
                found[symbol] |= after
                if is_last and symbol != left:
                    followers[left].add(symbol)
                is_last = is_last and symbol in self.nullable
                after = self.first[symbol] | (after if symbol in self.nullable else 0)
        agenda = list(followers)
        while agenda:
            left = agenda.pop()
            for symbol in followers[left]:
                spend(NS_PER_SYMBOL)
                if found[symbol] | found[left] != found[symbol]:
                    found[symbol] |= found[left]
                    if symbol in followers:
                        agenda.append(symbol)
        return found
