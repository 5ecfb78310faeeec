"""Lexer states against the automata of the lexemes one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.lexed_cfgs import MORE_PATTERNS, PATTERNS, lexed_cfgs, make_cfg, short_texts
from tests.naive.lexed_earley import LexedEarley
from tokdfa.automata.minimize import minimize
from tokdfa.errors import EmptyLanguageError, LimitExceeded
from tokdfa.grammar import lexeme_automata
from tokdfa.grammar.cfg import Cfg, Lexeme, SpecialTokens
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.grammar.lexer import LEXER_FIELDS, Lexer
from tokdfa.regex.expression import ExpressionStore
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
        assert [int(lexer.component_lexeme[c]) for c in lexer.components(state)] == alive, text
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


def test_states_are_shared_between_places():
    lexer = Lexer(make_cfg(("a+", "ab", "b"), {"s": [("b",)]}))
    both, one = lexer.start_state([0, 1]), lexer.start_state([0])
    assert both != one
    assert lexer.start_state([0, 1]) == both
    assert step_all(lexer, both, b"aa") == step_all(lexer, one, b"a") == step_all(lexer, one, b"aaaa")
    assert step_all(lexer, both, b"a") != step_all(lexer, one, b"a")


def test_a_start_state_differs_from_the_same_components_later():
    """a* as a lexeme: after one letter the automaton is where it began, but now the lexeme may end."""
    lexer = Lexer(make_cfg(("a*",), {"s": [("a*",)]}))
    start = lexer.start_state([0])
    later = lexer.step(start, ord("a"))
    assert lexer.components(later) == lexer.components(start)
    assert later != start
    assert (lexer.accepting[start] == -1, lexer.accepting[later] >= 0) == (True, True)


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
        found = [int(lexer.component_lexeme[c]) for c in lexer.components(state)] if state >= 0 else []
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
    assert [int(lexer.component_lexeme[c]) for c in lexer.components(state)] == [0, 1]
    after = lexer.step(state, ord("y"))
    assert lexer.lexemes_of(lexer.accepting[after]) == [0]
    assert lexer.step(after, ord("x")) == -1
    assert before < 1_000_000
    assert lexer.nbytes < 5_000_000


def test_counted_terminal_ends_where_its_count_ends():
    lexer = Lexer(make_cfg(("(ab){2500}",), {"s": [("(ab){2500}",)]}))
    state = step_all(lexer, lexer.start_state([0]), b"ab" * 2500)
    assert lexer.accepting[state] >= 0
    assert lexer.step(state, ord("a")) == -1
    assert lexer.accepting[step_all(lexer, lexer.start_state([0]), b"ab" * 2499)] == -1


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


def test_special_tokens_read_no_bytes():
    store = ExpressionStore()
    lexemes = (SpecialTokens(names=("<s>",)), Lexeme("a", store.literal(b"a")))
    lexer = Lexer(Cfg(lexemes, ("<s>", "a", "s"), ((2, (0, 1)),), 2, -1, store))
    assert lexer.components(lexer.start_state([0])) == []
    assert [lexer.step(lexer.start_state([0]), byte) for byte in range(256)] == [-1] * 256
    assert lexer.step(lexer.start_state([0, 1]), ord("a")) >= 0


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
    assert Lexer(cfg).ends_by(available) == expected


def test_lazy_automata_end_by_all_their_bytes():
    lexer = Lexer(make_cfg(("a", "é{1,9000}"), {"s": [("a",)]}))
    available = np.zeros(256, dtype=bool)
    available[[ord("a"), *"é".encode()]] = True
    assert lexer.ends_by(available)
    available["é".encode()[1]] = False
    assert not lexer.ends_by(available)


# Chains: lexemes that are one byte set after another.


def matching(lexer, state, text):
    """The lexemes that match `text`."""
    state = step_all(lexer, state, text)
    return lexer.lexemes_of(lexer.accepting[state])


def lexer_without_chains(cfg):
    """The lexer whose lexemes are all derived and minimised."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexeme_automata, "_read_chain_kernel", lambda *_: -1)
        lexer = Lexer(cfg)
    assert not lexer._automata.chains
    return lexer


def check_chains(cfg):
    """Every table of the lexer, and every automaton, is what deriving and minimising makes of it."""
    lexer, other = Lexer(cfg), lexer_without_chains(cfg)
    for name in LEXER_FIELDS:
        one, two = getattr(lexer, name), getattr(other, name)
        assert one.dtype == two.dtype, name
        assert np.array_equal(one, two), name
    for symbol in lexer._automata.chains:
        expected = minimize(LazyDfa(cfg.store, cfg.lexemes[symbol].expression).to_dfa())
        made = lexer._automata[symbol]
        assert made.start == expected.start == 0
        for name in ("transitions", "byte_class", "accepting"):
            one, two = getattr(made, name), getattr(expected, name)
            assert one.dtype == two.dtype, name
            assert np.array_equal(one, two), name
    for component in range(lexer._first_lazy):
        assert lexer.content_of(component) == other.content_of(component)
    return len(lexer._automata.chains)


BYTE_SETS = st.one_of(
    st.sampled_from(list(b"ab\x00\xff")).map(lambda byte: {byte}),
    st.sets(st.integers(0, 255), min_size=1, max_size=4),
    st.sampled_from([frozenset(range(256)), frozenset(range(48, 58)), frozenset(range(256)) - {34}]),
)


@settings(max_examples=80)
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


def test_many_literals_are_told_apart():
    words = [f"{number:x}{'z' * (number % 5)}" for number in range(3000)]
    lexer = Lexer(make_cfg((*words, "[a-f]+"), {"s": [(words[0],)]}))
    assert len(lexer._automata.chains) == 3000
    start = lexer.start_state(range(3001))
    for word in words[::37]:
        assert matching(lexer, start, word.encode()) == [
            words.index(word),
            *([3000] if set(word) <= set("abcdef") else []),
        ]
