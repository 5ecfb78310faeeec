"""Whether all that a grammar reads stands in clean derivations, step 1 of `tokdfa.backends.longest_match`.

What matters of a text so far is its last lexeme, or rather the lexemes that may cleanly follow it: its *class*. For
every nonterminal and every class before it the classes behind it are known by a fixed point, as are the classes from
which what a rule still lacks leads to its end. Then two questions are asked until one is answered by yes:

1. Can each rule be read on to its end from each of its dots, whatever stands behind it? That takes one look at each.
2. Does every lexeme that may be read at a place of a text stand in some clean derivation? Places are sets of dots, as
   the states of an LR(0) automaton are (Aho, Sethi, Ullman, "Compilers", section 4.7), each visited once.

Cost: about 0.4 us a symbol of the rules and class, and in the second case as much for each place that it may be read
at: a grammar may have as many places as rules.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from tokdfa.backends.lexeme_borders import bits_of
from tokdfa.backends.lexeme_follows import NS_PER_SYMBOL
from tokdfa.core.budget import spend

if TYPE_CHECKING:
    from tokdfa.backends.lexeme_borders import Borders
    from tokdfa.backends.lexeme_follows import Follows
    from tokdfa.grammar.cfg import Cfg

#: The dots of the rules that may be read on at a place of a text, each with the classes that are live behind its rule.
Place = frozenset[tuple[int, int]]


class CleanDerivations:
    """See the module's docstring. Classes are bits; `live`: the classes from which what comes later can be read to the
    end.
    """

    def __init__(self, cfg: Cfg, borders: Borders, follows: Follows) -> None:
        self.cfg, self.borders, self.follows = cfg, borders, follows
        self.count = len(cfg.lexemes)
        numbers = borders.kinds[0]
        apart: dict[tuple[bool, ...], int] = {}
        allowed_kinds = map(tuple, borders.allowed.tolist())
        self.class_of = [1 << apart.setdefault(kinds, len(apart)) for kinds in allowed_kinds]
        self.free = 1 << len(apart)  # the class before the first lexeme: anything may follow
        self.every = 2 * self.free - 1
        #: By lexeme, the classes that it may follow cleanly.
        self.follow = []
        for symbol, kind in enumerate(numbers):
            classes = self.free
            for allowed, number in apart.items():
                if kind < 0 or allowed[kind]:
                    classes |= 1 << number
            self.follow.append(classes if borders.can_be_chosen(symbol) else 0)
        #: A *dot* is a place in a rule: of every one the symbol behind it, -1 at the end of the rule, by nonterminal
        #: the dots that its rules begin with, and in the first place that before the whole text.
        self._symbols, self._ends = [cfg.start, -1], [1, 1]
        self._begins = defaultdict[int, list[int]](list)
        for left, right in cfg.rules:
            begin = len(self._symbols)
            self._begins[left].append(begin)
            self._symbols += [*right, -1]
            self._ends += [begin + len(right)] * (len(right) + 1)
        self._lives = dict[tuple[int, int], list[int]]()
        self._clean = dict[int, int]()
        self._reached: dict[tuple[int, int], int] = {}
        self._reach()

    def fault(self) -> tuple[int, int] | None:
        """Two lexemes of which the first may swallow the second, None if no place is in doubt."""
        return None if self._holds_of_rules() else self._fault_of_places()

    def _holds_of_rules(self) -> bool:
        """Whether each rule alone can be read on to its end from each of its dots, whatever is behind it.

        More than need be, as rules that may be read at one place stand in for each other; but it is known without a
        visit of the places, which may have all rules each. With the classes that are live behind a nonterminal
        wherever it stands, a fixed point.
        """
        skip, everywhere, agenda = self.cfg.skip, {self.cfg.start: self.every}, [self.cfg.start]
        if skip >= 0 and not self._live(0, self.every) & self.class_of[skip]:
            return False
        while agenda:
            left = agenda.pop()
            live = everywhere[left]
            for begin in self._begins[left]:
                for dot in range(begin, self._ends[begin]):
                    spend(NS_PER_SYMBOL)
                    symbol, behind = self._symbols[dot], self._live(dot + 1, live)
                    if symbol < self.count:
                        if not behind & self.class_of[symbol]:
                            return False
                    elif (both := behind & everywhere.get(symbol, self.every)) != everywhere.get(symbol):
                        everywhere[symbol] = both
                        agenda.append(symbol)
                    if skip >= 0 and dot > begin and not self._live(dot, live) & self.class_of[skip]:
                        return False
        return True

    def _fault_of_places(self) -> tuple[int, int] | None:
        """`fault`, by a visit of every place."""
        agenda: list[tuple[int, Place]] = [(-1, frozenset({(0, self.every)}))]
        seen = set(agenda)
        for before, place in agenda:  # grows on the way
            dots = self._closed(place)
            for symbol, items in dots.items():
                if symbol < self.count:
                    live = 0
                    for dot, behind in items:
                        live |= self._live(dot, behind)
                    if not live & self.class_of[symbol] and self._is_possible(before, symbol):
                        return self._swallowed(symbol)
                following = frozenset(item for item in items if item[0] != self._ends[item[0]])
                if following and (symbol, following) not in seen:
                    seen.add((symbol, following))
                    agenda.append((symbol, following))
            if self.cfg.skip >= 0 and dots:
                live = 0
                for dot, behind in place:
                    live |= self._live(dot, behind)
                if not live & self.class_of[self.cfg.skip]:
                    return self._swallowed(self.cfg.skip)
        return None

    def _reach(self) -> None:
        """`_reached`: (nonterminal, class before it) -> the classes behind it, by clean derivations: a fixed point."""
        users, classes = defaultdict(set), [1 << k for k in range(self.every.bit_length())]
        for left, right in self.cfg.rules:
            for symbol in right:
                if symbol >= self.count:
                    users[symbol].add((left, right))
        agenda, waiting = deque(reversed(self.cfg.rules)), set(self.cfg.rules)
        while agenda:
            left, right = agenda.popleft()
            waiting.discard((left, right))
            changed = False
            for one in classes:
                found = self._through(right, one)
                changed = changed or found & ~self._reached.get((left, one), 0) != 0
                self._reached[left, one] = self._reached.get((left, one), 0) | found
            if changed:
                agenda.extend(users[left] - waiting)
                waiting |= users[left]

    def _through(self, right: tuple[int, ...], classes: int) -> int:
        """The classes behind some symbols, if one of `classes` is before them."""
        for symbol in right:
            spend(NS_PER_SYMBOL)
            if symbol < self.count:
                classes = self.class_of[symbol] if classes & self.follow[symbol] else 0
            else:
                found = 0
                for one in bits_of(classes):
                    found |= self._reached.get((symbol, 1 << one), 0)
                classes = found
        return classes

    def _live(self, dot: int, live: int) -> int:
        """The classes from which what is left of a rule leads to one of `live`."""
        end = self._ends[dot]
        lives = self._lives.setdefault((end, live), [live])
        while len(lives) <= end - dot:
            lives.append(self._before_symbol(self._symbols[end - len(lives)], lives[-1]))
        return lives[end - dot]

    def _before_symbol(self, symbol: int, live: int) -> int:
        spend(NS_PER_SYMBOL)
        if symbol < self.count:
            return self.follow[symbol] if live & self.class_of[symbol] else 0
        found = 0
        for one in bits_of(self.every):
            if self._reached.get((symbol, 1 << one), 0) & live:
                found |= 1 << one
        return found

    def _closed(self, place: Place) -> dict[int, set[tuple[int, int]]]:
        """By symbol that may come next at a place: the dots behind it, with the classes live behind their rules.

        Of several that wait for a nonterminal at one place any may go on behind it.
        """
        dots: dict[int, set[tuple[int, int]]] = defaultdict(set)
        entered = dict[int, int]()
        agenda = list(place)
        while agenda:
            dot, live = agenda.pop()
            while (symbol := self._symbols[dot]) >= 0:
                spend(NS_PER_SYMBOL)
                dot += 1
                dots[symbol].add((dot, live))
                behind = entered.get(symbol, 0) | self._live(dot, live)
                if symbol >= self.count and behind != entered.get(symbol, -1):
                    entered[symbol] = behind
                    agenda += [(begin, behind) for begin in self._begins[symbol]]
                if symbol not in self.follows.nullable:
                    break
        return dots

    def _is_possible(self, before: int, symbol: int) -> bool:
        """Whether a text may go on with a lexeme behind the symbol `before` (-1: it begins)."""
        if before < 0 or self.cfg.skip >= 0:
            return True
        return any(self.borders.may_precede(last, symbol) for last in bits_of(self.follows.last[before]))

    def _swallowed(self, symbol: int) -> tuple[int, int]:
        """The lexeme, or the nearest of those that follow it, that has one behind it without a clean border."""
        agenda, met = [symbol], 1 << symbol
        for one in agenda:  # grows on the way
            behind = self.follows.behind[one]
            if unclean := behind & ~self._cleanly_behind(self.class_of[one]):
                return one, bits_of(unclean)[0]
            agenda += bits_of(behind & ~met)
            met |= behind
        return symbol, symbol

    def _cleanly_behind(self, one: int) -> int:
        """The lexemes that may cleanly follow a class."""
        if one not in self._clean:
            self._clean[one] = sum(1 << symbol for symbol, classes in enumerate(self.follow) if classes & one)
        return self._clean[one]
