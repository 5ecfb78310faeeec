"""A number set as the flat array that the kernels of `tokdfa.json_schema.number_states` read, and its divisors.

Bounds become digits and the position of the first of them, for the magnitudes of both signs.

Divisors. A text without exponent is followed by a remainder for each divisor (a *tracker*). Let q be the most fraction
digits of any divisor. The digits up to the q-th behind the point spell an integer V, and 10^q times a divisor is
c · 10^g, where 10 does not divide c. Whether it divides V follows from V mod c and, where that is 0, from the number
of zeros (up to g) that V loses before c stops dividing it. A digit other than 0 further behind is *off the grid*: no
divisor divides this number.

Remainders. Of V mod c no more is kept than later digits can tell. i digits turn V into V · 10^i + w, so a V that no i
digits complete to a multiple, for i below a *level*, is known by V mod c / gcd(c, 10^level); the others by the least
i and V mod c / gcd(c, 10^i). With the best last level these are all states of the minimal automaton of c's multiples
(B. Alexeev, "Minimal DFA for testing divisibility", J. Comput. Syst. Sci. 69, 2004): c if it has no divisor in common
with 10, 20,290 for 2^20, 88 for 5^8.

Divisors and exponents. If there is an exponent, a power of ten stands for each divisor: the number must be a multiple
of 10^least and not be one of 10^beyond. For a divisor 10^g this is exact. A multiple of 10^(g + a) is one of 2^a · 10^g
and of 5^a · 10^g, and what is no multiple of 10^g is none of c · 10^g: enough, though not necessary. If a divisor with
other prime factors is asked for, no exponent is allowed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.number_set import Number, NumberSet, split_number

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int32]

#: Where divisors matter, a mantissa with an exponent has at most so many fraction digits. Each costs 5 to 10 states.
FRACTION = 8

#: The most states of an automaton before it is minimised. Only multipleOf, or bounds of thousands of digits, need more.
STATE_LIMIT = 100_000

#: Multiples between two bounds that are listed, where remainders are too many.
MAX_LISTED = 10_000

#: Exponents of a number that anything is demanded of lie between this and its negative. What is spelled with an
#: exponent is a double to most readers, and must be neither infinite nor 0 to them if the number is not.
EXPONENT_LIMIT = 307

#: No limit, for an exponent or a number of digits.
FREE = 1 << 24

ANY_NUMBER = NumberSet()

# Entries of a plan. First the limit of the mantissa's position; least and beyond, -FREE and FREE for none; q, or -1 if
# there are no trackers; the trackers' state at V = 0.
SHIFT, LEAST, BEYOND, PLACES, RESIDUE_0 = range(5)
# Then flags: zero belongs to the set; there are texts without, and with, point or exponent; zero, and other numbers,
# may have exponents; some divisor is asked for; all trackers have c = 1; both signs have the same texts;
# exponents have limits of their own.
WITH_ZERO, WITH_PLAIN, WITH_POINT, ZERO_EXPONENT, WITH_EXPONENT, ASKED, ONLY_TENS, SAME_SIGNS, LIMITED = range(5, 14)
# Then how many trackers there are, and for the positive and the negative numbers: they exist; the cap of the mantissa's
# position and of the zeros behind "0."; and of the lower bound of magnitudes, then of the upper: exists, position of
# the first digit, number of digits, closed, and where in the plan the digits are, the first not 0, nor the last.
TRACKERS, SIDES, SIDE_SIZE = 14, 15, 13
EXISTS, K_CAP, ZEROS_CAP, LOWER, UPPER = 0, 1, 2, 3, 8
# Then four entries for each tracker (c, g, whether it is asked for or forbidden, the last level), and the digits.
_FIRST_TRACKER, _TRACKER_SIZE = SIDES + 2 * SIDE_SIZE, 4

# Cases of all trackers together: ten times as many still fit an int32.
_CASE_LIMIT = 1 << 27

# What comes of a residue once V is read.
GOOD, BAD, OFF_GRID = -1, -2, -3


def plan_numbers(normal: NumberSet, shift: int) -> Ints:
    """The plan of a set in normal form; `shift` -1 means no exponents. LimitExceeded if remainders are too many."""
    trackers, places, least, beyond = _plan_divisors(normal)
    residue_0, cases = 0, 1
    for c, g, _, last in trackers:
        residue_0 += g * cases  # 0 loses any number of zeros
        cases *= g + c * (last + 1)
    if cases > _CASE_LIMIT:
        raise too_many_states(normal)
    zero_exponent = shift >= 0 and normal.plain is not True
    with_exponent = zero_exponent and least < FREE
    if not with_exponent:
        shift, least, beyond = -1, -FREE, FREE
    followed = least > -FREE or beyond < FREE
    sides = [_plan_side(normal, sign, shift, max(places, 0), followed) for sign in (1, -1)]
    plan = [
        shift,
        least,
        beyond,
        places,
        residue_0,
        normal.holds(0),
        normal.plain is not False,
        normal.plain is not True,
        zero_exponent,
        with_exponent,
        bool(normal.multiples),
        all(c == 1 for c, *_ in trackers),
        sides[0] == sides[1],
        replace(normal, plain=None) != ANY_NUMBER,
        len(trackers),
    ]
    start = _FIRST_TRACKER + _TRACKER_SIZE * len(trackers)
    digits = ""
    for entries, bounds in sides:
        plan += entries
        for exists, position, text, is_closed in bounds:
            plan += exists, position, len(text), is_closed, start + len(digits)
            digits += text
    for tracker in trackers:
        plan += tracker
    plan += map(int, digits)
    return np.array(plan, dtype=np.int32)


_NO_BOUND = (False, 0, "", False)


def _plan_side(
    normal: NumberSet, sign: int, shift: int, places: int, followed: bool
) -> tuple[tuple[int, int, int], list[tuple[bool, int, str, bool]]]:
    """(the first entries for one sign, (exists, position of the first digit, digits, closed) of its bounds)."""
    lower, lower_open, upper, upper_open = normal.low, normal.low_open, normal.high, normal.high_open
    if sign < 0:
        lower, lower_open, upper, upper_open = upper, upper_open, lower, lower_open
    if upper is not None and not _is_above_0(upper, sign):
        return (0, 0, 0), [_NO_BOUND, _NO_BOUND]
    bounds = [_NO_BOUND, _NO_BOUND]
    if lower is not None and _is_above_0(lower, sign):
        bounds[0] = _plan_bound(lower, lower_open)
        if normal.multiples and split_number(lower) == split_number(normal.multiples[0]):
            bounds[0] = _NO_BOUND  # all multiples but 0 are as large as the first
    if upper is not None:
        bounds[1] = _plan_bound(upper, upper_open)
    positions = [position for exists, position, _, _ in bounds if exists]
    if not positions:
        return (1, 0, max(places, FRACTION if followed else 0)), bounds
    return (1, max(shift, *positions) + 1, max(places, shift + 1, -min(positions))), bounds


def _is_above_0(value: Number, sign: int) -> bool:
    return value > 0 if sign > 0 else value < 0  # a product would be rounded


def _plan_bound(bound: Number, is_open: bool) -> tuple[bool, int, str, bool]:
    c, e = split_number(bound)
    text = str(c)
    return True, e + len(text) - 1, text, not is_open


def remainder_states(normal: NumberSet) -> int:
    """So many states of an automaton tell apart what later digits make multiples of the divisors of a normal form."""
    return math.prod(g + _best_level(c)[1] for c, g, *_ in _plan_divisors(normal)[0])


def _plan_divisors(normal: NumberSet) -> tuple[list[tuple[int, int, bool, int]], int, int, int]:
    """((c, g, asked for, last level) of each divisor, q, least, beyond)."""
    if normal.plain and normal.multiples == (1,) and not normal.not_multiples:
        return [], -1, -FREE, FREE  # no plain text spells anything else
    asked, forbidden = map(split_number, normal.multiples), map(split_number, normal.not_multiples)
    divisors = [*((c, e, True) for c, e in asked), *((c, e, False) for c, e in forbidden)]
    if not divisors:
        return [], -1, -FREE, FREE
    least, beyond = -FREE, FREE
    for c, e, is_asked in divisors:
        if is_asked:
            least = e + _zeros_of_multiples(c)
        else:
            beyond = min(beyond, e)
    places = max(0, -min(e for _, e, _ in divisors))
    trackers = [(c, e + places, is_asked, _best_level(c)[0]) for c, e, is_asked in divisors]
    return trackers, places, min(least, FREE), beyond


def _best_level(c: int) -> tuple[int, int]:
    """(the last level with which the remainders of `c` are fewest, how many these are at most)."""
    best, near, level = (0, c), 0, 0
    while near < best[1]:
        common = math.gcd(c, 10**level)
        best = min(best, (level, near + c // common), key=itemgetter(1))
        near, level = near + 10**level // common, level + 1
    return best


def _zeros_of_multiples(c: int) -> int:
    """The least a such that `c`, which 10 does not divide, divides 10^a; FREE if there is none."""
    twos = (c & -c).bit_length() - 1
    c >>= twos
    fives = 0
    while c % 5 == 0:
        c, fives = c // 5, fives + 1
    return max(twos, fives) if c == 1 else 2 * FREE


def too_many_states(numbers: NumberSet) -> LimitExceeded:
    """The error for a set whose automaton needs too many states."""
    written = map(str, numbers.multiples + numbers.not_multiples)
    divisors = " and ".join(number if len(number) <= 40 else f"{number[:40]}…" for number in written)
    reason = (
        f"multipleOf {divisors} needs an automaton of more than {STATE_LIMIT} states, one for each remainder; "
        f"use a divisor that has fewer digits without the zeros at its end, or minimum and maximum with at most "
        f"{MAX_LISTED} multiples between them, or leave multipleOf out"
        if divisors
        else f"minimum and maximum need an automaton of more than {STATE_LIMIT} states; "
        f"use bounds of fewer digits, or a smaller shift"
    )
    return LimitExceeded(reason, limit="states", value=STATE_LIMIT)


@kernel
def divide_digit_kernel(plan: Ints, residue: int, digit: int) -> int:
    """The trackers' state after one more digit of V: a number in mixed radix, g + c (last level + 1) cases for each.

    The cases: 0 .. g where c divides V, the zeros that V may lose; g + c level + remainder otherwise.
    """
    answer, weight = 0, 1
    for tracker in range(_FIRST_TRACKER, _FIRST_TRACKER + _TRACKER_SIZE * plan[TRACKERS], _TRACKER_SIZE):
        c, g, last = np.int64(plan[tracker]), plan[tracker + 1], plan[tracker + 3]
        cases = g + c * (last + 1)
        case = residue % cases
        residue //= cases
        known = max(case - g, 0)
        rest, first = (10 * (known % c) + digit) % c, max(known // c - 1, 0)  # none below `first` is possible
        level, kept, power = 0, c, 1  # kept: c / gcd(c, power)
        while level < last and not (level >= first and -rest * power % c < power):
            kept //= (1 if kept % 2 else 2) * (1 if kept % 5 else 5)
            level, power = level + 1, 10 * power
        rest %= kept
        if level or rest:
            case = g + c * level + rest
        elif case <= g and digit == 0:
            case = min(case + 1, g)
        else:
            case = 0
        answer += case * weight
        weight *= cases
    return answer


@kernel
def check_divisors_kernel(plan: Ints, residue: int, place: int) -> bool:
    """Whether the divisors allow a number without exponent that ends here, `place` digits behind the point."""
    if residue < 0 or plan[PLACES] < 0:
        return residue >= GOOD or (residue == OFF_GRID and not plan[ASKED])
    for _ in range(place, plan[PLACES]):
        residue = divide_digit_kernel(plan, residue, 0)
    for tracker in range(_FIRST_TRACKER, _FIRST_TRACKER + _TRACKER_SIZE * plan[TRACKERS], _TRACKER_SIZE):
        c, g, last = plan[tracker], plan[tracker + 1], plan[tracker + 3]
        cases = g + c * (last + 1)
        if (residue % cases == g) != plan[tracker + 2]:
            return False
        residue //= cases
    return True
