from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.automata.strategies import ALPHABET, LETTERS, byte_set, plain, trees
from tests.naive.automata import all_words
from tokdfa.automata.algebra import minimize
from tokdfa.automata.nfa import Nfa, glushkov, subset_construction
from tokdfa.errors import AutomatonError, LimitExceeded

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
    assert plain(subset_construction(glushkov(tree))).language(ALPHABET, 3) == expected


@st.composite
def nfas(draw):
    """Any automaton over LETTERS."""
    states = draw(st.integers(0, 5))
    sets = st.integers(0, (1 << states) - 1)
    labels = np.zeros((len(LETTERS), 256), dtype=np.bool_)
    labels[np.arange(len(LETTERS)), list(LETTERS)] = True
    labels[0, LETTERS[1]] = True  # labels overlap
    moves = draw(st.lists(st.dictionaries(st.integers(0, len(LETTERS) - 1), sets), min_size=states, max_size=states))
    return Nfa(tuple(moves), labels, draw(sets), draw(sets))


def accepts(nfa: Nfa, word: bytes) -> bool:
    """Search the graph of (state, bytes read)."""
    states = range(nfa.state_count)
    found = {(state, 0) for state in states if nfa.starts >> state & 1}
    pending = list(found)
    while pending:
        state, read = pending.pop()
        following = set()
        for label, targets in nfa.moves[state].items():
            if read < len(word) and nfa.labels[label, word[read]]:
                following |= {(target, read + 1) for target in states if targets >> target & 1}
        pending += following - found
        found |= following
    return any((state, len(word)) in found for state in states if nfa.accepting >> state & 1)


@given(nfas())
def test_subset_construction_accepts_what_the_nfa_does(nfa):
    dfa = subset_construction(nfa)
    for word in all_words(ALPHABET, 3):
        assert dfa.accepts(word) == accepts(nfa, word)
    assert dfa.state_count < 1 << nfa.state_count or nfa.state_count == 0


def test_the_blow_up():
    # the n-th letter from the end is an a: 2^n states are needed
    tree = ("concat", [("repeat", A_OR_B, 0, None), A, ("repeat", A_OR_B, 9, 9)])
    dfa = subset_construction(glushkov(tree))
    assert minimize(dfa).state_count == 2**10
    assert 2**10 <= dfa.state_count <= 2**10 + 1
    with pytest.raises(LimitExceeded, match="more than 500 states"):
        subset_construction(glushkov(tree), limit=500)


def test_too_many_positions_are_refused_at_once():
    tree = A
    for _ in range(5000):
        tree = ("repeat", tree, 1000, 1000)
    with pytest.raises(LimitExceeded, match=r"more than 5000 positions .* limit=5000") as error:
        glushkov(tree)
    assert (error.value.limit, error.value.value) == ("positions", 5000)
    with pytest.raises(LimitExceeded):
        glushkov(("repeat", ("empty",), 10**12, 10**12))
    shared = A
    for _ in range(100):
        shared = ("concat", [shared, shared])
    with pytest.raises(LimitExceeded):
        glushkov(shared)
    assert glushkov(("repeat", A, 7, 7), limit=7).state_count > 7


@pytest.mark.parametrize(
    "tree",
    [
        ("star", A),
        ("concat", A[1]),
        ("concat", 3),
        ("bytes", np.zeros(255, bool)),
        ("bytes", np.zeros(256, int)),
        ("bytes", b"a"),
        ("repeat", A, 3, 2),
        ("repeat", A, -1, 2),
        ("repeat", A, 1.5, None),
        ("repeat", A, 1),
        ("empty", A),
        "empty",
        (),
        ("union", [A, ("concat", [("oops",)])]),
    ],
)
def test_what_is_no_expression_is_refused(tree):
    with pytest.raises(AutomatonError, match=r"not an expression: .* it is one of"):
        glushkov(tree)
