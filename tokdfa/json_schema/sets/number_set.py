"""Sets of JSON numbers: what the numeric keywords of a schema say, as a conjunction with an exact algebra.

Words. A *number* is a value, a finite decimal fraction; a *text* spells it, often one of many: 1, 1.0 and 10e-1 are one
number. All conditions are about the number but one: a text is *plain* if it has neither point nor exponent. Draft 4
asks this of an integer; later drafts ask for the value to be whole. A set with a condition on plainness is a set of
pairs (number, plain or not); a number that is not whole has no plain text, each number has others (1.0, 1e0).

A `NumberSet` is a conjunction, so intersection joins the conditions, and the complement is one set for each of them.
Divisibility is decided by integer arithmetic: being a multiple of several divisors is being one of their least common
multiple M, and an interval then is one of integers k, the quotients by M. A forbidden divisor n divides k · M iff
lcm(n, M) / M divides k. Without any divisor asked for, the numbers between two bounds are dense, and forbidden divisors
leave some of them, unless both bounds are one number.

Numbers are int or Decimal, and nothing here rounds: Decimal is only compared and taken apart, as its arithmetic rounds
to a precision. `DIGITS` limits their size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from tokdfa.core.budget import spend
from tokdfa.core.locks import cached_property
from tokdfa.errors import LimitExceeded, OptionError

Number: TypeAlias = int | Decimal

#: The most digits a number may have before the point, and behind it, counting those that its exponent stands for.
#: Automata of bounds have at least as many states as the bounds have digits; a double has up to 309 and 1074.
DIGITS = 2000

#: Work (`tokdfa.core.budget`) of taking a divisor apart, and of a division.
NS_PER_DIVISOR, NS_PER_DIVISION = 3_000, 100

#: Integers below are read digit by digit without a Decimal in between, in a third of the time.
SHORT = 10**18

_BITS = int(DIGITS * math.log2(10))  # the bits of an integer of so many digits


@dataclass(frozen=True)
class NumberSet:
    """All numbers, and texts of them, that meet every condition. The default is all numbers in all texts.

    `low`, `high`: bounds, without the bound itself if `low_open`, `high_open`; None: no bound. `integer`: True: whole
    numbers (1.0 is one), False: all others, None: both. `plain`: True: texts without point and exponent, False: texts
    with one, None: both. `multiples`, `not_multiples`: what must divide the number, and what must not; above 0.

    Raises OptionError for a condition that is no finite int or Decimal or a divisor not above 0, LimitExceeded for one
    of more than `DIGITS` digits. All operations are exact. Numbers compare by value, as in ``Decimal("1.0") == 1``.
    """

    low: Number | None = None
    low_open: bool = False
    high: Number | None = None
    high_open: bool = False
    integer: bool | None = None
    plain: bool | None = None
    multiples: tuple[Number, ...] = ()
    not_multiples: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        if self.low is not None:
            _check(self.low)
        if self.high is not None:
            _check(self.high)
        for divisor in self.multiples + self.not_multiples:
            _check(divisor)
            if divisor <= 0:
                raise OptionError(f"a divisor (multipleOf) is above 0, not {divisor}")

    @property
    def is_single(self) -> bool:
        """Whether both bounds are one number."""
        return self.low is not None and self.low == self.high

    def intersect(self, other: NumberSet) -> NumberSet:
        """What belongs to both."""
        if other == _ALL or self == other:
            return self
        if self == _ALL:
            return other
        if self.low is not None and self.low == self.high and other.plain is None:  # as each number of a long list
            return self if other.holds(self.low) else NO_NUMBERS
        if {self.integer, other.integer} >= {True, False} or {self.plain, other.plain} >= {True, False}:
            return NO_NUMBERS
        divisors = len(self.multiples) + len(other.multiples) + len(self.not_multiples) + len(other.not_multiples)
        spend(NS_PER_DIVISOR * divisors)
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        if low is None or (other.low is not None and other.low > low):
            low, low_open = other.low, other.low_open
        elif low == other.low:
            low_open |= other.low_open
        if high is None or (other.high is not None and other.high < high):
            high, high_open = other.high, other.high_open
        elif high == other.high:
            high_open |= other.high_open
        return NumberSet(
            low,
            low_open,
            high,
            high_open,
            other.integer if self.integer is None else self.integer,
            other.plain if self.plain is None else self.plain,
            tuple(dict.fromkeys(self.multiples + other.multiples)),
            tuple(dict.fromkeys(self.not_multiples + other.not_multiples)),
        )

    def complement(self) -> list[NumberSet]:
        """Sets whose union is what does not belong to this one, one for each condition. They may overlap."""
        sets = []
        if self.low is not None:
            sets.append(NumberSet(high=self.low, high_open=not self.low_open))
        if self.high is not None:
            sets.append(NumberSet(low=self.high, low_open=not self.high_open))
        if self.integer is not None:
            sets.append(NumberSet(integer=not self.integer))
        if self.plain is not None:
            sets.append(NumberSet(plain=not self.plain))
        sets += [NumberSet(not_multiples=(divisor,)) for divisor in self.multiples]
        sets += [NumberSet(multiples=(divisor,)) for divisor in self.not_multiples]
        return sets

    def is_empty(self) -> bool:
        """Whether nothing belongs to this set. Exact."""
        return self.normal is None

    def holds(self, value: Number, plain: bool | None = None) -> bool:
        """Whether `value`, of any size, is in this set, in a plain text or not; `plain` None: in any text at all."""
        _check_kind(value)
        return (
            (self.low is None or value > self.low or (value == self.low and not self.low_open))
            and (self.high is None or value < self.high or (value == self.high and not self.high_open))
            and (self.integer is None or _divides(1, value) == self.integer)
            and (self.plain is None or plain is None or plain == self.plain)
            and (_divides(1, value) or not (plain or self.plain))
            and all(_divides(divisor, value) for divisor in self.multiples)
            and not any(_divides(divisor, value) for divisor in self.not_multiples)
        )

    @cached_property
    def key(self) -> bytes:
        """Equal keys, equal sets: the conditions of `normal`, the numbers without regard to their spelling."""
        if self.normal is None:
            return b"empty"
        numbers = self.normal
        bounds = "".join(
            " " if bound is None else f"{'()'[upper] if is_open else '[]'[upper]}{_spell(bound)}"
            for upper, (bound, is_open) in enumerate(
                ((numbers.low, numbers.low_open), (numbers.high, numbers.high_open))
            )
        )
        divisors = " ".join(map(_spell, numbers.multiples)), " ".join(map(_spell, numbers.not_multiples))
        return f"{bounds}|{numbers.plain}|{divisors[0]}|{divisors[1]}".encode()

    @cached_property
    def normal(self) -> NumberSet | None:
        """The same set in a normal form; None for the empty one.

        `integer` is None: a divisor 1 says the same. There is at most one divisor asked for, bounds are multiples of it
        and closed, and a single number has no other condition than its bounds (and `plain`). Forbidden divisors are
        multiples of it; none is a multiple of another.
        """
        low, low_open, high, high_open = self.low, self.low_open, self.high, self.high_open
        if low is not None and high is not None and low >= high:
            if low > high or low_open or high_open or not self.holds(low):
                return None
            is_normal = self.integer is None and not self.multiples and not self.not_multiples
            return self if is_normal else NumberSet(low=low, high=high, plain=self.plain)
        asked, forbidden = self.multiples, self.not_multiples
        if self.integer or self.plain:
            asked += (1,)
        if self.integer is False:
            forbidden += (1,)
        if not asked and not forbidden:
            return self
        spend(NS_PER_DIVISOR * (len(asked) + len(forbidden)))
        places = max(map(_places, asked + forbidden))
        avoided = {_scale(divisor, places) for divisor in forbidden}
        if not asked:
            thinned = _unscale_all(_without_multiples(avoided), places)
            return NumberSet(low, low_open, high, high_open, None, self.plain, (), thinned)
        unit = 1
        for divisor in asked:
            scaled = _scale(divisor, places)
            spend(NS_PER_DIVISOR + (unit.bit_length() + scaled.bit_length()) * scaled.bit_length() // 100)
            unit = math.lcm(unit, scaled)
        steps = _without_multiples({math.lcm(n, unit) // unit for n in avoided})
        if 1 in steps:
            return None
        first = None if low is None else _first_quotient(low, 1, low_open, unit, places)
        last = None if high is None else -_first_quotient(high, -1, high_open, unit, places)
        if first is not None:
            first = _next_allowed(first, last, steps)
        if last is not None:
            last = -_next_allowed(-last, None if first is None else -first, steps)
        if first is not None and last is not None and first > last:
            return None
        low = None if first is None else _unscale(first * unit, places)
        high = None if last is None else _unscale(last * unit, places)
        if first is not None and first == last:
            return NumberSet(low=low, high=high, plain=self.plain)
        thinned = _unscale_all({step * unit for step in steps}, places)
        return NumberSet(low, False, high, False, None, self.plain, (_unscale(unit, places),), thinned)

    def multiples_between(self, most: int) -> list[NumberSet] | None:
        """A set for each number of a normal form with a divisor and two bounds; None if they may be over `most`."""
        if self.low is None or self.high is None or not self.multiples:
            return None
        places = max(map(_places, (self.low, self.high, self.multiples[0])))
        low, high, unit = (_scale(value, places) for value in (self.low, self.high, self.multiples[0]))
        if (high - low) // unit >= most:
            return None
        spend(NS_PER_DIVISION * ((high - low) // unit + 1) * (1 + len(self.not_multiples)))
        values = (_unscale(value, places) for value in range(low, high + 1, unit))
        return [NumberSet(low=value, high=value, plain=self.plain) for value in values if self.holds(value)]


def split_number(value: Number) -> tuple[int, int]:
    """(c, e) such that the magnitude of `value` is c · 10^e, and 10 does not divide c; (0, 0) for zero."""
    if type(value) is int and -SHORT < value < SHORT:
        digits, exponent = str(abs(value)), 0
    else:
        _, listed, exponent = Decimal(value).as_tuple()  # type: ignore[assignment]
        digits = "".join(map(str, listed))
    text = digits.rstrip("0")
    return (int(text), exponent + len(digits) - len(text)) if text else (0, 0)


def written_out(value: Number) -> str:
    """A number without an exponent, as short as can be."""
    c, e = split_number(value)
    sign, shown = "-" if value < 0 else "", str(c)
    if e >= 0:
        return sign + shown + "0" * e
    shown = shown.rjust(1 - e, "0")
    return f"{sign}{shown[:e]}.{shown[e:]}"


def _check(value: Number) -> None:
    """Refuses what is no exact number, or a condition of too many digits."""
    _check_kind(value)
    if isinstance(value, int):
        is_long = value.bit_length() > _BITS
    else:
        is_long = value != 0 and (value.adjusted() >= DIGITS or int(value.as_tuple().exponent) < -DIGITS)
    if is_long:
        raise LimitExceeded(
            f"a number of the schema near {Decimal(value):.3e} has more than {DIGITS} digits before or behind the "
            f"point; use one with fewer, or leave the keyword out",
            limit="digits",
            value=DIGITS,
        )


def _check_kind(value: Number) -> None:
    if type(value) is not int and (type(value) is not Decimal or not value.is_finite()):
        raise OptionError(f"a number of a schema is an int or a finite Decimal, not {value!r}")


def _divides(divisor: Number, value: Number) -> bool:
    if type(divisor) is int and type(value) is int:
        return value % divisor == 0
    c, e = split_number(value)
    d, f = split_number(divisor)
    # with e < f the value would have to lose zeros that it does not have
    return c == 0 or (e >= f and c * pow(10, e - f, d) % d == 0)


def _places(value: Number) -> int:
    """How many digits there are behind the point."""
    return 0 if type(value) is int else max(0, -split_number(value)[1])


def _scale(value: Number, places: int) -> int:
    """`value` times 10^places, which is whole."""
    if type(value) is int:
        return value * 10**places
    c, e = split_number(value)
    return (c if value >= 0 else -c) * 10 ** (e + places) if c else 0


def _unscale(value: int, places: int) -> Number:
    """`value` divided by 10^places, as an int if it is whole."""
    if not places:
        return value
    whole, rest = divmod(value, 10**places)
    sign, digits, _ = Decimal(value).as_tuple()
    return Decimal((sign, digits, -places)) if rest else whole  # Decimal.scaleb would round


def _unscale_all(values: set[int], places: int) -> tuple[Number, ...]:
    return tuple(_unscale(value, places) for value in sorted(values))


def _spell(value: Number) -> str:
    """The same text for all spellings of a number."""
    c, e = split_number(value)
    return f"{'-' if value < 0 else ''}{c}e{e}"


def _without_multiples(divisors: set[int]) -> set[int]:
    """Those that are not multiples of others: what the others do not divide, these do not either."""
    spend(NS_PER_DIVISION * len(divisors) ** 2)
    return {n for n in divisors if not any(n != other and n % other == 0 for other in divisors)}


def _first_quotient(bound: Number, sign: int, is_open: bool, unit: int, places: int) -> int:
    """The least k such that k · unit / 10^places is sign · bound or more; more, if `is_open`."""
    finer = max(places, _places(bound))
    below, rest = divmod(sign * _scale(bound, finer), unit * 10 ** (finer - places))
    return below + 1 if rest or is_open else below


def _next_allowed(first: int, last: int | None, steps: set[int]) -> int:
    """The least of first, first + 1, .. up to `last` that no step divides; last + 1 if there is none.

    Few numbers are tried: m steps, all above 1, divide fewer than 2^m numbers in a row (H.-J. Kanold, "Über eine
    zahlentheoretische Funktion von Jacobsthal", 1967), and in fact about m² at most (H. Iwaniec 1978).
    """
    while (last is None or first <= last) and any(first % step == 0 for step in steps):
        spend(NS_PER_DIVISION * len(steps))
        first += 1
    return first


_ALL = NumberSet()

#: The empty set.
NO_NUMBERS = NumberSet(low=1, high=0)
