"""Minimal automata against Brzozowski's double reversal (plain) and against interegular's minimal FSM."""

from __future__ import annotations

import random

import interegular
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.automata.strategies import ALPHABET, dfas, plain
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.minimize import minimize


def same_arrays(a: Dfa, b: Dfa) -> bool:
    return a.start == b.start and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("transitions", "byte_class", "accepting")
    )


@settings(max_examples=300)
@given(dfas(most_states=8))
def test_size_and_language_equal_the_plain_ones(dfa):
    minimal = minimize(dfa)
    assert minimal.state_count == plain(dfa).minimal_state_count()
    assert plain(minimal).language(ALPHABET, 4) == plain(dfa).language(ALPHABET, 4)


@given(dfas(least_states=1), st.integers(0, 2**32 - 1))
def test_equal_languages_have_equal_arrays(dfa, seed):
    """Split each state into copies, shuffle states and classes, add unreachable states: nothing changes."""
    rng = np.random.default_rng(seed)
    copies, states = 3, dfa.state_count
    names = rng.permutation(copies * states)  # copy c of state s is names[c * states + s]
    table = np.empty((copies * states, 256), dtype=int)
    accepting = np.empty(copies * states, dtype=bool)
    for copy in range(copies):
        targets = dfa.byte_table()
        some_copy = names[targets + states * rng.integers(0, copies, targets.shape)]
        table[names[copy * states : (copy + 1) * states]] = np.where(targets < 0, -1, some_copy)
        accepting[names[copy * states : (copy + 1) * states]] = dfa.accepting
    byte_class = rng.permutation(256)  # finer classes than needed, in any order
    shuffled = Dfa(table[:, np.argsort(byte_class)], byte_class, accepting, int(names[dfa.start]))
    assert plain(shuffled).language(ALPHABET, 3) == plain(dfa).language(ALPHABET, 3)
    assert same_arrays(minimize(shuffled), minimize(dfa))


@given(dfas(most_states=3), dfas(most_states=3))
def test_different_languages_have_different_arrays(a, b):
    # Words up to |a| + |b| bytes tell apart any two automata of |a| and |b| states.
    languages = [plain(dfa).language(ALPHABET, 5) for dfa in (a, b)]
    assert same_arrays(minimize(a), minimize(b)) == (languages[0] == languages[1])


# fmt: off
PATTERNS = [
    r"a", r"", r"abc", r"a|b|c", r"(a|b)*abb", r"(a|b)*a(a|b){3}", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"a*", r"a+b?",
    r"(ab|cd)*e?", r"(foo|bar|baz)+", r"[^\n]*", r"\"[^\"\\]*\"", r"(0|[1-9][0-9]*)(\.[0-9]+)?", r"-?[0-9]{1,3}",
    r"(19|20)[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])", r"true|false|null", r"[a-z]+@[a-z]+\.(com|org|net)",
    r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}",
    r"(a?){8}a{8}", r"(aa|aaa)*", r"((a|b)(a|b)(a|b))*", r"x{2,5}y{0,3}z{1,}", r"[A-Za-z_][A-Za-z0-9_]*",
    r"(https?://)?[a-z]+(\.[a-z]+)*/?", r"\([0-9]{3}\) [0-9]{3}-[0-9]{4}", r"(January|June|July|March|May)",
    r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?", r"#([0-9a-f]{3}|[0-9a-f]{6})", r"(a(b(c)?)?)?", r"[^abc]{2}d|[^d]",
    r"(0|1(01*0)*1)*", r"a.c", r"\s*[+\-*/]\s*", r"(cat|category|cater|dog|dogma)s?", r"[\x00-\x1f]*",
]
# fmt: on


def from_interegular(fsm) -> Dfa:
    """The FSM of interegular over characters, read as an automaton over bytes; only ASCII texts are meant."""
    number = {state: index for index, state in enumerate(fsm.states)}
    table = np.full((len(number), 256), -1)
    for state, row in fsm.map.items():
        for byte in range(128):
            target = row.get(fsm.alphabet[chr(byte)])
            if target is not None:
                table[number[state], byte] = number[target]
    return Dfa.from_table(table, np.array([state in fsm.finals for state in number]), number[fsm.initial])


def live_count(fsm) -> int:
    """Live states of interegular's minimal FSM, counting those that ASCII texts reach."""
    found, pending = {fsm.initial}, [fsm.initial]
    while pending:
        state = pending.pop()
        following = {fsm.map.get(state, {}).get(fsm.alphabet[chr(byte)]) for byte in range(128)} - {None} - found
        found |= following
        pending += following
    return sum(map(fsm.islive, found))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_interegular_agrees(pattern):
    fsm = interegular.parse_pattern(pattern).to_fsm()
    minimal = minimize(from_interegular(fsm))
    assert minimal.state_count == live_count(fsm.reduce())
    letters = sorted({chr(byte) for byte in np.unique(minimal.byte_class, return_index=True)[1].tolist()} - {"\x80"})
    rng = random.Random(pattern)
    accepted = 0
    for text in random_texts(minimal, letters, rng):
        assert minimal.accepts(text.encode()) == fsm.accepts(text), text
        accepted += fsm.accepts(text)
    assert accepted >= 5 or len(minimal.transitions) == 1


def random_texts(dfa: Dfa, letters: list[str], rng: random.Random):
    """Texts along live paths, and the same with one letter changed."""
    for _ in range(40):
        text, state = "", 0
        while not (dfa.accepting[state] and (rng.random() < 0.4 or len(text) > 60)):
            moves = [letter for letter in letters if dfa.step(state, ord(letter)) >= 0]
            if not moves:
                break
            letter = rng.choice(moves)
            text, state = text + letter, dfa.step(state, ord(letter))
        yield text
        place = rng.randrange(len(text) + 1)
        yield text[:place] + rng.choice([*letters, ""]) + text[place + 1 :]
