"""The automaton of JSON strings, against Python's reader."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.json_schema.spellings import LETTERS, meaning, spelled, spellings, words
from tokdfa.automata.minimize import minimize
from tokdfa.program.json_text import BODY, END, string_dfa, string_terminal


@pytest.mark.parametrize("escapes", ["all", "needed"])
def test_it_is_minimal_and_known_by_its_key(escapes):
    automaton = string_dfa(escapes)
    assert automaton.state_count == minimize(automaton).state_count
    assert string_terminal(escapes).make() is automaton
    assert string_terminal("all").key != string_terminal("needed").key


@pytest.mark.parametrize("escapes", ["all", "needed"])
def test_every_character_in_every_spelling(escapes):
    """Characters begin in BODY; a sample of all planes, and all that are special."""
    automaton = string_dfa(escapes)
    for code in {*range(0x100), *range(0x100, 0x110000, 97), 0xD7FF, 0xE000, 0xFFFF, *map(ord, LETTERS)}:
        if 0xD800 <= code < 0xE000:
            continue
        for spelling in spellings(chr(code)):
            end = automaton.run(b'"' + spelling.encode())
            allowed = escapes == "all" or spelling in spellings(chr(code), needed=True)
            assert (end == BODY) == allowed, (code, spelling)
            assert end < 0 or automaton.run(b'"' + spelling.encode() + b'"') == END


def test_what_is_no_string():
    broken = rb'"\ud800" "\udc00" "\ud800\u0041" "\x" "a a" ""x "\u12g4" "\ud800\ '.split()
    for data in [*broken, b"", b'"\n"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xff"']:
        assert not string_dfa("all").accepts(data), data
        assert not string_dfa("needed").accepts(data), data
    assert string_dfa("all").accepts(b'"\\u0061\\/"')
    assert not string_dfa("needed").accepts(b'"\\u0061"')
    assert not string_dfa("needed").accepts(b'"\\/"')


@settings(max_examples=300)
@given(st.binary(max_size=4) | st.text('\\u"daD8c09/n\x01é', max_size=9).map(str.encode))
def test_noise_is_judged_as_by_json(inside):
    data = b'"' + inside + b'"'
    assert string_dfa("all").accepts(data) == (meaning(data) is not None)


@given(words(6), st.randoms(use_true_random=False))
def test_what_is_written_is_read(text, rng):
    data = spelled(text, rng.choice)
    assert meaning(data) == text
    assert string_dfa("all").accepts(data)
    assert string_dfa("needed").accepts(spelled(text, rng.choice, needed=True))
    assert string_dfa("needed").accepts(json.dumps(text, ensure_ascii=False).encode())
