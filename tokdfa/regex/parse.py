r"""The parser: pattern text -> `tokdfa.regex.syntax_tree`.

It reads the common core of Python's `re`, ECMA-262 (u mode and Annex B) and Rust's `regex`. Where they disagree:

- ``.`` is everything but ``\n`` (Python, Rust; ECMA also excludes ``\r``, U+2028, U+2029). Flag ``s``: everything.
- ``$`` is the very end (ECMA, Rust; Python allows a last ``\n`` after it); so are ``\z`` and, as in Python, ``\Z``.
  Flag ``m``: ``^`` after each ``\n``, ``$`` before each ``\n``.
- ``\d \w \s`` follow `ascii_classes`, see `tokdfa.regex.char_sets`. Word boundaries need ``ascii_classes=True``.
- Flag ``i`` is simple case folding over all of Unicode, whatever `ascii_classes` says. It acts on literals, ranges and
  ``\p``, before a class is negated (Rust); ``\d \w \s`` and POSIX classes stay as they are.
- ``{m} {m,} {m,n} {,n}`` are quantifiers and ``{,n}`` counts from 0 (Python); any other ``{`` is literal (Annex B).
- A quantifier needs something to repeat: not a start, ``^ $ \b``, an inline flag or another quantifier (Python).
- In a class, ``]`` directly after the opening is literal (Python, Rust), and so is ``[`` (Python, ECMA) unless it opens
  a POSIX class, ``[[:alpha:]]`` (Rust).
- ``\0``, ``\0d``, ``\0dd`` and three octal digits are octal (Python); ``\1`` .. ``\99`` are back-references.
- A backslash makes any punctuation and any non-ASCII character literal; an unknown ASCII letter is an error (Python).
- ``\uD83D\uDE00`` is one code point (ECMA u mode); a lone surrogate is allowed and matches no UTF-8 text.
- ``(?i)`` holds from where it stands to the end of its group (Rust). Flags: ``i m s x``; ``u`` changes nothing.
- Flag ``x``: white space and ``# comments`` mean nothing outside classes (Python).

Greedy and lazy quantifiers denote the same language. Well formed but refused by name (RegexUnsupported):
back-references, look-behind, atomic groups and possessive quantifiers (they change the language), conditionals,
recursion, ``\X \R \K \G \N{..}``, Rust's ``\b{start}`` kin, and the set operations ``&& -- ~~``.

The parser keeps its open groups on a list of its own, so nesting costs no Python stack; it is still bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.atoms import AtomReader
from tokdfa.regex.char_sets import ALL, NEWLINE, complement, fold_closure
from tokdfa.regex.syntax_tree import Assertion, CharSet, LookAhead, Node, alternation, concat, repeat

MAX_PATTERN = 1_000_000
MAX_NESTING = 200
MAX_COUNT = 1_000_000_000

#: ``{`` that begins a quantifier.
_COUNTED = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_INLINE_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:(-)([A-Za-z]*))?([:)])")
_GROUP_NAME = re.compile(r"\(\?P?<([^\W\d]\w*)>")
_BOUNDARY_SIDE = re.compile(r"\{[a-z-]+\}")
_REFUSED_GROUPS = (
    ("(?<=", "look-behind"),
    ("(?<!", "look-behind"),
    ("(?>", "an atomic group"),
    ("(?(", "a conditional group"),
    ("(?P=", "a back-reference"),
    ("(?P>", "recursion"),
    ("(?&", "recursion"),
    ("(?R", "recursion"),
    ("(?|", "a branch reset group"),
)
_SPACE = " \t\n\r\v\f"
NOTHING_TO_REPEAT = "nothing to repeat"


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    verbose: bool = False

    def switched(self, letters: str, on: bool) -> _Flags:
        names = {"i": "ignore_case", "s": "dot_all", "m": "multi_line", "x": "verbose"}
        return replace(self, **{names[letter]: on for letter in letters if letter in names})


@dataclass
class _Group:
    """An open group: where it began, how it ends up in the tree, and what has been read of it."""

    position: int
    look_ahead: bool | None  # None: an ordinary group; else whether the look-ahead is negative
    outer_flags: _Flags
    options: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    #: Why the last item cannot be repeated; "" if it can.
    no_repeat: str = NOTHING_TO_REPEAT

    def add(self, item: Node, no_repeat: str = "") -> None:
        self.items.append(item)
        self.no_repeat = no_repeat

    def close_option(self) -> None:
        self.options.append(concat(self.items))
        self.items = []
        self.no_repeat = NOTHING_TO_REPEAT


def parse(pattern: str, flags: str = "", ascii_classes: bool = False) -> Node:
    r"""The syntax tree of `pattern`; what is accepted and what it means is in this module's docstring.

    `flags`: any of ``i s m x u``. `ascii_classes`: ``\d \w \s \b`` are ASCII. Linear in the pattern's length.
    Raises RegexSyntaxError and RegexUnsupported with the position of the fault, LimitExceeded for a pattern longer than
    `MAX_PATTERN`, groups nested deeper than `MAX_NESTING` or a count above `MAX_COUNT`, OptionError for a flag.
    """
    for letter in flags:
        if letter not in "ismxu":
            raise OptionError(f"unknown regex flag {letter!r}; known: i, s, m, x, u")
    if len(pattern) > MAX_PATTERN:
        raise LimitExceeded(
            f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are read",
            limit="pattern length",
            value=len(pattern),
        )
    return _Parser(pattern, _Flags().switched(flags, True), ascii_classes).parse()


class _Parser(AtomReader):
    def __init__(self, pattern: str, flags: _Flags, ascii_classes: bool) -> None:
        super().__init__(pattern, ascii_classes)
        self.flags = flags
        self.groups = [_Group(0, None, flags)]

    # The main loop: each method reads one construct that begins at `position`.

    def parse(self) -> Node:
        readers = {
            "|": self.read_bar,
            "(": self.read_group_start,
            ")": self.read_group_end,
            "[": self.read_bracket,
            ".": self.read_dot,
            "^": self.read_anchor,
            "$": self.read_anchor,
            "\\": self.read_escape,
            "*": self.read_quantifier,
            "+": self.read_quantifier,
            "?": self.read_quantifier,
            "{": self.read_brace,
        }
        while self.position < len(self.pattern):
            character = self.pattern[self.position]
            if self.flags.verbose and (character in _SPACE or character == "#"):
                self.skip_blank(character)
            elif character in readers:
                readers[character]()
            else:
                self.read_literal()
        group = self.groups.pop()
        if self.groups:
            self.fail("missing ), this group is not closed", group.position)
        group.close_option()
        return alternation(group.options)

    def skip_blank(self, character: str) -> None:
        end = self.position + 1
        if character == "#":
            end = self.pattern.find("\n", self.position) + 1 or len(self.pattern)
        self.position = end

    def read_literal(self) -> None:
        self.groups[-1].add(_literal(ord(self.pattern[self.position]), self.flags.ignore_case))
        self.position += 1

    def read_dot(self) -> None:
        self.groups[-1].add(CharSet(ALL if self.flags.dot_all else complement(NEWLINE)))
        self.position += 1

    def read_anchor(self) -> None:
        unit = "line" if self.flags.multi_line else "text"
        side = "start" if self.pattern[self.position] == "^" else "end"
        self.groups[-1].add(Assertion(f"{unit}_{side}"), NOTHING_TO_REPEAT)
        self.position += 1

    def read_bar(self) -> None:
        self.groups[-1].close_option()
        self.position += 1

    # Groups.

    def read_group_start(self) -> None:
        start, text = self.position, self.pattern
        look_ahead = None
        outer_flags = self.flags
        if text.startswith("(?#", start):
            end = text.find(")", start)
            if end < 0:
                self.fail("missing ), this comment is not closed")
            self.position = end + 1
            return
        for opening, what in _REFUSED_GROUPS:
            if text.startswith(opening, start):
                self.refuse(what)
        if text.startswith(("(?=", "(?!"), start):
            look_ahead = text[start + 2] == "!"
            self.position += 3
        elif text.startswith(("(?P<", "(?<"), start):
            name = _GROUP_NAME.match(text, start)
            if not name:
                self.fail("a group name is letters, digits and _ between < and >, and begins with no digit")
            self.position = name.end()
        elif text.startswith("(?", start):
            if self.read_inline_flags():
                return
        else:
            self.position += 1
        if len(self.groups) > MAX_NESTING:
            raise LimitExceeded(
                f"groups are nested deeper than {MAX_NESTING} at position {start} of the pattern",
                limit="group nesting",
                value=len(self.groups),
            )
        self.groups.append(_Group(start, look_ahead, outer_flags))

    def read_inline_flags(self) -> bool:
        """Read ``(?flags)`` (returns True) or the start of ``(?:`` and ``(?flags:``."""
        if self.pattern[self.position + 2 : self.position + 3].isdigit():
            self.refuse("recursion")
        match = _INLINE_FLAGS.match(self.pattern, self.position)
        if not match or (match[4] == ")" and not match[1] and not match[3]) or (match[2] and not match[3]):
            self.fail("unknown kind of group; known: (..), (?:..), (?P<n>..), (?<n>..), (?=..), (?!..), (?i), (?i:..)")
        for index, letter in [*enumerate(match[1], match.start(1)), *enumerate(match[3] or "", match.start(3))]:
            if letter == "a":
                self.refuse("the inline flag a", index, r"pass ascii_classes=True for ASCII \d \w \s")
            if letter not in "ismxu":
                self.refuse(f"the inline flag {letter}", index)
            if letter == "u" and index >= match.start(3) >= 0:
                self.refuse("switching off the flag u", index)
        self.flags = self.flags.switched(match[1], True).switched(match[3] or "", False)
        self.position = match.end()
        if match[4] == ":":
            return False
        self.groups[-1].no_repeat = NOTHING_TO_REPEAT
        return True

    def read_group_end(self) -> None:
        if len(self.groups) == 1:
            self.fail("unbalanced )")
        group = self.groups.pop()
        group.close_option()
        node = alternation(group.options)
        if group.look_ahead is not None:
            node = LookAhead(node, group.look_ahead)
        self.flags = group.outer_flags
        self.groups[-1].add(node)
        self.position += 1

    # Quantifiers.

    def read_brace(self) -> None:
        match = _COUNTED.match(self.pattern, self.position)
        if match and (match[1] or match[2]):
            self.read_quantifier()
        else:
            self.read_literal()

    def read_quantifier(self) -> None:
        start, group = self.position, self.groups[-1]
        if group.no_repeat:
            self.fail(group.no_repeat)
        match = _COUNTED.match(self.pattern, start)
        high: int | None
        if match:
            low = self.read_count(match[1], match.start(1)) or 0
            high = self.read_count(match[3], match.start(3)) if match[2] else low
            self.position = match.end()
        else:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.pattern[start]]
            self.position += 1
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", start)
        following = self.pattern[self.position : self.position + 1]
        if following == "+":
            self.refuse("a possessive quantifier", remedy="it changes the language; group the repeat to repeat it")
        self.position += following == "?"
        group.add(repeat(group.items.pop(), low, high), "multiple repeat; group the first one to repeat it")

    def read_count(self, number: str, position: int) -> int | None:
        if not number:
            return None
        number = number.lstrip("0") or "0"
        if len(number) > len(str(MAX_COUNT)) or int(number) > MAX_COUNT:  # int() refuses thousands of digits
            raise LimitExceeded(
                f"a count above {MAX_COUNT} at position {position} of the pattern", limit="count", value=MAX_COUNT
            )
        return int(number)

    # Escapes.

    def read_escape(self) -> None:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter and letter in "AzZbB":
            self.read_assertion_escape(letter)
            return
        named = self.read_named_set(self.flags.ignore_case)
        if named is not None:
            ranges, folds = named
            self.groups[-1].add(CharSet(fold_closure(ranges) if folds and self.flags.ignore_case else ranges))
            return
        self.groups[-1].add(_literal(self.read_escaped_code_point(), self.flags.ignore_case))

    def read_assertion_escape(self, letter: str) -> None:
        if letter in "bB":
            if not self.ascii_classes:
                self.refuse(rf"the Unicode word boundary \{letter}", remedy=r"use ascii_classes=True (ASCII \w and \b)")
            if _BOUNDARY_SIDE.match(self.pattern, self.position + 2):
                self.refuse(rf"the word boundary \{letter}{{..}}")
        kinds = {"A": "text_start", "b": "word_boundary", "B": "not_word_boundary"}
        self.groups[-1].add(Assertion(kinds.get(letter, "text_end")), NOTHING_TO_REPEAT)
        self.position += 2

    def read_bracket(self) -> None:
        self.groups[-1].add(CharSet(self.read_class(self.flags.ignore_case)))


@lru_cache(maxsize=4096)
def _literal(code_point: int, ignore_case: bool) -> CharSet:
    """One character; cached, so that a long literal text shares its nodes."""
    single = ((code_point, code_point),)
    return CharSet(fold_closure(single) if ignore_case else single)
