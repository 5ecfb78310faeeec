"""Hypothesis strategies and small exhaustive families shared by tests of several packages."""

from __future__ import annotations

import itertools
import os
import re

from hypothesis import settings
from hypothesis import strategies as st

#: The characters of short texts: two letters of the patterns, one of none, a newline, a two-byte letter.
TEXT_ALPHABET = "ab-\né"

_ATOMS = ("a", "b", "-", "é", ".", "[ab]", "[^a]", "[^\\n]", "\\w", "\\W", "\\s", "\\n", "[a-é]")
_QUANTIFIERS = ("*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{,1}", "*?", "+?", "??", "{1,3}?")
_ANCHORS = ("^", "$", "\\A", "\\Z")
_WORD_BOUNDARIES = ("\\b", "\\B")


def examples(count: int) -> settings:
    """So many examples, or a quarter of them where the profile is `short` (`tests/conftest.py`)."""
    return settings(max_examples=-(-count // 4) if os.environ.get("HYPOTHESIS_PROFILE") == "short" else count)


def regex_patterns(*, anchors: bool = True, look_ahead: bool = True, boundaries: bool = True) -> st.SearchStrategy[str]:
    r"""Patterns over `TEXT_ALPHABET`, valid for tokdfa and, after `as_python`, for `re`; ``\w`` and ``\b`` are ASCII.

    `anchors`, `look_ahead`, `boundaries`: whether ``^ $ \A \Z``, ``(?=x) (?!x)`` and ``\b \B`` may occur, anywhere.
    """
    leaves = st.sampled_from(_ATOMS)
    zero_width = (_ANCHORS if anchors else ()) + (_WORD_BOUNDARIES if boundaries else ())
    if zero_width:
        leaves = st.one_of(leaves, leaves, st.sampled_from(zero_width))
    parts = st.recursive(leaves, lambda inner: _extend(inner, look_ahead), max_leaves=6)
    return st.lists(parts, min_size=1, max_size=4).map("".join)


def _extend(inner: st.SearchStrategy[str], look_ahead: bool) -> st.SearchStrategy[str]:
    groups = [
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(_QUANTIFIERS)).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ]
    if look_ahead:
        groups.append(st.tuples(inner, st.sampled_from("=!")).map(lambda pair: f"(?{pair[1]}{pair[0]})"))
    return st.one_of(groups)


def as_python(pattern: str, flags: str = "") -> re.Pattern[str]:
    r"""What Python's `re` calls a pattern of `regex_patterns`: its ``$`` would match before a last newline as well."""
    if "m" not in flags:
        pattern = pattern.replace("$", "\\Z")
    return re.compile(pattern, sum((getattr(re, flag.upper()) for flag in flags), re.ASCII))


def short_texts(length: int = 3, alphabet: str = TEXT_ALPHABET) -> list[str]:
    """All texts of up to `length` characters."""
    return ["".join(letters) for n in range(length + 1) for letters in itertools.product(alphabet, repeat=n)]


def code_point_ranges() -> st.SearchStrategy[list[tuple[int, int]]]:
    """Lists of inclusive ranges, unsorted and overlapping, that often begin or end where UTF-8 changes."""
    edges = [0x0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    points = st.one_of(st.sampled_from(edges), st.integers(0, 0x10FFFF), st.integers(0, 0x3000))
    return st.lists(st.tuples(points, points).map(lambda pair: (min(pair), max(pair))), max_size=6)
