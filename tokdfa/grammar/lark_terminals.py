r"""From the terminals of a grammar to expressions over bytes.

A terminal is one regular language, whatever it is made of; it may refer to other terminals, not to itself and not to
rules. What is special here:

- Strings have the escapes ``\\ \" \n \t \r \f \xHH \uHHHH \UHHHHHHHH`` (code points, as in Lark). Others are refused,
  because Lark and JSON disagree about them.
- Regexes are `tokdfa.regex.parse`'s in the dialect "lark", Unicode classes included; ``^`` at the very beginning and
  ``$`` at the very end say nothing. Refused: look-behind, anchors elsewhere, and the two things that follow where such
  a regex is not the whole of a terminal, of a literal in a rule or of what is ignored: Lark makes one regex of all
  parts, which would see the others.
- *Look-ahead and word boundaries* are read inside of a terminal's own text, behind which they see the end:
  ``/(?!if\b)[a-z]+/`` is each word but ``if``. (To Lark they see what comes after the terminal, too.) At the end of a
  regex, where they would speak of nothing else, they are refused. Boundaries are Python's, of Unicode.
- *Lazy quantifiers* change what a terminal finds. A regex with one lazy repeat, in which nothing else varies in length,
  ends at its first match: ``/\/\*.*?\*\//s`` is each comment that ends where it first can. So it is those of its texts
  that do not begin with another one. Other lazy quantifiers are refused (llguidance ignores them).
- ``~x`` is any UTF-8 text that x does not match (llguidance: any bytes). In ``x & ~y`` the left side sees to that.

References are followed with a list, not by recursion; nesting is bounded by the reader. Each terminal is lowered once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from tokdfa.constraint import DECODER
from tokdfa.errors import (
    GrammarSyntaxError,
    GrammarUnsupported,
    LimitExceeded,
    RegexSyntaxError,
    RegexUnsupported,
    UnsupportedConstraint,
    nearest,
)
from tokdfa.grammar import lark_tree as tree
from tokdfa.regex.char_sets import ALL, fold_closure
from tokdfa.regex.expression import ANY_BYTE, EMPTY
from tokdfa.regex.lower import lower
from tokdfa.regex.parse import parse
from tokdfa.regex.program import Program, known
from tokdfa.regex.syntax_tree import (
    Alternation,
    Assertion,
    CharSet,
    Concat,
    LookAhead,
    Node,
    Repeat,
    alternation,
    concat,
    walk,
    width_of,
)
from tokdfa.regex.tree_writer import UTF8, Writer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokdfa.regex.expression import ExpressionStore

#: Ways of ``%regex`` -> what a chunk of its text is.
_CHUNKS = {"substring_chars": r".", "substring_words": r"\w+|\s+|[^\w\s]+", "substring_chunks": ""}
#: Chunks of one ``%regex``.
MAX_CHUNKS = 10_000
_ESCAPES = {"\\": "\\", '"': '"', "n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.?))")
_ANY_TEXT = Repeat(CharSet(ALL), 0, None)
LAZY = "a lazy quantifier is supported in a terminal that ends at its first match, once and by itself"


class PlacedLimitExceeded(LimitExceeded):
    """A LimitExceeded whose message has a place in a grammar."""


class placed:  # noqa: N801 - used as a verb: with placed(part)
    """Add the place of `part` to a LimitExceeded that is raised inside and has none."""

    __slots__ = ("part",)

    def __init__(self, part: tree.Part) -> None:
        self.part = part

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, LimitExceeded) and not isinstance(error, PlacedLimitExceeded):
            message = f"{error} (line {self.part.line}, column {self.part.column} of the grammar)"
            raise PlacedLimitExceeded(message, limit=error.limit, value=error.value) from None


class TerminalReader:
    """The expressions of a grammar's terminals.

    `text`: the grammar, for messages; `definitions`: its terminals by name; `imported`: name -> the expression of a
    terminal defined elsewhere, or what writes it; `source`: the name of the text, if it is imported.
    """

    def __init__(
        self,
        text: str,
        definitions: Mapping[str, tree.Definition],
        store: ExpressionStore,
        imported: Mapping[str, int | Program] | None = None,
        source: str = "",
    ) -> None:
        self.text, self.definitions, self.store, self.source = text, definitions, store, source
        self._writer = Writer(store, UTF8)
        #: Values of the writer's program: of terminals by name, of strings and regexes by what is written.
        self._done, self._leaves = dict[str, int](), dict[str, int]()
        #: Terminals, and regexes as they are written, that nothing else can be made of.
        self.alone: set[str] = set()
        self._wholes: dict[str, int] = {}
        #: What `prepare` has built, by name or by what is written.
        self.built: dict[str, int] = {}
        for name, one in (imported or {}).items():
            self._done[name] = known(one) if isinstance(one, int) else self._writer.program.embed(one)

    def prepare(self, parts: Iterable[tree.Word | tree.Text | tree.Pattern]) -> None:
        """Build the expressions of what rules are made of by one program.

        What is at fault is left to whoever reaches it. Raises LimitExceeded, with the place.
        """
        written: list[tuple[str, int, tree.Part]] = []
        program = self._writer.program
        for part in parts:
            key = part.name if isinstance(part, tree.Word) else part.written
            place = self.definitions.get(key, part)
            try:
                written.append((key, self._whole(part), place))
            except (GrammarSyntaxError, GrammarUnsupported):
                written.append(("", program.count - 1, place))  # what was written of it is run, too
            except LimitExceeded:
                with placed(place):
                    raise
        try:
            self.store.run(program)
        except LimitExceeded:
            made = max((value for value, expression in enumerate(program.made) if expression), default=0)
            places = [place for _, value, place in written if value >= made]
            if not places:  # it is in what was imported
                raise
            with placed(places[0]):
                raise
        self.built = {key: program.expression(value) for key, value, _ in written if key}

    def fail(self, reason: str, part: tree.Part, refused: bool = False) -> NoReturn:
        """Raise a GrammarSyntaxError, or (`refused`) a GrammarUnsupported, at `part`."""
        kind = GrammarUnsupported if refused else GrammarSyntaxError
        raise kind(reason, self.text, part.line, part.column, self.source)

    def check_name(self, word: tree.Word) -> None:
        """Raise GrammarSyntaxError unless `word` is a terminal of this grammar."""
        if word.name not in self.definitions and word.name not in self._done:
            known = {*self.definitions, *self._done}
            self.fail(f"there is no terminal {word.name!r}; {nearest(word.name, known)}", word)

    def named(self, word: tree.Word) -> int:
        """The expression of the terminal that `word` names."""
        value = self._named(word)
        with placed(self.definitions.get(word.name, word)):
            return self._writer.expression(value)

    def program_of(self, word: tree.Word) -> Program:
        """What writes the terminal that `word` names, the first that is asked for, as its last value."""
        self._named(word)
        return self._writer.program

    def body(self, group: tree.Group) -> int:
        """The expression of alternatives."""
        return self._writer.expression(self._body(group))

    def ignored(self, group: tree.Group) -> int:
        """The expression of what is ignored: each alternative is a lexeme of its own."""
        wholes = [_only_part(tree.Group(group.line, group.column, (option,))) for option in group.options]
        if None in wholes:
            return self.body(group)
        return self._writer.expression(self._writer.program.union([self._whole(one) for one in wholes if one]))

    def part(self, part: tree.Part) -> int:
        """The expression of one part that stands alone. Raises GrammarSyntaxError, GrammarUnsupported or
        LimitExceeded.
        """
        return self._writer.expression(self._whole(part))

    # Values of the writer's program: what is written together is built together.

    def _named(self, word: tree.Word) -> int:
        """The value of the terminal that `word` names; first those of the terminals it is made of."""
        if word.name in self._done:
            return self._done[word.name]
        open_words: dict[str, tree.Word] = {}
        pending = [word]
        while pending:
            current = pending[-1]
            if current.name in self._done:
                pending.pop()
                continue
            if current.name in open_words:  # what it is made of is done
                definition = self.definitions[current.name]
                with placed(definition):
                    whole = _only_part(definition.body)
                    self._done[current.name] = self._body(definition.body) if whole is None else self._whole(whole)
                    if isinstance(whole, tree.Word | tree.Pattern) and _key(whole) in self.alone:
                        self.alone.add(current.name)
                del open_words[current.name]
                pending.pop()
                continue
            self.check_name(current)
            open_words[current.name] = current
            for inner in self.definitions[current.name].leaves:
                if not isinstance(inner, tree.Word) or not tree.is_terminal_name(inner.name):
                    continue  # refused when the body is lowered
                if inner.name in open_words:
                    self.fail(f"the terminal {inner.name} is made of itself; only rules (in lower case) may be", inner)
                pending.append(inner)
        return self._done[word.name]

    def _body(self, group: tree.Group) -> int:
        """Alternatives."""
        options = [self._option(option) for option in group.options]
        return options[0] if len(options) == 1 else self._writer.program.union(options)

    def _option(self, option: tree.Option) -> int:
        """What ``&`` joins."""
        if option.alias:
            self.fail("an alias names what a rule derives; remove it from this terminal", option.alias)
        writer, complements, others = self._writer, [], []
        for sequence in option.sequences:
            if len(sequence) == 1 and isinstance(sequence[0], tree.Complement):
                complements.append(self.store.complement(writer.expression(self._part(sequence[0].body))))
            else:
                parts = list(map(self._part, sequence))
                others.append(parts[0] if len(parts) == 1 else writer.program.concat(parts))
        if len(option.sequences) == 1 and others:
            return others[0]
        if not others:  # what complements leave need not be UTF-8
            others.append(writer.write(_ANY_TEXT))
        return known(self.store.intersection([*map(writer.expression, others), *complements]))

    def _whole(self, part: tree.Part) -> int:
        """The value of a part that is all of a terminal, of a literal or of something ignored."""
        if isinstance(part, tree.Word) and tree.is_terminal_name(part.name):
            return self._named(part)
        if not isinstance(part, tree.Pattern):
            return self._part(part)
        written = part.written
        if written not in self._wholes:
            self._wholes[written] = self._leaves[written] if written in self._leaves else self._whole_regex(part)
        return self._wholes[written]

    def _whole_regex(self, part: tree.Pattern) -> int:
        """A regex that may look ahead, or end at its first match."""
        store, node = self.store, self.regex(part, whole=True)
        lazy = _lazy_repeats(node) if "?" in part.written else []
        if not (lazy or node.assertions):
            self._leaves[part.written] = value = self._writer.write(node)
            return value
        self.alone.add(part.written)
        if node.assertions and _asks_behind(node):
            reason = "a look-ahead or a word boundary at the end of a terminal asks what comes after it, which a lexeme"
            self.fail(f"{reason} cannot know; write that into the rules", part, refused=True)
        if lazy and (len(lazy) > 1 or node.assertions or not _varies_only_there(node, lazy[0])):
            self.fail(f"{LAZY}; nothing else in the regex may vary in length", part, refused=True)
        try:
            expression = lower(node, store)
        except UnsupportedConstraint as error:
            self.fail(str(error), part, refused=True)
        if store.has_assertions(expression):
            self.fail("a look-ahead around a repeat is not supported; move it out of the repeat", part, refused=True)
        if lazy:  # without the texts that begin with another one
            longer = store.concat(expression, store.repeat(ANY_BYTE, 1, None))
            expression = store.intersection([expression, store.complement(longer)])
        return known(expression)

    def _part(self, part: tree.Part) -> int:
        store, writer = self.store, self._writer
        match part:
            case tree.Word():
                if not tree.is_terminal_name(part.name):
                    self.fail(f"{part.name} is a rule; a terminal is made of terminals only", part)
                value = self._named(part)
                if part.name in self.alone:
                    reason = f"{part.name} looks ahead or ends at its first match, so nothing else can be made of it"
                    self.fail(f"{reason}; use it in rules, or write {part.name} anew as a regex of all", part, True)
                return value
            case tree.Group():
                return self._body(part)
            case tree.Repetition(body=body, low=low, high=high):
                return writer.program.repeat(self._part(body), low, high)
            case tree.Complement(body=body):
                any_text = writer.expression(writer.write(_ANY_TEXT))
                return known(store.intersection([any_text, store.complement(writer.expression(self._part(body)))]))
            case tree.Text(written=written) | tree.Pattern(written=written):
                if written not in self._leaves:
                    self._leaves[written] = self._leaf(part)
                return self._leaves[written]
            case tree.Range():
                return self._leaf(part)
            case tree.Structured(directive="%regex"):
                return known(self.run_of_chunks(part))
            case tree.Structured():
                self.fail("a JSON schema is no regular language; %json stands in rules only", part)
            case tree.Special():
                self.fail("special tokens are no text; they stand in rules only", part)
            case tree.Use():
                self.fail(f"{part.name} is a template; templates stand in rules only", part)
        raise AssertionError(part)

    def _leaf(self, part: tree.Text | tree.Pattern | tree.Range) -> int:
        """A string, a regex or a range."""
        writer = self._writer
        match part:
            case tree.Pattern():
                return writer.write(self.regex(part))
            case tree.Range(low=low, high=high):
                ends = [self.string(low), self.string(high)]
                if (
                    any(len(end) != 1 for end in ends)
                    or low.written[-1] + high.written[-1] != '""'
                    or ends[1] < ends[0]
                ):
                    self.fail('a range is from one character to a later one, as in "a".."z", without suffixes', part)
                return writer.write(CharSet(((ord(ends[0]), ord(ends[1])),)))
        characters = self.string(part)
        if part.written.endswith("i"):
            folded = (CharSet(fold_closure(((ord(character), ord(character)),))) for character in characters)
            return writer.write(concat(folded))
        return writer.program.literal(characters.encode()) if characters else known(EMPTY)

    def run_of_chunks(self, part: tree.Structured) -> int:
        """The expression of ``%regex``: any run of the chunks of a text. O(chunks)."""
        given = DECODER.decode(self.text[part.begin : part.end])
        if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in _CHUNKS:
            self.fail(f"%regex takes an object with one of {', '.join(_CHUNKS)}", part)
        [(way, value)] = given.items()
        is_list = way == "substring_chunks"
        if not isinstance(value, list if is_list else str) or not all(isinstance(chunk, str) for chunk in value):
            self.fail(f"{way} takes {'a list of texts' if is_list else 'a text'}", part)
        chunks: list[str] = value if isinstance(value, list) else re.findall(_CHUNKS[way], value, re.DOTALL)
        if len(chunks) > MAX_CHUNKS:
            raise LimitExceeded(f"{way} has more than {MAX_CHUNKS} chunks", limit="chunks", value=MAX_CHUNKS)
        rest, runs = EMPTY, [EMPTY]
        for chunk in reversed(chunks):
            try:
                rest = self.store.union([EMPTY, self.store.concat(self.store.literal(chunk.encode()), rest)])
            except UnicodeEncodeError:
                self.fail(f"{way} has a surrogate without its other half", part)
            runs.append(rest)
        return self.store.union(runs)

    def string(self, part: tree.Text) -> str:
        """The characters of a string."""
        inside = part.written.removesuffix("i")[1:-1]
        if "\\" not in inside:
            return inside

        def replace(match: re.Match[str]) -> str:
            place = tree.Part(part.line, part.column + 1 + match.start())
            digits = match[1] or match[2] or match[3]
            if digits:
                code = int(digits, 16)
                if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                    self.fail(f"{match[0]} is no character that UTF-8 can encode", place)
                return chr(code)
            if match[4] not in _ESCAPES:
                self.fail(
                    rf"unknown escape {match[0]}; known: \\ \" \n \t \r \f \xHH \uHHHH \UHHHHHHHH"
                    r" (a backslash is \\, a slash needs none, a backspace is \x08)",
                    place,
                )
            return _ESCAPES[match[4]]

        return _ESCAPE.sub(replace, inside)

    def regex(self, part: tree.Pattern, whole: bool = False) -> Node:
        """The syntax tree of a regex without its outer anchors. `whole`: it is all of a terminal."""
        closing = part.written.rindex("/")
        pattern, flags = part.written[1:closing], part.written[closing + 1 :]
        if "l" in flags:
            place = self._inside(part, closing + 1 + flags.index("l"))
            self.fail("the regex flag l (locale) is not supported; remove it", place, refused=True)
        try:
            node = parse(pattern, flags, dialect="lark with lazy" if whole else "lark")
        except RegexSyntaxError as error:
            place = self._inside(part, 1 + error.position)
            self.fail(error.reason, place, refused=isinstance(error, RegexUnsupported))
        if "text_end" in node.assertions and _lazy_repeats(node):
            self.fail(f"{LAZY}; nothing else in the regex may vary in length, and no $ end it", part, refused=True)
        node = _without_outer_anchors(node)
        for kind in sorted(node.assertions):
            if kind.endswith(("start", "end")):
                reason = "an anchor inside a regex is not supported: a lexeme cannot depend on what is around it"
                self.fail(reason, part, refused=True)
            if not whole:
                reason = (
                    "a look-ahead or a word boundary in a part of a terminal is not supported; Lark would look into"
                )
                self.fail(f"{reason} the other parts; write one regex of all", part, refused=True)
        return node

    def _inside(self, part: tree.Pattern, offset: int) -> tree.Part:
        """The place `offset` characters into a regex, which may be several lines long."""
        before = part.written[:offset]
        lines = before.count("\n")
        return tree.Part(part.line + lines, len(before) - before.rfind("\n") if lines else part.column + offset)


def _lazy_repeats(node: Node) -> list[Repeat]:
    return [inner for inner in walk(node) if isinstance(inner, Repeat) and inner.lazy]


def _only_part(group: tree.Group) -> tree.Part | None:
    """The only part of the only alternative; None if there are more, or `&` or an alias."""
    if len(group.options) != 1:
        return None
    (option,) = group.options
    is_one = len(option.sequences) == 1 and len(option.sequences[0]) == 1 and not (option.joined or option.alias)
    return option.sequences[0][0] if is_one else None


def _key(part: tree.Word | tree.Pattern) -> str:
    return part.name if isinstance(part, tree.Word) else part.written


def _asks_behind(node: Node) -> bool:
    """Whether an assertion may stand at the end of a match."""
    match node:
        case Assertion() | LookAhead():
            return True
        case Concat(parts=parts):
            for part in reversed(parts):
                if part.assertions and _asks_behind(part):
                    return True
                if not (part.nullable or part.assertions):
                    break
            return False
        case Alternation(options=options):
            return any(map(_asks_behind, options))
        case Repeat(body=body):
            return bool(body.assertions) and _asks_behind(body)
    return False


def _varies_only_there(node: Node, lazy: Repeat) -> bool:
    """Whether a lazy repeat, of what has one length, stands in a row of parts that have one length each."""
    parts = node.parts if isinstance(node, Concat) else (node,)
    others = [part for part in parts if part is not lazy]
    return len(others) == len(parts) - 1 and all(width_of(part) is not None for part in (lazy.body, *others))


def _without_outer_anchors(node: Node) -> Node:
    """`node` without ``^`` at the beginning and ``$`` at the end of it, or of its alternatives."""
    if not node.assertions:
        return node
    if isinstance(node, Alternation):
        return alternation(_without_outer_anchors(option) for option in node.options)
    parts = list(node.parts) if isinstance(node, Concat) else [node]
    while parts and parts[0] == Assertion("text_start"):
        parts.pop(0)
    while parts and parts[-1] == Assertion("text_end"):
        parts.pop()
    return concat(parts)
