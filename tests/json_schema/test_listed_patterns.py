"""Patterns as lists of texts, against Python's and ECMA's reading, and against the automata of patterns."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.json_schema import string_set
from tokdfa.json_schema.listed_patterns import MOST_TEXTS, listed_texts
from tokdfa.json_schema.string_set import StringSet, string_automaton

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
    assert len(listed_texts("^[a-h][a-h]$")[0]) == MOST_TEXTS
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


TEXTS = ["".join(letters) for length in range(4) for letters in itertools.product("ab\n$", repeat=length)]


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


@settings(max_examples=60)
@given(patterns(), patterns(), st.integers(0, 2))
def test_sets_are_those_of_automata(first, second, least):
    """Emptiness, members and the automaton over JSON text do not depend on whether patterns are listed."""
    sets = [
        StringSet(patterns=(first, second), min_length=least),
        StringSet(patterns=(first,), not_patterns=(second,)),
        StringSet(not_patterns=(first, second), max_length=2),
    ]
    seen = []
    for most in (MOST_TEXTS, 0):
        for cache in (string_set._spelled_out, string_set._is_empty, string_set._matcher):
            cache.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            if not most:
                patch.setattr(string_set, "listed_texts", lambda pattern: None)
            found = []
            for strings in sets:
                empty = strings.is_empty()
                automaton = None if empty else string_automaton(strings)
                words = [
                    text for text in TEXTS if automaton is not None and automaton.accepts(json.dumps(text).encode())
                ]
                found.append((empty, words, [text for text in TEXTS if strings.holds(text)]))
            seen.append(found)
    for cache in (string_set._spelled_out, string_set._is_empty, string_set._matcher):
        cache.cache_clear()
    assert seen[0] == seen[1]
    for _, words, held in seen[0]:
        assert words == held
