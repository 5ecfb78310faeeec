"""The table of components against the automata of the lexemes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import lexed_cfgs, make_cfg
from tests.naive.lexed_earley import LexedEarley
from tokdfa.backends.earley_trie.spelled_components import SpelledComponents
from tokdfa.grammar.lexer_components import Components

MAX_STATES = 250_000


@settings(max_examples=60)
@given(lexed_cfgs(), st.sets(st.sampled_from(list(b"abc"))))
def test_ends_by_some_bytes(cfg, letters):
    """Against a search from every state of every lexeme's automaton."""

    def reached(automaton, state, letters):
        found, agenda = {state}, [state]
        while agenda:
            here = agenda.pop()
            new = {automaton.step(here, letter) for letter in letters} - found - {-1}
            found |= new
            agenda += new
        return found

    automata = LexedEarley(cfg).automata.values()
    expected = all(
        any(automaton.accepting[end] for end in reached(automaton, state, letters))
        for automaton in automata
        for state in reached(automaton, 0, b"abc")
    )
    available = np.zeros(256, dtype=bool)
    available[list(letters)] = True
    assert SpelledComponents(Components(cfg, MAX_STATES), available).everywhere == expected


def test_lazy_automata_end_by_all_their_bytes():
    components = Components(make_cfg(("a", "é{1,9000}"), {"s": [("a",)]}), MAX_STATES)
    available = np.zeros(256, dtype=bool)
    available[[ord("a"), *"é".encode()]] = True
    assert SpelledComponents(components, available).everywhere
    available["é".encode()[1]] = False
    assert not SpelledComponents(components, available).everywhere
