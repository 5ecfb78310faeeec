r"""The texts of a set of JSON numbers, as a deterministic automaton over bytes.

A JSON number is ``-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?``; zero has texts such as 0, -0, 0.00 and 0e5. Which
texts are in the automaton of a `NumberSet`:

- without exponent: exactly those of the set's numbers, with any zeros at the end of the fraction;
- with exponent, zero: all;
- with exponent, other numbers: of the set's numbers only, but not of all mantissas:

  - where a bound other than 0 has to be compared with, the point must be at most `SHIFT` digits away from where
    scientific notation has it, behind the first digit other than 0: 1.25e3, 1250e0 and 0.00125e6, if SHIFT is 3;
  - where a number must be whole, or a multiple of a power of ten (or must not), the fraction has at most `FRACTION`
    digits, of which the last is not 0, unless all are; and the exponent is at least the number of these digits:
    2.5e1, 2.0e1, but neither 2.50e1 nor 200e-1;
  - the exponent is between -EXPONENT_LIMIT and EXPONENT_LIMIT, unless nothing at all is demanded;
  - for multiples of 2^a · 10^g or 5^a · 10^g, the number must be a multiple of 10^(g + a); for other divisors, there
    are no exponents.

So the automaton accepts no text of a number that is not in the set, and some text of each number that is. All texts
with exponents of a set are no regular language: an automaton would have to count the digits of the mantissa without
limit, and compare with the exponent. What programs write, one digit before the point, is there whatever the bounds.
Without any condition the automaton is that of the grammar above. A set of plain texts has no exponents.

Sizes, in states: any number 11; whole numbers 68; 0 to 100: 84; one number about 40; whole numbers of 64 bits 629.
Without exponents: 8, 8, 17, 4 and 124.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import minimize, union
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import trim_table
from tokdfa.constraint import Regex
from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.sets.number_exploration import COLUMNS, explore_states
from tokdfa.json_schema.sets.number_plan import MAX_LISTED, STATE_LIMIT, remainder_states
from tokdfa.json_schema.sets.number_set import NumberSet, written_out
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Sequence

#: How far from scientific notation the point of a number with an exponent may be, where there are bounds: as far as
#: engineering notation has it. Each digit costs about 15 states, and 8 us.
SHIFT = 3

#: Whole numbers that follow one another and are listed one by one, if they are fewer and there are no exponents: the
#: pattern of so many takes as long as the automaton of their bounds.
SHORT_RUN = 32
#: Digits of single numbers with exponents, and without, of which the union is surely within `STATE_LIMIT`.
SURE_DIGITS, SURE_PLAIN_DIGITS = 100, 10_000

#: Work (`tokdfa.core.budget`) of a set of numbers, and of an automaton of one.
NS_PER_SET, NS_PER_AUTOMATON = 30_000, 60_000


#: A point behind a whole number, by whether its texts are plain.
_POINT = {None: "([.]0+)?", True: "", False: "[.]0+"}

#: uint8, shape (256,): the column of each byte in tables of numbers.
BYTE_CLASS = np.zeros(256, dtype=np.uint8)
BYTE_CLASS[list(b"+-.0123456789E")] = np.arange(1, COLUMNS)
BYTE_CLASS[ord("e")] = BYTE_CLASS[ord("E")]


def number_dfa(numbers: NumberSet, shift: int = SHIFT) -> Dfa:
    """The texts of these numbers (see above): trim, small, the empty automaton for the empty set.

    `shift`: see `SHIFT`; -1 means no exponents at all, which leaves few states. O(states): about 0.1 ms for two small
    bounds. Raises LimitExceeded if divisors need more than `STATE_LIMIT` states (`tokdfa.json_schema.sets.number_plan`
    says how many they need) and there are more than `MAX_LISTED` multiples, or no end to them.
    """
    normal = numbers.normal
    if normal is None:
        return Dfa.empty()
    if listed := _list_multiples(normal):
        return numbers_dfa(listed, -1)
    table, accepting, is_small = explore_states(normal, shift)
    dfa = trim_table(table, BYTE_CLASS, accepting, 0)
    return dfa if is_small and not _is_everyday(normal, shift) else minimize(dfa)


def _is_everyday(normal: NumberSet, shift: int) -> bool:
    """Whether most schemas have such numbers, so that the minimal automaton is worth its time: all numbers, and whole
    ones with no bound but 0 or 1 below.
    """
    is_free = normal.high is None and not normal.not_multiples and normal.integer is None
    if not is_free or normal.multiples not in ((), (1,)) or normal.low not in (None, 0, 1) or normal.low_open:
        return False
    if not normal.multiples:
        return normal.low is None and normal.plain is None
    return shift < 0 or normal.plain is True or (normal.plain is None and shift == SHIFT)


def numbers_dfa(sets: Sequence[NumberSet], shift: int = SHIFT) -> Dfa:
    """The texts of all numbers of all sets, minimal if there are several; else as `number_dfa`.

    Whole numbers that follow one another, as in many enumerations, are one set. About 0.1 ms for each single number.
    Raises LimitExceeded as `number_dfa` does, or if the union needs more than `STATE_LIMIT` states.
    """
    spend(NS_PER_SET * len(sets))
    distinct = [numbers.normal for numbers in {numbers.key: numbers for numbers in sets}.values()]
    several = [numbers for numbers in distinct if numbers is not None]
    if len(several) > 1:
        lists = list(map(_list_multiples, several))
        if listed := [single for singles in lists for single in singles]:
            rest = [numbers for numbers, singles in zip(several, lists, strict=True) if not singles]
            return minimize(union(numbers_dfa(listed, -1), numbers_dfa(rest, shift)))
    joined = _join_neighbours(several, SHORT_RUN if shift < 0 else 2)
    if len(joined) < 2:
        return number_dfa(joined[0], shift) if joined else Dfa.empty()
    singles = [numbers for numbers in joined if numbers.is_single] if shift < 0 else []
    parts = [number_dfa(numbers, shift) for numbers in joined if shift >= 0 or not numbers.is_single]
    if singles:
        parts.append(compile_dfa(Regex(_listed_pattern(singles))))
    spend(NS_PER_AUTOMATON * len(parts))
    try:
        return minimize(_union_of(parts))
    except LimitExceeded as error:
        if is_spent(error):
            raise
        message = (
            f"{len(joined)} sets of numbers together need an automaton of more than {STATE_LIMIT} states; leave out"
            " alternatives, or their multipleOf"
        )
        raise LimitExceeded(message, limit="states", value=STATE_LIMIT) from None


def _union_of(parts: Sequence[Dfa]) -> Dfa:
    """The union of automata, half with half."""
    half = len(parts) // 2
    return union(_union_of(parts[:half]), _union_of(parts[half:])) if half else parts[0]


def _list_multiples(normal: NumberSet) -> list[NumberSet]:
    """The single numbers of a set in normal form, if its remainders are too many; nothing if they do, or these are."""
    if not (normal.multiples or normal.not_multiples) or remainder_states(normal) <= STATE_LIMIT:
        return []
    return normal.multiples_between(MAX_LISTED) or []


def _listed_pattern(singles: list[NumberSet]) -> str:
    """The texts of single numbers without exponents."""
    texts: dict[str, list[str]] = {}
    for single in singles:
        assert single.low is not None
        text = written_out(single.low)
        listed = texts.setdefault("0*" if "." in text else _POINT[single.plain], [])
        listed.append("-?0" if text == "0" else text.replace(".", "[.]"))
    return "|".join(f"({'|'.join(listed)}){end}" for end, listed in texts.items())


def is_surely_small(sets: Sequence[NumberSet], shift: int) -> bool:
    """Whether `numbers_dfa` of some sets in normal form is surely not refused: they are single numbers of few digits.

    What they have read says in which states the automata of single numbers are. Without exponents that is a beginning
    of one of the texts, or zeros behind its point. With exponents a number of n digits has about 15 n states, and those
    with equal first digits differ in their exponents alone.
    """
    digits = 0
    for numbers in sets:
        if numbers.low is None or numbers.low != numbers.high:
            return False
        digits += len(written_out(numbers.low))
    return digits <= (SURE_DIGITS if shift >= 0 else SURE_PLAIN_DIGITS)


def _join_neighbours(sets: list[NumberSet], least: int) -> list[NumberSet]:
    """`least` sets or more of one whole number each, n, n + 1, .., become one set; the others stay as they are. All in
    normal form.
    """
    answer = []
    whole: dict[bool | None, dict[int, NumberSet]] = {}
    for numbers in sets:
        value = numbers.low
        if value is not None and value == numbers.high and value == int(value):
            whole.setdefault(numbers.plain, {})[int(value)] = numbers
        else:
            answer.append(numbers)
    for plain, single in whole.items():
        values = sorted(single)
        starts = [index for index, value in enumerate(values) if index == 0 or value > values[index - 1] + 1]
        for start, past in pairwise([*starts, len(values)]):
            run = values[start:past]
            if len(run) < least:
                answer += map(single.__getitem__, run)
            else:
                answer.append(NumberSet(low=run[0], high=run[-1], plain=plain, multiples=(1,)))  # a normal form
    return answer
