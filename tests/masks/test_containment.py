from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.grammar.small_regexes import small_regexes
from tests.strategies import short_texts
from tokdfa.automata.pairs import GIVEN_UP, INSIDE, OUTSIDE
from tokdfa.constraint import Regex
from tokdfa.grammar.builder import regular_cfg
from tokdfa.grammar.lexeme_automata import EXPLICIT_STATES
from tokdfa.grammar.lexer import Lexer
from tokdfa.masks.slices import Containment
from tokdfa.regex.compile import compile_dfa

SLICE_LENGTH, PREFIX_LENGTH, REST_LENGTH = 7, 2, 3
WORDS = short_texts(12, "ab")


def lexer_of(pattern: str, max_states: int = 100_000) -> Lexer:
    return Lexer(regular_cfg(Regex(pattern)), max_states)


def component_after(lexer: Lexer, text: bytes) -> int:
    """The component of the only lexeme after `text`, -1 if it cannot read it."""
    state = lexer.start_state([0])
    for byte in text:
        state = lexer.step(state, byte)
        if state < 0:
            return -1
    return lexer.components_of(state)[0]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(small_regexes(), small_regexes(), st.text("ab", max_size=PREFIX_LENGTH))
def test_brute_force_over_all_short_texts(slice_: str, lexeme: str, prefix: str) -> None:
    """Whatever matches the slice can be followed by something so that the lexeme matches."""
    lexer = lexer_of(lexeme)
    component = component_after(lexer, prefix.encode())
    reads, matches = re.compile(lexeme), re.compile(slice_)
    beginnings = {
        word[:end]
        for word in WORDS
        if len(word) <= PREFIX_LENGTH + SLICE_LENGTH + REST_LENGTH and reads.fullmatch(word)
        for end in range(len(word) + 1)
    }
    assert (prefix in beginnings) == (component >= 0)
    if component < 0:
        return
    texts = [word for word in WORDS if len(word) <= SLICE_LENGTH and matches.fullmatch(word)]
    expected = INSIDE if all(prefix + text in beginnings for text in texts) else OUTSIDE
    automaton = compile_dfa(Regex(slice_))
    assert Containment(automaton, lexer, 1000).answer(component) == expected
    answers = [Containment(automaton, lexer, budget).answer(component) for budget in range(1, 30)]
    decided = answers.count(expected)
    assert answers == [GIVEN_UP] * (len(answers) - decided) + [expected] * decided
    assert decided


@pytest.mark.parametrize("read", [0, 2_900, 2_969, 2_970, 2_971, 2_999])
def test_lexemes_whose_automaton_stays_lazy(read: int) -> None:
    """Rows that the search needs are made while it waits."""
    bound = 3_000
    assert bound > EXPLICIT_STATES
    lexer = lexer_of(f"(a|é){{1,{bound}}}")
    component = component_after(lexer, b"a" * read)
    short = Containment(compile_dfa(Regex("[aé]{1,30}")), lexer, 1000)
    assert short.answer(component) == (INSIDE if read + 30 <= bound else OUTSIDE)
    endless = compile_dfa(Regex("a+"))
    left = bound - read  # so many pairs follow the first one
    assert Containment(endless, lexer, left + 1).answer(component) == OUTSIDE
    assert Containment(endless, lexer, left).answer(component) == GIVEN_UP


def test_the_lexers_limit_is_no_error_of_a_proof() -> None:
    limit = EXPLICIT_STATES + 100
    lexer = lexer_of("a{1,3000}", limit)
    component = component_after(lexer, b"")
    assert Containment(compile_dfa(Regex("a+")), lexer, 100_000).answer(component) == GIVEN_UP
    assert Containment(compile_dfa(Regex("a{1,30}")), lexer, 100_000).answer(component) == INSIDE


def test_bytes_of_a_character_are_told_apart() -> None:
    """The slice ends within no character, the lexeme may be in the middle of one."""
    lexer = lexer_of("[α-ω]+x")
    begun = component_after(lexer, "α".encode()[:1])
    whole = component_after(lexer, "α".encode())
    proof = Containment(compile_dfa(Regex("[α-γ]+")), lexer, 100)
    assert (proof.answer(whole), proof.answer(begun)) == (INSIDE, OUTSIDE)
