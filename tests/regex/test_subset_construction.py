from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given

from tests.automata.strategies import ALPHABET, byte_set, plain, trees
from tests.naive.automata import all_words
from tests.regex.subset_construction import subset_construction
from tokdfa.automata.algebra import minimize
from tokdfa.errors import LimitExceeded

A, B = byte_set(b"a"), byte_set(b"b")
A_OR_B = ("union", [A, B])


def as_re(tree: tuple) -> bytes:
    kind, *rest = tree
    if kind == "bytes":
        return b"[%b]" % b"".join(b"\\x%02x" % byte for byte in np.flatnonzero(rest[0]))
    if kind == "repeat":
        body, low, high = rest
        return b"(?:%b){%d,%b}" % (as_re(body), low, b"" if high is None else b"%d" % high)
    if kind == "empty":
        return b""
    if kind == "nothing" or (kind == "union" and not rest[0]):
        return b"(?!)"
    return b"(?:%b)" % (b"|" if kind == "union" else b"").join(map(as_re, rest[0]))


@given(trees())
def test_the_automaton_accepts_what_the_expression_matches(tree):
    pattern = re.compile(as_re(tree))
    expected = {word for word in all_words(ALPHABET, 3) if pattern.fullmatch(word)}
    assert plain(subset_construction(tree)).language(ALPHABET, 3) == expected


def test_the_blow_up():
    # the n-th letter from the end is an a: 2^n states are needed
    tree = ("concat", [("repeat", A_OR_B, 0, None), A, ("repeat", A_OR_B, 9, 9)])
    dfa = subset_construction(tree)
    assert minimize(dfa).state_count == 2**10
    assert 2**10 <= dfa.state_count <= 2**10 + 1
    with pytest.raises(LimitExceeded, match="more than 500 states"):
        subset_construction(tree, limit=500)


def test_subsets_are_those_of_positions():
    """Of (a|b)*abb the positions are 1 to 5, and words lead to {0}, {1, 3}, {2}, {2, 4} and {2, 5}."""
    tree = ("concat", [("repeat", A_OR_B, 0, None), A, B, B])
    assert subset_construction(tree).state_count == 5


def test_too_many_positions_are_refused():
    nested = ("repeat", ("repeat", A, 1000, 1000), 1000, 1000)
    with pytest.raises(LimitExceeded, match="more than 5000 positions") as error:
        subset_construction(nested)
    assert (error.value.limit, error.value.value) == ("positions", 5000)
