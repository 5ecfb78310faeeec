"""Context-free grammars over lexemes: what every grammar-like constraint is before a backend takes it.

Words. A *lexeme* (a terminal of the grammar, never "token") is a set of byte strings given by an expression. A *symbol*
is a number: symbols below ``len(lexemes)`` are lexemes, the others *nonterminals*. A *rule* derives a nonterminal into
a sequence of symbols. The *skip* lexeme (Lark's ``%ignore``) may stand between lexemes and means nothing.

Rules are plain: repetitions, options and groups have become nonterminals of their own (`tokdfa.grammar.builder`).
A lexeme never matches the empty text: what may be empty has become a choice between the lexeme and nothing. (The one
lexeme of a regular constraint may, beside that choice, and it makes no difference: `tokdfa.grammar.builder`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import JsonSchema
    from tokdfa.regex.expression import ExpressionStore
    from tokdfa.regex.lazy_dfa import LazyDfa

#: The names of objects that no place of a program holds, so that one could come twice: there are none of them, there is
#: always another one whatever a name begins with, or that is not known. A program says so for whoever remembers names
#: (`tokdfa.backends.unique_items`).
OpenNames = Literal["none", "endless", "limited"]


@dataclass(frozen=True)
class Lexeme:
    """A terminal. `expression`: its number in the grammar's store, an expression over bytes that is not nullable.

    `name`: the terminal's name, or the literal as it is written; `lazy`: ends as soon as it can (the shortest match);
    `line`, `column`: where it stands in the grammar's text, from 1; 0 if nowhere. `automaton`: for a lexeme that is no
    expression of the grammar's store: makes its automaton, with live states only, and says in which state it starts.
    `key`: of such a lexeme, says what language it is, if two may be one; b"" if nobody knows. `spelled_by`: bytes that
    suffice to end its texts, wherever one has come to; None: its automaton has to tell.
    """

    name: str
    expression: int
    lazy: bool = False
    line: int = 0
    column: int = 0
    automaton: Callable[[], tuple[Dfa | LazyDfa, int]] | None = None
    key: bytes = b""
    spelled_by: bytes | None = None


@dataclass(frozen=True)
class SpecialTokens:
    """A terminal that is matched by one special token of the vocabulary instead of by bytes.

    `names`: special tokens by name, as in ``<|tool|>``; `ranges`: inclusive ranges of ids; `negated`: all special
    tokens but these. Which ids that are is the vocabulary's business, see `tokdfa.grammar.special`.
    """

    names: tuple[str, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    negated: bool = False
    name: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class SchemaTexts:
    """A terminal that stands for all texts of a JSON schema, which are no regular language: engines expand it.

    `tokdfa.program.link` makes it a part of a program, `tokdfa.json_schema.write.expand` rules over lexemes. Nothing is
    skipped inside it.
    """

    constraint: JsonSchema
    name: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Cfg:
    """A context-free grammar. Immutable.

    `lexemes`: symbols 0 .. len(lexemes) - 1; `names`: one for each symbol; `rules`: (left side, right side) with symbol
    numbers; `start`: a nonterminal; `skip`: the skip lexeme's symbol, -1 if there is none (it stands in no rule);
    `store`: holds the lexemes' expressions. Terminals that are special tokens are lexemes, too, of the class
    SpecialTokens, and stand in `lexemes` like the others; so do schemas (SchemaTexts). `open_names`: of a schema, as
    its program has it (`OpenNames`).
    """

    lexemes: tuple[Lexeme | SpecialTokens | SchemaTexts, ...]
    names: tuple[str, ...]
    rules: tuple[tuple[int, tuple[int, ...]], ...]
    start: int
    skip: int
    store: ExpressionStore
    open_names: OpenNames = "none"

    def is_lexeme(self, symbol: int) -> bool:
        """Whether `symbol` is a terminal."""
        return symbol < len(self.lexemes)

    def __str__(self) -> str:
        """The rules, one a line, as ``name -> symbol symbol``."""
        lines = [f"{self.names[left]} -> {' '.join(self.names[s] for s in right) or 'ε'}" for left, right in self.rules]
        return "\n".join(lines)
