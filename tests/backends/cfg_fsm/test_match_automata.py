"""Match automata against Python's `re`, which is what Lark matches terminals with."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.strategies import short_texts
from tokdfa.backends.cfg_fsm.match_automata import match_automaton
from tokdfa.backends.cfg_fsm.match_program import EQUIVALENTS, MatchProgram
from tokdfa.errors import LimitExceeded, RegexSyntaxError, RegexUnsupported


def match_length(dfa, text: str) -> int:
    """How many bytes the preferred match at the beginning of `text` has, -1 without one."""
    state, found = dfa.start, -1
    for length, byte in enumerate([*text.encode(), None]):
        if state < 0:
            break
        if dfa.accepting[state]:
            found = length
        state = -1 if byte is None else dfa.step(state, byte)
    return found


def lengths_in_python(pattern: str, text: str) -> int:
    found = re.match(pattern, text)
    return len(found[0].encode()) if found else -1


def regexes() -> st.SearchStrategy[str]:
    atoms = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "c"])

    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.lists(inner, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}"]), st.sampled_from(["", "?"])).map(
                lambda parts: f"(?:{parts[0]}){parts[1]}{parts[2]}"
            ),
        )

    return st.recursive(atoms, extend, max_leaves=7)


@given(regexes())
@settings(deadline=None, derandomize=True, max_examples=250)
def test_preferred_matches_are_those_of_re(pattern: str) -> None:
    dfa = match_automaton(pattern)
    for text in short_texts(5, "abc"):
        assert match_length(dfa, text) == lengths_in_python(pattern, text), text


@pytest.mark.parametrize(
    "pattern", [r"\w+", r"\d+|\s", r"[^\W\d]\w*", "(?i:straße|ſ|K|ı)+", "[à-ÿ]+", r"(?a:\w)+", "."]
)
@given(st.text(max_size=4))
@settings(deadline=None, derandomize=True, max_examples=60)
def test_unicode_as_in_re(pattern: str, text: str) -> None:
    if text.isprintable():
        assert match_length(_kept(pattern), text) == lengths_in_python(pattern, text)


_automata: dict = {}


def _kept(pattern: str):
    if pattern not in _automata:
        _automata[pattern] = match_automaton(pattern)
    return _automata[pattern]


@pytest.mark.parametrize("pattern", EQUIVALENTS)
@given(st.text('a"\\\n', max_size=7))
@settings(deadline=None, derandomize=True, max_examples=300)
def test_equivalents_match_the_same(pattern: str, text: str) -> None:
    assert match_length(_kept(pattern), f'"{text}"') == lengths_in_python(pattern, f'"{text}"')


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(?=b)", "look-around"),
        ("(?<!a)b", "look-around"),
        ("^a", "an anchor"),
        (r"a\b", "word boundary"),
        (r"(a)\1", "back-reference"),
        ("(?>a+)b", "atomic"),
        ("a++", "possessive"),
    ],
)
def test_what_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(RegexUnsupported, match=what):
        MatchProgram(pattern)


def test_errors_and_limits() -> None:
    with pytest.raises(RegexSyntaxError, match="at position 1"):
        match_automaton("a(")
    with pytest.raises(LimitExceeded, match="instructions"):
        match_automaton("(?:(?:abc){500}){500}")
    with pytest.raises(LimitExceeded, match="more than 100 states"):
        match_automaton("[ab]*a[ab]{12}", max_states=100)
