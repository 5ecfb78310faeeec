"""Lexer states against the automata of the lexemes one by one."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from tests.grammar.lexed_cfgs import MORE_PATTERNS, PATTERNS, lexed_cfgs, make_cfg, short_texts
from tests.naive.lexed_earley import LexedEarley
from tokdfa.automata.dfa import Dfa
from tokdfa.backends.earley_trie.spelled_components import SpelledComponents
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.grammar.cfg import Cfg, Lexeme
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.grammar.lexer import Lexer
from tokdfa.regex.expression import NOTHING, ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

TEXTS = short_texts(b"abc", 5)


def step_all(lexer, state, text):
    for byte in text:
        state = lexer.step(state, byte)
        if state < 0:
            return -1
    return state


def check_states(cfg, lexemes):
    """After each text: which lexemes may go on, which match, which end it at once."""
    lexer, automata = Lexer(cfg), LexedEarley(cfg).automata
    start = lexer.start_state(lexemes)
    assert lexer.is_start(start)
    assert lexer.accepting[start] == -1
    for text in TEXTS[1:]:
        state = step_all(lexer, start, text)
        ends = {symbol: automata[symbol].run(text) for symbol in lexemes}
        alive = [symbol for symbol in lexemes if ends[symbol] >= 0]
        assert (state >= 0) == bool(alive), text
        if state < 0:
            continue
        assert lexer.lexemes_in(state) == alive, text
        assert not lexer.is_start(state)
        matched = [symbol for symbol in alive if automata[symbol].accepting[ends[symbol]]]
        found = lexer.accepting[state]
        assert (lexer.lexemes_of(found) if found >= 0 else []) == matched, text
        lazy = [symbol for symbol in matched if cfg.lexemes[symbol].lazy]
        stuck = all(automata[s].step(ends[s], byte) < 0 for s in alive for byte in range(256))
        expected = lazy or (matched if stuck else [])
        completes = lexer.completes[state]
        assert (lexer.lexemes_of(completes) if completes >= 0 else []) == expected, text


@settings(max_examples=40)
@given(lexed_cfgs())
def test_states_are_sets_of_automata(cfg):
    check_states(cfg, list(range(len(cfg.lexemes))))
    check_states(cfg, [0])


def test_all_patterns_at_once():
    patterns = (*PATTERNS, *MORE_PATTERNS)
    check_states(make_cfg(patterns, {"s": [(patterns[0],)]}, lazy=(4, 7)), list(range(0, len(patterns), 2)))


def test_a_lexeme_that_comes_to_what_all_are_one_after_another():
    """What is left of the second behind an a is the first, and then the second."""
    check_states(make_cfg(("b+", "(ab+)*c"), {"s": [("b+",)]}), [0, 1])


def test_lexemes_that_come_as_automata():
    """An explicit one that does not start in its first state, and two of one lazy automaton, beside an expression."""
    store = ExpressionStore()
    table = np.full((2, 256), -1)
    table[1, ord("c")] = 0
    explicit = Dfa.from_table(table, np.array([True, False]), 1)
    texts = [b"ab", b"aab"]
    lazy = LazyDfa.of_many(store, map(store.literal, texts))
    lexemes = [
        Lexeme("c", NOTHING, automaton=lambda: (explicit, explicit.start)),
        *(Lexeme(text.decode(), NOTHING, automaton=partial(begin, lazy, store.literal(text))) for text in texts),
        Lexeme("a+", store.repeat(store.literal(b"a"), 1, None)),
    ]
    lexer = Lexer(Cfg(tuple(lexemes), ("c", "ab", "aab", "a+", "s"), ((4, (0,)),), 4, -1, store))
    start = lexer.start_state([0, 1, 2, 3])
    matched = {}
    for text in (b"c", b"a", b"aa", b"ab", b"aab", b"aaa"):
        state = step_all(lexer, start, text)
        matched[text] = lexer.lexemes_of(lexer.accepting[state]) if lexer.accepting[state] >= 0 else []
    assert matched == {b"c": [0], b"a": [3], b"aa": [3], b"ab": [1], b"aab": [2], b"aaa": [3]}
    assert step_all(lexer, start, b"cc") == step_all(lexer, start, b"b") == step_all(lexer, start, b"aaab") == -1
    assert SpelledComponents(lexer.components, np.isin(np.arange(256), list(b"abc"))).everywhere
    assert not SpelledComponents(lexer.components, np.isin(np.arange(256), list(b"ac"))).everywhere


def begin(lazy, expression):
    return lazy, lazy.state_of(expression)


def test_growth_changes_nothing():
    """Thousands of states and sets: every array is made anew several times on the way."""
    rng = random.Random(0)
    patterns = [f"{'a' * size}(b{{{size}}}|[ab]c)" for size in range(1, 26)] + ["[ab]{1,30}", "b[abc]*"]
    cfg = make_cfg(tuple(patterns), {"s": [(patterns[0],)]})
    lexer, automata = Lexer(cfg), LexedEarley(cfg).automata
    for _ in range(800):
        lexemes = sorted(rng.sample(range(len(patterns)), rng.randint(1, len(patterns))))
        text = bytes(rng.choices(b"abc", [6, 3, 1], k=rng.randint(1, 20)))
        state = step_all(lexer, lexer.start_state(lexemes), text)
        alive = [symbol for symbol in lexemes if automata[symbol].run(text) >= 0]
        found = lexer.lexemes_in(state) if state >= 0 else []
        assert found == alive
        matched = [symbol for symbol in alive if automata[symbol].accepts(text)]
        sets = lexer.lexemes_of(lexer.accepting[state]) if state >= 0 and lexer.accepting[state] >= 0 else []
        assert sets == matched
    assert lexer.state_count > 1000


def test_counters_stay_lazy():
    """A repeat of 100,000 costs what is read of it, not what it could be."""
    lexer = Lexer(make_cfg(("x{0,100000}y", "x+"), {"s": [("x+",)]}))
    before = lexer.nbytes
    state = lexer.start_state([0, 1])
    for _ in range(3 * EXPLICIT_STATES):
        state = lexer.step(state, ord("x"))
    assert lexer.lexemes_of(lexer.accepting[state]) == [1]
    assert lexer.lexemes_in(state) == [0, 1]
    after = lexer.step(state, ord("y"))
    assert lexer.lexemes_of(lexer.accepting[after]) == [0]
    assert lexer.step(after, ord("x")) == -1
    assert before < 1_000_000
    assert lexer.nbytes < 5_000_000


@pytest.mark.parametrize("pattern", ["x{0,100000}y", "[ab]*a[ab]{8}"])
def test_too_many_states(pattern):
    """The limit counts states of the lexer and of lazy automata; what was made stays usable."""
    lexer = Lexer(make_cfg((pattern, "x+"), {"s": [(pattern,)]}), max_states=100)
    start = lexer.start_state([0, 1])
    short, rng = (b"xx" if pattern[0] == "x" else b"ab"), random.Random(0)
    known = step_all(lexer, start, short)
    texts = b"".join(bytes(rng.choices(b"ab", k=30)) for _ in range(200)) if short == b"ab" else b"x" * 1000
    with pytest.raises(LimitExceeded) as caught:
        step_all(lexer, start, texts)
    assert caught.value.limit == "max_lexer_states"
    assert caught.value.value == 100
    assert step_all(lexer, start, short) == known
    assert lexer.start_state([1]) >= 0
    assert lexer.state_count <= 100


def test_an_empty_lexeme_is_refused():
    cfg = make_cfg(("a&b",), {"s": [("a&b",)]})
    nothing = cfg.store.intersection([cfg.store.literal(b"a"), cfg.store.literal(b"b")])
    cfg = Cfg((Lexeme("NOTHING", nothing, line=3),), ("NOTHING", "s"), ((1, (0,)),), 1, -1, cfg.store)
    with pytest.raises(EmptyLanguageError, match=r"NOTHING \(line 3\)"):
        Lexer(cfg)
