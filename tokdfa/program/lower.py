"""Lowering: from a regex, a choice or a context-free grammar to the intermediate program.

A regular constraint is one terminal. In a grammar each nonterminal becomes a frame, and each right side a chain of
instructions that ends in RETURN. Alternatives that are one lexeme each become one terminal, the union, so that fifty
keywords are one item of a row and not fifty.

Two lexing modes:

- ``any``: scannerless. A text is in the language if it can be cut into lexemes in any way that the rules allow. What
  ``%ignore`` names is a terminal of its own, any number of times, after each lexeme and before the first.
- ``longest``: maximal munch. A lexeme is the longest that matches among those that the rules allow at its beginning
  (`tokdfa.backends.earley_trie.machine` says it in full). Ignored text is a lexeme that may begin wherever one may.

Cost: about 1 µs an instruction. Automata are not built here but at the first use of their key.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING
from weakref import proxy

from tokdfa.errors import UnsupportedConstraint
from tokdfa.grammar.cfg import Lexeme, SchemaTexts, SpecialTokens
from tokdfa.grammar.lexeme_automata import automaton_of
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.link import link
from tokdfa.program.program import RETURN_PLACE, Terminal
from tokdfa.regex.state_names import ExpressionNames

#: Schemas of a grammar that are linked before they are read.
LINKED_AT_ONCE = 8

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import Constraint
    from tokdfa.grammar.cfg import Cfg
    from tokdfa.program.builder import Program
    from tokdfa.regex.lazy_dfa import LazyDfa

    #: Makes the program of a schema of a grammar.
    LowerSchema = Callable[[SchemaTexts], Program]


def lower_constraint(constraint: Constraint, *, longest: bool, schema: LowerSchema | None = None) -> Program:
    """The program of a Regex, a Choice or a Grammar, read first. Raises what reading raises."""
    from tokdfa.constraint import Grammar

    if not isinstance(constraint, Grammar):
        return lower_regular(constraint)
    from tokdfa.grammar.lark_reader import read_grammar

    return lower_grammar(read_grammar(constraint), longest=longest, schema=schema)


def lower_regular(constraint: Constraint) -> Program:
    """The program of a Regex or a Choice: one terminal. O(1); errors in the pattern are found when its automaton is
    made.
    """
    key = hashlib.blake2b(repr(constraint).encode(errors="surrogatepass"), digest_size=16).digest()

    def make() -> Dfa | LazyDfa:
        from tokdfa.regex.compile import lower_constraint
        from tokdfa.regex.expression import ExpressionStore

        store = ExpressionStore()
        return automaton_of(store, lower_constraint(constraint, store), repr(constraint.name))

    builder = ProgramBuilder()
    terminal = builder.terminal(Terminal(constraint.name, b"constraint" + key, make))
    return builder.build(builder.read(terminal, RETURN_PLACE))


def lower_grammar(cfg: Cfg, *, longest: bool, schema: LowerSchema | None = None) -> Program:
    """The program of a grammar. O(size of the grammar). `schema`: makes the programs of its schemas, if it has some.

    Raises UnsupportedConstraint for schemas with `longest`: their programs take every way to cut a text.
    """
    return _Lowering(cfg, longest, schema).lower()


class _Lowering:
    """One run of `lower_grammar`."""

    def __init__(self, cfg: Cfg, longest: bool, schema: LowerSchema | None) -> None:
        self.cfg, self.longest, self.schema = cfg, longest, schema
        self.builder = ProgramBuilder()
        self.keys = ExpressionNames(cfg.store)
        self.terminals: dict[tuple[int, ...], int] = {}
        self.frames: dict[int, int] = {}
        lexemes = enumerate(cfg.lexemes)
        self.united = {symbol for symbol, lexeme in lexemes if isinstance(lexeme, Lexeme) and not lexeme.lazy}
        #: The terminal that is skipped: one lexeme, or any number of them.
        self.skip = -1
        if cfg.skip >= 0:
            self.skip = self._skip_once() if longest else self._skip_often()

    def lower(self) -> Program:
        """All frames, then the start."""
        cfg, builder = self.cfg, self.builder
        first = len(cfg.lexemes)
        for name in cfg.names[first:]:
            builder.frame(name)
        schemas = {symbol: lexeme for symbol, lexeme in enumerate(cfg.lexemes) if isinstance(lexeme, SchemaTexts)}
        for symbol, texts in schemas.items():
            self.frames[symbol] = self._schema(texts, len(schemas) <= LINKED_AT_ONCE)
        rules: list[list[tuple[int, ...]]] = [[] for _ in cfg.names[first:]]
        for left, right in cfg.rules:
            rules[left - first].append(right)
        for frame, rights in enumerate(rules):
            builder.enter(frame, self._alternatives(rights))
        start = builder.call(cfg.start - first, RETURN_PLACE)
        if self.skip >= 0 and not self.longest:
            start = builder.read(self.skip, start)
        skip = builder.skip(self.skip) if self.skip >= 0 and self.longest else -1
        return builder.build(start, skip=skip, longest=self.longest)

    def _alternatives(self, rights: Sequence[tuple[int, ...]]) -> int:
        """The place at which any of the right sides can be read."""
        singles, places = [], []
        for right in rights:
            if len(right) == 1 and right[0] in self.united:
                singles.append(right[0])
            else:
                places.append(self._sequence(right))
        if singles:
            places.append(self._lexeme(tuple(sorted(set(singles))), RETURN_PLACE))
        return self.builder.any_of(places)

    def _schema(self, texts: SchemaTexts, at_once: bool) -> int:
        """The frame of a schema, which is linked at once, or when it is first read; lowered it is now, for errors."""
        if self.longest or self.schema is None:
            raise UnsupportedConstraint(
                f"%json (line {texts.line} of the grammar) is read in any way to cut its text, not by longest match;"
                " take lexer=any (or auto), or earley_trie"
            )
        builder, program = self.builder, self.schema(texts)
        frame = builder.frame(f"{texts.name}:{texts.line}:{texts.column}")
        write = partial(link, proxy(builder), program)
        builder.enter(frame, write() if at_once else builder.lazy(write))
        return frame

    def _sequence(self, right: tuple[int, ...]) -> int:
        """The place at which the symbols of a right side are read, and then RETURN."""
        place, lexemes = RETURN_PLACE, self.cfg.lexemes
        for symbol in reversed(right):
            if symbol >= len(lexemes):
                place = self.builder.call(symbol - len(lexemes), place)
                continue
            lexeme = lexemes[symbol]
            if isinstance(lexeme, SpecialTokens):
                place = self.builder.take(lexeme, self._after_lexeme(place))
            elif isinstance(lexeme, SchemaTexts):
                place = self.builder.call(self.frames[symbol], self._after_lexeme(place))
            else:
                place = self._lexeme((symbol,), place)
        return place

    def _lexeme(self, symbols: tuple[int, ...], following: int) -> int:
        """The place at which any of these lexemes is read."""
        terminal = self.terminals.get(symbols)
        if terminal is None:
            lexemes = [self.cfg.lexemes[symbol] for symbol in symbols]
            terminal = self.builder.terminal(self._terminal(lexemes))  # type: ignore[arg-type]
            self.terminals[symbols] = terminal
        return self.builder.read(terminal, self._after_lexeme(following))

    def _after_lexeme(self, following: int) -> int:
        return following if self.longest or self.skip < 0 else self.builder.read(self.skip, following)

    def _terminal(self, lexemes: list[Lexeme]) -> Terminal:
        store = self.cfg.store
        expression = store.union([lexeme.expression for lexeme in lexemes])
        label = " | ".join([lexeme.name for lexeme in lexemes[:4]]) + (" | ..." if len(lexemes) > 4 else "")

        def make() -> Dfa | LazyDfa:
            return automaton_of(store, expression, f"the terminal {lexemes[0].name} (line {lexemes[0].line})")

        key = self.keys.key(expression) + (b" shortest" if lexemes[0].lazy else b"")
        return Terminal(label, key, make, lexemes[0].lazy, (store, expression))

    def _skip_once(self) -> int:
        lexeme = self.cfg.lexemes[self.cfg.skip]
        return self.builder.terminal(self._terminal([lexeme]))  # type: ignore[list-item]

    def _skip_often(self) -> int:
        store, lexeme = self.cfg.store, self.cfg.lexemes[self.cfg.skip]
        expression = store.repeat(lexeme.expression, 0, None)  # type: ignore[union-attr]
        key, label = self.keys.key(expression), f"({lexeme.name})*"
        make = partial(automaton_of, store, expression, "what %ignore names")
        return self.builder.terminal(Terminal(label, key, make, expression=(store, expression)))
