"""The texts of a set of JSON numbers, as a deterministic automaton over bytes.

A JSON number is ``-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?``; zero has texts such as 0, -0, 0.00 and 0e5. Which
texts are in the automaton of a `NumberSet`:

- without exponent: exactly those of the set's numbers, with any zeros at the end of the fraction;
- with exponent, zero: all;
- with exponent, other numbers: of the set's numbers only, but not always all. Where a bound other than 0 has to be
  compared with, the point must be at most `SHIFT` digits away from where scientific notation has it, which is behind
  the first digit other than 0: 12.5e3, 0.05e7, but no point behind the tenth digit. Where a number must be whole or
  divided by a power of ten (or must not), the fraction has at most `FRACTION` digits, and a fraction of zeros does not
  go with a negative exponent (2.50e1, but not 500.0e-1); zeros at the end of the whole digits count up to SHIFT + 1.
  For a divisor 2^a · 10^g or 5^a · 10^g the number must be a multiple of 10^(g + a) (or must not be one of 10^g), and
  for one with other prime factors there are no exponents.

So the automaton never accepts a text of a number that is not in the set, and accepts texts of each number that is. The
texts with an exponent as they are defined by the set alone are no regular language: the digits of the mantissa would
have to be counted without limit, and compared with the exponent. What programs write (one digit before the point, at
most 17 in all, an exponent of any size) is accepted. Without conditions the automaton is that of the grammar above.

A set of plain texts has no exponents at all. States are described in `tokdfa.json_schema.number_states`.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import minimize, union
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import trim_table
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema import number_states as states
from tokdfa.json_schema.number_set import Number, NumberSet, split_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

#: How far from scientific notation the point of a number with an exponent may be, where there are bounds.
SHIFT = 8

#: The most states of one automaton before it is minimised; only multipleOf can need so many.
STATE_LIMIT = 100_000

# The trackers' state is an int32.
_RESIDUE_LIMIT = 2**31 - 1

_BYTE_CLASS = np.zeros(256, dtype=np.uint8)
_BYTE_CLASS[list(b"+-.0123456789E")] = np.arange(1, states.COLUMNS)
_BYTE_CLASS[ord("e")] = _BYTE_CLASS[ord("E")]


def number_dfa(numbers: NumberSet, shift: int = SHIFT) -> Dfa:
    """The texts of these numbers (see above): trim, small, the empty automaton for the empty set.

    `shift`: see `SHIFT`. About 0.1 ms for two bounds. Raises LimitExceeded if divisors need more than `STATE_LIMIT`
    states; c · 10^g, where 10 does not divide c, needs about c + g.
    """
    normal = numbers.normal
    if normal is None:
        return Dfa.empty()
    trackers, places, least, beyond = _plan_divisors(normal)
    first_residue, sizes = 0, 1
    for c, g, _ in trackers:
        first_residue += g * sizes  # 0 loses as many zeros as any divisor asks for
        sizes *= c + g
    if sizes > _RESIDUE_LIMIT:
        raise _too_many_states(normal)
    with_exponent = normal.plain is not True and least < states.FREE
    if not with_exponent:
        shift, least, beyond = -1, -states.FREE, states.FREE
    divided = least > -states.FREE or beyond < states.FREE
    zeros = max(places, states.FRACTION + 1 if divided else 0)
    positive = _plan_side(normal.low, normal.low_open, normal.high, normal.high_open, shift, zeros, normal.multiples)
    low, high = (None if bound is None else _negative(bound) for bound in (normal.low, normal.high))
    negative = _plan_side(high, normal.high_open, low, normal.low_open, shift, zeros, normal.multiples)
    options = [
        shift,
        least,
        beyond,
        places,
        first_residue,
        normal.holds(0),
        normal.plain is not False,
        normal.plain is not True,
        with_exponent,
        bool(normal.multiples),
        positive == negative,
    ]
    table, accepting = states.explore_states_kernel(
        np.array(options, dtype=np.int32),
        np.array([positive[0], negative[0]], dtype=np.int32),
        _table_of_digits(positive[1] + negative[1]),
        np.array(trackers, dtype=np.int32).reshape(-1, 3),
        STATE_LIMIT,
    )
    if len(table) > STATE_LIMIT:
        raise _too_many_states(normal)
    dfa = trim_table(table, _BYTE_CLASS, accepting, 0)
    return minimize(dfa) if any(c > 1 for c, _, _ in trackers) else dfa


def numbers_dfa(sets: Sequence[NumberSet], shift: int = SHIFT) -> Dfa:
    """The texts of all numbers of all sets, minimal if there are several; else as `number_dfa`.

    Whole numbers that follow one another, as in many enumerations, are one set.
    """
    distinct = {numbers.key: numbers.normal for numbers in sets}
    joined = _join_neighbours([numbers for numbers in distinct.values() if numbers is not None])
    automata = [number_dfa(numbers, shift) for numbers in joined]
    if len(automata) < 2:
        return automata[0] if automata else Dfa.empty()
    while len(automata) > 1:  # in pairs, so that of n automata each is copied log2(n) times
        odd = automata[-1:] if len(automata) % 2 else []
        automata = [*map(union, automata[:-1:2], automata[1::2]), *odd]
    return minimize(automata[0])


def _join_neighbours(sets: list[NumberSet]) -> list[NumberSet]:
    """Sets of one whole number each, n, n + 1, .., become one set; the others stay as they are."""
    answer = []
    whole: dict[bool | None, list[int]] = {}
    for numbers in sets:
        value = numbers.low
        if value is not None and value == numbers.high and value == int(value):
            whole.setdefault(numbers.plain, []).append(int(value))
        else:
            answer.append(numbers)
    for plain, values in whole.items():
        values.sort()
        starts = [index for index, value in enumerate(values) if index == 0 or value > values[index - 1] + 1]
        for start, past in pairwise([*starts, len(values)]):
            low, high = values[start], values[past - 1]
            answer.append(NumberSet(low=low, high=high, integer=None if low == high else True, plain=plain))
    return answer


def _plan_divisors(normal: NumberSet) -> tuple[list[tuple[int, int, bool]], int, int, int]:
    """(a tracker (c, g, asked for) for each divisor, the places behind the point that they follow, least, beyond).

    With an exponent, the powers of ten that divide a number are 10^least at least and less than 10^beyond.
    """
    if not normal.not_multiples and (not normal.multiples or (normal.plain and normal.multiples == (1,))):
        return [], -1, -states.FREE, states.FREE  # the grammar of plain texts sees to whole numbers
    least, beyond = -states.FREE, states.FREE
    split = [(*split_number(divisor), asked) for divisor, asked in _divisors(normal)]
    for c, e, asked in split:
        if not asked:
            beyond = min(beyond, e)
            continue
        twos = (c & -c).bit_length() - 1
        fives = 0
        odd = c >> twos
        while odd % 5 == 0:
            odd, fives = odd // 5, fives + 1
        least = e + max(twos, fives) if odd == 1 else states.FREE
    places = max(0, -min(e for _, e, _ in split))
    return [(c, e + places, asked) for c, e, asked in split], places, least, beyond


def _divisors(normal: NumberSet) -> list[tuple[Number, bool]]:
    return [*((divisor, True) for divisor in normal.multiples), *((divisor, False) for divisor in normal.not_multiples)]


def _plan_side(
    low: Number | None,
    low_open: bool,
    high: Number | None,
    high_open: bool,
    shift: int,
    zeros: int,
    multiples: tuple[Number, ...],
) -> tuple[list[int], list[list[int]]]:
    """What the kernel has to know of the magnitudes of one sign: (a row of `sides`, the digits of both bounds).

    `low` and `high` bound the numbers of this sign times that sign.
    """
    if high is not None and high <= 0:
        return [0] * 11, [[], []]
    if low is not None and (low <= 0 or (multiples and low <= multiples[0])):
        low = None  # every multiple but 0 is as large
    row, digits = [1, 0, zeros], []
    for bound, is_open in ((low, low_open), (high, high_open)):
        if bound is None:
            row += [0, 0, 0, 0]
            digits.append([])
            continue
        c, e = split_number(bound)
        digits.append([int(digit) for digit in str(c)])
        first = e + len(digits[-1]) - 1
        row += [1, first, len(digits[-1]), not is_open]
        row[1], row[2] = max(row[1], shift + 1, first + 1), max(row[2], shift + 1, -first)
    return row, digits


def _negative(value: Number) -> Number:
    return -value if isinstance(value, int) else value.copy_negate()  # a minus would round


def _table_of_digits(digits: list[list[int]]) -> npt.NDArray[np.int8]:
    """int8 (2, 2, any): the digits of lower and upper bound of both sides, filled up with zeros."""
    table = np.zeros((4, max(1, *map(len, digits))), dtype=np.int8)
    for row, found in zip(table, digits, strict=True):
        row[: len(found)] = found
    return table.reshape(2, 2, -1)


def _too_many_states(numbers: NumberSet) -> LimitExceeded:
    divisors = " and ".join(str(divisor) for divisor, _ in _divisors(numbers))
    return LimitExceeded(
        f"multipleOf {divisors} needs an automaton of more than {STATE_LIMIT} states, about one for each remainder; "
        f"use a divisor that has fewer digits when the zeros at its end are cut off, or leave multipleOf out",
        limit="states",
        value=STATE_LIMIT,
    )


def _warm_up() -> None:
    """Compile every kernel of number sets."""
    numbers_dfa([NumberSet(low=2, multiples=(3,)), NumberSet(high=Decimal("-0.5"))])
