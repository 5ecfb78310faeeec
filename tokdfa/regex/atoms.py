r"""Reading what stands for one code point: escapes and classes. The lower half of the parser.

`AtomReader` holds the pattern and the position in it. Each ``read_`` method begins at `position` and leaves it behind
what it has read. What each notation means is in the docstring of `tokdfa.regex.parse`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NoReturn

from tokdfa.errors import RegexSyntaxError, RegexUnsupported
from tokdfa.regex.char_sets import (
    POSIX_CLASSES,
    Ranges,
    complement,
    digits,
    fold_closure,
    spaces,
    unicode_property,
    union,
    union_of_two,
    word_characters,
)

_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
#: A character or a range in a class, written plainly; and as many as there are, if no range begins with the last one.
_PLAIN_ITEM = re.compile(r"[^]\\[&~-](?:-[^]\\[&~-])?")
_PLAIN_ITEMS = re.compile(rf"(?:{_PLAIN_ITEM.pattern})+(?!-)")
_PROPERTY = re.compile(r"\\[pP](?:\{(\^?)([^{}]*)\}|([A-Za-z]))")
_OCTAL = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{2})")
_HEXADECIMAL = {
    "x": re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))"),
    "u": re.compile(r"\\u(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{4}))"),
    "U": re.compile(r"\\U(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{8}))"),
}
_HEXADECIMAL_FORMS = {"x": r"\xHH or \x{H..}", "u": r"\uHHHH or \u{H..}", "U": r"\UHHHHHHHH or \U{H..}"}
_CONTROL = {"n": 0x0A, "r": 0x0D, "t": 0x09, "f": 0x0C, "v": 0x0B, "a": 0x07}
_REFUSED_ESCAPES = {
    "X": r"the grapheme cluster \X",
    "R": r"the line break \R",
    "K": r"the match reset \K",
    "G": r"the search anchor \G",
    "N": r"the named character \N",
    "k": "a back-reference",
}


_CLASSES = {"d": digits, "w": word_characters, "s": spaces}
CLASS_ESCAPES = frozenset("dwsDWS")


@cache
def class_escape(letter: str, ascii_only: bool) -> Ranges:
    r"""The set that ``\d \D \w \W \s \S`` mean."""
    ranges = _CLASSES[letter.lower()](ascii_only)
    return complement(ranges) if letter.isupper() else ranges


class AtomReader:
    """A pattern, a position in it, and the readers of escapes and classes."""

    def __init__(self, pattern: str, ascii_classes: bool) -> None:
        self.pattern, self.ascii_classes = pattern, ascii_classes
        self.position = 0

    def fail(self, message: str, position: int | None = None) -> NoReturn:
        raise RegexSyntaxError(message, self.pattern, self.position if position is None else position)

    def refuse(self, what: str, position: int | None = None, remedy: str = "") -> NoReturn:
        message = f"{what} is not supported{'; ' if remedy else ''}{remedy}"
        raise RegexUnsupported(message, self.pattern, self.position if position is None else position)

    def read_named_set(self, ignore_case: bool) -> tuple[Ranges, bool] | None:
        r"""Read ``\d \D \w \W \s \S \p \P``: the set, negated if need be, and whether case folds in it."""
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter in CLASS_ESCAPES:
            self.position += 2
            return class_escape(letter, self.ascii_classes), False
        if letter and letter in "pP":
            match = _PROPERTY.match(self.pattern, self.position)
            if not match:
                self.fail(rf"\{letter} needs a property: \{letter}{{Name}} or \{letter}L")
            try:
                ranges = unicode_property(match[2] or match[3] or "")
            except ValueError:
                self.fail(f"unknown Unicode property {match[2] or match[3] or ''!r}")
            self.position = match.end()
            if (letter == "P") == bool(match[1]):
                return ranges, True
            # folding comes before negation, and what is done here cannot be folded again
            return complement(fold_closure(ranges) if ignore_case else ranges), False
        return None

    def read_escaped_code_point(self) -> int:
        """Read an escape that stands for one code point."""
        start, text = self.position, self.pattern
        if start + 1 == len(text):
            self.fail("a lone backslash at the end")
        letter = text[start + 1]
        octal = _OCTAL.match(text, start)
        if octal:
            if int(octal[1], 8) > 0o377:
                self.fail("an octal escape is at most \\377")
            self.position = octal.end()
            return int(octal[1], 8)
        if letter in _HEXADECIMAL:
            return self.read_hexadecimal(letter)
        if letter in "123456789":
            self.refuse("a back-reference")
        if letter in _REFUSED_ESCAPES:
            self.refuse(_REFUSED_ESCAPES[letter])
        if letter == "c":
            control = text[start + 2 : start + 3]
            if not (control.isascii() and control.isalpha()):
                self.fail(r"\c needs a letter")
            self.position += 3
            return ord(control) % 32
        if letter in _CONTROL:
            self.position += 2
            return _CONTROL[letter]
        if letter.isascii() and letter.isalnum():
            self.fail(f"unknown escape \\{letter}")
        self.position += 2
        return ord(letter)

    def read_hexadecimal(self, letter: str) -> int:
        start = self.position
        match = _HEXADECIMAL[letter].match(self.pattern, start)
        if not match:
            self.fail(f"incomplete escape \\{letter}; write {_HEXADECIMAL_FORMS[letter]}")
        code_point = int(match[1] or match[2], 16)
        if code_point > 0x10FFFF:
            self.fail("a code point is at most 10FFFF")
        self.position = match.end()
        if letter == "u" and match[2] and 0xD800 <= code_point < 0xDC00:
            low = _HEXADECIMAL["u"].match(self.pattern, self.position)
            if low and low[2] and 0xDC00 <= int(low[2], 16) < 0xE000:
                self.position = low.end()
                return 0x10000 + (code_point - 0xD800) * 0x400 + int(low[2], 16) - 0xDC00
        return code_point

    def read_class(self, ignore_case: bool) -> Ranges:
        """Read a class in brackets."""
        start, text = self.position, self.pattern
        self.position += 1
        negated = text.startswith("^", self.position)
        self.position += negated
        first_item = self.position
        folding: list[tuple[int, int]] = []
        fixed: list[Ranges] = []
        while True:
            self.read_plain_items(folding)
            if self.position >= len(text):
                hint = "; a ] directly after [ is literal" if text.startswith("]", first_item) else ""
                self.fail(f"this class is not closed{hint}", start)
            if text[self.position] == "]" and self.position > first_item:
                break
            item_start = self.position
            item = self.read_class_item(ignore_case)
            if text.startswith("-", self.position) and text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.position += 1
                item = self.read_range_end(item, item_start, ignore_case)
            if isinstance(item, int):
                folding.append((item, item))
            elif item[1]:
                folding.extend(item[0])
            else:
                fixed.append(item[0])
        self.position += 1
        ranges = union(folding)
        if ignore_case:
            ranges = fold_closure(ranges)
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

    def read_class_item(self, ignore_case: bool) -> int | tuple[Ranges, bool]:
        """One code point, or a set and whether case folds in it."""
        text = self.pattern
        if text.startswith(("&&", "--", "~~"), self.position):
            operator = text[self.position : self.position + 2]
            self.refuse(f"the set operation {operator}", remedy=rf"write \{operator[0]} for the character")
        if text[self.position] == "\\":
            named = self.read_named_set(ignore_case)
            if named is not None:
                return named
            if text.startswith(r"\b", self.position):
                self.position += 2
                return 0x08
            return self.read_escaped_code_point()
        posix = _POSIX.match(text, self.position)
        if posix:
            if posix[2] not in POSIX_CLASSES:
                self.fail(f"unknown POSIX class {posix[2]!r}; known: {', '.join(POSIX_CLASSES)}")
            self.position = posix.end()
            ranges = POSIX_CLASSES[posix[2]]
            return (complement(ranges) if posix[1] else ranges), False
        self.position += 1
        return ord(text[self.position - 1])

    def read_range_end(self, first: int | tuple[Ranges, bool], start: int, ignore_case: bool) -> tuple[Ranges, bool]:
        """Read what follows ``first-`` in a class."""
        if self.pattern.startswith("-", self.position):
            self.position -= 1
            self.read_class_item(ignore_case)  # refuses the set operation --
        last = self.read_class_item(ignore_case)
        text = self.pattern[start : self.position]
        if not isinstance(first, int) or not isinstance(last, int):
            self.fail(rf"bad range {text}: a class is no end of a range; write \- for a hyphen", start)
        if last < first:
            self.fail(f"bad range {text}: the ends are in the wrong order", start)
        return ((first, last),), True
