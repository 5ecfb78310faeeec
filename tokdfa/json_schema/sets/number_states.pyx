"""The states of the automaton of a number set, and where they lead.

A text is a *mantissa* (sign, whole digits, point, fraction digits) and perhaps an *exponent* x. Its *significant*
digits d₀d₁d₂.. begin with the first that is not 0, whose *position* is k: the mantissa is ±d₀.d₁d₂.. · 10^k, so k is
one less than the number of whole digits, or -1 less the zeros behind "0.". Zero has no significant digits; its texts
are states of their own.

Bounds. Write a bound in the same way, b₀.b₁b₂.. · 10^E. The text is above it iff k + x > E, or k + x = E and d₀d₁d₂..
comes after b₀b₁b₂.. in dictionary order, where missing digits are zeros. So while digits are read it is enough to know
k and a *comparison* of the digits with those of the bound: less, equal so far, or more. It is *settled* by the first
digit that differs. At the end of the mantissa, a lower and an upper bound leave an interval of exponents,

    E_low - k (+ 1 if the digits are too small)  <=  x  <=  E_high - k (- 1 if the digits are too large),

and a text without exponent has x = 0. No automaton can follow k without limit: where there is a bound to compare with,
an exponent is accepted for -1 - shift <= k <= shift only.

Divisors. Texts without exponent are followed by remainders, and a text with exponent must be a multiple of 10^least and
not be one of 10^beyond (see `tokdfa.json_schema.sets.number_plan`). A mantissa whose last digit other than 0 is the
l-th behind the point, l = 0 if it is a whole digit, leaves the exponents

    least + l  <=  x  <  beyond + l.

For l = 0, `least` is more than necessary if the whole digits end in zeros, and `beyond` needs that they do not. For
l > 0 no exponent is allowed behind further zeros, nor if l > FRACTION.

`tokdfa.json_schema.sets.number_exponents` has the exponents.

A state is a `Row` in a normal form, such that prefixes with equal futures mostly have equal rows. What is left to
merge, and dead ends, are for `tokdfa.automata`.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from tokdfa.json_schema.sets.number_exponents cimport follow_exponent
from tokdfa.json_schema.sets.number_rows cimport (
    BAD, COUNTED, DIGIT_0, DOT, EQUAL, EXPONENT, FRACTION_DIGITS, GOOD, LESS, LOWER, MINUS, MORE, OFF_GRID, PLUS, POINT,
    SIGN, SIGNED, START, UPPER, WHOLE, ZERO, ZERO_POINT, ZEROS, Row,
)

import math
from dataclasses import replace

from tokdfa.json_schema.sets import number_plan

cdef int FREE = number_plan.FREE, FRACTION = number_plan.FRACTION


cdef int take_side(Side* side, planned) except -1:
    """Write a `number_plan.Side`; None: there are no such numbers."""
    cdef bytes digits
    cdef int b
    if planned is not None:
        side.exists, side.k_cap, side.zeros_cap = True, planned.position_cap, planned.zeros_cap
        for b, bound in enumerate((planned.lower, planned.upper)):
            if bound is not None:
                digits = bound.digits
                side.bounds[b] = Bound(True, bound.is_closed, bound.position, len(digits), digits)
    return 0


@cython.final
cdef class NumberStates:
    """A number set in normal form, and how its states read a byte. `shift` -1 means no exponents."""

    def __cinit__(self, normal, int shift):
        trackers, self.places, least, beyond = number_plan.plan_divisors(normal)
        self.follow_remainders(normal, trackers)
        is_free = replace(normal, plain=None) == number_plan.ANY_NUMBER
        self.exponent_limit = FREE if is_free else number_plan.EXPONENT_LIMIT
        self.with_zero, self.with_plain = normal.holds(0), normal.plain is not False
        self.with_point = normal.plain is not True
        self.zero_exponent = shift >= 0 and self.with_point
        self.with_exponent = self.zero_exponent and least < FREE
        self.shift, self.least, self.beyond = (shift, least, beyond) if self.with_exponent else (-1, -FREE, FREE)
        self.is_followed = self.least > -FREE or self.beyond < FREE
        self.planned = [
            number_plan.plan_side(normal, sign, self.shift, max(self.places, 0), self.is_followed) for sign in (1, -1)
        ]
        self.same_signs = self.planned[0] == self.planned[1]
        take_side(&self.sides[0], self.planned[0])
        take_side(&self.sides[1], self.planned[1])

    cdef int follow_remainders(self, normal, list trackers) except -1:
        cdef int64_t weight = 1
        if math.prod([one.cases for one in trackers]) > number_plan.CASE_LIMIT:
            raise number_plan.too_many_states(normal)
        for one in trackers:
            self.trackers.push_back(Tracker(one.c, one.g, one.last_level, one.cases, one.is_asked))
            self.residue_0 += one.g * weight  # 0 loses any number of zeros
            weight *= one.cases
        self.is_asked, self.only_tens = bool(normal.multiples), all([one.c == 1 for one in trackers])
        return 0

    # What a row says.

    cdef bint is_bounded(self, const Row* row) noexcept nogil:
        cdef const Side* side = &self.sides[row.side]
        return side.bounds[LOWER].exists or side.bounds[UPPER].exists

    cdef bint allows_exponent(self, const Row* row) noexcept nogil:
        """Whether an exponent may follow this mantissa, which is not settled, as far as its position is concerned."""
        return self.with_exponent and (not self.is_bounded(row) or -1 - self.shift <= row.k <= self.shift)

    cdef Interval bound_exponents(self, const Row* row) noexcept nogil:
        """The exponents that the bounds leave to this mantissa, which is not settled."""
        cdef const Bound* lower = &self.sides[row.side].bounds[LOWER]
        cdef const Bound* upper = &self.sides[row.side].bounds[UPPER]
        cdef int read = row.k + 1 if row.kind == WHOLE else row.read, versus
        cdef Interval found = Interval(-FREE, FREE)
        if lower.exists:
            versus, found.low = row.versus[LOWER], lower.position - row.k
            if versus == LESS or (versus == EQUAL and (read < lower.size or not lower.is_closed)):
                found.low += 1
        if upper.exists:
            versus, found.high = row.versus[UPPER], upper.position - row.k
            if versus == MORE or (versus == EQUAL and read >= upper.size and not upper.is_closed):
                found.high -= 1
        return found

    cdef Interval find_exponents(self, const Row* row) noexcept nogil:
        """The exponents that may follow a mantissa."""
        cdef Interval found = Interval(1, 0)
        if ZERO <= row.kind <= ZEROS:
            return Interval(-FREE, FREE) if self.with_zero and self.zero_exponent else found
        if not WHOLE <= row.kind <= FRACTION_DIGITS or row.last < 0:
            return found
        if row.settled:
            found = Interval(row.from_x, row.to_x)
        elif self.allows_exponent(row):
            found = self.bound_exponents(row)
        else:
            return found
        if self.least > -FREE:
            found.low = max(found.low, self.least + row.last)
        if self.beyond < FREE:
            found.high = min(found.high, self.beyond + row.last - 1)
        return Interval(max(found.low, -self.exponent_limit), min(found.high, self.exponent_limit))

    cdef bint accepts(self, const Row* row) noexcept nogil:
        """Whether the text read so far spells a number of the set."""
        cdef Interval found
        if ZERO <= row.kind <= ZEROS:
            return self.with_zero and (row.kind == ZEROS or self.with_plain)
        if row.kind == SIGNED:
            return row.k >= 0 and row.from_x <= row.k <= row.to_x
        if row.kind == COUNTED:
            return row.from_x == 0
        if not (row.kind == FRACTION_DIGITS or (row.kind == WHOLE and self.with_plain)):
            return False
        if row.settled:
            return row.k == 1 and self.divides(row)
        found = self.bound_exponents(row)
        return found.low <= 0 <= found.high and self.divides(row)

    # Steps. All return False if surely no text goes on this way; but for `follow`, they change the row in place.

    cdef bint follow(self, const Row* before, int column, Row* row) noexcept nogil:
        """Write the state after `before` and a byte of `column` to `row`."""
        cdef int digit = column - DIGIT_0
        cdef Interval found
        row[0] = before[0]
        if row.kind >= EXPONENT:
            return follow_exponent(row, column)
        if 0 <= digit <= 9:
            if row.kind <= ZEROS:
                return self.read_first(row, digit)
            if row.kind == WHOLE:
                self.compare_digit(row, row.k + 1, digit)
                row.k = min(row.k + 1, self.sides[row.side].k_cap)
                return self.read_whole(row, digit)
            if not row.settled:
                self.compare_digit(row, row.read, digit)
            return self.read_fraction(row, digit)
        if column == MINUS:
            row.kind, row.side = SIGN, 1
            return before.kind == START and (self.with_zero or self.sides[1].exists)
        if column == PLUS or not self.with_point:
            return False
        if column == DOT:
            if row.kind == ZERO:
                row.kind = ZERO_POINT
                return True
            if row.kind != WHOLE:
                return False
            row.kind, row.read = POINT, row.k + 1
            return self.settle(row)
        found = self.find_exponents(before)
        memset(row, 0, sizeof(Row))
        row.kind, row.from_x, row.to_x = EXPONENT, found.low, found.high
        return found.low <= found.high

    cdef bint read_first(self, Row* row, int digit) noexcept nogil:
        """A digit where none other than 0 has been read."""
        cdef const Side* side
        cdef bint is_fraction = row.kind == ZERO_POINT or row.kind == ZEROS
        if row.kind == ZERO:
            return False  # no digit follows a leading zero
        if self.same_signs:
            row.side = 0
        side = &self.sides[row.side]
        if digit == 0:
            row.kind = ZEROS if is_fraction else ZERO
            row.place = min(row.place + 1, side.zeros_cap) if is_fraction else 0
            return self.with_zero or (side.exists and self.with_point)
        if not side.exists:
            return False
        row.residue = self.residue_0
        self.compare_digit(row, 0, digit)
        if is_fraction:
            row.k = -1 - row.place
            return self.read_fraction(row, digit)
        row.kind, row.k = WHOLE, 0
        return self.read_whole(row, digit)

    cdef bint read_whole(self, Row* row, int digit) noexcept nogil:
        """A whole digit, already compared and counted in k."""
        cdef const Side* side = &self.sides[row.side]
        cdef int most
        if self.places >= 0:
            row.residue = self.divide_digit(row.residue, digit)
        row.last = -1 if self.beyond < FREE and digit == 0 else 0
        if not self.is_bounded(row):
            return True
        if row.k == side.k_cap:
            row.versus[LOWER] = row.versus[UPPER] = MORE
        if row.k > self.shift:
            row.last = 0
        if not side.bounds[UPPER].exists:
            return True
        # further digits do not make the number smaller, only a negative exponent does
        most = side.bounds[UPPER].position - row.k - (row.versus[UPPER] == MORE)
        return most >= 0 or (row.k <= self.shift and most >= self.least)

    cdef bint read_fraction(self, Row* row, int digit) noexcept nogil:
        """A digit behind the point, already compared."""
        row.kind = FRACTION_DIGITS
        row.place += 1
        row.read += 1
        if digit:
            row.last = row.place if row.place <= FRACTION else -1
        elif row.last > 0:
            row.last = -1
        if row.residue >= 0 and row.place <= self.places:
            row.residue = self.divide_digit(row.residue, digit)
        elif digit:
            row.residue = OFF_GRID
        return self.settle(row)

    cdef bint settle(self, Row* row) noexcept nogil:
        """Bring a mantissa with a point into its normal form."""
        cdef Interval found
        cdef int place_limit, most
        # what is known of divisors from here on
        if self.places < 0:
            row.residue = GOOD
        elif row.residue >= 0 and row.place >= self.places:
            row.residue = GOOD if self.divides(row) else BAD
        if row.residue == BAD and self.is_asked:
            row.residue = OFF_GRID
        if not self.is_followed:
            row.last = 0
        if not row.settled:
            if self.is_open(row):
                place_limit = FRACTION if self.is_followed else 0
                if self.beyond == FREE and self.sides[row.side].bounds[UPPER].exists:
                    most = self.sides[row.side].bounds[UPPER].position - row.k - self.least
                    place_limit = max(min(place_limit, most), 0)
                row.place = min(row.place, max(self.places, place_limit))
                return True
            found = self.bound_exponents(row)
            if not self.allows_exponent(row):
                row.from_x, row.to_x = 1, 0
            else:
                row.from_x, row.to_x = found.low, found.high
            row.k = found.low <= 0 <= found.high
            row.side = row.versus[LOWER] = row.versus[UPPER] = 0
            row.settled = 1
        row.read = 0
        if self.is_followed and row.last < 0 and row.place >= FRACTION:
            row.to_x = -FREE  # no exponent, and none later
        elif self.is_followed and self.beyond == FREE:
            row.from_x = max(row.from_x, self.least + (row.place + 1 if row.last < 0 else row.last))
            row.last = min(row.last, 1)
        if row.residue == OFF_GRID and self.is_asked:
            row.k = 0
        if not row.k:
            row.residue = OFF_GRID
        place_limit = max(self.places, 0) if row.residue >= 0 else 0
        if row.from_x > row.to_x:
            row.from_x, row.to_x, row.last = 1, 0, 0
        elif self.beyond < FREE:
            place_limit = max(place_limit, FRACTION)
        elif self.is_followed:
            place_limit = max(place_limit, min(FRACTION, row.to_x - self.least))  # one more leaves no exponent
        row.place = min(row.place, place_limit)
        return row.k or row.from_x <= row.to_x

    # Bounds and divisors.

    cdef void compare_digit(self, Row* row, int index, int digit) noexcept nogil:
        """Go on with both comparisons: the significant digit of this index is read."""
        cdef const Bound* bound
        cdef int b, expected
        for b in range(2):
            bound = &self.sides[row.side].bounds[b]
            if bound.exists and row.versus[b] == EQUAL:
                expected = bound.digits[index] - c"0" if index < bound.size else 0
                row.versus[b] = (digit > expected) - (digit < expected)
                # at its end, a closed lower bound is passed by whatever follows, and so is an open upper one
                if row.versus[b] == EQUAL and index + 1 >= bound.size and bound.is_closed == (b == LOWER):
                    row.versus[b] = MORE

    cdef bint is_open(self, Row* row) noexcept nogil:
        """Whether some comparison is not settled. Settles those that no later digit can change the meaning of."""
        cdef const Side* side = &self.sides[row.side]
        cdef bint found = False
        cdef int b
        for b in range(2):
            if side.bounds[b].exists and row.versus[b] == EQUAL:
                # without exponent, only a mantissa as long as the bound has to be compared further
                if row.k == side.bounds[b].position or self.allows_exponent(row):
                    found = True
                else:
                    row.versus[b] = MORE
        row.read = min(row.read, max(side.bounds[LOWER].size, side.bounds[UPPER].size))
        return found

    cdef int32_t divide_digit(self, int64_t residue, int digit) noexcept nogil:
        """The trackers' state after one more digit of V: a number in mixed radix.

        The cases of each: 0 .. g where c divides V, the zeros that V may lose; g + c level + remainder otherwise.
        """
        cdef int64_t answer = 0, weight = 1, case, known, rest, first, level, kept, power
        cdef Tracker one
        for one in self.trackers:
            case = residue % one.cases
            residue //= one.cases
            known = max(case - one.g, 0)
            rest, first = (10 * (known % one.c) + digit) % one.c, known // one.c - 1  # none up to `first` is possible
            level, kept, power = 0, one.c, 1  # kept: c / gcd(c, power)
            while level < one.last_level and (level < first or (one.c - rest * power % one.c) % one.c >= power):
                kept //= (1 if kept % 2 else 2) * (1 if kept % 5 else 5)
                level, power = level + 1, 10 * power
            rest %= kept
            if level or rest:
                case = one.g + one.c * level + rest
            else:
                case = min(case + 1, one.g) if case <= one.g and digit == 0 else 0
            answer += case * weight
            weight *= one.cases
        return <int32_t>answer

    cdef bint divides(self, const Row* row) noexcept nogil:
        """Whether the divisors allow a number without exponent that ends here."""
        cdef int64_t residue = row.residue
        cdef Tracker one
        cdef int _
        if residue < 0 or self.places < 0:
            return residue >= GOOD or (residue == OFF_GRID and not self.is_asked)
        for _ in range(row.place, self.places):
            residue = self.divide_digit(residue, 0)
        for one in self.trackers:
            if (residue % one.cases == one.g) != one.is_asked:
                return False
            residue //= one.cases
        return True
