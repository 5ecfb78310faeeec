"""Lexer states: labels, obligations, what can still end, and what is certified."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cfg_fsm.oracles import corpus, machine_of
from tokdfa.backends.cfg_fsm.contextual import NO_LABEL, Context, Contextual
from tokdfa.backends.cfg_fsm.match_automata import match_automaton


def lexer_of(*patterns: str, names: dict | None = None, ignored=(), following=None) -> Contextual:
    """A lexer with one context, all patterns in this order; any may follow any."""
    automata = [match_automaton(pattern) for pattern in patterns]
    inside = tuple(
        number for number in range(len(patterns)) if number not in {n for ns in (names or {}).values() for n in ns}
    )
    context = Context(inside, names or {}, frozenset(range(len(patterns))) - set(ignored))
    return Contextual(automata, [context], ignored, following or [[0]] * len(patterns), 0, 1_000)


def read(lexer: Contextual, text: str, state: int) -> int:
    for byte in text.encode():
        state = int(lexer.transitions[state, lexer.byte_class[byte]]) if state >= 0 else -1
    return state


def test_the_first_terminal_that_matches_wins() -> None:
    lexer = lexer_of("ab|b", "a+", "ac")
    start = int(lexer.starts[0, 0])
    assert [int(lexer.labels[read(lexer, text, start)]) for text in ("a", "ab", "aa", "b")] == [1, 0, 1, 0]
    assert read(lexer, "ac", start) == -1, "the second terminal has matched, the third has lost"


def test_a_string_names_the_lexeme_of_a_regex() -> None:
    lexer = lexer_of("[a-z]+", "if", names={0: (1,)})
    start = int(lexer.starts[0, 0])
    labels = [int(lexer.labels[read(lexer, text, start)]) for text in ("i", "if", "iff")]
    assert labels == [0, 1, 0]


def test_obligations_break_and_are_discharged() -> None:
    """After a lexeme a+ another a breaks the promise that it had ended; a b keeps it."""
    lexer = lexer_of("a+", "ba?")
    first = read(lexer, "a", int(lexer.starts[0, 0]))
    again = int(lexer.starts[lexer.residues[first], 0])
    assert read(lexer, "a", again) == -1
    assert read(lexer, "b", again) == read(lexer, "b", int(lexer.starts[0, 0])), "nothing is left of the obligation"


def test_an_obligation_may_outlive_lexemes() -> None:
    """a is a lexeme only if the text does not go on with bbc, whatever the b's are taken for."""
    lexer = lexer_of("a(?:bbc)?", "b", "c")
    state = read(lexer, "a", int(lexer.starts[0, 0]))
    for letter in "bb":
        state = read(lexer, letter, int(lexer.starts[lexer.residues[state], 0]))
        assert lexer.labels[state] == 1
    begin = int(lexer.starts[lexer.residues[state], 0])
    assert read(lexer, "c", begin) == -1
    assert lexer.labels[read(lexer, "b", begin)] == 1


def test_ends_are_the_labels_that_can_be_reached() -> None:
    lexer = machine_of(corpus("c_like")[0]).lexer
    ends, end = lexer.ends(by_outcome=False), lexer.ignored_label + 1
    for state in range(lexer.state_count):
        seen, agenda = set(), [state]
        labels = {int(lexer.labels[state])}
        while agenda:
            for target in set(lexer.transitions[agenda.pop()].tolist()) - seen - {-1}:
                seen.add(target)
                agenda.append(target)
                labels.add(int(lexer.labels[target]))
        bits = sum(int(word) << 64 * place for place, word in enumerate(ends[state].tolist()))
        found = {bit for bit in range(bits.bit_length()) if bits >> bit & 1} - {end}
        assert found == labels - {NO_LABEL}
        assert bool(bits >> end & 1) == bool((lexer.starts == state).any())


@pytest.mark.parametrize(
    ("patterns", "ignored", "certified"),
    [
        (("a", "b"), (), True),
        (("a+", "b"), (), False),
        (("a+", "b", " "), (2,), True),
        (("a", "ab"), (), False),
        (("ab", "a"), (), True),
        (("[ab]", "a"), (), False),
        (("a+", " a|b"), (), False),
    ],
)
def test_what_is_certified(patterns: tuple[str, ...], ignored: tuple[int, ...], certified: bool) -> None:
    """Any terminal can follow any: not if the one before goes on, or if another one is always first."""
    assert lexer_of(*patterns, ignored=ignored).is_certified == certified


def test_bytes_read() -> None:
    assert np.flatnonzero(lexer_of("a+", "bé").bytes_read).tolist() == sorted("abé".encode())
