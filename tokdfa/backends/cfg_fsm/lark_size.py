"""How much Lark makes of a grammar before its LALR(1) construction begins, counted without making it.

Lark multiplies out what stands in a row: a rule of n optional symbols has 2^n alternatives, k choices of two in a row
have 2^k, and a count below 50 is written as often as it says. Terminals are pasted into each other as text, and parsed
anew at each level. So sizes grow exponentially, and Lark asks nobody; here they are found from the tree of
`tokdfa.grammar.lark_syntax`.
"""

from __future__ import annotations

from typing import NamedTuple

from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded, TokdfaError
from tokdfa.grammar import lark_tree as tree
from tokdfa.grammar.lark_syntax import parse_statements

#: What it takes Lark to write a symbol of a rule, and to parse a character of a terminal.
NS_PER_SYMBOL, NS_PER_CHARACTER = 30_000, 3_000
#: Lark writes counts from here on as rules that repeat each other: for each factor of the count, 5 at most, so many
#: symbols, and three rows of four copies of what is repeated.
LARGE_COUNT, FACTOR, SYMBOLS_OF_A_FACTOR, ROWS, COPIES = 50, 5, 50, 3, 4
#: Sizes are not told apart beyond this.
MOST = 10**12


class Size(NamedTuple):
    """Alternatives that a part becomes, and symbols in all of them."""

    options: int
    symbols: int


ONE = Size(1, 1)


def count_expansion(text: str) -> None:
    """Count the work that it takes Lark to expand a grammar. Raises LimitExceeded, and RecursionError.

    O(length of the grammar). What Lark's notation and ours do not share is not counted: whoever reads it says so.
    """
    try:
        statements = parse_statements(text)
    except LimitExceeded:
        raise
    except TokdfaError:
        return
    definitions = {each.name: each for each in statements if isinstance(each, tree.Definition)}
    sizes = _Sizes(definitions)
    for definition in definitions.values():
        _, work = sizes.of_definition(definition)
        spend((NS_PER_CHARACTER if definition.is_terminal else NS_PER_SYMBOL) * work)


class _Sizes:
    def __init__(self, definitions: dict[str, tree.Definition]) -> None:
        self._definitions = definitions
        self._known: dict[str, tuple[int, int]] = {}
        #: Symbols of rules that repeats become, and of what is pasted.
        self._beside = 0

    def of_definition(self, definition: tree.Definition) -> tuple[int, int]:
        """Symbols of a rule, or characters of a terminal, that a definition becomes; and those with all that is written
        on the way. A use of itself is one.
        """
        if definition.name not in self._known:
            self._known[definition.name] = 1, 1
            before, self._beside = self._beside, 0
            symbols = self._of(definition.body, definition.is_terminal).symbols
            self._known[definition.name] = symbols, min(symbols + self._beside, MOST)
            self._beside = before
        return self._known[definition.name]

    def _of(self, part: tree.Part, is_terminal: bool) -> Size:
        if isinstance(part, tree.Group):
            found = [self._in_a_row(row, is_terminal) for option in part.options for row in option.sequences]
            return Size(min(sum(each.options for each in found), MOST), min(sum(each.symbols for each in found), MOST))
        if isinstance(part, tree.Repetition):
            inner = self._of(part.body, is_terminal)
            return inner if is_terminal else self._repeated(inner, part.low, part.high)
        name = part.name if isinstance(part, tree.Word | tree.Use) else ""
        if name in self._definitions and (is_terminal or isinstance(part, tree.Use)):
            symbols, work = self.of_definition(self._definitions[name])
            self._beside = min(self._beside + work, MOST)
            return Size(1, symbols) if is_terminal else ONE
        if is_terminal and isinstance(part, tree.Text | tree.Pattern):
            return Size(1, len(part.written))
        return ONE

    def _in_a_row(self, parts: tree.Sequence, is_terminal: bool) -> Size:
        options, symbols = 1, 0
        for part in parts:
            size = self._of(part, is_terminal)
            if is_terminal:
                symbols = min(symbols + size.symbols, MOST)
            else:
                symbols = min(symbols * size.options + options * size.symbols, MOST)
                options = min(options * size.options, MOST)
        return Size(options, max(symbols, 1))

    def _repeated(self, inner: Size, low: int, high: int | None) -> Size:
        """A part of a rule that is repeated."""
        if (low, high) == (0, 1):
            return Size(inner.options + 1, inner.symbols)
        if high is None:
            self._beside = min(self._beside + inner.options + 2 * inner.symbols, MOST)
            return Size(2 - (low > 0), 1)
        if high >= LARGE_COUNT:
            factors = 1
            while FACTOR**factors < high:
                factors += 1
            copies = min(inner.options**COPIES * inner.symbols, MOST)
            self._beside = min(self._beside + factors * (SYMBOLS_OF_A_FACTOR + ROWS * copies), MOST)
            return ONE
        options, symbols, found = 1, 0, Size(0, 0)
        for count in range(high + 1):
            if count >= low:
                found = Size(min(found.options + options, MOST), min(found.symbols + symbols, MOST))
            symbols = min(symbols * inner.options + options * inner.symbols, MOST)
            options = min(options * inner.options, MOST)
        return found
