r"""ECMA-262 patterns, as the keyword ``pattern`` has them: pattern text -> `tokdfa.regex.syntax_tree`.

JSON Schema (2020-12 core, section 6.4; validation, 6.3.3) asks for ECMA-262 with the flag u. Published schemas are
written for engines without it, too, so what only Annex B allows is read as Annex B says, if Python's `re` (which most
validators use) agrees or knows no meaning at all; where two readings are left, the pattern is refused.

- A pattern is searched for; ``$`` is the very end (Python also allows a last newline behind it).
- ``.`` is everything but ``\n \r U+2028 U+2029`` (Python: but ``\n``). ``\d \w \b`` are ASCII (Python: Unicode). ``\s``
  is tab, newline, vertical tab, form feed, carriage return, U+2028, U+2029 and the space separators (Zs). What only
  one of the two readings has in a class (é in ``\w``, U+FEFF and U+0085 in ``\s``) is neither in the class nor in its
  negation ``\D \W \S``, so that what is accepted is right under both. What must *not* be found, such as the content of
  ``(?!..)``, is read *widely*: what either reading has in a class, ``.``, or in front of a last newline ``$``.
- ``[]`` matches nothing and ``[^]`` anything. In a class, ``[`` and doubled ``& - ~`` are characters, and a hyphen
  beside a class escape, as in ``[\w-.]``, is a hyphen (Annex B).
- ``\t \n \v \f \r \0 \cX \xHH \uHHHH \u{H..}``, pairs of ``\u`` surrogates, ``\p{..} \P{..}``; ``\0dd`` is octal. A
  backslash makes what is no ASCII letter or digit literal, ``\/`` and ``\-`` among it.
- ``{m} {m,} {m,n}`` are quantifiers, and other braces text (Annex B). Greedy and lazy are one language.
- ``(..) (?:..) (?<n>..) (?=..) (?!..)``, and Python's ``(?P<n>..)``. A look-ahead may be repeated (Annex B).

Refused (UnsupportedConstraint): back-references, which are not regular; look-behind; inline flags; ``{,n}``, a count to
Python and text to Annex B; ``\a \A \Z``, anchors or a bell to Python, letters to Annex B. Broken: RegexSyntaxError.

Surrogates match no text, so they are taken out of every set. No group costs Python stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NoReturn

from tokdfa.errors import LimitExceeded, RegexSyntaxError, UnsupportedConstraint
from tokdfa.regex.char_sets import (
    ALL,
    SURROGATES,
    Ranges,
    complement,
    difference,
    digits,
    unicode_property,
    union,
    word_characters,
)
from tokdfa.regex.dialects import MAX_COUNT, MAX_NESTING
from tokdfa.regex.parse import MAX_PATTERN
from tokdfa.regex.syntax_tree import Alternation, Assertion, CharSet, Concat, LookAhead, Node, NodePool

#: Zs, and the control characters and line ends (ECMA-262, WhiteSpace and LineTerminator).
SPACES: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F),
    (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
_SCALARS = difference(ALL, SURROGATES)
_CLASSES = {"d": digits(ascii_only=True), "w": word_characters(ascii_only=True), "s": SPACES}
#: What `\\D`, `\\W` and `\\S` leave out: all that either reading has in the class.
_LEFT_OUT = {
    "D": digits(ascii_only=False),
    "W": word_characters(ascii_only=False),
    "S": union(SPACES, ((0x1C, 0x1F), (0x85, 0x85), (0xFEFF, 0xFEFF))),
}
_DOT = CharSet(difference(_SCALARS, ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))))
_WIDE_DOT = CharSet(difference(_SCALARS, ((0x0A, 0x0A),)))
_CONTROL = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}

_COUNTED = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_PYTHON_COUNT = re.compile(r"\{,[0-9]*\}")
_GROUP_NAME = re.compile(r"\(\?P?<[^\W\d][\w$]*>")
_PROPERTY = re.compile(r"\\[pP]\{([^{}^]*)\}")
_HEXADECIMAL = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{0*([0-9A-Fa-f]{1,8})\})")
_LOW_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_OCTAL = re.compile(r"\\(0[0-7]{0,2})")
#: Characters that mean themselves; and in a class one, or a range of them.
_PLAIN = re.compile(r"[^\\^$.*+?()\[{|]+")
_CLASS_PLAIN = re.compile(r"[^]\\-](?:-[^]\\])?(?!-)")
NOTHING_TO_REPEAT = "nothing to repeat"


@dataclass
class _Group:
    """An open group: where it began, whether it looks ahead and how (None: not), and what has been read of it."""

    position: int
    negative: bool | None = None
    options: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    #: Why the last item cannot be repeated; "" if it can.
    no_repeat: str = NOTHING_TO_REPEAT

    def add(self, item: Node, no_repeat: str = "") -> None:
        self.items.append(item)
        self.no_repeat = no_repeat


@lru_cache(maxsize=4096)
def parse_pattern(pattern: str, wide: bool = False) -> Node:
    """The syntax tree of `pattern`; the module's docstring says what is read, and how. Linear, about 1 us a character.

    It is found where both readings find the pattern; if `wide`, where either does (but for ``\\b \\B``, read as ASCII).
    Raises RegexSyntaxError, UnsupportedConstraint, or LimitExceeded (`tokdfa.regex.parse` has the limits).
    """
    if len(pattern) > MAX_PATTERN:
        raise LimitExceeded(
            f"the pattern has {len(pattern)} characters; at most {MAX_PATTERN} are read",
            limit="pattern length",
            value=len(pattern),
        )
    return _Reader(pattern, wide).read()


def finds_everywhere(node: Node) -> bool:
    """Whether a search finds `node` in every text; False if that is not plain to see. So ``.*`` demands nothing."""
    options = node.options if isinstance(node, Alternation) else (node,)
    return any(_is_everywhere(option) for option in options)


def _is_everywhere(node: Node) -> bool:
    parts = node.parts if isinstance(node, Concat) else (node,)
    if parts[0] == Assertion("text_start"):
        parts = parts[1:]
    elif parts[-1] == Assertion("text_end"):
        parts = parts[:-1]
    return all(part.nullable and not part.assertions for part in parts)


class _Reader:
    """A pattern and a position in it. Each method reads one construct that begins at `position`."""

    def __init__(self, pattern: str, wide: bool) -> None:
        self.pattern, self.position = pattern, 0
        self.wide = wide  # here: the other way round in negative look-aheads
        self.in_negated = False  # whether in a class that leaves out what it lists
        self.groups = [_Group(0)]
        self.pool = NodePool()
        self.sets: dict[Ranges, CharSet] = {}

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise RegexSyntaxError(message, self.pattern, self.position if position is None else position)

    def refuse(self, what: str, why: str) -> NoReturn:
        raise UnsupportedConstraint(f"{what} at position {self.position} of the pattern {self.pattern!r}: {why}")

    def read(self) -> Node:
        """The whole pattern."""
        readers = {
            "\\": self.read_escape, "[": self.read_bracket, ".": self.read_dot, "(": self.read_group_start,
            ")": self.read_group_end, "|": self.read_bar, "^": self.read_anchor, "$": self.read_anchor,
            "*": self.read_quantifier, "+": self.read_quantifier, "?": self.read_quantifier, "{": self.read_brace,
        }  # fmt: skip
        while self.position < len(self.pattern):
            readers.get(self.pattern[self.position], self.read_plain)()
        group = self.groups.pop()
        if self.groups:
            self.fail("missing ), this group is not closed", group.position)
        return self.close(group)

    def add_set(self, ranges: Ranges) -> None:
        """Add one code point out of `ranges` to the open group; equal sets are one node."""
        if ranges not in self.sets:
            self.sets[ranges] = CharSet(difference(ranges, SURROGATES))
        self.groups[-1].add(self.sets[ranges])

    def read_plain(self) -> None:
        match = _PLAIN.match(self.pattern, self.position)
        assert match is not None
        self.groups[-1].items.extend(map(_literal, match[0]))
        self.groups[-1].no_repeat = ""
        self.position = match.end()

    def read_dot(self) -> None:
        self.groups[-1].add(_WIDE_DOT if self.wide else _DOT)
        self.position += 1

    def read_anchor(self) -> None:
        node: Node = Assertion("text_start") if self.pattern[self.position] == "^" else Assertion("text_end")
        if self.wide and node == Assertion("text_end"):
            node = self.pool.alternation([node, LookAhead(self.pool.concat([_literal("\n"), node]), False)])
        self.groups[-1].add(node, NOTHING_TO_REPEAT)
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
        start, text = self.position, self.pattern
        group = _Group(start)
        if not text.startswith("(?", start):
            self.position += 1
        elif text.startswith("(?:", start):
            self.position += 3
        elif text.startswith(("(?=", "(?!"), start):
            group.negative = text[start + 2] == "!"
            self.wide ^= group.negative
            self.position += 3
        elif text.startswith(("(?<=", "(?<!"), start):
            self.refuse("a look-behind", "not supported; say what the text before must be")
        elif text.startswith(("(?P=", "(?("), start):
            self.refuse("a back-reference", "what it matches is no regular language")
        elif name := _GROUP_NAME.match(text, start):
            self.position = name.end()
        elif re.match(r"\(\?[A-Za-z-]+[:)]", text[start : start + 20]):
            self.refuse("inline flags", "ECMA-262 had none until 2025; write the letters of both cases in classes")
        else:
            self.fail("unknown kind of group; known: (..), (?:..), (?<n>..), (?=..), (?!..)")
        if len(self.groups) > MAX_NESTING:
            raise LimitExceeded(
                f"groups are nested deeper than {MAX_NESTING} at position {start} of the pattern",
                limit="group nesting",
                value=len(self.groups),
            )
        self.groups.append(group)

    def read_group_end(self) -> None:
        if len(self.groups) == 1:
            self.fail("unbalanced )")
        group = self.groups.pop()
        node = self.close(group)
        self.wide ^= bool(group.negative)
        self.groups[-1].add(node if group.negative is None else LookAhead(node, group.negative))
        self.position += 1

    # Quantifiers.

    def read_brace(self) -> None:
        if _COUNTED.match(self.pattern, self.position):
            self.read_quantifier()
        elif _PYTHON_COUNT.match(self.pattern, self.position):
            self.refuse("{,n}", "it is text to ECMA-262 and a count to Python; write {0,n} or \\{")
        else:
            self.groups[-1].add(_literal("{"))
            self.position += 1

    def read_quantifier(self) -> None:
        start, group = self.position, self.groups[-1]
        if group.no_repeat:
            self.fail(group.no_repeat)
        low, high = 0, None
        if counted := _COUNTED.match(self.pattern, start):
            low = self.read_count(counted[1])
            high = (self.read_count(counted[3]) if counted[3] else None) if counted[2] else low
            self.position = counted.end()
        else:
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.pattern[start]]
            self.position += 1
        if high is not None and high < low:
            self.fail(f"a repeat needs low <= high, not {low} and {high}", start)
        self.position += self.pattern.startswith("?", self.position)
        group.add(self.pool.repeat(group.items.pop(), low, high), "multiple repeat; group the first one to repeat it")

    def read_count(self, number: str) -> int:
        number = number.lstrip("0") or "0"
        if len(number) > len(str(MAX_COUNT)) or int(number) > MAX_COUNT:  # int() refuses thousands of digits
            raise LimitExceeded(
                f"a count above {MAX_COUNT} at position {self.position} of the pattern", limit="count", value=MAX_COUNT
            )
        return int(number)

    # Escapes and classes.

    def read_escape(self) -> None:
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in ("b", "B"):
            kind = "word_boundary" if letter == "b" else "not_word_boundary"
            self.groups[-1].add(Assertion(kind), NOTHING_TO_REPEAT)
            self.position += 2
            return
        atom = self.read_class_escape()
        if atom is None:
            code_point = self.read_character_escape()
            atom = ((code_point, code_point),)
        self.add_set(atom)

    def read_class_escape(self) -> Ranges | None:
        r"""Read ``\d \D \w \W \s \S \p{..} \P{..}``, if one is here."""
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter and letter in "dwsDWS":
            self.position += 2
            return _class_escape(letter, self.in_negated != self.wide)
        if not letter or letter not in "pP":
            return None
        match = _PROPERTY.match(self.pattern, self.position)
        try:
            ranges = unicode_property(match[1]) if match else ()
        except ValueError:
            match = None
        if not match:
            self.fail(rf"\{letter} needs a Unicode property: \{letter}{{L}}, \{letter}{{Script=Greek}}")
        self.position = match.end()
        return complement(ranges) if letter == "P" else ranges

    def read_character_escape(self) -> int:
        """Read an escape that stands for one code point."""
        start, text = self.position, self.pattern
        letter = text[start + 1 : start + 2]
        if not letter:
            self.fail("a lone backslash at the end")
        if octal := _OCTAL.match(text, start):
            self.position = octal.end()
            return int(octal[1], 8)
        if letter in "xu":
            return self.read_hexadecimal(letter)
        if letter in "123456789k":
            self.refuse("a back-reference", "what it matches is no regular language")
        if letter == "c":
            control = text[start + 2 : start + 3]
            if not (control.isascii() and control.isalpha()):
                self.fail(r"\c needs a letter")
            self.position += 3
            return ord(control) % 32
        if letter in "aAZ":
            self.refuse(f"\\{letter}", "ECMA-262 and Python read it differently")
        if letter.isascii() and letter.isalnum() and letter not in _CONTROL:
            self.fail(f"unknown escape \\{letter}")
        self.position += 2
        return _CONTROL.get(letter, ord(letter))

    def read_hexadecimal(self, letter: str) -> int:
        match = _HEXADECIMAL.match(self.pattern, self.position)
        if not match:
            self.fail(f"incomplete escape \\{letter}; write " + (r"\xHH" if letter == "x" else r"\uHHHH or \u{H..}"))
        code_point = int(match[1] or match[2] or match[3], 16)
        if code_point > 0x10FFFF:
            self.fail("a code point is at most 10FFFF")
        self.position = match.end()
        if match[2] and 0xD800 <= code_point < 0xDC00:
            low = _LOW_SURROGATE.match(self.pattern, self.position)
            if low:
                self.position = low.end()
                return 0x10000 + (code_point - 0xD800) * 0x400 + int(low[1], 16) - 0xDC00
        return code_point

    def read_bracket(self) -> None:
        start, text = self.position, self.pattern
        self.position += 1
        negated = text.startswith("^", self.position)
        self.position += negated
        self.in_negated = negated
        ranges: list[tuple[int, int]] = []
        while not text.startswith("]", self.position):
            plain = _CLASS_PLAIN.match(text, self.position)
            if plain and plain[0][0] <= plain[0][-1]:
                ranges.append((ord(plain[0][0]), ord(plain[0][-1])))
                self.position = plain.end()
                continue
            if self.position >= len(text):
                self.fail("this class is not closed", start)
            ranges.extend(self.read_class_items())
        self.position += 1
        self.in_negated = False
        found = union(ranges)
        self.add_set(complement(found) if negated else found)

    def read_class_items(self) -> Ranges:
        """Read one item of a class, or a range; or what looks like a range between class escapes."""
        start, text = self.position, self.pattern
        first = self.read_class_atom()
        if not text.startswith("-", self.position) or text[self.position + 1 : self.position + 2] in ("]", ""):
            return first
        self.position += 1
        last = self.read_class_atom()
        if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1]:
            return union(first, ((0x2D, 0x2D),), last)
        if last[0][0] < first[0][0]:
            self.fail(f"bad range {text[start : self.position]}: the ends are in the wrong order", start)
        return ((first[0][0], last[0][0]),)

    def read_class_atom(self) -> Ranges:
        text = self.pattern
        if not text.startswith("\\", self.position):
            code_point = ord(text[self.position])
            self.position += 1
            return ((code_point, code_point),)
        atom = self.read_class_escape()
        if atom is not None:
            return atom
        if text.startswith(r"\b", self.position):
            self.position += 2
            return ((0x08, 0x08),)
        code_point = self.read_character_escape()
        return ((code_point, code_point),)


@cache
def _class_escape(letter: str, is_left_out: bool) -> Ranges:
    """What both readings have in a class; or, if it stands for what is left out or not found, what either has."""
    common, either = _CLASSES[letter.lower()], _LEFT_OUT[letter.upper()]
    if letter.isupper():
        return complement(common if is_left_out else either)
    return either if is_left_out else common


@lru_cache(maxsize=4096)
def _literal(character: str) -> CharSet:
    """One character; cached, so that a long literal text shares its nodes."""
    code_point = ord(character)
    return CharSet(difference(((code_point, code_point),), SURROGATES))
