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

Divisors. Texts without exponent are followed by remainders, and a text with exponent must be a multiple of 10^least and
not be one of 10^beyond (see `tokdfa.json_schema.number_plan`). A mantissa whose last digit other than 0 is the l-th
behind the point, l = 0 if it is a whole digit, leaves the exponents

    least + l  <=  x  <  beyond + l.

For l = 0, `least` is more than necessary if the whole digits end in zeros, and `beyond` needs that they do not. For
l > 0 no exponent is allowed behind further zeros, nor if l > `FRACTION`.

A state is a row of integers in a normal form, such that prefixes with equal futures mostly have equal rows. The few
states that are left to merge, and dead ends, are for `tokdfa.automata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.jit import kernel
from tokdfa.json_schema.number_exponents import read_exponent_digit_kernel, read_exponent_sign_kernel
from tokdfa.json_schema.number_plan import (
    ASKED,
    BAD,
    BEYOND,
    EXISTS,
    FRACTION,
    FREE,
    GOOD,
    K_CAP,
    LEAST,
    LOWER,
    OFF_GRID,
    ONLY_TENS,
    PLACES,
    RESIDUE_0,
    SAME_SIGNS,
    SHIFT,
    SIDE_SIZE,
    SIDES,
    UPPER,
    WITH_EXPONENT,
    WITH_PLAIN,
    WITH_POINT,
    WITH_ZERO,
    ZERO_EXPONENT,
    ZEROS_CAP,
    divide_digit_kernel,
    is_divided_kernel,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int32]

#: Columns of the table, in the order of their smallest bytes: other bytes, + - . and the ten digits, e and E.
COLUMNS = 15
_PLUS, _MINUS, _DOT, _DIGIT_0, _E = 1, 2, 3, 4, 14

# Kinds of states, by an example.
(
    _START,  # nothing yet
    _SIGN,  # -
    _ZERO_POINT,  # 0.
    _ZERO,  # 0
    _ZEROS,  # 0.00
    _POINT,  # 12.
    _WHOLE,  # 12
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


@kernel
def explore_states_kernel(plan: Ints, limit: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
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
        alike = _treats_digits_alike_kernel(plan, rows[head])
        for column in range(1, COLUMNS):
            if alike and _DIGIT_0 + 1 < column <= _DIGIT_0 + 9:
                table[head, column] = table[head, column - 1]
                continue
            if not _follow_kernel(plan, rows[head], column, out):
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
        accepting[index] = _accepts_kernel(plan, rows[index])
    return table[:count].copy(), accepting


@kernel
def _treats_digits_alike_kernel(plan: Ints, row: Ints) -> bool:
    """Whether 1 .. 9 lead to one state for a reason that is easy to see; asking saves half of the time."""
    kind, side = row[_KIND], SIDES + SIDE_SIZE * row[_SIDE]
    if kind >= _EXPONENT:
        return kind == _COUNTED
    lower_open = plan[side + LOWER] and row[_VERSUS_LOWER] == _EQUAL
    upper_open = plan[side + UPPER] and row[_VERSUS_UPPER] == _EQUAL
    if kind <= _ZEROS or (not row[_SETTLED] and (lower_open or upper_open)):
        return False
    return plan[ONLY_TENS] or row[_RESIDUE] < 0


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
        mixed += int(row[field]) * (0x3C6EF372FE94F82B >> 2 * field)
    mixed = (mixed ^ (mixed >> 31)) * 0x1E3779B97F4A7C15
    slot = (mixed >> 32) & (len(slots) - 1)
    while slots[slot] >= 0 and not _same_kernel(rows[slots[slot]], row):
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def _follow_kernel(plan: Ints, row: Ints, column: int, out: Ints) -> bool:
    """Writes the state after `row` and a byte of `column` into `out`; False if surely no text goes on this way."""
    kind = row[_KIND]
    _copy_kernel(row, out)
    if kind >= _EXPONENT:
        return _follow_exponent_kernel(row, column, out)
    digit = column - _DIGIT_0
    if 0 <= digit <= 9:
        if kind <= _ZEROS:
            return _read_first_kernel(plan, out, digit)
        if kind == _WHOLE:
            _compare_digit_kernel(plan, out, row[_K] + 1, digit)
            out[_K] = min(row[_K] + 1, plan[SIDES + SIDE_SIZE * row[_SIDE] + K_CAP])
            return _read_whole_kernel(plan, out, digit)
        if not row[_SETTLED]:
            _compare_digit_kernel(plan, out, row[_READ], digit)
        return _read_fraction_kernel(plan, out, digit)
    if column == _MINUS:
        out[_KIND], out[_SIDE] = _SIGN, 1
        return kind == _START and (plan[WITH_ZERO] or plan[SIDES + SIDE_SIZE + EXISTS])
    if column == _PLUS or not plan[WITH_POINT]:
        return False
    if column == _DOT:
        if kind == _ZERO:
            out[_KIND] = _ZERO_POINT
            return True
        if kind != _WHOLE:
            return False
        out[_KIND], out[_READ] = _POINT, row[_K] + 1
        return _settle_kernel(plan, out)
    low, high = 1, 0
    if _ZERO <= kind <= _ZEROS:
        if plan[WITH_ZERO] and plan[ZERO_EXPONENT]:
            low, high = -FREE, FREE
    elif _WHOLE <= kind <= _FRACTION:
        low, high = _exponents_kernel(plan, row)
    for field in range(_FIELDS):
        out[field] = 0
    out[_KIND], out[_LOW], out[_HIGH] = _EXPONENT, low, high
    return low <= high


@kernel
def _read_first_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A digit where none other than 0 has been read. `out` is the state before, and after."""
    if out[_KIND] == _ZERO:
        return False  # no digit follows a leading zero
    is_fraction = out[_KIND] >= _ZERO_POINT
    if plan[SAME_SIGNS]:
        out[_SIDE] = 0
    side = SIDES + SIDE_SIZE * out[_SIDE]
    if digit == 0:
        out[_KIND] = _ZEROS if is_fraction else _ZERO
        out[_PLACE] = min(out[_PLACE] + 1, plan[side + ZEROS_CAP]) if is_fraction else 0
        return plan[WITH_ZERO] or (plan[side + EXISTS] and plan[WITH_POINT])
    if not plan[side + EXISTS]:
        return False
    out[_RESIDUE] = plan[RESIDUE_0]
    _compare_digit_kernel(plan, out, 0, digit)
    if not is_fraction:
        out[_KIND], out[_K] = _WHOLE, 0
        return _read_whole_kernel(plan, out, digit)
    out[_K] = -1 - out[_PLACE]
    return _read_fraction_kernel(plan, out, digit)


@kernel
def _compare_digit_kernel(plan: Ints, out: Ints, index: int, digit: int) -> None:
    """Goes on with both comparisons: the significant digit of this index is read."""
    side = SIDES + SIDE_SIZE * out[_SIDE]
    for bound in range(2):
        entry, field = (LOWER, _VERSUS_LOWER) if bound == 0 else (UPPER, _VERSUS_UPPER)
        if plan[side + entry] and out[field] == _EQUAL:
            expected = plan[plan[side + entry + 4] + index] if index < plan[side + entry + 2] else 0
            out[field] = _MORE if digit > expected else _LESS if digit < expected else _EQUAL
            # at its end, a closed lower bound is passed by whatever follows, and so is an open upper one
            if out[field] == _EQUAL and index + 1 >= plan[side + entry + 2] and plan[side + entry + 3] == 1 - bound:
                out[field] = _MORE


@kernel
def _read_whole_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A whole digit, already compared and counted in K. `out` is the state before, and after."""
    side, k = SIDES + SIDE_SIZE * out[_SIDE], out[_K]
    if plan[PLACES] >= 0:
        out[_RESIDUE] = divide_digit_kernel(plan, out[_RESIDUE], digit)
    out[_LAST] = -1 if plan[BEYOND] < FREE and digit == 0 else 0
    if not (plan[side + LOWER] or plan[side + UPPER]):
        return True
    if k == plan[side + K_CAP]:
        out[_VERSUS_LOWER] = out[_VERSUS_UPPER] = _MORE
    if k > plan[SHIFT]:
        out[_LAST] = 0
    if not plan[side + UPPER]:
        return True
    # further digits do not make the number smaller, only a negative exponent does
    most = plan[side + UPPER + 1] - k - (out[_VERSUS_UPPER] == _MORE)
    return most >= 0 or (k <= plan[SHIFT] and most >= plan[LEAST])


@kernel
def _read_fraction_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A digit behind the point, already compared. `out` is the state before, and after."""
    place = out[_PLACE] + 1
    out[_KIND], out[_PLACE] = _FRACTION, place
    out[_READ] += 1
    if digit:
        out[_LAST] = place if place <= FRACTION else -1
    elif out[_LAST] > 0:
        out[_LAST] = -1
    if out[_RESIDUE] >= 0 and place <= plan[PLACES]:
        out[_RESIDUE] = divide_digit_kernel(plan, out[_RESIDUE], digit)
    elif digit:
        out[_RESIDUE] = OFF_GRID
    return _settle_kernel(plan, out)


@kernel
def _settle_kernel(plan: Ints, out: Ints) -> bool:
    """Brings a mantissa with a point into its normal form, in place; False if surely no text goes on this way."""
    least, beyond = plan[LEAST], plan[BEYOND]
    # what is known of divisors from here on
    if plan[PLACES] < 0:
        out[_RESIDUE] = GOOD
    elif out[_RESIDUE] >= 0 and out[_PLACE] >= plan[PLACES]:
        out[_RESIDUE] = GOOD if is_divided_kernel(plan, out[_RESIDUE], out[_PLACE]) else BAD
    if out[_RESIDUE] == BAD and plan[ASKED]:
        out[_RESIDUE] = OFF_GRID
    followed = least > -FREE or beyond < FREE
    if not followed:
        out[_LAST] = 0
    side = SIDES + SIDE_SIZE * out[_SIDE]
    if not out[_SETTLED]:
        if _is_open_kernel(plan, out):
            place_limit = FRACTION if followed else 0
            if beyond == FREE and plan[side + UPPER]:
                place_limit = max(min(place_limit, plan[side + UPPER + 1] - out[_K] - least), 0)
            out[_PLACE] = min(out[_PLACE], max(plan[PLACES], place_limit))
            return True
        low, high = _interval_kernel(plan, out)
        now = low <= 0 <= high
        if not _may_have_exponent_kernel(plan, out):
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
    if out[_RESIDUE] == OFF_GRID and plan[ASKED]:
        out[_K] = 0
    if not out[_K]:
        out[_RESIDUE] = OFF_GRID
    place_limit = max(plan[PLACES], 0) if out[_RESIDUE] >= 0 else 0
    if out[_LOW] > out[_HIGH]:
        out[_LOW], out[_HIGH], out[_LAST] = 1, 0, 0
    elif beyond < FREE:
        place_limit = max(place_limit, FRACTION)
    elif followed:
        place_limit = max(place_limit, min(FRACTION, out[_HIGH] - least))  # one place more, and no exponent is left
    out[_PLACE] = min(out[_PLACE], place_limit)
    return out[_K] or out[_LOW] <= out[_HIGH]


@kernel
def _is_open_kernel(plan: Ints, out: Ints) -> bool:
    """Whether some comparison is not settled. Settles those that no later digit can change the meaning of."""
    side = SIDES + SIDE_SIZE * out[_SIDE]
    is_open = False
    for bound in range(2):
        entry, field = (LOWER, _VERSUS_LOWER) if bound == 0 else (UPPER, _VERSUS_UPPER)
        if plan[side + entry] and out[field] == _EQUAL:
            # without exponent, only a mantissa as long as the bound has to be compared further
            if out[_K] == plan[side + entry + 1] or _may_have_exponent_kernel(plan, out):
                is_open = True
            else:
                out[field] = _MORE
    out[_READ] = min(out[_READ], max(plan[side + LOWER + 2], plan[side + UPPER + 2]))
    return is_open


@kernel
def _interval_kernel(plan: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that the bounds leave to this mantissa, which is not settled: (from, to)."""
    side = SIDES + SIDE_SIZE * row[_SIDE]
    read = row[_K] + 1 if row[_KIND] == _WHOLE else row[_READ]
    low, high = -FREE, FREE
    if plan[side + LOWER]:
        low = plan[side + LOWER + 1] - row[_K]
        versus = row[_VERSUS_LOWER]
        if versus == _LESS or (versus == _EQUAL and (read < plan[side + LOWER + 2] or not plan[side + LOWER + 3])):
            low += 1
    if plan[side + UPPER]:
        high = plan[side + UPPER + 1] - row[_K]
        versus = row[_VERSUS_UPPER]
        if versus == _MORE or (versus == _EQUAL and read >= plan[side + UPPER + 2] and not plan[side + UPPER + 3]):
            high -= 1
    return low, high


@kernel
def _may_have_exponent_kernel(plan: Ints, row: Ints) -> bool:
    """Whether an exponent may follow this mantissa, which is not settled, as far as its position is concerned."""
    side = SIDES + SIDE_SIZE * row[_SIDE]
    if not (plan[side + LOWER] or plan[side + UPPER]):
        return plan[WITH_EXPONENT]
    return plan[WITH_EXPONENT] and -1 - plan[SHIFT] <= row[_K] <= plan[SHIFT]


@kernel
def _exponents_kernel(plan: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that may follow the mantissa of a number other than zero: (from, to)."""
    if row[_LAST] < 0:
        return 1, 0
    if row[_SETTLED]:
        low, high = row[_LOW], row[_HIGH]
    elif _may_have_exponent_kernel(plan, row):
        low, high = _interval_kernel(plan, row)
    else:
        return 1, 0
    if plan[LEAST] > -FREE:
        low = max(low, plan[LEAST] + row[_LAST])
    if plan[BEYOND] < FREE:
        high = min(high, plan[BEYOND] + row[_LAST] - 1)
    return low, high


@kernel
def _accepts_kernel(plan: Ints, row: Ints) -> bool:
    """Whether the text read so far spells a number of the set."""
    kind = row[_KIND]
    if _ZERO <= kind <= _ZEROS:
        return plan[WITH_ZERO] and (kind == _ZEROS or plan[WITH_PLAIN])
    if kind == _SIGNED:
        return row[_K] >= 0 and row[_LOW] <= row[_K] <= row[_HIGH]
    if kind == _COUNTED:
        return row[_LOW] == 0
    if not (kind == _FRACTION or (kind == _WHOLE and plan[WITH_PLAIN])):
        return False
    if row[_SETTLED]:
        within = row[_K] == 1
    else:
        low, high = _interval_kernel(plan, row)
        within = low <= 0 <= high
    return within and is_divided_kernel(plan, row[_RESIDUE], row[_PLACE])


@kernel
def _follow_exponent_kernel(row: Ints, column: int, out: Ints) -> bool:
    """`_follow_kernel` for states behind e or E; `out` is a copy of `row`."""
    digit = column - _DIGIT_0
    is_digit = 0 <= digit <= 9
    counted, low, high, number = row[_KIND] == _COUNTED, row[_LOW], row[_HIGH], row[_K]
    if row[_KIND] == _EXPONENT:
        if not (is_digit or _PLUS <= column <= _MINUS):
            return False
        counted, low, high = read_exponent_sign_kernel(low, high, column == _MINUS)
        number = 0 if counted else -1
    elif not is_digit:
        return False
    if is_digit and high >= 0:
        counted, number, low, high = read_exponent_digit_kernel(counted, number, low, high, digit)
    out[_KIND], out[_K], out[_LOW], out[_HIGH] = _COUNTED if counted else _SIGNED, number, low, high
    return high >= 0
