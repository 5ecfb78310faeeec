r"""Reading what stands for one code point: escapes and classes, and their nodes. The lower half of the parser.

`AtomReader` holds the pattern and the position in it. Each ``read_`` method begins at `position` and leaves it behind
what it has read. What each notation means is in the docstrings of `tokdfa.regex.parse` and `tokdfa.regex.dialects`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from typing import TYPE_CHECKING, NoReturn

from tokdfa.errors import RegexSyntaxError, RegexUnsupported
from tokdfa.regex.char_sets import (
    POSIX_CLASSES,
    SURROGATES,
    Folding,
    Ranges,
    complement,
    difference,
    fold_closure,
    intersection,
    unicode_property,
    union,
    union_of_two,
)
from tokdfa.regex.syntax_tree import CharSet

if TYPE_CHECKING:
    from tokdfa.regex.dialects import Dialect

_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
#: A character or a range in a class, written plainly; and as many as there are, if no range begins with the last one.
_PLAIN_ITEM = re.compile(r"[^]\\[&~-](?:-[^]\\[&~-])?")
_PLAIN_ITEMS = re.compile(rf"(?:{_PLAIN_ITEM.pattern})+(?!-)")
_HEXADECIMAL_FORMS = {"x": r"\xHH", "u": r"\uHHHH", "U": r"\UHHHHHHHH"}
#: A class that may be closed at once, and later, too.
_EMPTY_CLASS = re.compile(r"(\[\^?\])(?:[^\]\\]|\\.)*\]", re.DOTALL)
#: Nodes of characters that are kept.
MAX_LITERALS = 4096
_HYPHEN: Ranges = ((0x2D, 0x2D),)
CLASS_LETTERS, PROPERTY_LETTERS = frozenset("dwsDWS"), frozenset("pP")


@dataclass(frozen=True)
class Flags:
    """What holds at a position of a pattern. `wide`: what either reading of the dialect has is read."""

    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False
    verbose: bool = False
    wide: bool = False

    def switched(self, letters: str, on: bool) -> Flags:
        names = {"i": "ignore_case", "s": "dot_all", "m": "multi_line", "x": "verbose"}
        changed = {names[letter]: on for letter in letters if letter in names}
        return replace(self, **changed) if changed else self


@cache
def class_ranges(dialect: Dialect, letters: frozenset[str], ascii_only: bool, to_any: bool) -> Ranges:
    r"""What any of some classes (``\d \D \w \W \s \S``) has in all readings of a dialect, or `to_any` of them."""
    by_letter = []
    for letter in letters:
        sets = dialect.classes(letter.lower(), ascii_only)
        by_letter.append(tuple(map(complement, sets)) if letter.isupper() else sets)
    readings = [union(*sets) for sets in zip(*by_letter, strict=True)]
    return union(*readings) if to_any else reduce(intersection, readings)


class _Literals(dict[str, CharSet]):
    """The nodes of single characters, made when they are first needed; so a long literal text shares its nodes."""

    def __init__(self, folding: Folding | None, without_surrogates: bool) -> None:
        self.folding, self.without_surrogates = folding, without_surrogates

    def __missing__(self, character: str) -> CharSet:
        single = ((ord(character), ord(character)),)
        ranges = fold_closure(single, self.folding) if self.folding else single
        if len(self) >= MAX_LITERALS:
            self.clear()
        self[character] = node = CharSet(difference(ranges, SURROGATES) if self.without_surrogates else ranges)
        return node


_literals = cache(_Literals)


@lru_cache(maxsize=512)
def _char_set(ranges: Ranges, without_surrogates: bool) -> CharSet:
    return CharSet(difference(ranges, SURROGATES) if without_surrogates else ranges)


class AtomReader:
    """A pattern, a position in it with its flags, and the readers of escapes and classes."""

    def __init__(self, pattern: str, dialect: Dialect, flags: Flags, ascii_classes: bool) -> None:
        self.pattern, self.dialect, self.flags, self.ascii_classes = pattern, dialect, flags, ascii_classes
        self.position = 0
        #: Whether in a class that leaves out what it lists, and the letters of classes listed in it.
        self.in_negated = False
        self.letters: set[str] = set()

    @property
    def is_wide(self) -> bool:
        """Whether to read what any reading of the dialect has."""
        return self.dialect.two_readings and self.in_negated != self.flags.wide

    @property
    def folding(self) -> Folding | None:
        """How case is disregarded; None if it is not."""
        if not self.flags.ignore_case:
            return None
        return ("any" if self.is_wide else "all") if self.dialect.two_readings else "simple"

    def fold(self, ranges: Ranges) -> Ranges:
        """`ranges`, without regard to case if the flags say so."""
        return fold_closure(ranges, self.folding) if self.folding else ranges

    @property
    def literals(self) -> dict[str, CharSet]:
        """The nodes of single characters under the flags."""
        return _literals(self.folding, self.dialect.two_readings)

    def char_set(self, ranges: Ranges) -> CharSet:
        """A node, the same one for equal sets."""
        return _char_set(ranges, self.dialect.two_readings)

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise RegexSyntaxError(message, self.pattern, self.position if position is None else position)

    def refuse(self, what: str, position: int | None = None) -> NoReturn:
        """Raise RegexUnsupported; behind ``"; "``, `what` has a remedy."""
        named, *remedy = what.split("; ", 1)
        message = "; ".join([named + self.dialect.refusal, *remedy])
        raise RegexUnsupported(message, self.pattern, self.position if position is None else position)

    def read_property(self, letter: str) -> tuple[Ranges, bool]:
        r"""Read ``\p`` or ``\P``: the set, negated if need be, and whether case folds in it."""
        match = self.dialect.property.match(self.pattern, self.position)
        if not match:
            self.fail(rf"\{letter} needs a Unicode property: \{letter}{{L}}, \{letter}{{Script=Greek}}")
        try:
            ranges = unicode_property(match[2] or match[3] or "")
        except ValueError:
            self.fail(f"unknown Unicode property {match[2] or match[3] or ''!r}")
        self.position = match.end()
        if (letter == "P") == bool(match[1]):
            return ranges, True
        # what is done here cannot be folded again; folding comes before negation, but behind it with ECMA's flag u
        return self.fold(complement(ranges)) if self.is_wide else complement(self.fold(ranges)), False

    def read_escaped_code_point(self) -> int:
        """Read an escape that stands for one code point."""
        start, text, dialect = self.position, self.pattern, self.dialect
        if start + 1 == len(text):
            self.fail("a lone backslash at the end")
        letter = text[start + 1]
        octal = dialect.octal.match(text, start)
        if octal:
            if int(octal[1], 8) > 0o377:
                self.fail("an octal escape is at most \\377")
            self.position = octal.end()
            return int(octal[1], 8)
        if letter in dialect.hexadecimal:
            return self.read_hexadecimal(letter)
        if letter in dialect.refused_escapes:
            self.refuse(dialect.refused_escapes[letter])
        if letter == "c":
            control = text[start + 2 : start + 3]
            if not (control.isascii() and control.isalpha()):
                self.fail(r"\c needs a letter")
            self.position += 3
            return ord(control) % 32
        if letter.isascii() and letter.isalnum() and letter not in dialect.controls:
            self.fail(f"unknown escape \\{letter}")
        self.position += 2
        return dialect.controls.get(letter, ord(letter))

    def read_hexadecimal(self, letter: str) -> int:
        form = self.dialect.hexadecimal[letter]
        match = form.match(self.pattern, self.position)
        if not match:
            braced = rf" or \{letter}{{H..}}" if r"\}" in form.pattern else ""
            self.fail(f"incomplete escape \\{letter}; write {_HEXADECIMAL_FORMS[letter]}{braced}")
        code_point = int(match[match.lastindex or 0], 16)
        if code_point > 0x10FFFF:
            self.fail("a code point is at most 10FFFF")
        self.position = match.end()
        if letter == "u" and match[2] and 0xD800 <= code_point < 0xDC00:
            low = form.match(self.pattern, self.position)
            if low and low[2] and 0xDC00 <= int(low[2], 16) < 0xE000:
                self.position = low.end()
                return 0x10000 + (code_point - 0xD800) * 0x400 + int(low[2], 16) - 0xDC00
        return code_point

    def check_first_bracket(self) -> None:
        """Refuse a class that begins with ``]`` if readings differ in where it ends."""
        opening = _EMPTY_CLASS.match(self.pattern, self.position)
        if opening:
            self.refuse(
                f"{opening[1]}; to ECMA-262 it is a class of its own, to Python and Rust ] is the first member of a "
                "longer one; write \\] for the member, (?!) for no character, [\\s\\S] for any"
            )

    def read_class(self) -> Ranges:
        """Read a class in brackets."""
        start, text, dialect = self.position, self.pattern, self.dialect
        self.position += 1
        negated = text.startswith("^", self.position)
        self.position += negated
        first_item = self.position
        self.in_negated = negated
        folding: list[tuple[int, int]] = []
        fixed: list[Ranges] = []
        self.letters.clear()
        while True:
            self.read_plain_items(folding)
            if self.position >= len(text):
                literal = text.startswith("]", first_item) and not dialect.empty_class
                self.fail(f"this class is not closed{'; a ] directly after [ is literal' if literal else ''}", start)
            if text[self.position] == "]" and (self.position > first_item or dialect.empty_class):
                break
            item_start = self.position
            item = self.read_class_item()
            if text.startswith("-", self.position) and text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.position += 1
                item = self.read_range_end(item, item_start)
            if isinstance(item, int):
                folding.append((item, item))
            elif item[1]:
                folding.extend(item[0])
            else:
                fixed.append(item[0])
        self.position += 1
        ranges = self.fold(union(folding))
        if self.letters:  # together: to each reading [\s\S] has everything, but to no two the same of it is in \s
            fixed.append(class_ranges(dialect, frozenset(self.letters), self.ascii_classes, self.is_wide))
        self.in_negated = False
        for more in fixed:
            ranges = union_of_two(ranges, more)
        return complement(ranges) if negated else ranges

    def read_plain_items(self, found: list[tuple[int, int]]) -> None:
        """Read characters and ranges that mean themselves, as far as the next thing in the class that needs care."""
        plain = _PLAIN_ITEMS.match(self.pattern, self.position)
        for item in _PLAIN_ITEM.findall(plain[0]) if plain else ():
            if item[0] > item[-1]:
                return  # a bad range
            found.append((ord(item[0]), ord(item[-1])))
            self.position += len(item)

    def read_class_item(self) -> int | tuple[Ranges, bool]:
        """One code point, or a set and whether case folds in it."""
        text, has_posix = self.pattern, self.dialect.posix_and_operations
        if has_posix and text.startswith(("&&", "--", "~~"), self.position):
            operator = text[self.position : self.position + 2]
            self.refuse(rf"the set operation {operator}; write \{operator[0]} for the character")
        if text[self.position] == "\\":
            letter = text[self.position + 1 : self.position + 2]
            if letter in PROPERTY_LETTERS:
                return self.read_property(letter)
            if letter in CLASS_LETTERS:
                self.position += 2
                self.letters.add(letter)
                return (), False
            if letter == "b":
                self.position += 2
                return 0x08
            return self.read_escaped_code_point()
        posix = has_posix and _POSIX.match(text, self.position)
        if posix:
            if posix[2] not in POSIX_CLASSES:
                self.fail(f"unknown POSIX class {posix[2]!r}; known: {', '.join(POSIX_CLASSES)}")
            self.position = posix.end()
            ranges = POSIX_CLASSES[posix[2]]
            return (complement(ranges) if posix[1] else ranges), False
        self.position += 1
        return ord(text[self.position - 1])

    def read_range_end(self, first: int | tuple[Ranges, bool], start: int) -> tuple[Ranges, bool]:
        """Read what follows ``first-`` in a class."""
        if self.dialect.posix_and_operations and self.pattern.startswith("-", self.position):
            self.position -= 1
            self.read_class_item()  # refuses the set operation --
        last = self.read_class_item()
        text = self.pattern[start : self.position]
        if not isinstance(first, int) or not isinstance(last, int):
            if self.dialect.hyphen_beside_class:
                members = (((item, item),) if isinstance(item, int) else item[0] for item in (first, last))
                return union(_HYPHEN, *members), False
            self.fail(rf"bad range {text}: a class is no end of a range; write \- for a hyphen", start)
        if last < first:
            self.fail(f"bad range {text}: the ends are in the wrong order", start)
        return ((first, last),), True
