"""The states of the automaton of a number set: what a prefix of a number's text says about the number.

Words. A text is a *mantissa* (sign, whole digits, point, fraction digits) and perhaps an *exponent* x. Its *significant
digits* d₀d₁d₂.. begin with the first digit that is not 0, whose *position* is k: the mantissa is ±d₀.d₁d₂.. · 10^k, so
k is one less than the number of whole digits, or -1 less the zeros behind "0.". Zero has no such
digits; its texts are states of their own.

Bounds. Write a bound in the same way, b₀.b₁b₂.. · 10^E. The text is above it iff k + x > E, or k + x = E and d₀d₁d₂..
comes after b₀b₁b₂.. in dictionary order, where missing digits are zeros. So while digits are read it is enough to know
k and a *comparison* of the digits with those of the bound: less, equal so far, or more. It is settled by the first
digit that differs. At the end of the mantissa, a lower and an upper bound leave an interval of exponents,

    E_low - k (+ 1 if the digits are too small)  <=  x  <=  E_high - k (- 1 if the digits are too large),

and a text without exponent has x = 0. No automaton can follow k without limit: where there is a bound to compare with,
an exponent is accepted for -1 - shift <= k <= shift only.

Divisors. Texts without exponent are followed by a remainder for each divisor (a *tracker*). Let q be the most fraction
digits of any divisor. The digits up to the q-th behind the point spell an integer V, and 10^q times a divisor is
c · 10^g, where 10 does not divide c. Whether it divides V follows from V mod c and, where that is 0, from the number
of zeros (up to g) that V loses before c stops dividing it: c + g cases, not c · 10^g. A digit other than 0 further
behind is *off the grid*: no divisor divides this number.

Divisors and exponents. If there is an exponent, a power of ten stands for each divisor (see
`tokdfa.json_schema.number_dfa`), and the number must be a multiple of 10^least and not be one of 10^beyond. A mantissa
whose last digit other than 0 is the l-th behind the point (l = 0 if it is a whole digit) leaves the exponents

    least + l  <=  x  <  beyond + l,

the first of them also where l = 0 and whole digits end in zeros, when there are further ones. Otherwise l has to be
known exactly: there is no exponent behind zeros that follow the l-th digit, nor for l > `FRACTION`.

Exponents. Texts of the integers from a to b, with leading zeros: the number v read so far matters only while it may
become a or b or its digits begin theirs; otherwise it is enough to know how many more digits must and may follow.

A state is a row of integers in a normal form, such that prefixes with equal futures mostly have equal rows. The few
states that are left to merge, and dead ends, are for `tokdfa.automata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.jit import kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int32]

#: Where divisibility matters, a mantissa with an exponent has at most so many fraction digits: as many as the shortest
#: text of a double can have in scientific notation.
FRACTION = 16

#: No limit: for an exponent, or a number of digits.
FREE = 1 << 24

#: Columns of the table, in the order of their smallest bytes: other bytes, + - . and the ten digits, e and E.
COLUMNS = 15
_PLUS, _MINUS, _DOT, _DIGIT_0, _E = 1, 2, 3, 4, 14

# Entries of `options`: the limit of k; least and beyond, -FREE and FREE for none; q, or -1 if there are no trackers;
# the trackers' state at V = 0.
SHIFT, LEAST, BEYOND, PLACES, RESIDUE_0 = range(5)
# and flags: zero belongs to the set; texts without, and with, point or exponent; exponents of other numbers than zero;
# some divisor is asked for; both signs have the same texts.
WITH_ZERO, WITH_PLAIN, WITH_POINT, WITH_EXPONENT, ASKED, SAME_SIGNS = range(5, 11)
# Entries of a row of `sides` (positive, negative): numbers other than zero exist; the caps of k and of the zeros
# behind "0."; and of the lower bound of magnitudes, then of the upper: exists, E, number of digits, closed.
EXISTS, K_CAP, ZEROS_CAP, LOWER, UPPER = 0, 1, 2, 3, 7

# Kinds of states, by an example.
(
    _START,  # nothing yet
    _SIGN,  # -
    _ZERO,  # 0
    _ZERO_POINT,  # 0.
    _ZEROS,  # 0.00
    _WHOLE,  # 12
    _POINT,  # 12.
    _FRACTION,  # 12.3
    _EXPONENT,  # 12e
    _SIGNED,  # 12e+0
    _COUNTED,  # 12e+4, and only the number of digits to come matters
) = range(11)
# Fields of a row. LOW .. HIGH are exponents (of a settled mantissa), or what the number v after "e+" lies between, or
# how many digits may follow. K is k; or whether a settled mantissa is a text of the set; or v, -1 before any digit.
_KIND, _SIDE, _K, _READ, _VERSUS_LOWER, _VERSUS_UPPER, _SETTLED, _LOW, _HIGH, _LAST, _PLACE, _RESIDUE, _FIELDS = range(
    13
)
_LESS, _EQUAL, _MORE = -1, 0, 1
# LAST is l, or 1 for any l above 0 where LOW has taken account of l; -1 where no exponent may follow. PLACE is the
# number of fraction digits. RESIDUE is the trackers' state, or, once PLACE is q or more, what comes of it.
_GOOD, _BAD, _OFF_GRID = -1, -2, -3


@kernel
def explore_states_kernel(
    options: Ints, sides: Ints, digits: npt.NDArray[np.int8], trackers: Ints, limit: int
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """All states, breadth-first from 0: (int32 (states, COLUMNS), -1 where no text goes on; who accepts).

    `options` int32 (11,) and `sides` int32 (2, 11) as above; `digits` int8 (2, 2, any), of lower and upper bound of
    each side, without trailing zeros; `trackers` int32 (any, 3): c, g, whether the divisor is asked for or forbidden.
    Stops soon after `limit` states. Some states may be dead ends. About 0.3 us a state.
    """
    size = 256
    rows = np.zeros((size, _FIELDS), dtype=np.int32)
    table = np.full((size, COLUMNS), -1, dtype=np.int32)
    slots = np.full(4 * size, -1, dtype=np.int32)
    slots[_find_row_kernel(rows, slots, rows[0])] = 0
    out = np.zeros(_FIELDS, dtype=np.int32)
    count, head = 1, 0
    while head < count <= limit:
        if count + COLUMNS > size:
            more_rows = np.zeros((2 * size, _FIELDS), dtype=np.int32)
            more_rows[:size] = rows
            more_table = np.full((2 * size, COLUMNS), -1, dtype=np.int32)
            more_table[:size] = table
            rows, table, size = more_rows, more_table, 2 * size
            slots = np.full(4 * size, -1, dtype=np.int32)
            for index in range(count):
                slots[_find_row_kernel(rows, slots, rows[index])] = index
        alike = _treats_digits_alike_kernel(options, sides, rows[head])
        for column in range(1, COLUMNS):
            if alike and _DIGIT_0 + 1 < column <= _DIGIT_0 + 9:
                table[head, column] = table[head, column - 1]
                continue
            if not _follow_kernel(options, sides, digits, trackers, rows[head], column, out):
                continue
            slot = _find_row_kernel(rows, slots, out)
            if slots[slot] < 0:
                slots[slot] = count
                _copy_kernel(out, rows[count])
                count += 1
            table[head, column] = slots[slot]
        head += 1
    accepting = np.zeros(count, dtype=np.bool_)
    for index in range(count):
        accepting[index] = _accepts_kernel(options, sides, trackers, rows[index])
    return table[:count].copy(), accepting


@kernel
def _treats_digits_alike_kernel(options: Ints, sides: Ints, row: Ints) -> bool:
    """Whether 1 .. 9 lead to one state for a reason that is easy to see; asking saves half of the time."""
    kind, side = row[_KIND], row[_SIDE]
    if kind >= _EXPONENT:
        return kind == _COUNTED
    lower_open = sides[side, LOWER] and row[_VERSUS_LOWER] == _EQUAL
    upper_open = sides[side, UPPER] and row[_VERSUS_UPPER] == _EQUAL
    if kind <= _ZEROS or (not row[_SETTLED] and (lower_open or upper_open)):
        return False
    return options[PLACES] < 0 or row[_RESIDUE] < 0 or options[RESIDUE_0] == 0


@kernel
def _same_kernel(first: Ints, second: Ints) -> bool:
    same = True
    for field in range(_FIELDS):
        same &= first[field] == second[field]
    return same


@kernel
def _copy_kernel(source: Ints, target: Ints) -> None:
    for field in range(_FIELDS):  # a slice assignment takes several times as long
        target[field] = source[field]


@kernel
def _find_row_kernel(rows: Ints, slots: Ints, row: Ints) -> int:
    """Where `row` is, or belongs, in an open-addressing table of indices into `rows`; its length is a power of two."""
    mixed = 0
    for field in range(_FIELDS):
        mixed = (mixed * 1000003 + row[field]) & 0xFFFFFFFFFFF
    slot = (mixed ^ (mixed >> 15)) & (len(slots) - 1)
    while slots[slot] >= 0 and not _same_kernel(rows[slots[slot]], row):
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def _follow_kernel(
    options: Ints, sides: Ints, digits: npt.NDArray[np.int8], trackers: Ints, row: Ints, column: int, out: Ints
) -> bool:
    """Writes the state after `row` and a byte of `column` into `out`; False if surely no text goes on this way."""
    kind = row[_KIND]
    _copy_kernel(row, out)
    if kind >= _EXPONENT:
        return _follow_exponent_kernel(row, column, out)
    digit = column - _DIGIT_0
    if 0 <= digit <= 9:
        if kind <= _ZEROS:
            return _read_first_kernel(options, sides, digits, trackers, out, digit)
        if kind == _WHOLE:
            _compare_digit_kernel(sides, digits, out, row[_K] + 1, digit)
            out[_K] = min(row[_K] + 1, sides[row[_SIDE], K_CAP])
            return _read_whole_kernel(options, sides, trackers, out, digit)
        if not row[_SETTLED]:
            _compare_digit_kernel(sides, digits, out, row[_READ], digit)
        return _read_fraction_kernel(options, sides, trackers, out, digit)
    if column == _MINUS:
        out[_KIND], out[_SIDE] = _SIGN, 1
        return kind == _START and (options[WITH_ZERO] or sides[1, EXISTS])
    if column == _PLUS or not options[WITH_POINT]:
        return False
    if column == _DOT:
        if kind == _ZERO:
            out[_KIND] = _ZERO_POINT
            return True
        if kind != _WHOLE:
            return False
        out[_KIND], out[_READ] = _POINT, row[_K] + 1
        return _settle_kernel(options, sides, trackers, out)
    low, high = 1, 0
    if kind in (_ZERO, _ZEROS) and options[WITH_ZERO]:
        low, high = -FREE, FREE
    elif kind in (_WHOLE, _FRACTION):
        low, high = _exponents_kernel(options, sides, row)
    for field in range(_FIELDS):
        out[field] = 0
    out[_KIND], out[_LOW], out[_HIGH] = _EXPONENT, low, high
    return low <= high


@kernel
def _read_first_kernel(
    options: Ints, sides: Ints, digits: npt.NDArray[np.int8], trackers: Ints, out: Ints, digit: int
) -> bool:
    """A digit where none other than 0 has been read. `out` is the state before, and after."""
    kind = out[_KIND]
    is_fraction = kind in (_ZERO_POINT, _ZEROS)
    if kind == _ZERO:
        return False  # no digit follows a leading zero
    if options[SAME_SIGNS]:
        out[_SIDE] = 0
    side = out[_SIDE]
    if digit == 0:
        out[_KIND] = _ZEROS if is_fraction else _ZERO
        out[_PLACE] = min(out[_PLACE] + 1, sides[side, ZEROS_CAP]) if is_fraction else 0
        return options[WITH_ZERO] or (sides[side, EXISTS] and options[WITH_POINT])
    if not sides[side, EXISTS]:
        return False
    out[_RESIDUE] = options[RESIDUE_0]
    _compare_digit_kernel(sides, digits, out, 0, digit)
    if not is_fraction:
        out[_KIND], out[_K] = _WHOLE, 0
        return _read_whole_kernel(options, sides, trackers, out, digit)
    out[_K] = -1 - out[_PLACE]
    return _read_fraction_kernel(options, sides, trackers, out, digit)


@kernel
def _compare_digit_kernel(sides: Ints, digits: npt.NDArray[np.int8], out: Ints, index: int, digit: int) -> None:
    """Goes on with both comparisons: the significant digit of this index is read."""
    side = out[_SIDE]
    for bound in range(2):
        entry, field = (LOWER, _VERSUS_LOWER) if bound == 0 else (UPPER, _VERSUS_UPPER)
        if sides[side, entry] and out[field] == _EQUAL:
            expected = digits[side, bound, index] if index < sides[side, entry + 2] else 0
            out[field] = _MORE if digit > expected else _LESS if digit < expected else _EQUAL


@kernel
def _read_whole_kernel(options: Ints, sides: Ints, trackers: Ints, out: Ints, digit: int) -> bool:
    """A whole digit, already compared and counted in K. `out` is the state before, and after."""
    side, k = out[_SIDE], out[_K]
    if options[PLACES] >= 0:
        out[_RESIDUE] = _divide_digit_kernel(trackers, out[_RESIDUE], digit)
    out[_LAST] = -1 if options[BEYOND] < FREE and digit == 0 else 0
    if not (sides[side, LOWER] or sides[side, UPPER]):
        return True
    if k == sides[side, K_CAP]:
        out[_VERSUS_LOWER] = out[_VERSUS_UPPER] = _MORE
    if k > options[SHIFT]:
        out[_LAST] = 0
    if not sides[side, UPPER] or k <= sides[side, UPPER + 1]:
        return True
    # longer than the bound: only a negative exponent can help
    return k <= options[SHIFT] and options[LEAST] <= sides[side, UPPER + 1] - k


@kernel
def _read_fraction_kernel(options: Ints, sides: Ints, trackers: Ints, out: Ints, digit: int) -> bool:
    """A digit behind the point, already compared. `out` is the state before, and after."""
    place = out[_PLACE] + 1
    out[_KIND], out[_PLACE] = _FRACTION, place
    out[_READ] += 1
    if digit:
        out[_LAST] = place if place <= FRACTION else -1
    elif out[_LAST] > 0:
        out[_LAST] = -1
    if out[_RESIDUE] >= 0 and options[PLACES] >= 0:
        out[_RESIDUE] = _divide_digit_kernel(trackers, out[_RESIDUE], digit)
    elif digit:
        out[_RESIDUE] = _OFF_GRID
    return _settle_kernel(options, sides, trackers, out)


@kernel
def _divide_digit_kernel(trackers: Ints, residue: int, digit: int) -> int:
    """The trackers' state after one more digit of V: a number in mixed radix, c + g cases for each divisor.

    The cases: 0 .. g where c divides V, the zeros that V may lose; g + (V mod c) otherwise.
    """
    answer, weight = 0, 1
    for index in range(len(trackers)):
        c, g = trackers[index, 0], trackers[index, 1]
        case = residue % (c + g)
        residue //= c + g
        rest = (10 * max(case - g, 0) + digit) % c
        if rest:
            case = g + rest
        elif case <= g and digit == 0:
            case = min(case + 1, g)
        else:
            case = 0
        answer += case * weight
        weight *= c + g
    return answer


@kernel
def _is_divided_kernel(options: Ints, trackers: Ints, residue: int, place: int) -> bool:
    """Whether the divisors say yes to the number that ends here, `place` digits behind the point."""
    if residue < 0 or options[PLACES] < 0:
        return residue >= _GOOD or (residue == _OFF_GRID and not options[ASKED])
    for _ in range(place, options[PLACES]):
        residue = _divide_digit_kernel(trackers, residue, 0)
    for index in range(len(trackers)):
        size = trackers[index, 0] + trackers[index, 1]
        if (residue % size == trackers[index, 1]) != trackers[index, 2]:
            return False
        residue //= size
    return True


@kernel
def _settle_kernel(options: Ints, sides: Ints, trackers: Ints, out: Ints) -> bool:
    """Brings a mantissa with a point into its normal form, in place; False if surely no text goes on this way."""
    least, beyond = options[LEAST], options[BEYOND]
    # what is known of divisors from here on
    if options[PLACES] < 0:
        out[_RESIDUE] = _GOOD
    elif out[_RESIDUE] >= 0 and out[_PLACE] >= options[PLACES]:
        out[_RESIDUE] = _GOOD if _is_divided_kernel(options, trackers, out[_RESIDUE], out[_PLACE]) else _BAD
    if out[_RESIDUE] == _BAD and options[ASKED]:
        out[_RESIDUE] = _OFF_GRID
    followed = least > -FREE or beyond < FREE
    if not followed:
        out[_LAST] = 0
    if not out[_SETTLED]:
        if _is_open_kernel(options, sides, out):
            place_limit = max(options[PLACES], FRACTION) if followed else max(options[PLACES], 0)
            out[_PLACE] = min(out[_PLACE], place_limit)
            return True
        low, high = _interval_kernel(sides, out)
        now = low <= 0 <= high
        if not _may_have_exponent_kernel(options, sides, out):
            low, high = 1, 0
        out[_SIDE] = out[_VERSUS_LOWER] = out[_VERSUS_UPPER] = 0
        out[_K], out[_LOW], out[_HIGH], out[_SETTLED] = now, low, high, 1
    out[_READ] = 0
    if followed and out[_LAST] < 0 and out[_PLACE] >= FRACTION:
        out[_HIGH] = -FREE  # no exponent, and none later
    elif followed and beyond == FREE:
        if out[_LAST] < 0:
            out[_LOW] = max(out[_LOW], least + out[_PLACE] + 1)
        elif out[_LAST] > 0:
            out[_LOW], out[_LAST] = max(out[_LOW], least + out[_LAST]), 1
        else:
            out[_LOW] = max(out[_LOW], least)
    if out[_RESIDUE] == _OFF_GRID and options[ASKED]:
        out[_K] = 0
    if not out[_K]:
        out[_RESIDUE] = _OFF_GRID
    place_limit = max(options[PLACES], 0) if out[_RESIDUE] >= 0 else 0
    if out[_LOW] > out[_HIGH]:
        out[_LOW], out[_HIGH], out[_LAST] = 1, 0, 0
    elif beyond < FREE:
        place_limit = max(place_limit, FRACTION)
    elif followed:
        place_limit = max(place_limit, min(FRACTION, out[_HIGH] - least))  # one place more, and no exponent is left
    out[_PLACE] = min(out[_PLACE], place_limit)
    return out[_K] or out[_LOW] <= out[_HIGH]


@kernel
def _is_open_kernel(options: Ints, sides: Ints, out: Ints) -> bool:
    """Whether some comparison is not settled. Settles those that no later digit can change the meaning of."""
    side = out[_SIDE]
    is_open = False
    for bound in range(2):
        entry, field = (LOWER, _VERSUS_LOWER) if bound == 0 else (UPPER, _VERSUS_UPPER)
        if sides[side, entry] and out[field] == _EQUAL:
            # without exponent, only a mantissa as long as the bound has to be compared further
            if out[_K] == sides[side, entry + 1] or _may_have_exponent_kernel(options, sides, out):
                is_open = True
            else:
                out[field] = _MORE
    out[_READ] = min(out[_READ], max(sides[side, LOWER + 2], sides[side, UPPER + 2]))
    return is_open


@kernel
def _interval_kernel(sides: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that the bounds leave to this mantissa, which is not settled: (from, to)."""
    side = row[_SIDE]
    read = row[_K] + 1 if row[_KIND] == _WHOLE else row[_READ]
    low, high = -FREE, FREE
    if sides[side, LOWER]:
        low = sides[side, LOWER + 1] - row[_K]
        versus = row[_VERSUS_LOWER]
        if versus == _LESS or (versus == _EQUAL and (read < sides[side, LOWER + 2] or not sides[side, LOWER + 3])):
            low += 1
    if sides[side, UPPER]:
        high = sides[side, UPPER + 1] - row[_K]
        versus = row[_VERSUS_UPPER]
        if versus == _MORE or (versus == _EQUAL and read >= sides[side, UPPER + 2] and not sides[side, UPPER + 3]):
            high -= 1
    return low, high


@kernel
def _may_have_exponent_kernel(options: Ints, sides: Ints, row: Ints) -> bool:
    """Whether an exponent may follow this mantissa, which is not settled, as far as its position is concerned."""
    if not (sides[row[_SIDE], LOWER] or sides[row[_SIDE], UPPER]):
        return options[WITH_EXPONENT]
    return options[WITH_EXPONENT] and -1 - options[SHIFT] <= row[_K] <= options[SHIFT]


@kernel
def _exponents_kernel(options: Ints, sides: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that may follow the mantissa of a number other than zero: (from, to)."""
    if row[_LAST] < 0:
        return 1, 0
    if row[_SETTLED]:
        low, high = row[_LOW], row[_HIGH]
    elif _may_have_exponent_kernel(options, sides, row):
        low, high = _interval_kernel(sides, row)
    else:
        return 1, 0
    if options[LEAST] > -FREE:
        low = max(low, options[LEAST] + row[_LAST])
    if options[BEYOND] < FREE:
        high = min(high, options[BEYOND] + row[_LAST] - 1)
    return low, high


@kernel
def _accepts_kernel(options: Ints, sides: Ints, trackers: Ints, row: Ints) -> bool:
    """Whether the text read so far spells a number of the set."""
    kind = row[_KIND]
    if kind in (_ZERO, _ZEROS):
        return options[WITH_ZERO] and (kind == _ZEROS or options[WITH_PLAIN])
    if kind == _SIGNED:
        return row[_K] >= 0 and row[_LOW] <= row[_K] <= row[_HIGH]
    if kind == _COUNTED:
        return row[_LOW] == 0
    if not (kind == _FRACTION or (kind == _WHOLE and options[WITH_PLAIN])):
        return False
    if row[_SETTLED]:
        within = row[_K] == 1
    else:
        low, high = _interval_kernel(sides, row)
        within = low <= 0 <= high
    return within and _is_divided_kernel(options, trackers, row[_RESIDUE], row[_PLACE])


@kernel
def _follow_exponent_kernel(row: Ints, column: int, out: Ints) -> bool:
    """`_follow_kernel` for states behind e or E; `out` is a copy of `row`."""
    digit = column - _DIGIT_0
    if row[_KIND] == _EXPONENT:
        out[_KIND], out[_K] = _SIGNED, -1
        if column == _MINUS:
            out[_LOW], out[_HIGH] = max(-row[_HIGH], 0), -row[_LOW]
        else:
            out[_LOW] = max(row[_LOW], 0)
        if out[_HIGH] < 0:
            return False
        if column in (_MINUS, _PLUS):
            return True
    if not 0 <= digit <= 9:
        return False
    if row[_KIND] == _COUNTED:
        out[_LOW] = max(row[_LOW] - 1, 0)
        out[_HIGH] = row[_HIGH] - 1 if row[_HIGH] < FREE else FREE
        return row[_HIGH] > 0
    a, b = out[_LOW], out[_HIGH]
    v = 10 * max(out[_K], 0) + digit
    out[_K] = v
    if v == 0:
        if a > 0:
            out[_K] = -1  # nothing but zeros is like nothing
        elif b == FREE:
            out[_KIND] = _COUNTED
        return True
    if v > b:
        return False
    fewest, power = 0, 1  # the fewest digits with which some number is a or more; 10 ** fewest
    while v * power + power - 1 < a:
        fewest, power = fewest + 1, 10 * power
    if v * power < a:
        return True
    most = FREE
    if b < FREE:
        most, power = 0, 1
        while v * power * 10 <= b:
            most, power = most + 1, 10 * power
        if v * power + power - 1 > b:
            return True
    out[_KIND], out[_K], out[_LOW], out[_HIGH] = _COUNTED, 0, fewest, most
    return fewest <= most
