"""Slices: whether a state reads one, against all strings. Masks with them are in `test_schema_masks`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.pushdown_trie import read_states, terminal_of
from tests.grammar.small_regexes import small_regexes
from tests.vocabulary.vocabularies import ODD
from tokdfa.backends.pushdown_trie import row_divisions, slices
from tokdfa.backends.pushdown_trie.items import STRICT
from tokdfa.backends.pushdown_trie.pool import Pool
from tokdfa.backends.pushdown_trie.state_table import ACCEPTS
from tokdfa.grammar import lexeme_automata
from tokdfa.program.program import Terminal


def reads(states, state, other, depth, strict):
    return states.masks.slices.reads(state | STRICT * strict, other, depth)


def slice_terminal(pattern):
    return Terminal(pattern, pattern.encode(), lambda: slices.slice_dfa(pattern))


def by_strings(states, state, other, depth, strict):
    """The same by every string of a few letters."""
    for length in range(1, depth + 1):
        for letters in itertools.product(b"abc", repeat=length):
            if read_states(states.automata, other, bytes(letters)) < 0:
                continue
            after = read_states(states.automata, state, bytes(letters))
            if after < 0:
                return False
            read_states(states.automata, after, b"a")  # its row, with which its flags are known
            if strict and states.automata.flags[after] & ACCEPTS:
                return False
    return True


@pytest.mark.parametrize("explicit", [0, 2_000])
def test_against_all_strings(explicit, monkeypatch):
    monkeypatch.setattr(lexeme_automata, "EXPLICIT_STATES", explicit)
    seen = set()

    @settings(max_examples=80)
    @given(
        small_regexes(), st.sampled_from(["[ab]*", "a{0,2}", "[abc]{0,3}", "(ab)*"]), st.integers(0, 5), st.booleans()
    )
    def check(pattern, plain, depth, strict):
        states = Pool(ODD)
        state, other = states.automata.start_of(terminal_of(pattern)), states.automata.start_of(slice_terminal(plain))
        answer = reads(states, state, other, depth, strict)
        assert answer == by_strings(states, state, other, depth, strict)
        seen.add((answer, depth > 1))

    check()
    assert len(seen) == 4


def test_all_slices_made_before_are_those_that_would_be_made(monkeypatch):
    """The largest slice inside of a state is found and served alike, whether the others are there or not."""
    monkeypatch.setattr(row_divisions, "LEAST_NODES", 0)
    monkeypatch.setattr(slices, "LEAST_TOKENS", 1)
    monkeypatch.setattr(slices, "BEGUN_AT_ONCE", len(slices.PATTERNS))  # else some are left to states that come later
    builders = [Pool(ODD).masks, Pool(ODD).masks]
    builders[1].slices.make_all()
    made, count = builders[1].divisions.made, 0
    for pattern in ("[a-z]*", "[0-9A-Za-z]*x", "[^@]*", "[ab]+"):
        inside = []
        for builder in builders:
            number = builder.slices.within(builder.automata.start_of(terminal_of(pattern)))
            inside.append(builder.divisions.inside_of(number) if number >= 0 else None)
        assert inside[0] == inside[1]
        count += inside[0] is not None
    assert count > 2
    assert builders[1].divisions.made == made
