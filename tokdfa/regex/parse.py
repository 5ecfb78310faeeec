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

The parser keeps its open groups on a list of its own, so nesting costs no Python stack; it is still bounded. What is
written twice is one object (`_Parser.read_again`, `tokdfa.regex.syntax_tree.NodePool`): patterns made from JSON schemas
repeat their strings and numbers dozens of times.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import NamedTuple

from tokdfa.budget import hold, spend
from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.regex.atoms import CLASS_ESCAPES, AtomReader, class_escape
from tokdfa.regex.char_sets import ALL, NEWLINE, complement, fold_closure
from tokdfa.regex.syntax_tree import Assertion, CharSet, LookAhead, Node, NodePool

MAX_PATTERN = 1_000_000
#: What it takes to read a character, and what it holds.
NS_PER_CHARACTER, BYTES_PER_CHARACTER = 1_500, 50
MAX_NESTING = 200
MAX_COUNT = 1_000_000_000

#: ``{`` that begins a quantifier.
_COUNTED = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_INLINE_FLAGS = re.compile(r"\(\?([A-Za-z]*)(?:(-)([A-Za-z]*))?([:)])")
_GROUP_NAME = re.compile(r"\(\?P?<([^\W\d]\w*)>")
_BOUNDARY_SIDE = re.compile(r"\{[a-z-]+\}")
_REFUSED_GROUPS = {
    "(?<=": "look-behind",
    "(?<!": "look-behind",
    "(?>": "an atomic group",
    "(?(": "a conditional group",
    "(?P=": "a back-reference",
    "(?P>": "recursion",
    "(?&": "recursion",
    "(?R": "recursion",
    "(?|": "a branch reset group",
}
_REFUSED_GROUP = re.compile("|".join(map(re.escape, _REFUSED_GROUPS)))
#: Characters that mean themselves (without the flag x).
_PLAIN = re.compile(r"[^|()\[.^$\\*+?{]+")
_DOT, _DOT_ALL = CharSet(complement(NEWLINE)), CharSet(ALL)
_SPACE = " \t\n\r\v\f"
#: What is repeated is found by its text up to its first closing bracket, which must be within so many characters.
MAX_KEY = 500
NOTHING_TO_REPEAT = "nothing to repeat"


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    verbose: bool = False

    def switched(self, letters: str, on: bool) -> _Flags:
        names = {"i": "ignore_case", "s": "dot_all", "m": "multi_line", "x": "verbose"}
        changed = {names[letter]: on for letter in letters if letter in names}
        return replace(self, **changed) if changed else self


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
    #: Levels of groups inside.
    depth: int = 0

    def add(self, item: Node, no_repeat: str = "") -> None:
        self.items.append(item)
        self.no_repeat = no_repeat


class _Known(NamedTuple):
    """A class or a group that has been read: where, under which flags, and with how many levels of groups."""

    start: int
    end: int
    flags: _Flags
    node: Node
    depth: int


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
    spend(NS_PER_CHARACTER * len(pattern))
    hold(BYTES_PER_CHARACTER * len(pattern))
    return _Parser(pattern, _Flags().switched(flags, True), ascii_classes).parse()


class _Parser(AtomReader):
    def __init__(self, pattern: str, flags: _Flags, ascii_classes: bool) -> None:
        super().__init__(pattern, ascii_classes)
        self.flags = flags
        self.groups = [_Group(0, None, flags)]
        self.pool = NodePool()
        #: Classes and groups that have been read, by their `key`; of several with one key the last.
        self.known: dict[str, _Known] = {}

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
            else:
                readers.get(character, self.read_literal)()
        group = self.groups.pop()
        if self.groups:
            self.fail("missing ), this group is not closed", group.position)
        return self.close(group)

    def skip_blank(self, character: str) -> None:
        end = self.position + 1
        if character == "#":
            end = self.pattern.find("\n", self.position) + 1 or len(self.pattern)
        self.position = end

    def read_literal(self) -> None:
        """Read one character, and those behind it that mean themselves."""
        run = None if self.flags.verbose else _PLAIN.match(self.pattern, self.position + 1)
        text = self.pattern[self.position : run.end() if run else self.position + 1]
        group, ignore_case = self.groups[-1], self.flags.ignore_case
        group.items.extend([_literal(character, ignore_case) for character in text])
        group.no_repeat = ""
        self.position += len(text)

    def read_dot(self) -> None:
        self.groups[-1].add(_DOT_ALL if self.flags.dot_all else _DOT)
        self.position += 1

    def read_anchor(self) -> None:
        unit = "line" if self.flags.multi_line else "text"
        side = "start" if self.pattern[self.position] == "^" else "end"
        self.groups[-1].add(Assertion(f"{unit}_{side}"), NOTHING_TO_REPEAT)
        self.position += 1

    def read_bar(self) -> None:
        self.close_option(self.groups[-1])
        self.position += 1

    def close_option(self, group: _Group) -> None:
        group.options.append(self.pool.concat(group.items))
        group.items = []
        group.no_repeat = NOTHING_TO_REPEAT

    def close(self, group: _Group) -> Node:
        self.close_option(group)
        return self.pool.alternation(group.options)

    # Groups.

    def read_group_start(self) -> None:
        if self.read_again(")"):
            return
        start, text = self.position, self.pattern
        look_ahead = None
        outer_flags = self.flags
        if text.startswith("(?#", start):
            end = text.find(")", start)
            if end < 0:
                self.fail("missing ), this comment is not closed")
            self.position = end + 1
            return
        if not text.startswith("(?", start):
            self.position += 1
        elif text.startswith("(?:", start):
            self.position += 3
        elif text.startswith(("(?=", "(?!"), start):
            look_ahead = text[start + 2] == "!"
            self.position += 3
        elif refused := _REFUSED_GROUP.match(text, start):
            self.refuse(_REFUSED_GROUPS[refused[0]])
        elif text.startswith(("(?P<", "(?<"), start):
            name = _GROUP_NAME.match(text, start)
            if not name:
                self.fail("a group name is letters, digits and _ between < and >, and begins with no digit")
            self.position = name.end()
        elif self.read_inline_flags():
            return
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
        node = self.close(group)
        if group.look_ahead is not None:
            node = LookAhead(node, group.look_ahead)
        self.flags = group.outer_flags
        self.position += 1
        self.keep(_Known(group.position, self.position, self.flags, node, group.depth + 1), ")")

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
        low, high = _QUANTIFIERS.get(self.pattern[start]) or self.read_counts()
        self.position += 1
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", start)
        following = self.pattern[self.position : self.position + 1]
        if following == "+":
            self.refuse("a possessive quantifier", remedy="it changes the language; group the repeat to repeat it")
        self.position += following == "?"
        group.add(self.pool.repeat(group.items.pop(), low, high), "multiple repeat; group the first one to repeat it")

    def read_counts(self) -> tuple[int, int | None]:
        """Read ``{m,n}`` and its kin up to the brace that closes them."""
        match = _COUNTED.match(self.pattern, self.position)
        assert match is not None
        low = self.read_count(match[1], match.start(1)) or 0
        high = self.read_count(match[3], match.start(3)) if match[2] else low
        self.position = match.end() - 1
        return low, high

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
        if letter in CLASS_ESCAPES:
            self.groups[-1].add(_class_escape(letter, self.ascii_classes))
            self.position += 2
            return
        named = self.read_named_set(self.flags.ignore_case)
        if named is not None:
            ranges, folds = named
            self.groups[-1].add(CharSet(fold_closure(ranges) if folds and self.flags.ignore_case else ranges))
            return
        self.groups[-1].add(_literal(chr(self.read_escaped_code_point()), self.flags.ignore_case))

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
        start = self.position
        if not self.read_again("]"):
            node = CharSet(self.read_class(self.flags.ignore_case))
            self.keep(_Known(start, self.position, self.flags, node, 0), "]")

    # What is repeated.

    def read_again(self, closing: str) -> bool:
        """Read a class or a group whose text has been read before, under the same flags: it is the same node.

        Where it ends depends on its own text only, so no other reading is possible.
        """
        start, text = self.position, self.pattern
        known = self.known.get(self.key(start, closing))
        if known is None or known.flags is not self.flags or len(self.groups) + known.depth > MAX_NESTING + 1:
            return False
        if not text.startswith(text[known.start : known.end], start):
            return False
        self.position += known.end - known.start
        self.add_known(known)
        return True

    def keep(self, read: _Known, closing: str) -> None:
        """Add to the open group what has just been read, and know it again."""
        self.known[self.key(read.start, closing)] = read
        self.add_known(read)

    def add_known(self, known: _Known) -> None:
        group = self.groups[-1]
        group.add(known.node)
        group.depth = max(group.depth, known.depth)

    def key(self, start: int, closing: str) -> str:
        return self.pattern[start : self.pattern.find(closing, start, start + MAX_KEY) + 1]


@cache
def _class_escape(letter: str, ascii_only: bool) -> CharSet:
    return CharSet(class_escape(letter, ascii_only))


@lru_cache(maxsize=4096)
def _literal(character: str, ignore_case: bool) -> CharSet:
    """One character; cached, so that a long literal text shares its nodes."""
    single = ((ord(character), ord(character)),)
    return CharSet(fold_closure(single) if ignore_case else single)
