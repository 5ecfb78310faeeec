from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.json_schema.test_number_set import number_sets
from tokdfa.automata.algebra import difference, distinguishing_word, is_empty, live_states, minimize, union
from tokdfa.automata.dfa import Dfa
from tokdfa.constraint import Regex
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.sets.number_dfa import (
    SHIFT,
    is_surely_small,
    number_dfa,
    numbers_dfa,
)
from tokdfa.json_schema.sets.number_plan import EXPONENT_LIMIT, FRACTION, MAX_LISTED, remainder_states
from tokdfa.json_schema.sets.number_set import Number, NumberSet
from tokdfa.regex.compile import compile_dfa

JSON_NUMBER = r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?"
PARTS = re.compile(r"-?(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?", re.ASCII)


class Text(NamedTuple):
    """A JSON number as it is written: its parts, and its value."""

    text: str
    whole: str
    fraction: str
    exponent: int | None
    value: Decimal

    @property
    def plain(self) -> bool:
        return not (self.fraction or self.exponent is not None)


def read(text: str) -> Text:
    match = PARTS.fullmatch(text)
    assert match is not None
    whole, fraction, exponent = match.groups()
    return Text(text, whole, fraction or "", None if exponent is None else int(exponent), Decimal(text))


def texts_up_to(length: int, digits: str) -> list[Text]:
    """All JSON numbers of these digits with at most `length` characters."""
    runs = [
        ["".join(run) for n in range(1, most + 1) for run in product(digits, repeat=n)] for most in range(length + 1)
    ]
    wholes = [run for run in runs[length] if run == "0" or run[0] != "0"]
    mantissas = wholes + [f"{w}.{f}" for w in wholes for f in runs[max(0, length - len(w) - 1)]]
    marks = ["e", "e-", "E+"]
    exponents = [f"{m}{e}{x}" for m in mantissas for e in marks for x in runs[max(0, length - len(m) - len(e))]]
    return [read(s + text) for text in mantissas + exponents for s in ("", "-") if len(s + text) <= length]


TEXTS = list({item.text: item for item in texts_up_to(6, "015") + texts_up_to(5, "0159")}.values())
BYTES = np.array([list(item.text.encode().ljust(6, b"\0")) for item in TEXTS], dtype=np.uint8)
LENGTHS = np.array([len(item.text) for item in TEXTS])


def accepted(dfa: Dfa) -> list[bool]:
    """For each of TEXTS, whether it is accepted."""
    table = np.vstack([dfa.byte_table(), np.full((1, 256), -1, dtype=np.int32)])
    here = np.full(len(TEXTS), dfa.start)
    ends = here
    for place in range(BYTES.shape[1]):
        here = table[here, BYTES[:, place]]
        ends = np.where(place + 1 == LENGTHS, here, ends)
    return np.append(dfa.accepting, False)[ends].tolist()  # type: ignore[no-any-return]


@cache
def powers_of_ten(numbers: NumberSet) -> tuple[float, float]:
    """(the least a such that divisors asked for divide 10^a, the largest such that 10^a divides a forbidden one)."""
    asked = [Fraction(divisor) for divisor in (*numbers.multiples, *([1] if numbers.integer or numbers.plain else []))]
    forbidden = [Fraction(divisor) for divisor in (*numbers.not_multiples, *([1] if numbers.integer is False else []))]
    exponents = range(-6, 10)
    least = max(
        (min((a for a in exponents if (Fraction(10) ** a / f).denominator == 1), default=math.inf) for f in asked),
        default=-math.inf,
    )
    beyond = min(
        (max(a for a in exponents if (f / Fraction(10) ** a).denominator == 1) for f in forbidden), default=math.inf
    )
    return least, beyond


def is_promised(numbers: NumberSet, item: Text, shift: int = SHIFT) -> bool:
    """Whether this text is in the automaton if its number is in the set, by the docstring of `number_dfa`."""
    if item.exponent is None:
        return True
    if shift < 0 or item.value == 0:
        return shift >= 0
    if abs(item.exponent) > EXPONENT_LIMIT and replace(numbers.normal or numbers, plain=None) != NumberSet():
        return False
    zeros = len(item.fraction) - len(item.fraction.lstrip("0"))
    position = len(item.whole) - 1 if item.whole != "0" else -1 - zeros
    if not -1 - shift <= position <= shift:
        return False
    least, beyond = powers_of_ten(numbers)
    if math.isinf(least) and math.isinf(beyond):
        return least < 0
    places = len(item.fraction) if item.fraction.strip("0") else 0
    ends_in_zero = (item.fraction if places else item.whole).endswith("0")
    if places > FRACTION or (ends_in_zero and (places or beyond < math.inf)):
        return False
    return least + places <= item.exponent < beyond + places


def check(numbers: NumberSet, shift: int = SHIFT) -> None:
    """No text of another number, each text without exponent, and each with one that is promised."""
    dfa = number_dfa(numbers, shift)
    members: dict[tuple[Decimal, bool], bool] = {}
    for item, is_accepted in zip(TEXTS, accepted(dfa), strict=True):
        known = (item.value, item.plain)
        if known not in members:
            members[known] = numbers.holds(*known)
        assert not is_accepted or members[known], (item.text, "accepted")
        if members[known] and is_promised(numbers, item, shift):
            assert is_accepted, (item.text, "not accepted")


@settings(max_examples=50)
@given(number_sets(), st.sampled_from([SHIFT, SHIFT, -1, 0, 1, 20]))
@example(NumberSet(), 0)
@example(NumberSet(integer=False), -1)
@example(NumberSet(low=-1, high=95, integer=False, plain=False), 1)
@example(NumberSet(multiples=(10,), not_multiples=(100, 150)), 20)
@example(NumberSet(low=Decimal("-0.005"), high=Decimal("-0.005")), 1)
@example(NumberSet(low=0, high=0), 0)
def test_short_texts_are_judged_by_their_numbers(numbers: NumberSet, shift: int) -> None:
    check(numbers, shift)


@given(number_sets())
@settings(max_examples=60)
def test_automata_are_trim_small_and_within_the_grammar(numbers: NumberSet) -> None:
    dfa = number_dfa(numbers)
    assert (dfa.state_count == 0) == numbers.is_empty()
    assert live_states(dfa).all()
    assert dfa.state_count <= 1.6 * minimize(dfa).state_count + 3
    assert is_empty(difference(dfa, number_dfa(NumberSet())))


@given(st.lists(number_sets(), max_size=4))
@settings(max_examples=30)
def test_the_texts_of_several_sets_are_those_of_each(sets: list[NumberSet]) -> None:
    expected = Dfa.empty()
    for numbers in sets:
        expected = union(expected, number_dfa(numbers))
    assert distinguishing_word(numbers_dfa(sets), expected) is None


@pytest.mark.parametrize(
    ("numbers", "pattern"),
    [
        (NumberSet(), JSON_NUMBER),
        (NumberSet(plain=True), "-?(0|[1-9][0-9]*)"),
        (NumberSet(plain=False), r"-?(0|[1-9][0-9]*)(\.[0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"),
        (NumberSet(low=0, high=0), r"-?0(\.0+)?([eE][+-]?[0-9]+)?"),
        (NumberSet(low=9, high=10, plain=True), "9|10"),
        (NumberSet(multiples=(10,), plain=True), "-?(0|[1-9][0-9]*0)"),
    ],
)
def test_sets_with_a_simple_pattern(numbers: NumberSet, pattern: str) -> None:
    assert distinguishing_word(number_dfa(numbers), compile_dfa(Regex(pattern))) is None


@pytest.mark.parametrize(
    ("numbers", "pattern"),
    [
        (NumberSet(), JSON_NUMBER.removesuffix("([eE][+-]?[0-9]+)?")),
        (NumberSet(integer=True), r"-?(0|[1-9][0-9]*)(\.0+)?"),
        (NumberSet(low=0, high=1), r"-?0(\.0+)?|0\.[0-9]+|1(\.0+)?"),
        (NumberSet(low=5, high=5), r"5(\.0+)?"),
        (NumberSet(low=1, high=65535, integer=True), rf"({'|'.join(map(str, range(1, 65536)))})(\.0+)?"),
        (NumberSet(multiples=(Decimal("0.01"),)), r"-?(0|[1-9][0-9]*)(\.[0-9]{1,2}0*)?"),
    ],
)
def test_sets_without_exponents_have_a_simple_pattern(numbers: NumberSet, pattern: str) -> None:
    assert distinguishing_word(number_dfa(numbers, shift=-1), compile_dfa(Regex(pattern))) is None


def from_exponent(least: int) -> str:
    """The pattern of an exponent from a digit to EXPONENT_LIMIT."""
    return rf"[eE]\+?0*([{least}-9]|[1-9][0-9]|[12][0-9]{{2}}|30[0-7])"


PLACES = "|".join(rf"[0-9]{{{place - 1}}}[1-9]{from_exponent(place)}" for place in range(1, FRACTION + 1))
ZERO = r"0(\.0+)?([eE][+-]?[0-9]+)?"
NATURAL = rf"0\.({PLACES})|[1-9][0-9]*(\.({PLACES})|(\.0+)?({from_exponent(0)}|[eE]-0+)?)"
WHOLE = {None: "-?(0|[1-9][0-9]*)", 0: "(-?0|[1-9][0-9]*)", 1: "[1-9][0-9]*"}
WHOLE_WITH_EXPONENTS = {None: f"-?({ZERO}|{NATURAL})", 0: f"-?{ZERO}|{NATURAL}", 1: NATURAL}


@pytest.mark.parametrize("low", [None, 0, 1])
@pytest.mark.parametrize(("plain", "shift"), [(None, SHIFT), (None, -1), (True, SHIFT), (True, -1), (False, -1)])
def test_whole_numbers_have_a_pattern_and_a_minimal_automaton(low: int | None, plain: bool | None, shift: int) -> None:
    point = {None: "([.]0+)?", True: "", False: "[.]0+"}[plain]
    pattern = WHOLE_WITH_EXPONENTS[low] if plain is None and shift == SHIFT else WHOLE[low] + point
    dfa = number_dfa(NumberSet(low=low, multiples=(1,), plain=plain), shift)
    assert distinguishing_word(dfa, compile_dfa(Regex(pattern))) is None
    assert dfa.state_count == minimize(dfa).state_count


BOUNDS = [
    *(sign * bound for sign in (1, -1) for bound in (2**53 + 1, 2**63, 2**64 - 1, 9223372036854776000, 10**308, 7)),
    *map(Decimal, ("1e308", "1.7976931348623157E+308", "5e-324", "-2.2250738585072014e-308", "0.1", "-123.456")),
    Decimal("3.14159265358979323846264338327950288419716939937510582097494459"),
]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("is_open", [False, True])
def test_large_and_tiny_bounds_are_exact(bound: Number, is_open: bool) -> None:
    """The bound and its neighbours in the last place and beyond, written out."""
    exact = Decimal(bound)
    sign, digits, exponent = exact.as_tuple()
    number = int("".join(map(str, digits)))
    above, below = (
        number_dfa(NumberSet(low=bound, low_open=is_open)),
        number_dfa(NumberSet(high=bound, high_open=is_open)),
    )
    for magnitude, places in ((number + step, int(exponent)) for step in (-1, 0, 1)):
        for tail in ("", "0", "000000000001"):
            value = Fraction(int(str(magnitude) + tail)) * Fraction(10) ** (places - len(tail))
            text = f"{'-' if sign else ''}{written_out(str(magnitude) + tail, places - len(tail))}"
            difference_of_value = (-value if sign else value) - Fraction(exact)
            assert above.accepts(text.encode()) == (
                difference_of_value > 0 or (difference_of_value == 0 and not is_open)
            )
            assert below.accepts(text.encode()) == (
                difference_of_value < 0 or (difference_of_value == 0 and not is_open)
            )


def written_out(digits: str, exponent: int) -> str:
    """The number digits · 10^exponent without exponent."""
    if exponent >= 0:
        return (digits + "0" * exponent).lstrip("0") or "0"
    padded = digits.rjust(1 - exponent, "0")
    return f"{padded[:exponent].lstrip('0') or '0'}.{padded[exponent:]}"


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70),
)
def test_doubles_as_programs_write_them(bound: float, other: float) -> None:
    """One digit before the point, as in repr, json.dumps and %e: found in each set that holds the number."""
    exact = Decimal(repr(bound))
    sets = [
        NumberSet(low=exact),
        NumberSet(low=exact, low_open=True),
        NumberSet(high=exact),
        NumberSet(low=min(exact, Decimal(0)), high=max(exact, Decimal(0))),
        NumberSet(low=exact, high=exact),
    ]
    automata = [number_dfa(numbers) for numbers in sets]
    for value in (bound, other, -bound):
        for text in (json.dumps(value), repr(value), f"{value:e}", f"{value:.17E}", f"{value:.3f}"):
            for numbers, dfa in zip(sets, automata, strict=True):
                number = Decimal(text)
                if number and not -EXPONENT_LIMIT <= number.adjusted() <= EXPONENT_LIMIT and "e" in text.lower():
                    assert not dfa.accepts(text.encode())
                else:
                    assert dfa.accepts(text.encode()) == numbers.holds(number), (numbers, text)


@given(
    st.integers(1, 2000) | st.sampled_from([2**11 * 3, 5**7, 2**14, 2**9 * 10**3]),
    st.integers(0, 3),
    st.integers(0, 10**6),
)
def test_multiples_in_decimal_arithmetic(c: int, places: int, sample: int) -> None:
    """The divisor's multiples, and numbers near them, with more zeros and without."""
    divisor = Decimal(c).scaleb(-places)
    dfa = number_dfa(NumberSet(multiples=(divisor,)))
    others = number_dfa(NumberSet(not_multiples=(divisor,)))
    for units in (sample * c, sample, sample * c + 1, 10 * sample):
        for finer in (0, 1, 2):
            text = written_out(str(units) + "0" * finer, -places - finer)
            assert dfa.accepts(text.encode()) == (units % c == 0), text
            assert others.accepts(text.encode()) == (units % c != 0), text


@pytest.mark.parametrize(("divisor", "states"), [(12, 7), (2**20, 20_290), (5**8, 88), (997, 997), (3 * 2**18, 16_194)])
def test_remainders_that_no_later_digit_tells_apart_are_one_state(divisor: int, states: int) -> None:
    """B. Alexeev 2004, "Minimal DFA for testing divisibility": the formula, and the minimal automaton."""
    dfa = number_dfa(NumberSet(multiples=(divisor,), plain=True))
    assert remainder_states(NumberSet(multiples=(divisor,))) == states
    assert states <= dfa.state_count == minimize(dfa).state_count <= states + 3
    for k in (1, 7, 10**9 + 7):
        assert dfa.accepts(str(k * divisor).encode())
        assert not dfa.accepts(str(k * divisor + 10).encode())


@pytest.mark.parametrize("plain", [None, True, False])
def test_few_multiples_of_a_large_divisor_are_listed(plain: bool | None) -> None:
    large = NumberSet(low=-3_000_009, high=4_000_011, multiples=(1_000_003,), not_multiples=(2_000_006,), plain=plain)
    singles = [NumberSet(low=k * 1_000_003, high=k * 1_000_003, plain=plain) for k in (-3, -1, 1, 3)]
    expected = numbers_dfa(singles, -1)
    assert distinguishing_word(number_dfa(large), expected) is None
    other = NumberSet(low=Decimal("0.5"), high=Decimal("0.75"))
    assert distinguishing_word(numbers_dfa([large, other]), union(expected, number_dfa(other))) is None


def test_multiples_that_are_no_integers_are_listed_too() -> None:
    dfa = number_dfa(NumberSet(low=-5, high=100, multiples=(Decimal("0.123456789"),)))
    for text, is_multiple in [
        ("0", True),
        ("-0.0", True),
        ("12.3456789", True),
        ("12.34567890", True),
        ("12.3", False),
    ]:
        assert dfa.accepts(text.encode()) == is_multiple
    assert dfa.accepts(b"-4.93827156")
    assert not dfa.accepts(b"-5.061728349")  # below -5


@pytest.mark.parametrize("divisor", [1_000_003, Decimal("1000000.7"), 2**40 + 1, 10**40 + 7])
def test_divisors_with_too_many_remainders_are_refused(divisor: Number) -> None:
    with pytest.raises(
        LimitExceeded, match=f"multipleOf {str(divisor)[:40]}.* needs .* more than 100000 states"
    ) as raised:
        number_dfa(NumberSet(multiples=(divisor,)))
    assert raised.value.limit == "states"
    with pytest.raises(LimitExceeded):
        number_dfa(NumberSet(multiples=(divisor,), low=0, high=divisor * MAX_LISTED))


def test_bounds_with_too_many_digits_are_refused() -> None:
    low, high = (Decimal(sign + "3" * 1999 + "." + "1" * 1999) for sign in ("-", ""))
    with pytest.raises(LimitExceeded, match=r"minimum and maximum need .* bounds of fewer digits"):
        number_dfa(NumberSet(low=low, high=high), shift=20)


def test_unions_with_too_many_states_are_refused() -> None:
    sets = [NumberSet(multiples=(divisor,)) for divisor in (997, 991)]
    with pytest.raises(LimitExceeded, match=r"2 sets of numbers together need .* more than 100000 states"):
        numbers_dfa(sets)


def test_two_thousand_digits_are_not_too_many() -> None:
    bound = int("7" * 1999)
    dfa = number_dfa(NumberSet(low=Decimal(f"1e-{1999}"), high=bound))
    assert dfa.accepts(b"7" * 1999)
    assert not dfa.accepts(b"7" * 1998 + b"8")
    assert dfa.accepts(b"1e307")
    assert not dfa.accepts(b"1e1998")
    assert dfa.accepts(b"0." + b"0" * 1998 + b"1")
    assert not dfa.accepts(b"0." + b"0" * 1998 + b"09")


@pytest.mark.parametrize("plain", [None, True, False])
def test_listed_integers_are_the_union_of_one_each(plain: bool | None) -> None:
    runs = range(-200, 900, 5), range(1_000, 1_100), range(7)
    sets = [NumberSet(low=value, high=value, plain=plain) for run in runs for value in run]
    sets += [NumberSet(low=value, high=value) for value in (Decimal("0.5"), Decimal("0.55"), Decimal("-10.25"))]
    sets += [NumberSet(low=2_000, integer=True)]
    together, apart = numbers_dfa(sets, -1), reduce(union, [number_dfa(numbers, -1) for numbers in sets])
    assert distinguishing_word(together, apart) is None


@pytest.mark.parametrize("seed", range(12))
def test_few_single_numbers_have_no_more_states_together_than_apart(seed: int) -> None:
    """What `is_surely_small` rests on: numbers that begin alike, whose exponents and points differ."""
    draw = random.Random(seed)
    digits = "".join(draw.choices("123456789", k=12))
    values = {Decimal(digits[: draw.randint(1, 8)]).scaleb(draw.randint(-6, 6)) for _ in range(6)}
    sets = [NumberSet(low=value, high=value) for value in values]
    assert is_surely_small(sets, SHIFT)
    for shift in (SHIFT, -1):
        parts = [number_dfa(numbers, shift) for numbers in sets]
        assert reduce(union, parts).state_count <= sum(part.state_count for part in parts)
    assert not is_surely_small([*sets, NumberSet(low=10**100, high=10**100)], SHIFT)
    assert not is_surely_small([*sets, NumberSet(low=1)], SHIFT)
