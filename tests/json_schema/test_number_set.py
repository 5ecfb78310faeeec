from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import LimitExceeded, OptionError
from tokdfa.json_schema.sets.number_set import DIGITS, NO_NUMBERS, Number, NumberSet

DIVISORS: list[Number] = [1, 2, 3, 5, 6, 7, 10, 20, 100]
DIVISORS += map(Decimal, ("0.1", "0.01", "0.25", "0.5", "1.5", "0.3", "2.0", "1E+1"))
SMALL = ["0", "0.1", "0.25", "0.3", "0.5", "0.55", "0.625", "1.0", "1.5", "2.5", "7.5", "10.01"]
VALUES: list[Number] = [*range(-25, 26), *(sign * Decimal(text) for sign in (1, -1) for text in SMALL)]
VALUES += [99, 100, 101, 120, 1000, 1_000_000, 2**64, -(2**64), Decimal("1E-7"), Decimal("1e30"), Decimal("-99.99")]

numbers = st.one_of(
    st.integers(-120, 120),
    st.builds(lambda c, e: Decimal(c).scaleb(e), st.integers(-999, 999), st.integers(-3, 3)),
)


@st.composite
def number_sets(draw: st.DrawFn) -> NumberSet:
    """Sets with a few conditions, among them empty ones, single numbers and bounds in both spellings."""
    low = draw(st.none() | numbers)
    high = draw(st.none() | numbers | st.just(low))
    return NumberSet(
        low,
        draw(st.booleans()) and low is not None,
        high,
        draw(st.booleans()) and high is not None,
        draw(st.sampled_from([None, None, True, False])),
        draw(st.sampled_from([None, None, True, False])),
        tuple(draw(st.lists(st.sampled_from(DIVISORS), max_size=2))),
        tuple(draw(st.lists(st.sampled_from(DIVISORS), max_size=2))),
    )


def texts(value: Number) -> list[bool]:
    """Plain or not, for the kinds of texts that a number has."""
    return [False, True] if value == int(value) else [False]


def naive_holds(numbers: NumberSet, value: Number, plain: bool) -> bool:
    """Membership, by rational arithmetic."""
    exact = Fraction(value)
    is_above = numbers.low is None or exact > Fraction(numbers.low)
    is_below = numbers.high is None or exact < Fraction(numbers.high)
    return (
        (is_above or (not numbers.low_open and exact == Fraction(numbers.low or 0)))
        and (is_below or (not numbers.high_open and exact == Fraction(numbers.high or 0)))
        and numbers.integer in (None, exact.denominator == 1)
        and numbers.plain in (None, plain)
        and all((exact / Fraction(divisor)).denominator == 1 for divisor in numbers.multiples)
        and not any((exact / Fraction(divisor)).denominator == 1 for divisor in numbers.not_multiples)
    )


@given(number_sets())
def test_membership_is_that_of_rational_arithmetic(numbers: NumberSet) -> None:
    for value in VALUES:
        for plain in texts(value):
            assert numbers.holds(value, plain) == naive_holds(numbers, value, plain), (value, plain)
        assert numbers.holds(value) == any(naive_holds(numbers, value, plain) for plain in texts(value)), value


@given(number_sets(), number_sets())
def test_intersection_and_complement_are_those_of_the_members(first: NumberSet, second: NumberSet) -> None:
    both, others = first.intersect(second), first.complement()
    for value in VALUES:
        for plain in texts(value):
            assert both.holds(value, plain) == (first.holds(value, plain) and second.holds(value, plain))
            assert any(other.holds(value, plain) for other in others) != first.holds(value, plain)


@given(number_sets())
def test_the_normal_form_has_the_same_members(numbers: NumberSet) -> None:
    normal = numbers.normal
    for value in VALUES:
        for plain in texts(value):
            assert numbers.holds(value, plain) == (normal is not None and normal.holds(value, plain)), value
    if normal is not None:
        again = normal.normal
        assert again is not None
        assert again.key == normal.key == numbers.key


@given(number_sets(), number_sets())
@settings(max_examples=300)
def test_equal_keys_are_equal_sets(first: NumberSet, second: NumberSet) -> None:
    same = all(first.holds(value, plain) == second.holds(value, plain) for value in VALUES for plain in texts(value))
    assert same or first.key != second.key


def found_by_search(numbers: NumberSet) -> bool:
    """Whether a number between the bounds belongs to the set, among the multiples of 1/1000 and points in between."""
    low = Fraction(numbers.low if numbers.low is not None else (numbers.high or 0) - 5000)
    high = Fraction(numbers.high if numbers.high is not None else (numbers.low or 0) + 5000)
    step = Fraction(1, 1000)
    if not numbers.multiples and numbers.integer is not True and numbers.plain is not True and low < high:
        step = min(step, (high - low) / 64)
        step = Fraction(1, 10 ** math.ceil(math.log10(1 / step)))
    elif numbers.multiples:
        step = max(Fraction(divisor) for divisor in numbers.multiples)
    elif low < high:
        step = Fraction(1)
    first, last = math.ceil(low / step), math.floor(high / step)
    candidates = [step * k for k in range(first, min(last, first + 600) + 1)]
    candidates += [step * k for k in range(max(first, last - 600), last + 1)] + ([low] if low == high else [])
    return any(
        naive_holds(numbers, Decimal(c.numerator) / Decimal(c.denominator), plain)
        for c in candidates
        for plain in (texts(int(c)) if c.denominator == 1 else [False])
    )


@given(number_sets())
def test_a_set_is_empty_iff_a_search_finds_nothing(numbers: NumberSet) -> None:
    assert numbers.is_empty() != found_by_search(numbers)


@pytest.mark.parametrize(
    ("numbers", "empty"),
    [
        (NumberSet(low=Decimal("1.2"), high=Decimal("1.8"), integer=True), True),
        (NumberSet(low=1, high=20, multiples=(Decimal("1.5"), 14)), True),
        (NumberSet(low=1, high=42, multiples=(Decimal("1.5"), 14)), False),
        (NumberSet(low=2**64 + 1, high=2**64 + 9, multiples=(2**32,)), True),
        (NumberSet(low=2**64 + 1, high=2**64 + 2**32, multiples=(2**32,)), False),
        # 2 .. 30 without the multiples of 2, 3, 5, 7, 11, .., 29 is nothing; 31 is left
        (NumberSet(low=2, high=30, integer=True, not_multiples=(2, 3, 5, 7, 11, 13, 17, 19, 23, 29)), True),
        (NumberSet(low=2, high=31, integer=True, not_multiples=(2, 3, 5, 7, 11, 13, 17, 19, 23, 29)), False),
        (NO_NUMBERS, True),
    ],
)
def test_emptiness_at_the_edge(numbers: NumberSet, empty: bool) -> None:
    assert numbers.is_empty() is empty


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (NumberSet(low=1), NumberSet(low=Decimal("1.0"))),
        (NumberSet(low=1000), NumberSet(low=Decimal("1E+3"))),
        (NumberSet(low=Decimal("0.5"), integer=True), NumberSet(low=1, integer=True)),
        (NumberSet(low=0, low_open=True, integer=True), NumberSet(low=1, integer=True)),
        (NumberSet(integer=True), NumberSet(multiples=(1, Decimal("0.5")))),
        (NumberSet(integer=False), NumberSet(not_multiples=(1, 2))),
        (NumberSet(low=5, high=5, integer=True), NumberSet(low=5, high=5)),
        (NumberSet(low=5, high=5, integer=False), NO_NUMBERS),
        (NumberSet(multiples=(4, 6), not_multiples=(9,)), NumberSet(multiples=(12,), not_multiples=(36, 72))),
        (NumberSet(low=1, high=14, multiples=(5,), not_multiples=(2,)), NumberSet(low=5, high=5)),
        (NumberSet(plain=True), NumberSet(plain=True, integer=True)),
    ],
)
def test_sets_that_are_equal_have_equal_keys(first: NumberSet, second: NumberSet) -> None:
    assert first.key == second.key


def test_nothing_is_rounded() -> None:
    """Decimal rounds the result of each operation to its context's precision, even that of a minus sign."""
    with localcontext() as context:
        context.prec = 2
        low, high = Decimal("-1234567.8"), Decimal("1234567.8")
        numbers = NumberSet(low=low, high=high, multiples=(Decimal("0.4"),))
        normal = numbers.normal
        assert normal is not None
        assert (normal.low, normal.high) == (Decimal("-1234567.6"), Decimal("1234567.6"))
        assert numbers.holds(Decimal("1234567.6"))
        assert not numbers.holds(Decimal("1234567.8"))


@pytest.mark.parametrize("wrong", [0.5, True, "1", Decimal("NaN"), Decimal("Infinity")])
def test_what_is_no_exact_number_is_refused(wrong: Any) -> None:
    for use in (lambda: NumberSet(low=wrong), lambda: NumberSet(multiples=(wrong,)), lambda: NumberSet().holds(wrong)):
        with pytest.raises(OptionError, match="is an int or a finite Decimal"):
            use()


@pytest.mark.parametrize("divisor", [0, -1, Decimal("-0.5")])
def test_divisors_are_above_0(divisor: Number) -> None:
    with pytest.raises(OptionError, match=r"multipleOf.* above 0"):
        NumberSet(multiples=(divisor,))


@pytest.mark.parametrize("large", [10**DIGITS, -(10**DIGITS), Decimal("1e999999999"), Decimal("1e-999999")])
def test_numbers_of_too_many_digits_are_refused_at_once(large: Number) -> None:
    with pytest.raises(LimitExceeded, match=f"more than {DIGITS} digits") as raised:
        NumberSet(low=large)
    assert raised.value.limit == "digits"
    NumberSet(low=Decimal("0e-999999"), high=10 ** (DIGITS - 1))
