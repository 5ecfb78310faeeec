"""Lark grammars: from text to `tokdfa.grammar.cfg.Cfg`. The notation is described in `tokdfa.grammar.lark_syntax`.

In a rule every string, regex, range, terminal and special token is a lexeme of its own, with the skip lexeme (all
``%ignore`` together) allowed between any two. Groups become nonterminals, repetitions those of
`tokdfa.grammar.builder`, templates a nonterminal for each list of arguments.

All lexemes that match at a place count: there are no priorities among them, and neither the longest match nor the order
of definitions decides (in this the texts accepted are those of Lark's Earley parser with ``lexer="dynamic_complete"``;
the grammar engines take the longest match only, unless told otherwise). A `Cfg` has skipped text between lexemes only.
Engines allow it before the first and after the last one, too, as Lark does; so a text may begin with a comment, and go
on with blanks when it is complete. ``earley_trie`` can be told not to: ``ignore="between"``.

Rules are lowered as they are reached from the start, from a queue, so no chain of rules costs Python stack. Rules and
terminals that are not reached are only checked for names.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from textwrap import shorten
from typing import TYPE_CHECKING, NoReturn

from tokdfa.constraint import Grammar
from tokdfa.core.budget import spend
from tokdfa.errors import (
    GrammarSyntaxError,
    GrammarUnsupported,
    LimitExceeded,
    OptionError,
    UnknownNameError,
    counted,
    nearest,
)
from tokdfa.grammar import lark_tree as tree
from tokdfa.grammar.builder import CfgBuilder, Repetitions, matches_nothing, without_empty
from tokdfa.grammar.cfg import Lexeme, SchemaTexts
from tokdfa.grammar.common_terminals import common_definitions, common_program
from tokdfa.grammar.lark_syntax import parse_statements
from tokdfa.grammar.lark_terminals import TerminalReader, placed
from tokdfa.grammar.simplify import remove_ambiguity, remove_useless
from tokdfa.grammar.special import parse_special
from tokdfa.regex.expression import NOTHING, ExpressionStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.grammar.cfg import Cfg
    from tokdfa.regex.program import Program

#: What it takes to lower a part of a rule.
NS_PER_SYMBOL = 5_000
#: How many rules the templates of one grammar may become.
MAX_INSTANCES = 10_000


def read_lark(text: str, start: str = "start") -> Cfg:
    """`read_grammar` of a text that imports no text of one's own."""
    return read_grammar(Grammar(text, start))


def read_grammar(grammar: Grammar) -> Cfg:
    """The grammar that a text defines, without useless rules, with its start.

    Linear in the text, apart from templates and counts (`tokdfa.grammar.builder`). Raises GrammarSyntaxError or
    GrammarUnsupported with line and column, UnknownNameError if there is no rule `start`, EmptyLanguageError if it
    derives no text, and LimitExceeded.
    """
    return remove_ambiguity(remove_useless(_Reader(grammar.text, _Reading(grammar)).read(grammar.start)))


class _Reading:
    """What the texts of one grammar share. What has been reached and is not lowered yet stands in `pending`."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar, self.sources = grammar, dict(grammar.sources)
        self.store = ExpressionStore()
        self.builder = CfgBuilder(self.store)
        self.repetitions = Repetitions(self.builder)
        self.pending: deque[tuple[_Reader, int, tree.Definition, Mapping[str, int]]] = deque()
        self.instances: dict[tuple[str, str, tuple[int, ...]], int] = {}
        self.template_count = 0
        self.lexemes: dict[tuple[int, bool], int] = {}
        #: The texts that have been imported, by name; None while one is read.
        self.readers: dict[str, _Reader | None] = {}


class _Reader:
    """The definitions of one text, the grammar itself or one that it imports as `source`."""

    def __init__(self, text: str, reading: _Reading, source: str = "") -> None:
        self.text, self.reading, self.source = text, reading, source
        written = None if source else reading.grammar.written
        #: What messages show, and what rules are called there.
        self.shown, self.called = (text, {}) if written is None else (written.text, written.names)
        self.store, self.builder, self.repetitions = reading.store, reading.builder, reading.repetitions
        self.definitions: dict[str, tree.Definition] = {}
        #: Rules and terminals of other texts, by what they are called here.
        self.foreign: dict[str, tuple[_Reader, tree.Definition]] = {}
        #: Definitions of this text that a text which imports them overrides or extends: its reader, its name for them.
        self.replaced: dict[str, tuple[_Reader, str]] = {}
        self.ignored: list[tree.Ignore] = []
        #: The symbols of rules and terminals by name, of strings and regexes by what is written.
        self.known: dict[str, int] = {}
        self.imports: dict[str, tuple[tree.Word, tree.Word]] = {}
        try:
            statements = parse_statements(text, written)
        except GrammarSyntaxError as error:
            raise type(error)(error.reason, self.shown, error.line, error.column, source) from None
        for statement in statements:
            match statement:
                case tree.Definition():
                    self.add_definition(statement)
                case tree.Ignore():
                    self.ignored.append(statement)
                case tree.Import():
                    self.add_import(statement)
        terminals = {name: definition for name, definition in self.definitions.items() if definition.is_terminal}
        self.terminals = TerminalReader(self.shown, terminals, self.store, self.imported_terminals(), source)
        self.terminals.alone.update(self.standing_alone())

    def fail(self, reason: str, part: tree.Part, refused: bool = False) -> NoReturn:
        kind = GrammarUnsupported if refused else GrammarSyntaxError
        raise kind(reason, self.shown, part.line, part.column, self.source)

    # Statements.

    def add_definition(self, definition: tree.Definition) -> None:
        if definition.change:
            definition = self.changed(definition)
        else:
            self.check_new(definition.name, definition)
        self.definitions[definition.name] = definition

    def changed(self, definition: tree.Definition) -> tree.Definition:
        """What is defined after an ``%override`` or an ``%extend``."""
        name, earlier = definition.name, self.definitions.get(definition.name)
        if earlier is None and name not in self.imports:
            known = [*self.definitions, *self.imports]
            self.fail(f"there is no {name} to {definition.change} up to here; {nearest(name, known)}", definition)
        if earlier is None:
            return self.changed_import(definition)
        if definition.change == "override":
            return definition
        if [one.name for one in earlier.parameters] != [one.name for one in definition.parameters]:
            self.fail(f"{name} has other parameters in line {earlier.line}", definition)
        if earlier.attributes or definition.attributes:
            self.fail("what has attributes cannot be extended; override it", definition, refused=True)
        options = (*earlier.body.options, *definition.body.options)
        body = tree.Group(earlier.body.line, earlier.body.column, options)
        return replace(earlier, body=body, leaves=[*earlier.leaves, *definition.leaves])

    def changed_import(self, definition: tree.Definition) -> tree.Definition:
        """The same of what is imported. What it was stays under a name that nobody can write."""
        name, kept = definition.name, f"{definition.name} (imported)"
        imported, called = self.imports.pop(name)
        self.imports[kept] = imported, called
        if name in self.foreign:
            reader, original = self.foreign[kept] = self.foreign.pop(name)
            if original.parameters and definition.change == "extend":
                self.fail("an imported template cannot be extended; override it", definition, refused=True)
            if reader.replaced.setdefault(original.name, (self, name)) != (self, name):
                what = f"{original.name} of {reader.source!r}"
                self.fail(f"{what} is changed in two places, here under a second name", definition, refused=True)
        if definition.change == "override":
            return definition
        word = tree.Word(called.line, called.column, kept)
        options = (tree.Option(((word,),), None, None), *definition.body.options)
        body = tree.Group(definition.body.line, definition.body.column, options)
        return replace(definition, body=body, leaves=[word, *definition.leaves])

    def check_new(self, name: str, part: tree.Part) -> None:
        earlier = self.definitions.get(name) or (self.imports[name][1] if name in self.imports else None)
        if earlier:
            self.fail(f"{name} is defined in line {earlier.line} already; write its alternatives there", part)

    def add_import(self, statement: tree.Import) -> None:
        reader = None if statement.path == ("common",) else self.imported(statement)
        known = common_definitions() if reader is None else reader.definitions
        for name, called in statement.names:
            if name.name not in known:
                what = "common terminal" if reader is None else f"definition in {reader.source!r} of"
                self.fail(f"there is no {what} {name.name!r}; {nearest(name.name, known)}", name)
            self.check_new(called.name, called)
            self.imports[called.name] = name, called
            if reader:
                self.foreign[called.name] = reader, reader.definitions[name.name]

    def imported(self, statement: tree.Import) -> _Reader:
        """The reader of a text that is imported, read once."""
        source, readers, sources = ".".join(statement.path), self.reading.readers, self.reading.sources
        if source not in sources:
            shown = source or statement.names[0][0].name
            reason = f"there is nothing to import from {shown!r}; only common terminals are there"
            if sources:
                reason += f", and {', '.join(map(repr, sorted(sources)[:20]))}"
            self.fail(reason + ", and what Grammar is given as sources or path", statement, refused=True)
        if source not in readers:
            readers[source] = None
            found = readers[source] = _Reader(sources[source], self.reading, source)
            found.check_names()
        reader = readers[source]
        if reader is None:
            self.fail(f"{source!r} imports itself, by way of other texts or not; imports go one way", statement)
        return reader

    def imported_terminals(self) -> dict[str, int | Program]:
        """What imported terminals are called here -> their expressions, or what writes them."""
        found: dict[str, int | Program] = {}
        for called, (name, _) in self.imports.items():
            if called not in self.foreign:
                found[called] = common_program(name.name)
            elif tree.is_terminal_name(called):
                found[called] = self.foreign[called][0].terminals.named(name)
        return found

    def standing_alone(self) -> frozenset[str]:
        """Imported terminals that other terminals cannot be made of."""
        return frozenset(
            called for called, (reader, definition) in self.foreign.items() if definition.name in reader.terminals.alone
        )

    def check_names(self) -> None:
        """Raise GrammarSyntaxError for a name that nothing defines, used or not."""
        known = {*self.definitions, *self.foreign}
        for definition in self.definitions.values():
            parameters = {parameter.name for parameter in definition.parameters}
            for part in definition.leaves:
                if isinstance(part, (tree.Word, tree.Use)) and not (part.name in known or part.name in parameters):
                    self.check_defined(part)

    def check_defined(self, part: tree.Word | tree.Use) -> None:
        if tree.is_terminal_name(part.name) and isinstance(part, tree.Word):
            self.terminals.check_name(part)
        elif part.name not in self.definitions and part.name not in self.foreign:
            rules = [name for name in (*self.definitions, *self.foreign) if not tree.is_terminal_name(name)]
            self.fail(f"there is no rule {part.name!r}; {nearest(part.name, rules)}", part)

    # Rules.

    def read(self, start: str) -> Cfg:
        rules = [one for one in self.definitions.values() if not one.is_terminal]
        names = [one.name for one in rules if not one.parameters]
        if start not in names:
            raise UnknownNameError("rule", start, names)
        self.check_names()
        self.terminals.prepare(self.lexemes_from(start))
        skip = self.skip()
        first = self.instance(start, (), self.definitions[start])
        while self.reading.pending:
            reader, symbol, definition, environment = self.reading.pending.popleft()
            if definition.attributes:
                self.builder.add_rule(symbol, (reader.lazy_lexeme(definition),))
            else:
                reader.alternatives(symbol, definition.body, environment)
        return self.builder.finish(first, skip)

    def lexemes_from(self, start: str) -> list[tree.Word | tree.Text | tree.Pattern]:
        """The strings, regexes and terminals in what is ignored and in the rules of this text that `start` reaches."""
        found: dict[str, tree.Word | tree.Text | tree.Pattern] = {}
        reached = {start}
        pending: list[tree.Ignore | tree.Definition] = [*self.ignored, self.definitions[start]]
        for one in pending:  # grows on the way
            for leaf in one.leaves:
                if isinstance(leaf, tree.Text | tree.Pattern):
                    found[leaf.written] = leaf
                elif isinstance(leaf, tree.Word | tree.Use) and leaf.name not in reached:
                    reached.add(leaf.name)
                    if isinstance(leaf, tree.Word) and tree.is_terminal_name(leaf.name):
                        found[leaf.name] = leaf
                    elif leaf.name in self.definitions:
                        pending.append(self.definitions[leaf.name])
        return list(found.values())

    def skip(self) -> Lexeme | None:
        """The skip lexeme: any of what is ignored. None if nothing is."""
        if not self.ignored:
            return None
        expressions = []
        for ignore in self.ignored:
            with placed(ignore):
                expressions.append(self.terminals.ignored(ignore.body))
                if matches_nothing(self.store, expressions[-1]):
                    self.fail("no text matches what is ignored here", ignore)
        expression = without_empty(self.store, self.store.union(expressions))
        if expression == NOTHING:
            self.fail(
                "only the empty text is ignored here; write what may be skipped, or leave it out", self.ignored[0]
            )
        return Lexeme("%ignore", expression, line=self.ignored[0].line, column=self.ignored[0].column)

    def instance(self, name: str, arguments: tuple[int, ...], part: tree.Part) -> int:
        """The nonterminal of a rule, or of a template with these arguments."""
        if name in self.replaced:
            other, called = self.replaced[name]
            return other.instance(called, arguments, part)
        reader, definition = self.foreign[name] if name in self.foreign else (self, self.definitions[name])
        if len(arguments) != len(definition.parameters):
            self.fail(
                f"{definition.name} takes {counted(len(definition.parameters), 'argument')}, not {len(arguments)}; "
                f"its definition is in line {definition.line}",
                part,
            )
        key, instances = (reader.source, definition.name, arguments), self.reading.instances
        if key not in instances:
            environment = {word.name: symbol for word, symbol in zip(definition.parameters, arguments, strict=True)}
            if len(environment) < len(arguments):
                reader.fail("two parameters have one name", definition)
            name = ".".join(filter(None, (reader.source, reader.called.get(definition.name, definition.name))))
            if arguments:
                name += "{" + shorten(", ".join(map(self.builder.name, arguments)), 60, placeholder="…") + "}"
                self.count_template(part)
            instances[key] = self.builder.nonterminal(name)
            self.reading.pending.append((reader, instances[key], definition, environment))
        return instances[key]

    def count_template(self, part: tree.Part) -> None:
        """LimitExceeded if templates have become too many rules."""
        self.reading.template_count += 1
        if self.reading.template_count > MAX_INSTANCES:
            raise LimitExceeded(
                f"templates become more than {MAX_INSTANCES} rules at line {part.line}, column {part.column} of the "
                "grammar; a template must not use itself with ever larger arguments",
                limit="template instances",
                value=MAX_INSTANCES,
            )

    def lazy_lexeme(self, definition: tree.Definition) -> int:
        """The lexeme of a rule with the attribute lazy or suffix."""
        suffix = None
        for attribute in definition.attributes:
            if attribute.name == "suffix":
                if not attribute.value or not attribute.value.startswith('"'):
                    self.fail('suffix takes a string, as in name[suffix="END"]: /.*/', attribute)
                suffix = tree.Text(attribute.line, attribute.column, attribute.value)
            elif attribute.name != "lazy":
                self.fail(
                    f"the attribute {attribute.name} is not supported; known: lazy, suffix", attribute, refused=True
                )
            elif attribute.value is not None:
                self.fail("lazy takes no value", attribute)
        for part in definition.leaves:
            if isinstance(part, tree.Use | tree.Special) or (
                isinstance(part, tree.Word) and not tree.is_terminal_name(part.name)
            ):
                self.fail("a lazy rule is one lexeme, made of strings, regexes and terminals only", part)
        with placed(definition):
            expression = self.terminals.body(definition.body)
            if suffix:
                expression = self.store.concat(expression, self.terminals.part(suffix))
        return self.lexeme(definition.name, expression, definition, lazy=True)

    def lexeme(self, name: str, expression: int, part: tree.Part, lazy: bool = False) -> int:
        """The symbol of an expression; `part` is where it stands."""
        key, lexemes = (expression, lazy), self.reading.lexemes
        if key not in lexemes:
            try:
                if matches_nothing(self.store, expression):
                    self.fail(f"no text matches {name}", part)
                lexemes[key] = self.builder.lexeme(name, expression, lazy, part.line, part.column)
            except LimitExceeded:
                with placed(part):
                    raise
        return lexemes[key]

    # Right sides. Nesting is bounded by the syntax, so these recurse.

    def alternatives(self, left: int, group: tree.Group, environment: Mapping[str, int]) -> None:
        """Add the rules of `left`."""
        for option in group.options:
            if option.joined:
                self.fail("& stands in terminals only; give this expression an upper-case name", option.joined)
            self.builder.add_rule(left, self.symbols(option.sequences[0], left, environment))

    def symbols(self, sequence: Sequence[tree.Part], left: int, environment: Mapping[str, int]) -> tuple[int, ...]:
        """The symbols of a sequence in a rule of `left`. A group without alternatives is no group."""
        found: list[int] = []
        for part in sequence:
            if isinstance(part, tree.Group) and len(part.options) == 1 and not part.options[0].joined:
                found += self.symbols(part.options[0].sequences[0], left, environment)
            else:
                found.append(self.symbol(part, left, environment))
        return tuple(found)

    def symbol(self, part: tree.Part, left: int, environment: Mapping[str, int]) -> int:
        """The symbol of one part."""
        spend(NS_PER_SYMBOL)
        match part:
            case tree.Word(name=key) | tree.Text(written=key) | tree.Pattern(written=key):
                if key in environment:
                    return environment[key]
                if key not in self.known:
                    self.known[key] = self.leaf(key, part)
                return self.known[key]
            case tree.Use(name=name, arguments=arguments):
                if name in environment or tree.is_terminal_name(name):
                    self.fail(f"{name} is no template", part)
                symbols = tuple(self.symbol(argument, left, environment) for argument in arguments)
                return self.instance(name, symbols, part)
            case tree.Group():
                symbol = self.group_symbol(part, left)
                self.alternatives(symbol, part, environment)
                return symbol
            case tree.Repetition(body=body, low=low, high=high):
                return self.repetitions.repeat(self.repeated(body, left, environment), low, high)
            case tree.Range():
                return self.literal(f"{part.low.written}..{part.high.written}", part)
            case tree.Special(written=written):
                try:
                    return self.builder.special(parse_special(written, part.line, part.column))
                except ValueError as error:
                    self.fail(str(error), part)
            case tree.Structured(directive="%json"):
                try:
                    constraint = self.reading.grammar.schema(self.text[part.begin : part.end])
                except OptionError as error:
                    self.fail(str(error), part)
                return self.builder.schema(SchemaTexts(constraint, "%json", part.line, part.column))
            case tree.Structured():
                return self.literal("%regex", part)
            case tree.Complement():
                self.fail("~ stands in terminals only; give this expression an upper-case name", part)
        raise AssertionError(part)

    def leaf(self, key: str, part: tree.Word | tree.Text | tree.Pattern) -> int:
        """The symbol of a rule or a terminal of that name, or of a string or regex that is written so."""
        if key in self.replaced:
            other, called = self.replaced[key]
            return other.symbol(tree.Word(part.line, part.column, called), 0, {})
        if isinstance(part, tree.Word) and not tree.is_terminal_name(key):
            return self.instance(key, (), part)
        place = self.terminals.definitions.get(key, part)
        if key in self.terminals.built:
            return self.lexeme(key, self.terminals.built[key], place)
        if isinstance(part, tree.Word):
            return self.lexeme(key, self.terminals.named(part), place)
        return self.literal(key, part)

    def literal(self, written: str, part: tree.Part) -> int:
        """The symbol of a string, a regex or a range."""
        with placed(part):
            expression = self.terminals.part(part)
        return self.lexeme(written, expression, part)

    def repeated(self, body: tree.Part, left: int, environment: Mapping[str, int]) -> int:
        """One symbol for what is repeated."""
        symbols = self.symbols((body,), left, environment)
        if len(symbols) == 1:
            return symbols[0]
        symbol = self.group_symbol(body, left)
        self.builder.add_rule(symbol, symbols)
        return symbol

    def group_symbol(self, part: tree.Part, left: int) -> int:
        """A new nonterminal for a group in a rule of `left`."""
        return self.builder.nonterminal(f"({self.builder.name(left)}:{part.line}:{part.column})")
