r"""The notation of grammars: text -> definitions, by recursive descent.

The dialect is Lark's own plus what llguidance adds to it. In short:

- ``name: alternatives`` defines a rule, ``NAME: alternatives`` a terminal. Leading ``! ?``, priorities ``name.2:`` and
  aliases ``-> x`` mean nothing here (they shape and choose Lark's trees; all readings are kept). A line that begins
  with ``|`` goes on with the definition above it; comments ``//`` and ``#`` may stand between.
- Items: ``"text"``, ``"text"i`` (ignore case), ``/regex/imsxu``, ``"a".."z"``, names, ``(group)``, ``[optional]``,
  ``template{x, y}``; behind one of them ``? * +``, ``~n``, ``~m..n``, ``{n} {m,} {,n} {m,n}``.
- In terminals ``x & y`` (both; binds tighter than ``|``) and ``~x`` (not; binds tightest). llguidance.
- In rules special tokens: ``<name>``, ``<[12]>``, ``<[1-5,9]>``, ``<[^1-5]>``, ``<[*]>``. llguidance.
- In rules ``%json {..}``: the texts of a JSON schema; anywhere ``%regex {"substring_words": ".."}``: the texts that are
  a run of words of a text, the empty run too (`substring_chars`: of characters, `substring_chunks`: of a list of
  texts). llguidance.
- ``name[lazy]: ..`` and ``name[suffix="text"]: ..`` define a terminal that ends as soon as it can. llguidance.
- ``%override name: ..`` replaces a definition, ``%extend name: ..`` adds alternatives to it; of an imported one for the
  rules of the text that it comes from, too. Terminals there that are made of it keep what they had, as in Lark.
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
from tokdfa.core.budget import spend
from tokdfa.core.nesting import check_depth, with_room
from tokdfa.errors import GrammarSyntaxError, GrammarUnsupported, LimitExceeded
from tokdfa.grammar import lark_tree as tree
from tokdfa.grammar import lark_words as words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.constraint import Written

#: Levels of groups, complements and template arguments inside each other.
MAX_NESTING = 100
#: Characters of a grammar.
MAX_TEXT = 10_000_000
#: What it takes to read a definition, a word and a character, and what a word holds.
NS_PER_DEFINITION, NS_PER_WORD, NS_PER_CHARACTER, BYTES_PER_WORD = 10_000, 5_000, 10, 300
#: Times that something may be repeated by a count.
MAX_COUNT = 100_000

_VALID_NAME = re.compile(r"_?(?:[a-z][a-z0-9_-]*|[A-Z][A-Z0-9_-]*)")
_PARTS = {"name": tree.Word, "string": tree.Text, "regex": tree.Pattern, "special": tree.Special}
_NOT_BLANK = re.compile(r"[^ \t\r\n]")
_Read = TypeVar("_Read")
_ENDS = frozenset(("bar", "line_end", "right", "right_bracket"))
_BEHIND_ATOM = frozenset((*words.COUNTS, "range", "left_brace"))


def parse_statements(text: str, written: Written | None = None) -> list[tree.Statement]:
    """The statements of a grammar, in order. `written`: what it was made of, if it was; places are places in that.

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
    return list(_Parser(text, written).statements())


class _Parser:
    """A text, and how far it has been read."""

    def __init__(self, text: str, written: Written | None) -> None:
        self.given, self.text, self.made_of = text, text + "\n", written
        self.begin = self.position = self.level = 0
        self.shown = text if written is None else written.text
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", self.shown))]
        #: Names that are known to be valid.
        self.names: set[str] = set()
        #: See `tree.Definition.leaves`: those of the definition that is being read.
        self.leaves: list[tree.Part] = []

    # Words. What was read last stands at `begin` to `position`.

    def word(self, wanted: re.Pattern[str]) -> str:
        """Read the next word if it is one of these, and tell its kind; or else "", and nothing is read."""
        match = wanted.match(self.text, self.position)
        if match is None:
            return ""
        self.begin, self.position = match.span(match.lastindex or 0)
        return match.lastgroup or ""

    def expect(self, wanted: re.Pattern[str]) -> str:
        match = wanted.match(self.text, self.position)
        if match is None:
            self.cannot_stand(self.next_position())
        self.begin, self.position = match.span(match.lastindex or 0)
        return match.lastgroup or ""

    @property
    def written(self) -> str:
        return self.text[self.begin : self.position]

    @property
    def place(self) -> tuple[int, int]:
        """Line and column."""
        begin = self.begin if self.made_of is None else self.position_shown(self.begin)
        line = bisect_right(self.line_starts, begin)
        return line, begin - self.line_starts[line - 1] + 1

    def position_shown(self, position: int) -> int:
        """Where what stands at a position begins in what the text was made of."""
        assert self.made_of is not None
        return self.made_of.begin[max(bisect_right(self.made_of.made, position) - 1, 0)]

    def place_of(self, position: int) -> tree.Part:
        if self.made_of is not None:
            position = self.position_shown(position)
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
        raise kind(reason, self.shown, place.line, place.column)

    # Statements.

    def statements(self) -> Iterable[tree.Statement]:
        self.word(words.LINE_END)
        while self.next_position() < len(self.text):
            kind = self.expect(words.STATEMENT)
            if kind == "ignore":
                leaves = self.leaves = []
                yield tree.Ignore(*self.place, self.options("line_end"), leaves)
            elif kind in ("name", "modifiers", "override", "extend"):
                change = ""
                if kind in ("override", "extend"):
                    change, kind = kind, self.expect(words.DEFINITION)
                if kind == "modifiers":
                    self.expect(words.NAME)
                yield self.definition(change)
            else:
                if kind == "import":
                    yield self.imported()
                self.expect(words.LINE_END)

    def definition(self, change: str) -> tree.Definition:
        spend(NS_PER_DEFINITION)
        name = self.name()
        leaves = self.leaves = []
        parameters: tuple[tree.Word, ...] = ()
        attributes: tuple[tree.Attribute, ...] = ()
        kind = self.word(words.BEHIND_NAME)
        if kind == "left_brace":
            parameters = self.list_to(words.RIGHT_BRACE, self.parameter)
            kind = self.word(words.BEHIND_NAME)
        if kind == "left_bracket":
            attributes = self.list_to(words.RIGHT_BRACKET, self.attribute)
            kind = self.word(words.BEHIND_NAME)
        is_terminal = tree.is_terminal_name(name.name)
        if is_terminal:
            for extra in (*parameters, *attributes):
                self.fail("only rules have parameters and attributes; give it a lower-case name", extra)
        if kind == "priority":  # it chooses between readings, and all of them are kept
            kind = self.word(words.BEHIND_NAME)
        if kind != "colon":
            self.cannot_stand(self.begin if kind else self.next_position())
        body = self.options("line_end")
        return tree.Definition(name.line, name.column, name.name, parameters, attributes, body, leaves, change)

    def list_to(self, closing: re.Pattern[str], read: Callable[[], _Read]) -> tuple[_Read, ...]:
        """What stands between brackets, the opening one of which has been read, with commas between."""
        found: list[_Read] = []
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
        return tree.Attribute(*place, name, value)

    def imported(self) -> tree.Import:
        place = self.place
        path: list[tree.Word] = []
        self.word(words.DOT)
        while not path or self.word(words.DOT):
            self.expect(words.NAME)
            path.append(tree.Word(*self.place, self.written))
        names = self.list_to(words.RIGHT, self.listed_name) if self.word(words.LEFT) else ()
        pairs = tuple(zip(names, names, strict=True))
        if not pairs:
            *path, last = path
            called = self.alias(last) if self.word(words.ARROW) else last
            pairs = ((last, called),)
        return tree.Import(*place, tuple(part.name for part in path), pairs)

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
        self.check_name(self.written)
        return tree.Word(*self.place, self.written)

    def check_name(self, name: str) -> None:
        if name in self.names:
            return
        if not _VALID_NAME.fullmatch(name):
            reason = f"{name!r} is no name; a rule's is in lower case, a terminal's in upper case, at most one _ first"
            self.fail(reason, self.place_of(self.begin))
        self.names.add(name)

    # What definitions are made of.

    def options(self, closing: str) -> tree.Group:
        """Alternatives up to a word of the kind `closing`."""
        options: list[tree.Option] = []
        kind, first, count = "bar", None, 0
        while kind == "bar":
            parts: list[tree.Part] = []
            sequences = [parts]
            joined = alias = None
            kind = self.expect(words.ITEM)
            while kind not in _ENDS:
                if kind == "arrow":
                    alias = self.place_of(self.begin)
                    self.expect(words.NAME)
                    kind = self.expect(words.BEHIND_ALIAS)
                    break
                if kind == "and":
                    joined = joined or self.place_of(self.begin)
                    parts = []
                    sequences.append(parts)
                    kind = self.expect(words.ITEM)
                else:
                    item, kind = self.atom(kind)
                    if kind in _BEHIND_ATOM:
                        item, kind = self.counted(item, kind)
                    parts.append(item)
                    first = first or item
            count += sum([len(parts) for parts in sequences])
            options.append(tree.Option(tuple([tuple(parts) for parts in sequences]), joined, alias))
        spend(NS_PER_WORD * (2 * len(options) + count), BYTES_PER_WORD * count)
        if kind != closing:
            self.cannot_stand(self.begin)
        line, column = (first.line, first.column) if first else (0, 0)
        return tree.Group(line, column, tuple(options))

    def counted(self, body: tree.Part, kind: str) -> tuple[tree.Part, str]:
        """An atom with the count behind it, which is the word of this kind, and the kind of the next word."""
        if kind not in words.COUNTS:
            self.cannot_stand(self.begin)
        low, high = self.bounds()
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", self.place_of(self.begin))
        return tree.Repetition(body.line, body.column, body, low, high), self.expect(words.ITEM)

    def atom(self, kind: str) -> tuple[tree.Part, str]:
        """What begins with the word that was read last, without a count, and the kind of the word behind it, which is
        read.
        """
        if kind in ("left", "left_bracket"):
            place = self.deeper()
            inner = self.options("right" if kind == "left" else "right_bracket")
            self.level -= 1
            group: tree.Part = tree.Group(place.line, place.column, inner.options)
            if kind == "left_bracket":
                group = tree.Repetition(place.line, place.column, group, 0, 1)
            return group, self.expect(words.BEHIND_ITEM)
        if kind == "tilde":
            place = self.deeper()
            kind = self.expect(words.ITEM)
            if kind in (*_ENDS, "and", "arrow"):
                self.cannot_stand(self.begin)
            body, kind = self.atom(kind)
            self.level -= 1
            return tree.Complement(place.line, place.column, body), kind
        body = self.value(kind)
        kind = self.expect(words.BEHIND_ITEM)
        if kind == "range" and isinstance(body, tree.Text):
            return self.range_from(body), self.expect(words.BEHIND_ITEM)
        if kind == "left_brace" and isinstance(body, tree.Word):
            return self.use(body), self.expect(words.BEHIND_ITEM)
        return body, kind

    def value(self, kind: str) -> tree.Part:
        """What the word that was read last is by itself, a leaf."""
        begin = self.begin if self.made_of is None else self.position_shown(self.begin)
        line = bisect_right(self.line_starts, begin)
        column = begin - self.line_starts[line - 1] + 1
        written = self.text[self.begin : self.position]
        if kind == "name":
            self.check_name(written)
        part = _PARTS[kind](line, column, written) if kind in _PARTS else self.structured(line, column, written)
        self.leaves.append(part)
        return part

    def range_from(self, low: tree.Text) -> tree.Range:
        """A range, of which the low end, the last leaf, and the dots have been read."""
        self.expect(words.STRING)
        found = self.leaves[-1] = tree.Range(low.line, low.column, low, tree.Text(*self.place, self.written))
        return found

    def use(self, name: tree.Word) -> tree.Use:
        """A template, of which the name, the last leaf, and the brace have been read."""
        self.deeper(name)
        arguments: list[tree.Part] = []
        leaf = len(self.leaves) - 1
        while not arguments or not self.word(words.RIGHT_BRACE):
            if arguments:
                self.expect(words.COMMA)
            argument = self.value(self.expect(words.VALUE))
            if isinstance(argument, tree.Text) and self.word(words.RANGE):
                argument = self.range_from(argument)
            elif isinstance(argument, tree.Word) and self.word(words.LEFT_BRACE):
                argument = self.use(argument)
            arguments.append(argument)
        self.level -= 1
        found = self.leaves[leaf] = tree.Use(name.line, name.column, name.name, tuple(arguments))
        return found

    def structured(self, line: int, column: int, directive: str) -> tree.Structured:
        """A directive with JSON."""
        json = _NOT_BLANK.search(self.text, self.position)
        begin = json.start() if json else len(self.given)
        try:
            _, self.position = with_room(lambda: DECODER.raw_decode(self.given, begin))
            check_depth(self.given[begin : self.position], f"the JSON at line {line}, column {column} of the grammar")
        except RecursionError:
            check_depth(self.given[begin:], f"the JSON at line {line}, column {column} of the grammar")
            raise
        except ValueError as error:
            reason = f"{directive} is followed by JSON; {getattr(error, 'msg', error)}"
            self.fail(reason, self.place_of(getattr(error, "pos", begin)))
        return tree.Structured(line, column, directive, begin, self.position)

    def deeper(self, place: tree.Part | None = None) -> tree.Part:
        """One level more, at `place` or where the last word stands; the place."""
        place = place or self.place_of(self.begin)
        if self.level >= MAX_NESTING:
            raise LimitExceeded(
                f"groups are nested too deep, deeper than {MAX_NESTING}, at line {place.line}, column {place.column} of"
                " the grammar; give the inner ones names of their own",
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
                line, column = self.place
                raise LimitExceeded(
                    f"a count above {MAX_COUNT} at line {line}, column {column} of the grammar; "
                    "write what is repeated as a regex in a terminal",
                    limit="count",
                    value=MAX_COUNT,
                )
        low = 0 if re.match(r"\{\s*,", count) else int(numbers[0])
        if count.startswith("{") and count.rstrip("} \t").endswith(","):
            return low, None
        return low, int(numbers[-1])
