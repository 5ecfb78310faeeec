"""Schemas inside grammars: the program of each, lowered once, and rules in place of each, for an engine of lexemes.

What is skipped between the lexemes of a grammar (``%ignore``) is not skipped inside a schema. So where there are
schemas, skipped text becomes rules: any number of times before the first lexeme and after each, but for those of a
schema, which has one behind it. Texts that are lexemes of two schemas are one lexeme.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tokdfa.errors import EmptyLanguageError, SchemaError, SchemaUnsupported, UnsupportedConstraint
from tokdfa.grammar.cfg import Cfg, Lexeme, SchemaTexts
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.json_schema.write.program_grammar import schema_grammar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.json_schema.read.document import Dropped
    from tokdfa.program.builder import Program

#: Schemas of grammars that are kept lowered, for grammars that have them again.
KEPT_SCHEMAS = 2_000
#: Rules while they are written: a lexeme is a negative number, a nonterminal one from 0 on.
Rule = tuple[int, tuple[int, ...]]

#: Lexemes of strings are not kept: what reads them is one automaton, which grows as a text is read.
_kept_program = lru_cache(KEPT_SCHEMAS)(lower_schema)


class SchemaPrograms:
    """The programs of a grammar's schemas. `dropped`: what lenient ones do not enforce, so far."""

    def __init__(self) -> None:
        self.dropped: list[Dropped] = []

    def __call__(self, texts: SchemaTexts) -> Program:
        """The program of one. Raises what `lower_schema` raises, with the place in the grammar."""
        program, dropped = _placed(texts, _kept_program)
        self.dropped += dropped
        return program


def expand_schemas(cfg: Cfg, max_instructions: int, skip_at_ends: bool) -> tuple[Cfg, tuple[Dropped, ...]]:
    """A grammar without schemas for the same texts, and the keywords that are not enforced. O(size).

    Raises what `schema_grammar` raises, with the place in the grammar, and UnsupportedConstraint for skipped text that
    must not stand at the ends.
    """
    if not any(isinstance(lexeme, SchemaTexts) for lexeme in cfg.lexemes):
        return cfg, ()
    if cfg.skip >= 0 and not skip_at_ends:
        raise UnsupportedConstraint("%ignore and %json together need ignore=anywhere, or pushdown_trie")
    return _Expansion(cfg, max_instructions).expand()


class _Expansion:
    """One run of `expand_schemas`."""

    def __init__(self, cfg: Cfg, max_instructions: int) -> None:
        self.cfg, self.max_instructions = cfg, max_instructions
        self.lexemes: list[Lexeme | SpecialTokens | SchemaTexts] = []
        self.names: list[str] = []
        self.rules: dict[Rule, None] = {}
        self.shared: dict[bytes, int] = {}
        self.dropped: list[Dropped] = []

    def expand(self) -> tuple[Cfg, tuple[Dropped, ...]]:
        """The whole grammar."""
        cfg, count = self.cfg, len(self.cfg.lexemes)
        numbers = [
            -1 if isinstance(lexeme, SchemaTexts) else self._lexeme(lexeme, shared=False) for lexeme in cfg.lexemes
        ]
        numbers += [self._nonterminal(name) for name in cfg.names[count:]]
        for symbol, lexeme in enumerate(cfg.lexemes):
            if isinstance(lexeme, SchemaTexts):
                numbers[symbol] = self._schema(lexeme)
        skipped: tuple[int, ...] = ()
        if cfg.skip >= 0:
            skipped = (self._nonterminal("skipped"),)
            self.rules[skipped[0], ()] = self.rules[skipped[0], (*skipped, numbers[cfg.skip])] = None
        for left, right in cfg.rules:
            whole: list[int] = []
            for symbol in right:
                whole += (numbers[symbol], *skipped) if symbol < count else (numbers[symbol],)
            self.rules[numbers[left], tuple(whole)] = None
        start = self._nonterminal("text")
        self.rules[start, (*skipped, numbers[cfg.start])] = None
        return self._finish(start), tuple(self.dropped)

    def _schema(self, texts: SchemaTexts) -> int:
        """The nonterminal of a schema, with its rules."""
        inner, dropped = _placed(texts, lambda constraint: schema_grammar(constraint, self.max_instructions))
        self.dropped += dropped
        numbers = [self._lexeme(lexeme, shared=True) for lexeme in inner.lexemes]
        numbers += [self._nonterminal(name) for name in inner.names[len(numbers) :]]
        for left, right in inner.rules:
            self.rules[numbers[left], tuple([numbers[symbol] for symbol in right])] = None
        return numbers[inner.start]

    def _lexeme(self, lexeme: Lexeme | SpecialTokens | SchemaTexts, shared: bool) -> int:
        """The symbol of a lexeme; `shared`: of a schema's."""
        key = lexeme.key if shared and isinstance(lexeme, Lexeme) else b""
        if key and key in self.shared:
            return self.shared[key]
        self.lexemes.append(lexeme)
        if key:
            self.shared[key] = -len(self.lexemes)
        return -len(self.lexemes)

    def _nonterminal(self, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def _finish(self, start: int) -> Cfg:
        count = len(self.lexemes)

        def number(symbols: Sequence[int]) -> tuple[int, ...]:
            return tuple([symbol + count if symbol >= 0 else ~symbol for symbol in symbols])

        rules = tuple((left + count, number(right)) for left, right in self.rules)
        names = (*(lexeme.name for lexeme in self.lexemes), *self.names)
        return replace(self.cfg, lexemes=tuple(self.lexemes), names=names, rules=rules, start=start + count, skip=-1)


def _placed(texts: SchemaTexts, lower):  # type: ignore[no-untyped-def]
    """What `lower` makes of a schema; what it raises has the place in the grammar."""
    place = f"; that is the schema at line {texts.line}, column {texts.column} of the grammar"
    try:
        return lower(texts.constraint)
    except (SchemaError, SchemaUnsupported) as error:
        raise type(error)(error.reason + place, error.pointer, error.keyword) from None
    except (EmptyLanguageError, UnsupportedConstraint) as error:
        raise type(error)(f"{error}{place}") from None
