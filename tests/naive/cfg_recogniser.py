"""Which texts a `Cfg` derives, by filling in a table of spans: slow, and nothing but the definition.

A text is a sequence of bytes (ints) and special tokens (their names as the grammar writes them). Symbol s derives
text[i:j] if it is a lexeme that matches it, or if a rule's right side can be cut into pieces that its symbols derive.
Before every lexeme but the first there may be skipped text; with `outer_skip`, as in Lark, before the first and behind
the last as well. All lexemes that match count: there is no longest match.
"""

from __future__ import annotations

from tokdfa.grammar.cfg import Lexeme
from tokdfa.regex.lazy_dfa import LazyDfa


class CfgRecogniser:
    def __init__(self, cfg, outer_skip: bool = False) -> None:
        self.cfg, self.outer_skip = cfg, outer_skip
        self.automata = {
            symbol: LazyDfa(cfg.store, lexeme.expression)
            for symbol, lexeme in enumerate(cfg.lexemes)
            if isinstance(lexeme, Lexeme)
        }
        self.known: dict[tuple[int, bytes], bool] = {}

    def accepts(self, text) -> bool:
        text = tuple(text)
        self.spans: dict[tuple[int, int], set[int]] = {}
        for length in range(len(text) + 1):
            for begin in range(len(text) - length + 1):
                self.fill(text, begin, begin + length)
        ends = range(len(text) + 1) if self.outer_skip else [len(text)]
        return any(self.cfg.start in self.spans[0, end] and self.is_skipped(text[end:]) for end in ends)

    def fill(self, text, begin: int, end: int) -> None:
        """Find the symbols that derive text[begin:end], all shorter spans being done."""
        found = self.spans[begin, end] = self.lexemes(text, begin, end)
        while True:
            more = {left for left, right in self.cfg.rules if left not in found and self.derives(right, begin, end)}
            if not more:
                return
            found |= more

    def lexemes(self, text, begin: int, end: int) -> set[int]:
        may_skip = begin > 0 or self.outer_skip
        cuts = [cut for cut in range(begin, end) if cut == begin or (may_skip and self.is_skipped(text[begin:cut]))]
        symbols = range(len(self.cfg.lexemes))
        return {symbol for symbol in symbols if any(self.matches(symbol, text[cut:end]) for cut in cuts)}

    def matches(self, symbol: int, word) -> bool:
        """Whether a lexeme matches `word`; a lazy one must not match a shorter beginning."""
        lexeme = self.cfg.lexemes[symbol]
        if not isinstance(lexeme, Lexeme):
            return word == (lexeme.name,)
        if any(isinstance(item, str) for item in word):
            return False
        if lexeme.lazy and any(self.accepted(symbol, bytes(word[:end])) for end in range(1, len(word))):
            return False
        return self.accepted(symbol, bytes(word))

    def accepted(self, symbol: int, word: bytes) -> bool:
        if (symbol, word) not in self.known:
            self.known[symbol, word] = self.automata[symbol].accepts(word)
        return self.known[symbol, word]

    def is_skipped(self, word) -> bool:
        """Whether `word` is any number of skip lexemes."""
        if not word:
            return True
        if self.cfg.skip < 0:
            return False
        cuts = range(1, len(word) + 1)
        return any(self.matches(self.cfg.skip, word[:cut]) and self.is_skipped(word[cut:]) for cut in cuts)

    def derives(self, right, begin: int, end: int) -> bool:
        """Whether the symbols of a right side derive pieces that make up text[begin:end]."""
        places = {begin}
        for symbol in right:
            places = {cut for place in places for cut in range(place, end + 1) if symbol in self.spans[place, cut]}
        return end in places
