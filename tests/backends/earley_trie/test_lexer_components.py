"""The table of components against the automata of the lexemes, and chains against deriving and minimising."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.earley_trie.test_lexer import step_all
from tests.grammar.lexed_cfgs import lexed_cfgs, make_cfg
from tests.naive.lexed_earley import LexedEarley
from tokdfa.automata.minimize import minimize
from tokdfa.backends.earley_trie.lexer import Lexer
from tokdfa.backends.earley_trie.lexer_components import COMPONENT_FIELDS, Components
from tokdfa.grammar import lexeme_automata
from tokdfa.grammar.cfg import Cfg, Lexeme, SpecialTokens
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

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
    assert Components(cfg, MAX_STATES).ends_by(available) == expected


def test_lazy_automata_end_by_all_their_bytes():
    components = Components(make_cfg(("a", "é{1,9000}"), {"s": [("a",)]}), MAX_STATES)
    available = np.zeros(256, dtype=bool)
    available[[ord("a"), *"é".encode()]] = True
    assert components.ends_by(available)
    available["é".encode()[1]] = False
    assert not components.ends_by(available)


# Chains: lexemes that are one byte set after another.


def matching(lexer, state, text):
    """The lexemes that match `text`."""
    state = step_all(lexer, state, text)
    return lexer.lexemes_of(lexer.accepting[state])


def without_chains(cfg):
    """The components of lexemes that are all derived and minimised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexeme_automata, "_read_chain_kernel", lambda *_: -1)
        components = Components(cfg, MAX_STATES)
    assert not components.automata.chains
    return components


def check_chains(cfg):
    """Every table, and every automaton, is what deriving and minimising makes of it."""
    components, other = Components(cfg, MAX_STATES), without_chains(cfg)
    for name in COMPONENT_FIELDS:
        one, two = getattr(components, name), getattr(other, name)
        assert one.dtype == two.dtype, name
        assert np.array_equal(one, two), name
    for symbol in components.automata.chains:
        expected = minimize(LazyDfa(cfg.store, cfg.lexemes[symbol].expression).to_dfa())
        made = components.automata[symbol]
        assert made.start == expected.start == 0
        for name in ("transitions", "byte_class", "accepting"):
            one, two = getattr(made, name), getattr(expected, name)
            assert one.dtype == two.dtype, name
            assert np.array_equal(one, two), name
    return len(components.automata.chains)


BYTE_SETS = st.one_of(
    st.sampled_from(list(b"ab\x00\xff")).map(lambda byte: {byte}),
    st.sets(st.integers(0, 255), min_size=1, max_size=4),
    st.sampled_from([frozenset(range(256)), frozenset(range(48, 58)), frozenset(range(256)) - {34}]),
)


@given(st.lists(st.lists(BYTE_SETS, min_size=1, max_size=8), min_size=1, max_size=6), st.booleans())
def test_chains_are_minimal_automata(sequences, more):
    """Alone, and among lexemes of other kinds that divide the bytes, too."""
    store = ExpressionStore()
    texts = [Lexeme("chain", store.concat(*map(store.byte_set, sequence))) for sequence in sequences]
    if more:
        texts.insert(1, Lexeme("list", store.repeat(store.byte_set(range(97, 123)), 1, None)))
        texts.append(Lexeme("long", store.repeat(store.byte_set(b"xy"), 5000, 9000)))
        texts.insert(0, SpecialTokens(names=("<s>",)))
    cfg = Cfg(
        tuple(texts), ("", *map(str, range(len(texts)))), ((len(texts), (len(texts) - 1,)),), len(texts), -1, store
    )
    assert check_chains(cfg) == len(sequences)


@pytest.mark.parametrize("size", [EXPLICIT_STATES - 2, EXPLICIT_STATES - 1])
def test_long_chains_stay_lazy(size):
    """The longest chain, and one that is too long, as an automaton of so many states would be."""
    text = (b"abcdefg" * size)[:size]
    store = ExpressionStore()
    cfg = Cfg((Lexeme("long", store.literal(text)), Lexeme("b", store.literal(b"b"))), ("long", "b"), (), 2, -1, store)
    assert check_chains(cfg) == (2 if size < EXPLICIT_STATES - 1 else 1)
    lexer = Lexer(cfg)
    assert matching(lexer, lexer.start_state([0, 1]), text) == [0]
    assert step_all(lexer, lexer.start_state([0]), text[:-1] + b"!") == -1
