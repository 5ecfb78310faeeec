r"""The notation of grammars: text -> definitions, by recursive descent.

The dialect is Lark's own plus what llguidance adds to it. In short:

- ``name: alternatives`` defines a rule, ``NAME: alternatives`` a terminal. Leading ``! ?``, rule priorities
  ``name.2:`` and aliases ``-> x`` mean nothing here (they shape Lark's trees). A line that begins with ``|`` goes on
  with the definition above it; comments ``//`` and ``#`` may stand between.
- Items: ``"text"``, ``"text"i`` (ignore case), ``/regex/imsxu``, ``"a".."z"``, names, ``(group)``, ``[optional]``,
  ``template{x, y}``; behind one of them ``? * +``, ``~n``, ``~m..n``, ``{n} {m,} {,n} {m,n}``.
- In terminals ``x & y`` (both; binds tighter than ``|``) and ``~x`` (not; binds tightest). llguidance.
- In rules special tokens: ``<name>``, ``<[12]>``, ``<[1-5,9]>``, ``<[^1-5]>``, ``<[*]>``. llguidance.
- In rules ``%json {..}``: the texts of a JSON schema; anywhere ``%regex {"substring_words": ".."}``: the texts that are
  a run of words of a text, the empty run too (`substring_chars`: of characters, `substring_chunks`: of a list of
  texts). llguidance.
- ``name[lazy]: ..`` and ``name[suffix="text"]: ..`` define a terminal that ends as soon as it can. llguidance.
- ``template{x, y}: ..``, ``%ignore``, ``%import common.X [-> Y]``, ``%import common (A, B)``, ``%llguidance {}``.
- ``%import name.rule``, ``%import name (a, B)``: rules, templates and terminals of a grammar of one's own
  (`tokdfa.Grammar.sources`), with a ``.`` before the name, as in Lark, or without. What that ignores is not imported.

What the dialect lacks is refused by name (`tokdfa.grammar.lark_words.REFUSED`). Nesting is bounded by `MAX_NESTING`, so
that this and later passes may recurse. `tests/grammar/meta_grammar.py` says the same as a grammar of Lark's; by it the
Lark package accepts the same texts, and stops at the same places.

Cost: linear, about 3 us a word of the grammar.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NoReturn, TypeVar

from tokdfa.constraint import DECODER
from tokdfa.core.budget import hold, spend
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, LimitExceeded
from tokdfa.grammar import lark_tree as tree
from tokdfa.grammar import lark_words as words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Levels of groups, complements and template arguments inside each other.
MAX_NESTING = 100
#: Characters of a grammar.
MAX_TEXT = 10_000_000
#: What it takes to read a definition, a word and a character, and what a word holds.
NS_PER_DEFINITION, NS_PER_WORD, NS_PER_CHARACTER, BYTES_PER_WORD = 10_000, 5_000, 10, 300
#: Times that something may be repeated by a count.
MAX_COUNT = 100_000

_RULE_NAME = re.compile(r"_?[a-z][a-z0-9_-]*")
_TERMINAL_NAME = re.compile(r"_?[A-Z][A-Z0-9_-]*")
_NOT_BLANK = re.compile(r"[^ \t\r\n]")
_Read = TypeVar("_Read")
_ENDS = ("bar", "line_end", "right", "right_bracket")


def parse_statements(text: str) -> list[tree.Statement]:
    """The statements of a grammar, in order.

    Raises GrammarSyntaxError or GrammarUnsupported with line and column, LimitExceeded past `MAX_TEXT`, `MAX_NESTING`
    or `MAX_COUNT`.
    """
    if len(text) > MAX_TEXT:
        raise LimitExceeded(
            f"the grammar has {len(text)} characters; at most {MAX_TEXT} are read",
            limit="grammar length",
            value=len(text),
        )
    spend(NS_PER_CHARACTER * len(text))
    return list(_Parser(text).statements())


class _Parser:
    """A text, and how far it has been read."""

    def __init__(self, text: str) -> None:
        self.given, self.text = text, text + "\n"
        self.begin = self.position = self.level = 0
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]

    # Words. What was read last stands at `begin` to `position`.

    def word(self, wanted: re.Pattern[str]) -> str:
        """Read the next word if it is one of these, and tell its kind; or else "", and nothing is read."""
        match = wanted.match(self.text, self.position)
        if match is None:
            return ""
        kind = match.lastgroup or ""
        self.begin, self.position = match.span(kind)
        return kind

    def expect(self, wanted: re.Pattern[str]) -> str:
        return self.word(wanted) or self.cannot_stand(self.next_position())

    @property
    def written(self) -> str:
        return self.text[self.begin : self.position]

    @property
    def place(self) -> tree.Part:
        return self.place_of(self.begin)

    def place_of(self, position: int) -> tree.Part:
        line = bisect_right(self.line_starts, position)
        return tree.Part(line, position - self.line_starts[line - 1] + 1)

    def next_position(self) -> int:
        blank = words.BLANK.match(self.text, self.position)
        return blank.end() if blank else self.position

    # Errors.

    def cannot_stand(self, position: int) -> NoReturn:
        """Say why not what is at `position`."""
        position = min(position, len(self.given))
        for pattern, refused, reason in words.REFUSED:
            if pattern.match(self.text, position):
                self.fail(reason, self.place_of(position), refused)
        self.fail(f"{self.text[position]!r} cannot stand here", self.place_of(position))

    def fail(self, reason: str, place: tree.Part, refused: bool = False) -> NoReturn:
        kind = GrammarUnsupported if refused else GrammarSyntaxError
        raise kind(reason, self.given, place.line, place.column)

    # Statements.

    def statements(self) -> Iterable[tree.Statement]:
        self.word(words.LINE_END)
        while self.next_position() < len(self.text):
            kind = self.expect(words.STATEMENT)
            if kind == "ignore":
                place = self.place
                yield tree.Ignore(place.line, place.column, self.options("line_end"))
            elif kind in ("name", "modifiers"):
                if kind == "modifiers":
                    self.expect(words.NAME)
                yield self.definition()
            else:
                if kind == "import":
                    yield self.imported()
                self.expect(words.LINE_END)

    def definition(self) -> tree.Definition:
        spend(NS_PER_DEFINITION)
        name = self.name()
        parameters = self.list_in(words.LEFT_BRACE, self.parameter, words.RIGHT_BRACE)
        attributes = self.list_in(words.LEFT_BRACKET, self.attribute, words.RIGHT_BRACKET)
        if tree.is_terminal_name(name.name):
            for extra in (*parameters, *attributes):
                self.fail("only rules have parameters and attributes; give it a lower-case name", extra)
        if self.word(words.PRIORITY) and tree.is_terminal_name(name.name):
            reason = "a terminal's priority is not supported: it chooses between readings, and all of them are kept"
            self.fail(reason, self.place, refused=True)
        self.expect(words.COLON)
        return tree.Definition(name.line, name.column, name.name, parameters, attributes, self.options("line_end"))

    def list_in(
        self, opening: re.Pattern[str], read: Callable[[], _Read], closing: re.Pattern[str]
    ) -> tuple[_Read, ...]:
        """What stands between brackets, with commas between, if the opening one comes next."""
        found: list[_Read] = []
        if self.word(opening):
            while not found or not self.word(closing):
                if found:
                    self.expect(words.COMMA)
                found.append(read())
        return tuple(found)

    def parameter(self) -> tree.Word:
        self.expect(words.NAME)
        word = self.name()
        if tree.is_terminal_name(word.name):
            self.fail("a parameter's name is in lower case", word)
        return word

    def attribute(self) -> tree.Attribute:
        self.expect(words.NAME)
        place, name = self.place, self.written
        value = self.expect(words.ATTRIBUTE) and self.written if self.word(words.EQUALS) else None
        return tree.Attribute(place.line, place.column, name, value)

    def imported(self) -> tree.Import:
        place = self.place
        path: list[tree.Word] = []
        self.word(words.DOT)
        while not path or self.word(words.DOT):
            self.expect(words.NAME)
            part = self.place
            path.append(tree.Word(part.line, part.column, self.written))
        names = self.list_in(words.LEFT, self.listed_name, words.RIGHT)
        pairs = tuple(zip(names, names, strict=True))
        if not pairs:
            *path, last = path
            called = self.alias(last) if self.word(words.ARROW) else last
            pairs = ((last, called),)
        return tree.Import(place.line, place.column, tuple(part.name for part in path), pairs)

    def listed_name(self) -> tree.Word:
        self.expect(words.NAME)
        return self.name()

    def alias(self, imported: tree.Word) -> tree.Word:
        called = self.listed_name()
        if tree.is_terminal_name(called.name) != tree.is_terminal_name(imported.name):
            self.fail("an imported terminal keeps an upper-case name", called)
        return called

    def name(self) -> tree.Word:
        """The name that was read last."""
        place, name = self.place, self.written
        if not _RULE_NAME.fullmatch(name) and not _TERMINAL_NAME.fullmatch(name):
            reason = f"{name!r} is no name; a rule's is in lower case, a terminal's in upper case, at most one _ first"
            self.fail(reason, place)
        return tree.Word(place.line, place.column, name)

    # What definitions are made of.

    def options(self, closing: str) -> tree.Group:
        """Alternatives up to a word of the kind `closing`."""
        options: list[tree.Option] = []
        kind = "bar"
        while kind == "bar":
            sequences: list[list[tree.Part]] = [[]]
            joined = alias = None
            while (kind := self.expect(words.ITEM)) not in _ENDS:
                if kind == "arrow":
                    alias = self.place
                    self.expect(words.NAME)
                    kind = self.expect(words.BEHIND_ALIAS)
                    break
                if kind == "and":
                    joined = joined or self.place
                    sequences.append([])
                else:
                    sequences[-1].append(self.item(kind))
            count = sum(map(len, sequences))
            spend(NS_PER_WORD * (2 + count))
            hold(BYTES_PER_WORD * count)
            options.append(tree.Option(tuple(map(tuple, sequences)), joined, alias))
        if kind != closing:
            self.cannot_stand(self.begin)
        parts = (part for option in options for sequence in option.sequences for part in sequence)
        first = next(parts, tree.Part(0, 0))
        return tree.Group(first.line, first.column, tuple(options))

    def item(self, kind: str) -> tree.Part:
        """What begins with the word that was read last, with its count."""
        body = self.atom(kind)
        if not self.word(words.COUNT):
            if not isinstance(body, tree.Word) or not self.word(words.LEFT_BRACE):
                return body
            body = self.use(body)
            if not self.word(words.COUNT):
                return body
        count = self.place
        low, high = self.bounds()
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", count)
        return tree.Repetition(body.line, body.column, body, low, high)

    def atom(self, kind: str) -> tree.Part:
        if kind in ("left", "left_bracket"):
            place = self.deeper()
            inner = self.options("right" if kind == "left" else "right_bracket")
            self.level -= 1
            group = tree.Group(place.line, place.column, inner.options)
            return group if kind == "left" else tree.Repetition(place.line, place.column, group, 0, 1)
        if kind == "tilde":
            place = self.deeper()
            kind = self.expect(words.ITEM)
            if kind in (*_ENDS, "and", "arrow"):
                self.cannot_stand(self.begin)
            body = self.atom(kind)
            is_counted = words.COUNT.match(self.text, self.position)
            if isinstance(body, tree.Word) and not is_counted and self.word(words.LEFT_BRACE):
                body = self.use(body)
            self.level -= 1
            return tree.Complement(place.line, place.column, body)
        return self.value(kind)

    def value(self, kind: str) -> tree.Part:
        if kind == "name":
            return self.name()
        if kind == "structured":
            return self.structured()
        place, written = self.place, self.written
        if kind == "regex":
            return tree.Pattern(place.line, place.column, written)
        if kind == "special":
            return tree.Special(place.line, place.column, written)
        low = tree.Text(place.line, place.column, written)
        if not self.word(words.RANGE):
            return low
        self.expect(words.STRING)
        end = self.place
        return tree.Range(low.line, low.column, low, tree.Text(end.line, end.column, self.written))

    def use(self, name: tree.Word) -> tree.Use:
        """A template, of which the name and the brace have been read."""
        self.deeper(name)
        arguments: list[tree.Part] = []
        while not arguments or not self.word(words.RIGHT_BRACE):
            if arguments:
                self.expect(words.COMMA)
            argument = self.value(self.expect(words.VALUE))
            if isinstance(argument, tree.Word) and self.word(words.LEFT_BRACE):
                argument = self.use(argument)
            arguments.append(argument)
        self.level -= 1
        return tree.Use(name.line, name.column, name.name, tuple(arguments))

    def structured(self) -> tree.Structured:
        """A directive with JSON."""
        place, directive = self.place, self.written
        json = _NOT_BLANK.search(self.text, self.position)
        begin = json.start() if json else len(self.given)
        try:
            _, self.position = DECODER.raw_decode(self.given, begin)
        except (ValueError, RecursionError) as error:
            reason = f"{directive} is followed by JSON; {getattr(error, 'msg', error)}"
            self.fail(reason, self.place_of(getattr(error, "pos", begin)))
        return tree.Structured(place.line, place.column, directive, begin, self.position)

    def deeper(self, place: tree.Part | None = None) -> tree.Part:
        """One level more, at `place` or where the last word stands; the place."""
        place = place or self.place
        if self.level >= MAX_NESTING:
            raise LimitExceeded(
                f"groups are nested deeper than {MAX_NESTING} at line {place.line}, column {place.column} of the"
                " grammar; give the inner ones names of their own",
                limit="group nesting",
                value=self.level + 1,
            )
        self.level += 1
        return place

    def bounds(self) -> tuple[int, int | None]:
        """Those of the count that was read last: ``? * +``, ``{m,n}`` and its kin, ``~n`` or ``~m..n``."""
        count = self.written
        known: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        if count in known:
            return known[count]
        numbers = re.findall(r"\d+", count)
        for number in numbers:
            if len(number.lstrip("0")) > len(str(MAX_COUNT)) or int(number) > MAX_COUNT:  # int() refuses very long ones
                raise LimitExceeded(
                    f"a count above {MAX_COUNT} at line {self.place.line}, column {self.place.column} of the grammar; "
                    "write what is repeated as a regex in a terminal",
                    limit="count",
                    value=MAX_COUNT,
                )
        low = 0 if re.match(r"\{\s*,", count) else int(numbers[0])
        if count.startswith("{") and count.rstrip("} \t").endswith(","):
            return low, None
        return low, int(numbers[-1])
