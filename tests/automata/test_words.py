from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from tests.automata.strategies import LETTERS, dfas, plain
from tests.naive.automata import all_words
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.words import shortest_word, words
from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa


@given(dfas(others_die=True))
def test_listing_equals_the_plain_one(dfa):
    twin = plain(dfa)
    expected = [word for word in all_words(LETTERS, 5) if twin.accepts(word)]
    assert words(dfa, len(expected)) == expected
    assert words(dfa, 3) == expected[:3] or len(expected) < 3
    if expected:
        assert shortest_word(dfa) == expected[0]


@given(dfas())
def test_words_are_accepted_distinct_and_in_order(dfa):
    found = words(dfa, 300)
    assert all(map(plain(dfa).accepts, found))
    assert len(set(found)) == len(found)
    assert found == sorted(found, key=lambda word: (len(word), word))
    if len(found) < 300:  # finite: then no word is longer than there are states
        assert all(len(word) < max(1, dfa.state_count) for word in found)
    if found:
        assert shortest_word(dfa) == found[0]
    else:
        assert shortest_word(dfa) is None


def test_long_shortest_words():
    dfa = compile_dfa(Regex("[xy]{3000,4000}"))
    assert shortest_word(dfa) == b"x" * 3000
    assert words(dfa, 2)[1] == b"x" * 2999 + b"y"


def test_words_end_when_they_have_so_many_bytes():
    """Of x+ the words have 1, 2, 3, ... bytes: 1 + ... + 14 is 105."""
    dfa = compile_dfa(Regex("x+"))
    assert len(words(dfa, 1000, 104)) == 14
    assert len(words(dfa, 1000, 105)) == 15
    assert len(words(dfa, 10, 105)) == len(words(dfa, 10)) == 10


@pytest.mark.parametrize("dfa", [Dfa.empty(), Dfa(np.array([[0]]), np.zeros(256, int), np.array([False]), 0)])
def test_the_empty_language(dfa):
    assert words(dfa, 5) == []
    assert shortest_word(dfa) is None
