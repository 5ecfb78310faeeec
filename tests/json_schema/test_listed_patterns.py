"""Patterns as lists of texts, against Python's and ECMA's reading."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import short_texts
from tokdfa.json_schema.sets.listed_patterns import listed_texts

LISTED = {
    "^$": {""},
    "^name$": {"name"},
    "^(?:a|bc)$": {"a", "bc"},
    "^v[12]$": {"v1", "v2"},
    "^a?b{2}$": {"bb", "abb"},
    "^a$|^b$": None,  # its inside is no pattern
    "^(a|b)|c$": None,
    "^a|b$": None,
    "^a\\$": None,
    "name": None,
    "^[a-z]{2}$": None,
    "^a*$": None,
    "^\\d$": None,  # to one of the readings there are hundreds of digits
    "^é$": {"é"},
    "^(?=a)a$": {"a"},  # the look-ahead is a part of the set of characters
}


@pytest.mark.parametrize("pattern", LISTED)
def test_what_is_listed(pattern):
    found = listed_texts(pattern)
    assert (found and found[0]) == LISTED[pattern]
    if found:
        assert found[1] == {*found[0], *(text + "\n" for text in found[0])}


def test_many_texts_are_not_listed():
    assert len(listed_texts("^[a-h][a-h]$")[0]) == 64
    assert listed_texts("^[a-h][a-i]$") is None
    assert listed_texts("^(?:[a-h][a-h]|x)$") is None
    assert listed_texts("^a{0,9}$") is None


@st.composite
def patterns(draw):
    """Patterns over two letters, most of them between anchors."""
    atom = st.sampled_from(["a", "b", "[ab]", "ab", "(?:a|b)", "(?:ab|)", "a?", "b{0,2}", "\\$", "(?!a)b", "\\n"])
    options = draw(st.lists(st.lists(atom, max_size=3).map("".join), min_size=1, max_size=3))
    inner = "|".join(options)
    return draw(st.sampled_from([f"^(?:{inner})$", f"^({inner})$", f"^{inner}$"]))


TEXTS = short_texts(3, "ab\n$")


@given(patterns())
def test_against_both_readings(pattern):
    """Listed texts are those in which both readings find the pattern; and those forbidden, in which either does."""
    listed = listed_texts(pattern)
    if listed is None:
        return
    for text in TEXTS:
        python, ecma = re.search(pattern, text), re.search(re.sub(r"(?<!\\)\$", r"\\Z", pattern), text)
        assert (text in listed[0]) == bool(python and ecma)
        assert (text in listed[1]) == bool(python or ecma)
