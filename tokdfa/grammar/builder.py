"""Building a grammar: symbols and rules in any order, then `tokdfa.grammar.cfg.Cfg` with its numbering.

While a grammar is being built, a *symbol* is a negative number for a lexeme (-1, -2, ...) and a number from 0 on for a
nonterminal. Equal lexemes (expression, lazy) are one symbol, and so are equal special tokens; equal rules are one rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.grammar.cfg import Cfg, Lexeme, SchemaTexts, SpecialTokens
from tokdfa.grammar.lexemes import matches_nothing, without_empty

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.regex.expression import ExpressionStore


class CfgBuilder:
    """A grammar in the making. `store` takes the expressions of its lexemes."""

    def __init__(self, store: ExpressionStore) -> None:
        self.store = store
        self.names: list[str] = []
        self._lexemes: list[Lexeme | SpecialTokens | SchemaTexts] = []
        self._known: dict[tuple[object, ...], int] = {}
        self._nullable: dict[tuple[int, bool], int] = {}
        self._rules: list[dict[tuple[int, ...], None]] = []

    def lexeme(self, name: str, expression: int, lazy: bool = False, line: int = 0, column: int = 0) -> int:
        """The symbol for the texts of `expression`, which are some (`tokdfa.grammar.lexemes.matches_nothing`).

        A lexeme; or, if the expression may be empty, a nonterminal for nothing or the lexeme without the empty text.
        `name`, `line`, `column`: see `Lexeme`; of equal lexemes the first ones count.
        """
        if self.store.nullable(expression):
            return self._nullable_lexeme(name, expression, lazy, line, column)
        key = expression, lazy
        if key not in self._known:
            self._lexemes.append(Lexeme(name, expression, lazy, line, column))
            self._known[key] = -len(self._lexemes)
        return self._known[key]

    def _nullable_lexeme(self, name: str, expression: int, lazy: bool, line: int, column: int) -> int:
        key = expression, lazy
        if key not in self._nullable:
            symbol = self._nullable[key] = self.nonterminal(f"{name}?")
            self.add_rule(symbol, ())
            rest = without_empty(self.store, expression)
            if not matches_nothing(self.store, rest):
                self.add_rule(symbol, (self.lexeme(name, rest, lazy, line, column),))
        return self._nullable[key]

    def special(self, tokens: SpecialTokens) -> int:
        """The symbol for special tokens."""
        key = tokens.names, tokens.ranges, tokens.negated
        if key not in self._known:
            self._lexemes.append(tokens)
            self._known[key] = -len(self._lexemes)
        return self._known[key]

    def schema(self, texts: SchemaTexts) -> int:
        """The symbol for the texts of a schema; equal constraints are one."""
        key = (texts.constraint,)
        if key not in self._known:
            self._lexemes.append(texts)
            self._known[key] = -len(self._lexemes)
        return self._known[key]

    def nonterminal(self, name: str) -> int:
        """A new nonterminal; names need not differ."""
        self.names.append(name)
        self._rules.append({})
        return len(self.names) - 1

    def add_rule(self, left: int, right: Sequence[int]) -> None:
        """Nonterminal `left` derives `right`. A rule that derives a symbol into itself says nothing and is dropped."""
        if tuple(right) != (left,):
            self._rules[left][tuple(right)] = None

    def name(self, symbol: int) -> str:
        """The name of a symbol."""
        return self.names[symbol] if symbol >= 0 else self._lexemes[~symbol].name

    def finish(self, start: int, skip: Lexeme | None = None) -> Cfg:
        """The grammar of the nonterminal `start`. `skip` becomes the last lexeme, even if a lexeme of the rules has the
        same expression.
        """
        lexemes = (*self._lexemes, *((skip,) if skip else ()))
        count = len(lexemes)
        rules = tuple(
            (count + left, tuple([count + symbol if symbol >= 0 else ~symbol for symbol in right]))
            for left, rights in enumerate(self._rules)
            for right in rights
        )
        names = (*(lexeme.name for lexeme in lexemes), *self.names)
        return Cfg(lexemes, names, rules, count + start, count - 1 if skip else -1, self.store)
