r"""The parser of pre-tokenizer patterns: the part of two regex dialects that the construction covers.

The dialects are those of the libraries that run the patterns: ``tiktoken`` (Rust's fancy-regex) and ``oniguruma`` (the
package tokenizers). Read are character sets, concatenation, alternation, groups, repeats (greedy, lazy, possessive),
atomic groups ``(?>x)``, look-ahead ``(?=x) (?!x)``, ``$``, ``\z``, and ignoring case: ``(?i:x)``, ``(?-i:x)``, and
``(?i)`` before everything else.

A *character set* is whatever matches exactly one character: a letter, ``\s``, ``\p{L}``, ``.``, a bracketed class. The
parser finds only where it ends; what it contains is a question to the library itself (`pretokenizer_classes`), so that
no table of Unicode stands between us and the reference.

Where the dialects differ:

- ``x{n,m}+`` is possessive in tiktoken and a repeat of a repeat in Oniguruma; ``x{n}?`` is lazy in tiktoken and an
  optional repeat in Oniguruma. Both are refused in Oniguruma.
- ``$`` is the end of the text in tiktoken; in Oniguruma it also holds before each line feed.
- Without regard to case, Oniguruma takes one character for several (the German sharp s for ``ss``). Where this could
  happen the pattern is refused.

Refused with name and offset (RegexUnsupported): look-behind and anchors to the left (``^ \A \b \G \K``),
back-references, other flags, quantified look-around, a quantifier after a quantifier, a repeat of what can be empty, a
pattern that can match the empty string, escapes whose meaning is not a character set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, cast

from tokdfa.errors import LimitExceeded, RegexSyntaxError, RegexUnsupported

Dialect: TypeAlias = Literal["tiktoken", "oniguruma"]
DIALECTS: tuple[Dialect, ...] = ("tiktoken", "oniguruma")
MAX_NESTING = 50
MAX_COUNT = 1000


@dataclass(frozen=True)
class CharacterSet:
    """A set of characters by the words that describe it.

    `source`: the character itself (`origin` "character"), the pattern of one character in a dialect, or the type of a
    tokenizers pre-tokenizer that looks for a set ("pre_tokenizer"). `position`: its offset in the pattern.
    """

    origin: Literal["character", "tiktoken", "oniguruma", "pre_tokenizer"]
    source: str
    position: int = 0


@dataclass(frozen=True)
class Concatenation:
    """Parts one after another; without parts, the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alternatives:
    """The first option that lets the whole match succeed."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """`low` to `high` times (None: without bound), as often as possible, or as seldom if `lazy`."""

    body: Node
    low: int
    high: int | None
    lazy: bool = False


@dataclass(frozen=True)
class Atomic:
    """The body's first match, whatever follows; a possessive repeat is an atomic greedy one."""

    body: Node


@dataclass(frozen=True)
class LookAhead:
    """Holds where the body matches the text ahead (or does not, if `negative`); reads nothing."""

    body: Node
    negative: bool


@dataclass(frozen=True)
class TextEnd:
    """Holds at the end of the text only."""


Node: TypeAlias = CharacterSet | Concatenation | Alternatives | Repeat | Atomic | LookAhead | TextEnd

_COUNTED = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_OPENINGS = ("(?i:", "(?-i:", "(?:", "(?>", "(?=", "(?!")
_REFUSED_GROUPS = {
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?<": "a named group",
    "(?P<": "a named group",
    "(?P=": "a back-reference",
    "(?P>": "recursion",
    "(?(": "a conditional group",
    "(?#": "a comment",
    "(?~": "an absent group",
    "(?i)": "a flag inside the pattern; write (?i:...)",
    "(?": "this kind of group",
    "(*": "a backtracking verb",
}
_REFUSED_ESCAPES = {
    "A": "an anchor to the start",
    "b": "a word boundary",
    "B": "a word boundary",
    "G": "an anchor to the last match",
    "K": "a reset of the match's start",
    "R": "a line break of any kind",
    "X": "a grapheme cluster",
    "Z": "an anchor before the last line break",
    "y": "a grapheme boundary",
    "Y": "a grapheme boundary",
    "k": "a back-reference",
    "g": "a subexpression call",
    **dict.fromkeys("123456789", "a back-reference"),
    **dict.fromkeys("<>`'", "an escape that is an anchor in some engines"),
}
#: Escapes that match exactly one character.
_ONE_CHARACTER = re.compile(
    r"\\(?:[sSdDwWhHtnrfva]|[pP]\{\^?[A-Za-z0-9_ =:-]+\}|x\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    r"|[^A-Za-z0-9\s\x80-\U0010ffff])"
)
_BY_NUMBER = re.compile(r"\\[xu]\{?([0-9A-Fa-f]+)\}?")
_PUNCTUATION_ESCAPE = re.compile(r"\\[^A-Za-z0-9]")


def parse_pattern(pattern: str, dialect: Dialect) -> Node:
    """The tree of `pattern`. O(length).

    Raises RegexSyntaxError (not a pattern), RegexUnsupported (outside what the module's docstring lists), both with the
    offset, and LimitExceeded for a count above `MAX_COUNT` or groups deeper than `MAX_NESTING`.
    """
    parser = _Parser(pattern, dialect)
    node = parser.read_all()
    if _can_be_empty(node):
        parser.refuse("a pattern that can match the empty string", 0)
    return node


def character_sets(node: Node) -> list[CharacterSet]:
    """The distinct character sets of a tree, in the order of the pattern."""
    found: dict[tuple[str, str], CharacterSet] = {}
    tasks = [node]
    while tasks:
        part = tasks.pop()
        if isinstance(part, CharacterSet):
            found.setdefault((part.origin, part.source), part)
        tasks += reversed(_children(part))
    return list(found.values())


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Concatenation(parts):
            return parts
        case Alternatives(options):
            return options
        case Repeat(body=body) | Atomic(body) | LookAhead(body=body):
            return (body,)
    return ()


def _can_be_empty(node: Node) -> bool:
    """Whether some match reads nothing, look-ahead and end of text taken to hold."""
    match node:
        case CharacterSet():
            return False
        case Alternatives(options):
            return any(map(_can_be_empty, options))
        case Repeat(body=body, low=low):
            return low == 0 or _can_be_empty(body)
        case Atomic(body):
            return _can_be_empty(body)
        case Concatenation(parts):
            return all(map(_can_be_empty, parts))
    return True


class _Parser:
    """Recursive descent; `position` is the offset of the next character."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern, self.dialect = pattern, dialect
        self.position = 0
        self.depth = 0
        self.ignore_case = False
        #: The letters read last without regard to case, in one stretch: what Oniguruma may take for one string.
        self.folded_run = ""

    def refuse(self, what: str, position: int) -> None:
        raise RegexUnsupported(
            f"{what} is outside what the pre-tokenizer's construction covers", self.pattern, position
        )

    def read_all(self) -> Node:
        if self.pattern.startswith("(?i)"):
            self.ignore_case, self.position = True, 4
        node = self.read_alternatives()
        if self.position < len(self.pattern):
            raise RegexSyntaxError("this bracket closes no group", self.pattern, self.position)
        return node

    def read_alternatives(self) -> Node:
        options = [self.read_concatenation()]
        while self.pattern.startswith("|", self.position):
            self.position += 1
            self.folded_run = ""
            options.append(self.read_concatenation())
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def read_concatenation(self) -> Node:
        parts: list[Node] = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            begin, run_before = self.position, self.folded_run
            atom = self.read_atom()
            parts.append(self.read_quantified(atom, begin, self.folded_run.removeprefix(run_before)))
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def read_atom(self) -> Node:
        begin, letter = self.position, self.pattern[self.position]
        if letter == "(":
            return self.read_group()
        if letter in "*+?{":
            what = (
                "a brace that counts nothing; write \\{" if letter == "{" else "a quantifier without anything to repeat"
            )
            self.refuse(what, begin)
        if letter == "^":
            self.refuse("an anchor to the start", begin)
        if letter == "$" or self.pattern.startswith("\\z", begin):
            self.position += len(letter) if letter == "$" else 2
            return self.end_of_line(begin) if letter == "$" and self.dialect == "oniguruma" else TextEnd()
        if letter == "[":
            return self.character_set(self.class_end(begin))
        if letter == "\\":
            return self.read_escape(begin)
        return self.character_set(begin + 1)

    def end_of_line(self, position: int) -> Node:
        line_feed = CharacterSet("character", "\n", position)
        return Alternatives((LookAhead(line_feed, negative=False), TextEnd()))

    def read_group(self) -> Node:
        begin = self.position
        opening = next((known for known in _OPENINGS if self.pattern.startswith(known, begin)), "(")
        if opening == "(":
            refused = next((known for known in _REFUSED_GROUPS if self.pattern.startswith(known, begin)), None)
            if refused is not None:
                self.refuse(_REFUSED_GROUPS[refused], begin)
        self.position += len(opening)
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise LimitExceeded(f"groups are nested deeper than {MAX_NESTING}", limit="nesting", value=MAX_NESTING)
        outer_case = self.ignore_case
        if "i" in opening:
            self.ignore_case = opening == "(?i:"
        body = self.read_alternatives()
        self.ignore_case = outer_case
        if self.position == len(self.pattern):
            raise RegexSyntaxError("this group is not closed", self.pattern, begin)
        self.position += 1
        self.depth -= 1
        if opening in {"(?=", "(?!"}:
            return LookAhead(body, opening == "(?!")
        return Atomic(body) if opening == "(?>" else body

    def read_escape(self, begin: int) -> Node:
        letter = self.pattern[begin + 1 : begin + 2]
        if letter in _REFUSED_ESCAPES:
            self.refuse(_REFUSED_ESCAPES[letter], begin)
        found = _ONE_CHARACTER.match(self.pattern, begin)
        if found is None:
            self.refuse(f"the escape \\{letter}" if letter else "a backslash at the end", begin)
        return self.character_set(cast("re.Match[str]", found).end())

    def class_end(self, begin: int) -> int:
        """The offset after the bracketed class that begins at `begin`; classes may hold classes."""
        depth, place = 0, begin
        while place < len(self.pattern):
            if self.pattern[place] == "\\":
                place += 2
                continue
            if self.pattern[place] == "[":
                depth += 1
                place += self.pattern.startswith("^", place + 1)
                if self.pattern.startswith("]", place + 1):
                    self.refuse("a bracket directly after the opening of a class; write \\]", place + 1)
            elif self.pattern[place] == "]":
                depth -= 1
                if depth == 0:
                    return place + 1
            place += 1
        raise RegexSyntaxError("this class is not closed", self.pattern, begin)

    def character_set(self, end: int) -> CharacterSet:
        """The set written from the present position to `end`."""
        begin, self.position = self.position, end
        source = self.pattern[begin:end]
        if not self.ignore_case:
            if len(source) == 1 and source != ".":
                return CharacterSet("character", source, begin)
            if _PUNCTUATION_ESCAPE.fullmatch(source):
                return CharacterSet("character", source[1], begin)
            return CharacterSet(self.dialect, source, begin)
        if self.dialect == "oniguruma":
            self.check_folding(source, begin)
        return CharacterSet(self.dialect, f"(?i:{source})", begin)

    def check_folding(self, source: str, begin: int) -> None:
        """Refuse letters of which one character may stand for several. (Classes are tried in the library.)"""
        by_number = _BY_NUMBER.fullmatch(source)
        if (len(source) == 1 and source != ".") or by_number:
            letter = chr(min(int(by_number[1], 16), 0x10FFFF)) if by_number else source
            self.extend_folded_run(letter.casefold(), begin)
        else:
            self.folded_run = ""

    def extend_folded_run(self, letters: str, begin: int) -> None:
        self.folded_run += letters
        if any(folded in self.folded_run for folded in long_foldings()):
            self.refuse("letters without regard to case that Oniguruma may take for one", begin)

    def read_quantified(self, node: Node, begin: int, folded_letters: str) -> Node:
        place = self.position
        counted = _COUNTED.match(self.pattern, place)
        if self.pattern[place : place + 1] in {"*", "+", "?"}:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.pattern[place]]
            end = place + 1
        elif counted and (counted[1] or (counted[2] and counted[3])):
            low, high, end = *self.counts(counted), counted.end()
        else:
            return node
        mode = self.pattern[end : end + 1] if self.pattern[end : end + 1] in {"?", "+"} else ""
        if counted and mode and self.dialect == "oniguruma" and (mode == "+" or not counted[2]):
            self.refuse(f"{counted[0]}{mode}, which Oniguruma reads unlike other engines,", place)
        self.position = end + len(mode)
        following = self.pattern[self.position : self.position + 1]
        if (following and following in "*+?") or _COUNTED.match(self.pattern, self.position):
            self.refuse("a quantifier after a quantifier", self.position)
        if _is_zero_width(node):
            self.refuse("quantified look-around", begin)
        if _can_be_empty(node) and (high is None or high > 1):
            self.refuse("a repeat of what can be empty", begin)
        if self.ignore_case and self.dialect == "oniguruma" and high != 1:
            self.extend_folded_run(2 * folded_letters, begin)  # it writes out short repeats
        repeat = Repeat(node, low, high, lazy=mode == "?")
        return Atomic(repeat) if mode == "+" else repeat

    def counts(self, counted: re.Match[str]) -> tuple[int, int | None]:
        low = int(counted[1] or 0)
        high = (int(counted[3]) if counted[3] else None) if counted[2] else low
        if max(low, high or 0) > MAX_COUNT:
            raise LimitExceeded(
                f"{counted[0]} at position {counted.start()} counts beyond {MAX_COUNT}", limit="count", value=MAX_COUNT
            )
        if high is not None and (low > high or high == 0):
            self.refuse(f"the count {counted[0]}", counted.start())
        return low, high


def _is_zero_width(node: Node) -> bool:
    """Whether `node` reads nothing whatever the text is, and is not simply empty."""
    match node:
        case LookAhead() | TextEnd():
            return True
        case Alternatives(parts) | Concatenation(parts):
            return bool(parts) and all(map(_is_zero_width, parts))
        case Atomic(body) | Repeat(body=body):
            return _is_zero_width(body)
    return False


@cache
def long_foldings() -> tuple[str, ...]:
    """What full case folding makes of the characters that it turns into several (CaseFolding.txt, status F)."""
    return tuple(sorted({folded for point in range(0x110000) if len(folded := chr(point).casefold()) > 1}))
