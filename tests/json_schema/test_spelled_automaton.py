"""Automata that are derived over classes of code points and then spelled, against those derived over bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.automata.algebra import distinguishing_word, minimize
from tokdfa.automata.dfa import Dfa
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton, string_expression
from tokdfa.regex.expression import ExpressionStore
from tokdfa.regex.lazy_dfa import LazyDfa

PATTERNS = (
    r"^[a-f\d]{8}-[a-f\d]{4}$", "^#!", r"\.js$", ".+", r"^[^\s\"]+$", r"^\p{Lu}+$", r"^[\u{10000}-\u{10FFFF}x]{2}$",
    r"^[\u{1F600}-\u{1F64F}é-ü]+$", r'^["\\]+/$', r"^[\x00-\x1f]n?$", "a$|^b|cd", r"\bfoo\b", "^(?!ab)[a-z]+$",
    "^(?:(?!foo$)[a-z])*$", "(^a|b)+c", "(a$|b)*c?", r"^[\u{D7FF}\u{E000}\u{FFFF}\u{10000}\u{103FF}]$",
)  # fmt: skip
SETS = [
    *(StringSet(patterns=(pattern,)) for pattern in PATTERNS),
    *(StringSet(not_patterns=(pattern,)) for pattern in PATTERNS[:5]),
    *(StringSet(values=frozenset(texts)) for texts in (["a", "b\n"], ["é", "\U0001f600x"], [""], ["/", "\\", '"'])),
    StringSet(not_values=frozenset(["ab", "é"])),
    StringSet(patterns=("a",), not_values=frozenset(["ab"]), max_length=3),
    StringSet(formats=("date",), not_patterns=("^2",)),
    StringSet(min_length=2, max_length=3),
]


#: Where spellings become longer, or other digits lead on.
BORDERS = [
    *(0, 0xA, 0x1F, 0x22, 0x2F, 0x30, 0x5C, 0x61, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF),
    *(0x10000, 0x103FF, 0x10400, 0x1F600, 0x10FC00, 0x10FFFF),
]
borders = st.sampled_from(BORDERS)
ranges = st.lists(st.tuples(borders, borders).map(sorted), min_size=1, max_size=3).map(
    lambda pairs: "".join(rf"\u{{{first:X}}}-\u{{{last:X}}}" for first, last in pairs)
)


def states_beside_minimal(strings: StringSet, escapes) -> int:
    """How many states the automaton of a set has more than the minimal one, which is derived over bytes."""
    store = ExpressionStore()
    by_bytes = minimize(LazyDfa(store, string_expression(strings, store, escapes)).to_dfa())
    spelled = string_automaton(strings, escapes, 100_000)
    assert isinstance(spelled, Dfa)
    assert distinguishing_word(by_bytes, spelled) is None
    return spelled.state_count - by_bytes.state_count


@pytest.mark.parametrize("escapes", ["all", "needed"])
@pytest.mark.parametrize("strings", SETS, ids=range(len(SETS)))
def test_classes_of_code_points_give_the_automaton_of_bytes(strings, escapes) -> None:
    assert states_beside_minimal(strings, escapes) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ranges, st.sampled_from(["", "?", "+", "{2}"])), min_size=1, max_size=3), st.booleans())
def test_ranges_of_code_points_are_spelled_as_bytes(parts: list[tuple[str, str]], is_alternative: bool) -> None:
    body = ("|" if is_alternative else "").join(f"[{inside}]{repeat}" for inside, repeat in parts)
    strings = StringSet(patterns=(f"^(?:{body})$",))
    assert states_beside_minimal(strings, "all") == 0
    assert states_beside_minimal(strings, "needed") >= 0


def test_letters_of_all_scripts_at_many_places_stay_lazy() -> None:
    assert isinstance(string_automaton(StringSet(patterns=(r"^\p{L}+$",))), Dfa)
    assert isinstance(string_automaton(StringSet(patterns=(r"^\p{L}{1,90}$",))), LazyDfa)
