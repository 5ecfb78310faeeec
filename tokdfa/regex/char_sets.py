r"""Sets of code points as sorted, disjoint, non-adjacent inclusive ranges, and the named sets of regex classes.

A set is a tuple of ``(first, last)`` pairs (`Ranges`), so it is hashable and two equal sets are equal tuples. The
universe is 0..0x10FFFF, surrogates included: they are legal in a class such as ``[\ud800-\udfff]`` but occur in no
UTF-8 text (`tokdfa.regex.utf8` drops them).

Named sets, each in a Unicode and an ASCII reading:

======  =====================================================================  ==============================
class   Unicode (UTS #18 Annex C, as in Rust and the `regex` package)          ASCII
======  =====================================================================  ==============================
``\d``  Nd                                                                     ``[0-9]``
``\w``  Alphabetic, M, Nd, Pc, Join_Control                                    ``[0-9A-Za-z_]``
``\s``  White_Space                                                            ``[ \t\n\v\f\r]``
======  =====================================================================  ==============================

Python's `re` differs in the Unicode reading: its ``\w`` is str.isalnum() or ``_`` (`python_word_characters`: it lacks
marks such as U+0301 and has other numbers such as U+00B2), its ``\s`` has U+001C..U+001F. ECMA-262 has ASCII ``\d`` and
``\w``; its ``\s`` has the Unicode space separators and U+FEFF, which the ASCII reading here has not.

Case is simple case folding (Unicode's CaseFolding.txt, status C and S) as in Rust and in ECMA-262's u mode: one code
point against one code point, no Turkic rule. So k, K and U+212A (Kelvin sign) are alike, s, S and U+017F too; U+00DF is
not ss. Python's `re` in addition takes U+0130 and U+0131 for an i. ECMA-262 without the flag u compares what has one
upper case each, and never a character beyond ASCII with one of ASCII: there U+212A is no k, and U+1E9E no U+00DF.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from tokdfa.regex.unicode_tables import CATEGORIES, load_case_orbits, load_ranges, scan

if TYPE_CHECKING:
    from collections.abc import Iterable

Ranges: TypeAlias = tuple[tuple[int, int], ...]
#: What is alike without regard to case: by simple case folding; to all of Python's `re`, Rust and ECMA-262 with and
#: without the flag u; to any of these.
Folding: TypeAlias = Literal["simple", "all", "any"]

LAST_CODE_POINT = 0x10FFFF
ALL: Ranges = ((0, LAST_CODE_POINT),)
NEWLINE: Ranges = ((0x0A, 0x0A),)
SURROGATES: Ranges = ((0xD800, 0xDFFF),)
#: What Python's `re` takes for an i: I, i, and both with and without a dot.
_EACH_I: Ranges = ((0x49, 0x49), (0x69, 0x69), (0x130, 0x131))

_ASCII: dict[str, Ranges] = {
    "digit": ((0x30, 0x39),),
    "word": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
}

#: The POSIX classes (``[[:alpha:]]``), ASCII as in Rust.
POSIX_CLASSES: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": _ASCII["digit"],
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": _ASCII["space"],
    "upper": ((0x41, 0x5A),),
    "word": _ASCII["word"],
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """All code points of any of `sets`, whose ranges may come in any order and overlap. O(n log n) in ranges."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for ranges in sets for pair in ranges):
        if merged and first <= merged[-1][1] + 1:
            if last > merged[-1][1]:
                merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return tuple(merged)


def union_of_two(one: Ranges, other: Ranges) -> Ranges:
    """The same of two sets. A few ranges beside many cost O(log n) each, and the rest is only copied."""
    few, many = sorted((one, other), key=len)
    if 8 * len(few) > len(many):
        return union(one, other)
    merged = list(many)
    for first, last in few:
        start = bisect_left(merged, first - 1, key=lambda pair: pair[1])  # what ends before it stays
        end = bisect_right(merged, last + 1, key=lambda pair: pair[0])  # and so does what begins behind it
        touched = [*merged[start:end], (first, last)]
        merged[start:end] = [(min(pair[0] for pair in touched), max(pair[1] for pair in touched))]
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All code points that are not in `ranges`."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for first, last in ranges:
        if first > start:
            gaps.append((start, first - 1))
        start = last + 1
    if start <= LAST_CODE_POINT:
        gaps.append((start, LAST_CODE_POINT))
    return tuple(gaps)


def intersection(left: Ranges, right: Ranges) -> Ranges:
    """The code points that are in both sets. A few ranges of many are cut out in O(log n) each, others are compared in
    linear time.
    """
    common: list[tuple[int, int]] = []
    few, many = sorted((left, right), key=len)
    if 8 * len(few) <= len(many):
        for first, last in few:
            start = bisect_left(many, first, key=lambda pair: pair[1])
            end = bisect_right(many, last, start, key=lambda pair: pair[0])
            if start < end:
                common += many[start:end]
                place = start - end
                common[place] = max(first, common[place][0]), common[place][1]
                common[-1] = common[-1][0], min(last, common[-1][1])
        return tuple(common)
    i = j = 0
    while i < len(left) and j < len(right):
        first, last = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if first <= last:
            common.append((first, last))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def difference(left: Ranges, right: Ranges) -> Ranges:
    """The code points of `left` that are not in `right`."""
    return intersection(left, complement(right))


def contains(ranges: Ranges, code_point: int) -> bool:
    """True if `code_point` is in the set. O(log n)."""
    place = bisect_right(ranges, (code_point, LAST_CODE_POINT)) - 1
    return place >= 0 and code_point <= ranges[place][1]


def digits(ascii_only: bool) -> Ranges:
    r"""The class ``\d``."""
    return _ASCII["digit"] if ascii_only else load_ranges("digit")


def word_characters(ascii_only: bool) -> Ranges:
    r"""The class ``\w``."""
    return _ASCII["word"] if ascii_only else load_ranges("word")


def python_word_characters() -> Ranges:
    r"""The class ``\w`` of Python's `re`: letters, numbers of all kinds, and ``_``."""
    return load_ranges("python_word")


@cache
def word_zones() -> tuple[Ranges, Ranges, Ranges, Ranges]:
    """All characters by who counts them to a word, of ECMA-262, Python's `re` and Rust: all three; Python and Rust,
    in each version of Unicode; whether they do differs; none.
    """
    every, settled = _ASCII["word"], load_ranges("settled_word")
    some = union(load_ranges("python_word"), load_ranges("word"))
    return every, settled, difference(some, union(every, settled)), complement(some)


def spaces(ascii_only: bool) -> Ranges:
    r"""The class ``\s``."""
    return _ASCII["space"] if ascii_only else load_ranges("space")


@lru_cache(maxsize=256)
def unicode_property(name: str) -> Ranges:
    r"""The code points of ``\p{name}``: categories, scripts, blocks, binary properties, ``Name=Value``.

    General categories by their short names are shipped. What another name means is the `regex` package's business; it
    is asked about every code point once (5 to 60 ms) and the answer is kept. Raises ValueError for a name it does not
    know.
    """
    if name in CATEGORIES:
        return load_ranges(name)
    if not name or not all(character.isalnum() or character in "_-= :." for character in name):
        raise ValueError(f"not a Unicode property name: {name!r}")
    return scan(rf"\p{{{name}}}")


def fold_closure(ranges: Ranges, folding: Folding = "simple") -> Ranges:
    """`ranges` and every code point that is alike one of its members."""
    if folding == "any" and intersection(ranges, _EACH_I):
        ranges = union(ranges, _EACH_I)
    cased, partners = _case_partners(folding == "all")
    added: list[tuple[int, int]] = []
    for first, last in ranges:
        for place in range(bisect_left(cased, first), bisect_right(cased, last)):
            added.extend((partner, partner) for partner in partners[place])
    return union(ranges, added) if added else ranges


def _upper_case(point: int) -> int:
    """What ECMA-262 without the flag u compares a character by (Canonicalize)."""
    upper = chr(point).upper()
    return ord(upper) if len(upper) == 1 and (point < 128 or ord(upper) >= 128) else point


@cache
def _case_partners(to_all: bool) -> tuple[list[int], list[tuple[int, ...]]]:
    """The code points that have case, sorted, and beside each its orbit (`to_all`: what is alike to all)."""
    orbits: Iterable[tuple[int, ...]] = load_case_orbits()
    if to_all:
        orbits = [
            tuple(member for member in orbit if _upper_case(member) == upper)
            for orbit in orbits
            for upper in sorted(set(map(_upper_case, orbit)))
        ]
    pairs = sorted((member, orbit) for orbit in orbits for member in orbit)
    return [member for member, _ in pairs], [orbit for _, orbit in pairs]


@cache
def long_foldings() -> tuple[str, ...]:
    """What full case folding makes of the characters that it turns into several (CaseFolding.txt, status F)."""
    return tuple(sorted({folded for point in range(0x110000) if len(folded := chr(point).casefold()) > 1}))
