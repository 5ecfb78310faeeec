"""Names, other names and counted strings as automata: against Python's reader of JSON, and against other automata."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from tests.json_schema.spellings import meaning, spelled, words
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.write.lexemes import StringExpressions
from tokdfa.regex.nodes import MAX_REPEAT

if TYPE_CHECKING:
    import random

    from tokdfa.program.program import Escapes
    from tokdfa.regex.lazy_dfa import LazyDfa

ESCAPES: tuple[Escapes, ...] = ("all", "needed")


def accepts(found: tuple[LazyDfa, int], text: bytes) -> bool:
    automaton, start = found
    state = automaton.run(text, start)
    return state >= 0 and bool(automaton.accepting[state])


@given(
    st.lists(words(), min_size=1, max_size=5),
    st.lists(words(), max_size=5),
    st.lists(st.binary(max_size=4), max_size=4),
    st.sampled_from(ESCAPES),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_strings_are_what_python_reads(
    names: list[str], more: list[str], insides: list[bytes], escapes: Escapes, least: int, draw: random.Random
) -> None:
    """One automaton for all; each text has a meaning, and is a listed name, or another one, never both."""
    strings, listed = StringExpressions(escapes), frozenset(names)
    numbers = (
        strings.add(StringSet(values=listed)),
        strings.add(StringSet(not_values=listed)),
        strings.counted(least, 3),
        strings.counted(least, None),
    )
    named, others, short, long = map(strings.automaton, numbers)
    assert named[0] is others[0] is short[0] is long[0]
    near = [name[:-1] for name in names] + [name + "a" for name in names]
    texts = [spelled(word, draw.choice, escapes == "needed") for word in (*names, *more, *near)]
    for text in (*texts, *(b'"' + inside + b'"' for inside in insides if escapes == "all" or b"\\" not in inside)):
        word = meaning(text)
        assert accepts(named, text) == (word is not None and word in names)
        assert accepts(others, text) == (word is not None and word not in names)
        assert accepts(short, text) == (word is not None and least <= len(word) <= 3)
        assert accepts(long, text) == (word is not None and least <= len(word))
    if escapes == "needed":
        assert not any(accepts(found, rb'"\u0061"') for found in (named, others, long))


def test_counts_beyond_all_texts() -> None:
    strings = StringExpressions("all")
    long, wide = strings.counted(2**31, None), strings.counted(1, MAX_REPEAT + 1)
    assert not accepts(strings.automaton(long), b'"abc"')
    assert accepts(strings.automaton(wide), b'"abc"')
    assert not accepts(strings.automaton(wide), b'""')


def test_many_names_cost_what_is_read() -> None:
    strings = StringExpressions("all")
    number = strings.add(StringSet(not_values=frozenset(f"name number {k}" for k in range(2_000))))
    found = strings.automaton(number)
    assert not accepts(found, b'"name number 17"')
    assert accepts(found, b'"name number 2000"')
    assert found[0].state_count < 200
