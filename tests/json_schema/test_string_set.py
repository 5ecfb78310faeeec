from __future__ import annotations

import json
import random
import re
import threading

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.json_schema.spellings import plain, random_text, respell
from tests.strategies import short_texts
from tokdfa.automata.algebra import distinguishing_word
from tokdfa.automata.dfa import Dfa
from tokdfa.errors import EmptyLanguageError, LimitExceeded, RegexSyntaxError
from tokdfa.json_schema.sets import string_set
from tokdfa.json_schema.sets.string_set import (
    EXPLICIT_STATES,
    StringSet,
    string_automaton,
)
from tokdfa.regex.lazy_dfa import LazyDfa

SHORT = short_texts(3, 'a1"é')
PATTERNS = (
    "a",
    "^a",
    "1$",
    "^[a1]*$",
    '^(?:a|")+$',
    "^a|1$",
    "(?!a)1",
    "^.{2,3}$",
    "^(?!a)",
    "é",
    ".*",
    "^$",
    "^a*1*$",
    "^a$",
    "^(?:a|1b?){1,2}$",
)

patterns = st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple)
values = st.frozensets(st.sampled_from(SHORT), max_size=5)
string_sets = st.builds(
    StringSet,
    patterns=patterns,
    not_patterns=st.lists(st.sampled_from(PATTERNS), max_size=1).map(tuple),
    formats=st.just(()),
    not_formats=st.just(()),
    min_length=st.integers(0, 2),
    max_length=st.one_of(st.none(), st.integers(0, 3)),
    values=st.one_of(st.none(), st.none(), st.none(), values),
    not_values=st.one_of(st.just(frozenset()), values),
)


def finds(pattern: str, text: str) -> bool:
    """ECMA's search, by `re`: its dot and its dollar are others."""
    return bool(re.search(pattern.replace(".", r"[^\n\r\u2028\u2029]").replace("$", r"\Z"), text))


def is_member(strings: StringSet, text: str) -> bool:
    """What the demands mean, by Python's own means."""
    return (
        all(finds(pattern, text) for pattern in strings.patterns)
        and not any(finds(pattern, text) for pattern in strings.not_patterns)
        and strings.min_length <= len(text)
        and (strings.max_length is None or len(text) <= strings.max_length)
        and (strings.values is None or text in strings.values)
        and text not in strings.not_values
    )


@given(string_sets)
@example(StringSet(max_length=0, not_values=frozenset({""})))
@example(StringSet(patterns=("^(?:a|1){1,2}$",), not_values=frozenset({"a", "1", "aa", "a1", "1a", "11"})))
@example(StringSet(patterns=("^a$", "^1$")))
def test_sets_are_what_their_demands_say(strings: StringSet) -> None:
    members = [text for text in SHORT if is_member(strings, text)]
    assert [text for text in SHORT if strings.holds(text)] == members
    if strings.is_empty():
        assert not members
        with pytest.raises(EmptyLanguageError):
            string_automaton(strings)
        return
    rng = random.Random(strings.key)
    everything, needed = string_automaton(strings), string_automaton(strings, "needed")
    for text in SHORT:
        assert everything.accepts(respell(text, rng)) == (text in members)
        assert needed.accepts(plain(text)) == (text in members)
    for automaton in (everything, needed):
        for _ in range(5):
            walked = random_text(automaton, rng, longest=60)
            assert walked is None or is_member(strings, json.loads(walked)), walked


@given(string_sets, string_sets)
def test_intersections_and_complements(one: StringSet, other: StringSet) -> None:
    both, rest = one.intersect(other), one.complement()
    for text in SHORT:
        assert both.holds(text) == (one.holds(text) and other.holds(text))
        assert any(part.holds(text) for part in rest) != one.holds(text)
    assert all(one.intersect(part).is_empty() for part in rest)
    assert both.key == other.intersect(one).key
    assert one.intersect(StringSet()).key == one.key


def test_keys_name_the_demands() -> None:
    one = StringSet(patterns=("a", "b"), formats=("date",), values=frozenset({"x", "y"}))
    same = StringSet(patterns=("b", "a", "b"), formats=("date",), values=frozenset({"y", "x"}))
    assert one.key == same.key
    assert len(one.key) == 16
    fields = ("patterns", "not_patterns", "formats", "not_formats")
    different = [StringSet(**{name: ("date",)}) for name in fields] + [  # type: ignore[arg-type]
        StringSet(),
        StringSet(min_length=1),
        StringSet(max_length=1),
        StringSet(values=frozenset()),
        StringSet(values=frozenset({"date"})),
        StringSet(not_values=frozenset({"date"})),
        StringSet(not_values=frozenset({"\ud800"})),
    ]
    assert len({strings.key for strings in different}) == len(different)


@pytest.mark.parametrize(
    ("strings", "same"),
    [
        (StringSet(patterns=("^[a-z][a-z0-9]*$",), max_length=5), StringSet(patterns=("^[a-z][a-z0-9]{0,4}$",))),
        (StringSet(patterns=(r"^\d{4}-\d\d$",), max_length=9), StringSet(patterns=(r"^\d{4}-\d\d$",))),
        (StringSet(patterns=(".+",), min_length=1), StringSet(patterns=(".",))),
        (StringSet(patterns=("^(?:ab)*$",), min_length=3, max_length=7), StringSet(patterns=("^(?:ab){2,3}$",))),
        (StringSet(patterns=("a", "^.a"), max_length=2), StringSet(patterns=("^.a$",))),
        (StringSet(not_patterns=("[^ab]",), max_length=2), StringSet(patterns=("^[ab]{0,2}$",))),
    ],
)
def test_lengths_beside_patterns(strings: StringSet, same: StringSet) -> None:
    for escapes in ("all", "needed"):
        one, other = string_automaton(strings, escapes), string_automaton(same, escapes)  # type: ignore[arg-type]
        assert isinstance(one, Dfa)
        assert isinstance(other, Dfa)
        assert distinguishing_word(one, other) is None


@pytest.mark.parametrize("pattern", ["^[a-z]+$", "^(?:[a-z]+ ?)+$", "a", "^(?!x)"])
def test_a_bound_of_a_million_is_made_on_demand(pattern: str) -> None:
    strings = StringSet(patterns=(pattern,), max_length=1_000_000)
    assert not strings.is_empty()
    dfa = string_automaton(strings)
    assert isinstance(dfa, LazyDfa)
    assert dfa.accepts(plain("abcdef" * 20))
    assert dfa.state_count < 40 * 120 + EXPLICIT_STATES


def test_values_are_filtered_and_lone_surrogates_refused() -> None:
    strings = StringSet(patterns=("^a",), values=frozenset({"ab", "ba", "a\ud800", "\ud83d\ude00"}))
    assert not strings.holds("a\ud800")
    dfa = string_automaton(strings)
    assert dfa.accepts(rb'"\u0061b"')
    assert not dfa.accepts(b'"ba"')
    assert not dfa.accepts(rb'"a\ud800"')
    assert StringSet(values=frozenset({"\ud800"})).is_empty()
    assert not StringSet(not_values=frozenset({"\ud800"}), max_length=0).is_empty()


def test_proofs_of_emptiness() -> None:
    assert StringSet(patterns=("^[ab]+$", "^(?:ba?)*$"), not_patterns=("b",)).is_empty()
    assert not StringSet(patterns=("^[ab]+$", "^(?:ba?)*$"), not_patterns=("bb",)).is_empty()
    for endless in (r"^[\ud800-\udfff]+$", "(?=a)b", "^(?=b)c+$"):  # but without texts
        assert StringSet(patterns=(f"^a$|{endless}",), not_values=frozenset("a")).is_empty()
        assert StringSet(patterns=(f"^a$|{endless}",), not_patterns=("^[ab]$",)).is_empty()
    for every in (r"[\s\S]", r"[^\ud800-\udfff]"):
        assert not StringSet(not_patterns=(every,)).is_empty()
        assert StringSet(not_patterns=(every,), min_length=1).is_empty()
    with pytest.raises(LimitExceeded):
        StringSet(patterns=("^(?:ab|ba)*$", "^(?:abba|b|aa)*$", "b"), min_length=50_000).is_empty()


EASY = StringSet(patterns=("a",)), StringSet(patterns=("^a|1$",)), StringSet(formats=("date",))
EASY_NEGATIONS = (
    *(StringSet(not_patterns=(pattern,)) for pattern in ("^[a-z]{2}$", "x-", "\\w", "^[^]{3}$", "^[a-z]*$")),
    StringSet(patterns=("a",), not_values=frozenset("a")),
    StringSet(patterns=("^a*$",), not_patterns=("^a{3}$",), not_values=frozenset(("a", "aa"))),
)
EASY_LENGTHS = (
    *(StringSet(patterns=("^a{2}",), max_length=most) for most in (2, 400)),
    StringSet(patterns=("^a$|b",), min_length=3),
    StringSet(patterns=("^a(?:ba?)*$",), min_length=4, max_length=4),
)
EASY_PAIRS = (
    StringSet(patterns=("^https:",), formats=("uri",)),
    StringSet(patterns=("^https?://",), formats=("uri",), max_length=100),
    StringSet(patterns=("a", "b"), not_patterns=("ab", "c")),
    StringSet(patterns=("^[0-9a-f:]+$",), formats=("ipv6",)),
    StringSet(not_patterns=(".+",)),
)
INVOLVED = (
    *(("(?=a)b",), ("\\ba",), ("[\\ud800-\\udfff]",), ("a", "(?=b)"), ("(?:ab){1000}",)),
    *(("^(?:a|[\\ud800-\\udfff])$",), (".*",), ("^a$",)),
)


@pytest.mark.parametrize("strings", [*EASY, *EASY_LENGTHS, *EASY_NEGATIONS, *EASY_PAIRS])
def test_easy_sets_have_texts(strings: StringSet) -> None:
    assert strings.is_easy
    string_automaton(strings)  # which raises for none


@pytest.mark.parametrize(
    "strings",
    [
        *(StringSet(patterns=patterns) for patterns in INVOLVED),
        StringSet(patterns=("^a{3}",), max_length=2),
        StringSet(patterns=("^[0-9]+$",), formats=("ipv6",)),
        StringSet(patterns=("a", "(?:ab){1000}")),
        StringSet(patterns=("^(?:a{29})+$", "^(?:a{31})+$")),
        StringSet(patterns=("^(?:a|b)*a(?:a|b){12}$", "^(?:a|b)*b(?:a|b){12}$"), not_patterns=("a",)),
        StringSet(patterns=("^(?:ab)*$",), min_length=1, max_length=1),
    ],
)
def test_sets_that_are_not_easy(strings: StringSet) -> None:
    assert not strings.is_easy


def test_texts_are_looked_for_in_a_shared_automaton_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []

    class Watched(LazyDfa):
        def to_dfa(self, *limits: int) -> Dfa:
            other = threading.Thread(target=StringSet(patterns=("^ab",)).holds, args=("abc",))
            other.start()
            other.join(0.1)
            waits.append(other.is_alive())
            return super().to_dfa(*limits)

    assert StringSet(patterns=("^ab",)).holds("ab")  # made in advance
    monkeypatch.setattr(string_set, "LazyDfa", Watched)
    assert not StringSet(patterns=("^/[ab]",), formats=("uri-reference",)).is_empty()
    assert waits == [True]


def test_questions_raise_what_patterns_raise() -> None:
    broken = StringSet(patterns=("(",))
    assert broken.complement()
    for question in (
        broken.is_empty,
        lambda: broken.holds("x"),
        lambda: broken.simple,
        lambda: string_automaton(broken),
    ):
        with pytest.raises(RegexSyntaxError):
            question()
