"""What a grammar with a lexer means, from the definitions alone: plain Earley over texts cut into lexemes.

A text is a sequence of bytes (ints) and special tokens (each a frozenset of the lexemes that it may be). The
*chart* holds sets of items (rule, dot, index of the set in which the rule began), one set more than lexemes were
read. Which lexemes may come next is read off its last set; the skip lexeme is one of them where skipped text may stand,
and leaves the chart as it is.

The text is cut from left to right. At a place, a beginning of what follows is *alive* if some lexeme that may come next
can go on to match, and *matched* if one does. A lazy lexeme that matches ends the search: nothing longer is alive. The
lexeme then ends

- by the rule ``longest`` with the longest beginning that is matched;
- by the rule ``one_byte`` with the longest that is alive, which must be matched.

All lexemes that match it are read at once (only the lazy ones, if they ended it). If the skip lexeme is among them, it
is one more reading by ``longest``, and the only one by ``one_byte``.

A text can go on as long as all that is left of it is alive, or nothing is left.
"""

from __future__ import annotations

from tokdfa.grammar.cfg import Lexeme
from tokdfa.regex.lazy_dfa import LazyDfa


class LexedEarley:
    def __init__(self, cfg, longest: bool = True, skip_at_ends: bool = True) -> None:
        self.cfg, self.longest, self.skip_at_ends = cfg, longest, skip_at_ends
        self.automata = {
            symbol: LazyDfa(cfg.store, lexeme.expression)
            for symbol, lexeme in enumerate(cfg.lexemes)
            if isinstance(lexeme, Lexeme)
        }
        self.known = {}

    def accepts(self, text) -> bool:
        """Whether the text is complete."""
        chart, place = self.chart(), 0
        while place < len(text):
            end, read = self.next_lexeme(chart, text, place)
            if not read:
                return False
            chart, place = self.after(chart, read), end
        return self.is_complete(chart)

    def goes_on(self, text) -> bool:
        """Whether some complete text begins with this one (all symbols deriving something)."""
        chart, place = self.chart(), 0
        while place < len(text):
            if self.states(self.allowed(chart), text, place)[len(text)]:
                return True
            end, read = self.next_lexeme(chart, text, place)
            if not read:
                return False
            chart, place = self.after(chart, read), end
        return True

    # The lexer.

    def next_lexeme(self, chart, text, place: int):
        """(where the lexeme at `place` ends, the lexemes that it is; none if there is no such lexeme)."""
        allowed = self.allowed(chart)
        if not isinstance(text[place], int):
            return place + 1, allowed & text[place]
        alive = self.states(allowed, text, place)
        ends = [end for end in range(place + 1, len(text) + 1) if alive[end]]
        matched = [end for end in ends if self.matching(alive[end])]
        if not (matched if self.longest else ends):
            return place, set()
        end = max(matched if self.longest else ends)
        read = self.matching(alive[end])
        lazy = {symbol for symbol in read if self.is_lazy(symbol)}
        return end, lazy or read

    def states(self, allowed, text, place: int):
        """By end: lexeme -> state of its automaton after text[place:end]; empty where nothing is alive."""
        found = [{} for _ in range(len(text) + 1)]
        here = {symbol: 0 for symbol in allowed if symbol in self.automata}
        for end in range(place + 1, len(text) + 1):
            if not isinstance(text[end - 1], int):
                break
            stepped = {symbol: self.automata[symbol].step(state, text[end - 1]) for symbol, state in here.items()}
            here = {symbol: state for symbol, state in stepped.items() if state >= 0}
            found[end] = here
            if any(self.is_lazy(symbol) for symbol in self.matching(here)):
                break
        return found

    def matching(self, states) -> set[int]:
        return {symbol for symbol, state in states.items() if self.automata[symbol].accepting[state]}

    def is_lazy(self, symbol: int) -> bool:
        return self.cfg.lexemes[symbol].lazy

    # The parser.

    def chart(self):
        """The chart before the first lexeme."""
        rules = [number for number, (left, _) in enumerate(self.cfg.rules) if left == self.cfg.start]
        return self.closed((), {(rule, 0, 0) for rule in rules})

    def closed(self, chart, items):
        """The chart with one more set: `items` and what they predict and complete, to a fixed point."""
        key = chart, frozenset(items)
        if key not in self.known:
            self.known[key] = (*chart, self.fixed_point(chart, items))
        return self.known[key]

    def fixed_point(self, chart, items):
        here = len(chart)
        items = set(items)
        while True:
            more = set()
            for rule, dot, origin in items:
                left, right = self.cfg.rules[rule]
                if dot < len(right):
                    more |= {(k, 0, here) for k, (other, _) in enumerate(self.cfg.rules) if other == right[dot]}
                else:
                    began = items if origin == here else chart[origin]
                    more |= {(r, d + 1, o) for r, d, o in began if self.symbol_at(r, d) == left}
            if more <= items:
                return frozenset(items)
            items |= more

    def symbol_at(self, rule: int, dot: int):
        right = self.cfg.rules[rule][1]
        return right[dot] if dot < len(right) else None

    def allowed(self, chart) -> set[int]:
        """The lexemes that may come next."""
        found = {self.symbol_at(rule, dot) for rule, dot, _ in chart[-1]} & set(range(len(self.cfg.lexemes)))
        if self.cfg.skip >= 0 and (self.skip_at_ends or (len(chart) > 1 and found)):
            found.add(self.cfg.skip)
        return found

    def after(self, chart, read):
        """The chart after lexemes that match the same bytes."""
        if self.cfg.skip in read and (not self.longest or len(read) == 1):
            return chart
        items = {(rule, dot + 1, origin) for rule, dot, origin in chart[-1] if self.symbol_at(rule, dot) in read}
        return self.closed(chart, items | chart[-1] if self.cfg.skip in read else items)

    def is_complete(self, chart) -> bool:
        return any(
            self.cfg.rules[rule][0] == self.cfg.start and dot == len(self.cfg.rules[rule][1]) and origin == 0
            for rule, dot, origin in chart[-1]
        )
