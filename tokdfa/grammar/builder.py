"""Building a grammar: symbols and rules in any order, then `tokdfa.grammar.cfg.Cfg` with its numbering.

While a grammar is being built, a *symbol* is a negative number for a lexeme (-1, -2, ...) and a number from 0 on for a
nonterminal. Equal lexemes (expression, lazy) are one symbol, and so are equal special tokens; equal rules are one rule.
A lexeme never matches the empty text, so a terminal that may be empty becomes a choice between nothing and the lexeme
`without_empty`.

Repetitions as rules: ``e?``, ``e*``, ``e+``, ``e{m,n}`` become nonterminals with few and flat rules.

    e*       p -> nothing | p e
    e+       p -> e | p e
    e{n}     n <= 8: e e .. e;   else g{n div 4} e .. e, where g = e{4}: the last part has n mod 4
    e{0,n}   n < 12: nothing | e | e e | ..;   else (with q = n div 4)  g{0,q-1} (0 to 3 times e) | g{q} (0 to n mod 4)
    e{m,n}   e{m} e{0,n-m};   e{m,}  e{m} e*

Unbounded ones are left-recursive: an Earley parser then keeps one item for them, however long the text. Counted ones
take O(log n) rules, all with right sides of at most 11 symbols. Each number of times has one derivation only, because
n = 4 g + r with 0 <= r < 4 in one way. Encodings: 000 (llguidance); the split of e{0,n} into disjoint parts likewise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError, OptionError
from tokdfa.grammar.cfg import Cfg, Lexeme, SchemaTexts, SpecialTokens
from tokdfa.regex.expression import ANY_BYTE, ANY_BYTES, EMPTY, NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Constraint

#: States that the search for a text of an intersection or complement may make.
MAX_PROOF_STATES = 100_000
#: Symbols in a group of a counted repetition.
GROUP = 4
#: Exactly so many are written out one after another.
LONGEST_SEQUENCE = 8
#: Up to so many are written out as alternatives.
LONGEST_CHOICE = 11


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
        """The symbol for the texts of `expression`, which are some (`matches_nothing`).

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


class Repetitions:
    """The repetitions of one grammar in the making; equal ones are one nonterminal."""

    def __init__(self, builder: CfgBuilder) -> None:
        self.builder = builder
        self._made: dict[tuple[int, int, int | None], int] = {}

    def repeat(self, symbol: int, low: int, high: int | None) -> int:
        """The symbol for `symbol` from `low` to `high` times (None: without end). O(log high) new rules.

        Raises OptionError unless 0 <= low <= high.
        """
        if low < 0 or (high is not None and high < low):
            raise OptionError(f"a repetition needs 0 <= low <= high, not {low} and {high}")
        if (low, high) == (1, 1):
            return symbol
        key = symbol, low, high
        if key not in self._made:
            self._made[key] = made = self.builder.nonterminal(self.builder.name(symbol) + _suffix(low, high))
            for right in self._right_sides(made, symbol, low, high):
                self.builder.add_rule(made, right)
        return self._made[key]

    def _right_sides(self, made: int, symbol: int, low: int, high: int | None) -> list[tuple[int, ...]]:
        """What `made` derives."""
        if high is None:
            if low > 1:
                return [(self.repeat(symbol, low, low), self.repeat(symbol, 0, None))]
            return [(symbol,) * low, (made, symbol)]
        if low == high:
            return [self._exactly(symbol, low)]
        if low > 0:
            return [(self.repeat(symbol, low, low), self.repeat(symbol, 0, high - low))]
        if high <= LONGEST_CHOICE:
            return [(symbol,) * times for times in range(high + 1)]
        group, (groups, rest) = self.repeat(symbol, GROUP, GROUP), divmod(high, GROUP)
        return [
            (self.repeat(group, 0, groups - 1), self.repeat(symbol, 0, GROUP - 1)),
            (*self._times(group, groups), *self._up_to(symbol, rest)),
        ]

    def _exactly(self, symbol: int, times: int) -> tuple[int, ...]:
        if times <= LONGEST_SEQUENCE:
            return (symbol,) * times
        groups, rest = divmod(times, GROUP)
        return (*self._times(self.repeat(symbol, GROUP, GROUP), groups), *(symbol,) * rest)

    def _times(self, symbol: int, times: int) -> tuple[int, ...]:
        """A few times written out, many times as one symbol."""
        return (symbol,) * times if times <= GROUP else (self.repeat(symbol, times, times),)

    def _up_to(self, symbol: int, times: int) -> tuple[int, ...]:
        return (self.repeat(symbol, 0, times),) if times else ()


def _suffix(low: int, high: int | None) -> str:
    """The notation of a repetition, as it is in names."""
    if high is None:
        return "*" if low == 0 else "+" if low == 1 else f"{{{low},}}"
    if low == high:
        return f"{{{low}}}"
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def matches_nothing(store: ExpressionStore, expression: int) -> bool:
    """Whether no text matches. O(1) without intersections and complements; with them a search that stops at a text.

    Raises LimitExceeded if the search makes more than `MAX_PROOF_STATES` states.
    """
    if store.is_boolean(expression):
        return LazyDfa(store, expression, MAX_PROOF_STATES).is_empty
    return not store.inhabited(expression)


def without_empty(store: ExpressionStore, expression: int) -> int:
    """The expression of all texts of `expression` but the empty one.

    Of ``e?``, ``e*`` and ``e{,n}`` it is written without an intersection, which keywords and counters are read faster
    without; else it is the intersection with "any bytes, one or more", which is gone after the first byte.
    """
    if not store.nullable(expression):
        return expression
    match store.view(expression):
        case ("empty",):
            return NOTHING
        case ("union", members):
            rest = store.union(member for member in members if member != EMPTY)
            if rest != expression:
                return without_empty(store, rest)
        case ("repeat", body, _, high) if not store.nullable(body):
            return store.repeat(body, 1, high)
    return store.intersection([expression, store.concat(ANY_BYTE, ANY_BYTES)])


def regular_cfg(constraint: Constraint) -> Cfg:
    """text -> lexeme, and text -> nothing if the constraint allows the empty text.

    The lexeme may then be nullable, which a lexer does not mind: it never ends a lexeme before its first byte.
    Raises RegexSyntaxError, RegexUnsupported or EmptyLanguageError.
    """
    from tokdfa.regex.compile import lower_constraint

    store = ExpressionStore()
    expression = lower_constraint(constraint, store)
    automaton = LazyDfa(store, expression)
    if automaton.is_empty:
        raise EmptyLanguageError(f"no text matches {constraint.name!r}; nothing could be generated")
    rules: list[tuple[int, tuple[int, ...]]] = [(1, (0,))]
    if automaton.accepting[0]:
        rules.append((1, ()))
    return Cfg((Lexeme(constraint.name, expression),), (constraint.name, "text"), tuple(rules), 1, -1, store)
