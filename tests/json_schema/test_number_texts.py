"""Natural texts of numbers: against a definition that shares no code with them, on all short texts and by value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.json_schema.test_number_dfa import read, texts_up_to
from tests.json_schema.test_number_set import naive_holds, number_sets
from tests.strategies import examples
from tokdfa.automata.algebra import difference, distinguishing_word, is_empty, words
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.sets.number_dfa import numbers_dfa
from tokdfa.json_schema.sets.number_set import Number, NumberSet
from tokdfa.json_schema.sets.number_texts import natural_text, number_texts

SHORT = texts_up_to(5, "0125")


def single(value: Number, plain: bool | None = None) -> NumberSet:
    return NumberSet(low=value, high=value, plain=plain)


def digits_of(text: str) -> int:
    return sum(character.isdigit() for character in text.lower().partition("e")[0])


def is_natural(text: str, numbers: NumberSet, is_whole: bool) -> bool:
    """Whether a text without exponent is one that people write for a number of the set; a single number apart."""
    found = read(text)
    if found.exponent is not None or (text.startswith("-") and found.value == 0):
        return False
    if is_whole and numbers.plain is not False and not found.plain:
        return False
    return naive_holds(numbers, found.value, found.plain)


@examples(150)
@given(number_sets(), st.integers(4, 9))
def test_texts_of_a_set_are_the_natural_ones(numbers: NumberSet, digits: int) -> None:
    normal = numbers.normal
    if normal is None or (normal.low is not None and normal.low == normal.high):
        return
    is_whole = bool(numbers.integer or numbers.plain) or any(d == int(d) for d in numbers.multiples)
    automaton = number_texts([numbers], True, digits)
    short = [one.text for one in SHORT if is_natural(one.text, numbers, is_whole) and digits_of(one.text) <= digits]
    found = [one.text for one in SHORT if automaton.accepts(one.text.encode())]
    if short:
        assert found == short
    else:
        assert not any("e" in text or "E" in text for text in found if digits_of(text) > digits)


@examples(150)
@given(st.lists(number_sets(), min_size=1, max_size=3), st.integers(0, 6), st.booleans())
def test_they_are_texts_of_the_set_and_never_none(sets: list[NumberSet], digits: int, natural: bool) -> None:
    every, some = numbers_dfa(sets), number_texts(sets, natural, digits)
    assert is_empty(difference(some, every))
    assert is_empty(some) == all(numbers.is_empty() for numbers in sets)


@given(number_sets())
def test_a_bound_on_digits_is_kept_where_it_can_be(numbers: NumberSet) -> None:
    every = [word.decode() for word in words(numbers_dfa([numbers]), 1)]
    for digits in (1, 2, 3):
        found = [word.decode() for word in words(number_texts([numbers], False, digits), 50)]
        assert all(digits_of(text) <= max(digits, *map(digits_of, every)) for text in found)
        assert bool(found) == bool(every)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (1, "1"), (Decimal("1.0"), "1"), (Decimal("-0.0"), "0"), (Decimal("2.50"), "2.5"), (-7, "-7")),
        *((Decimal("-0.001"), "-0.001"), (Decimal("1e-6"), "0.000001"), (Decimal("1e-7"), "1e-7")),
        *((10**20, "1" + 20 * "0"), (10**21, "1e+21"), (Decimal("1e30"), "1e+30"), (Decimal("-1.5e30"), "-1.5e+30")),
        (Decimal("1e308"), "1" + 308 * "0"),  # exponents end at 307
        (Decimal("1.2345678901e30"), "1.2345678901e+30"),
    ],
    ids=str,
)
def test_one_number_has_one_text(value: Number, text: str) -> None:
    assert words(number_texts([single(value)], True, 3), 3) == [text.encode()]
    assert Decimal(text) == value


def test_one_number_is_written_as_its_set_asks() -> None:
    assert natural_text(single(10**30 + 1, plain=True)) == str(10**30 + 1)
    assert natural_text(single(1, plain=False)) == "1.0"
    listed = [single(value) for value in (3, 1, Decimal("2.5"), 2)]
    assert words(number_texts(listed, True, 15), 9) == [b"1", b"2", b"3", b"2.5"]


@pytest.mark.parametrize(
    ("numbers", "first"),
    [
        (NumberSet(low=Decimal("1e30")), [b"1e+30", b"1e+31"]),
        (NumberSet(high=Decimal("-1e30")), [b"-1e+30", b"-1e+31"]),
        (NumberSet(low=0, low_open=True, high=Decimal("1e-20")), [b"1e-20", b"1e-21"]),
        (NumberSet(low=10**30, integer=True), [str(10**30).encode(), str(10**30 + 1).encode()]),
        (NumberSet(low=10**30, plain=True), [str(10**30).encode(), str(10**30 + 1).encode()]),
        (NumberSet(low=Decimal("0.12345678901234567"), high=Decimal("0.123456789012345671")), [b"0.12345678901234567"]),
    ],
    ids=str,
)
def test_a_set_of_longer_numbers_is_written_with_as_many_digits_as_it_needs(
    numbers: NumberSet, first: list[bytes]
) -> None:
    assert words(number_texts([numbers], True, 15), len(first)) == first


def test_without_a_condition_it_is_the_automaton_of_all_texts() -> None:
    sets = [NumberSet(integer=True), NumberSet(low=Decimal("0.5"), high=2)]
    assert distinguishing_word(number_texts(sets, False, 0), numbers_dfa(sets)) is None
    assert is_empty(number_texts([], True, 15))


def test_remainders_that_are_too_many_are_refused() -> None:
    with pytest.raises(LimitExceeded, match="multipleOf"):
        number_texts([NumberSet(multiples=(Decimal("123456.789"),))], True, 15)
