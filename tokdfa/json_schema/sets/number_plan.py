"""What `tokdfa.json_schema.sets.number_states` compares numbers with, and divides them by.

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
from operator import itemgetter
from typing import NamedTuple

from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.sets.number_set import Number, NumberSet, split_number

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

#: Cases of all trackers together: ten times as many still fit an int32.
CASE_LIMIT = 1 << 27


class Bound(NamedTuple):
    """A bound of magnitudes: the position of its first digit; its digits, the first not 0, nor the last."""

    position: int
    digits: bytes
    is_closed: bool


class Side(NamedTuple):
    """The magnitudes of one sign. The position of a mantissa, and the zeros behind its "0.", are counted up to caps."""

    position_cap: int
    zeros_cap: int
    lower: Bound | None = None
    upper: Bound | None = None


class Tracker(NamedTuple):
    """What follows the remainders of a divisor, which is asked for, or forbidden."""

    c: int
    g: int
    is_asked: bool
    last_level: int

    @property
    def cases(self) -> int:
        """How many states it has."""
        return self.g + self.c * (self.last_level + 1)


def plan_side(normal: NumberSet, sign: int, shift: int, places: int, is_followed: bool) -> Side | None:
    """The numbers of one sign out of a set in normal form, None if there are none. `shift` -1: without exponents;
    `places`: q; `is_followed`: divisors restrict exponents.
    """
    lower, lower_open, upper, upper_open = normal.low, normal.low_open, normal.high, normal.high_open
    if sign < 0:
        lower, lower_open, upper, upper_open = upper, upper_open, lower, lower_open
    if upper is not None and not _is_above_0(upper, sign):
        return None
    bounds: list[Bound | None] = [None, None]
    if lower is not None and _is_above_0(lower, sign):
        bounds[0] = _plan_bound(lower, lower_open)
        if normal.multiples and split_number(lower) == split_number(normal.multiples[0]):
            bounds[0] = None  # all multiples but 0 are as large as the first
    if upper is not None:
        bounds[1] = _plan_bound(upper, upper_open)
    positions = [bound.position for bound in bounds if bound is not None]
    if not positions:
        return Side(0, max(places, FRACTION if is_followed else 0))
    return Side(max(shift, *positions) + 1, max(places, shift + 1, -min(positions)), *bounds)


def _is_above_0(value: Number, sign: int) -> bool:
    return value > 0 if sign > 0 else value < 0  # a product would be rounded


def _plan_bound(bound: Number, is_open: bool) -> Bound:
    c, e = split_number(bound)
    text = str(c)
    return Bound(e + len(text) - 1, text.encode(), not is_open)


def remainder_states(normal: NumberSet) -> int:
    """So many states of an automaton tell apart what later digits make multiples of the divisors of a normal form."""
    return math.prod(tracker.g + _best_level(tracker.c)[1] for tracker in plan_divisors(normal)[0])


def plan_divisors(normal: NumberSet) -> tuple[list[Tracker], int, int, int]:
    """(trackers of the divisors of a set in normal form, q, least, beyond). Without divisors q is -1, and the others
    are -FREE and FREE.
    """
    asked, forbidden = map(split_number, normal.multiples), map(split_number, normal.not_multiples)
    divisors = [*((c, e, True) for c, e in asked), *((c, e, False) for c, e in forbidden)]
    is_plain = normal.plain and normal.multiples == (1,) and not normal.not_multiples  # plain texts are whole anyway
    if is_plain or not divisors:
        return [], -1, -FREE, FREE
    least, beyond = -FREE, FREE
    for c, e, is_asked in divisors:
        if is_asked:
            least = e + _zeros_of_multiples(c)
        else:
            beyond = min(beyond, e)
    places = max(0, -min(e for _, e, _ in divisors))
    trackers = [Tracker(c, e + places, is_asked, _best_level(c)[0]) for c, e, is_asked in divisors]
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
