"""A state of the automaton of a number set as a row of integers, and what it says about the number.

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
not be one of 10^beyond (see `tokdfa.json_schema.number_plan`). A mantissa whose last digit other than 0 is the l-th
behind the point, l = 0 if it is a whole digit, leaves the exponents

    least + l  <=  x  <  beyond + l.

For l = 0, `least` is more than necessary if the whole digits end in zeros, and `beyond` needs that they do not. For
l > 0 no exponent is allowed behind further zeros, nor if l > `FRACTION`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokdfa.core.jit import kernel
from tokdfa.json_schema.number_plan import (
    BEYOND,
    FREE,
    LEAST,
    LOWER,
    SHIFT,
    SIDE_SIZE,
    SIDES,
    UPPER,
    WITH_EXPONENT,
    WITH_PLAIN,
    WITH_ZERO,
    check_divisors_kernel,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int32]

# Kinds of states, by an example.
(
    START,  # nothing yet
    SIGN,  # -
    ZERO_POINT,  # 0.
    ZERO,  # 0
    ZEROS,  # 0.00
    POINT,  # 12.
    WHOLE,  # 12
    FRACTION_DIGITS,  # 12.3
    EXPONENT,  # 12e
    SIGNED,  # 12e+0
    COUNTED,  # 12e+4, and only the number of digits to come matters
) = range(11)

# Fields of a row; what a kind does not need is 0. SIDE is 1 for negative numbers, READ counts significant digits, and K
# is k. FROM_X .. TO_X are the exponents that bounds leave to a settled mantissa, of which K says whether it is in the
# set as it is. Behind "e+" they bound the exponent, of which K has been read, -1 before any digit; where digits are
# counted, they bound how many follow. LAST is l, or 1 for any l above 0 that FROM_X has taken account of; -1 if there
# is no exponent. PLACE counts fraction digits. RESIDUE is the trackers' state, or what comes of it once q of these are
# read.
KIND, SIDE, K, READ, VERSUS_LOWER, VERSUS_UPPER, SETTLED, FROM_X, TO_X, LAST, PLACE, RESIDUE, FIELDS = range(13)

LESS, EQUAL, MORE = -1, 0, 1


@kernel
def copy_row_kernel(source: Ints, target: Ints) -> None:
    """Overwrite one row with another."""
    for field in range(FIELDS):  # a slice assignment takes several times as long
        target[field] = source[field]


@kernel
def compare_digit_kernel(plan: Ints, out: Ints, index: int, digit: int) -> None:
    """Goes on with both comparisons: the significant digit of this index is read."""
    side = SIDES + SIDE_SIZE * out[SIDE]
    for bound in range(2):
        entry, field = (LOWER, VERSUS_LOWER) if bound == 0 else (UPPER, VERSUS_UPPER)
        if plan[side + entry] and out[field] == EQUAL:
            expected = plan[plan[side + entry + 4] + index] if index < plan[side + entry + 2] else 0
            out[field] = MORE if digit > expected else LESS if digit < expected else EQUAL
            # at its end, a closed lower bound is passed by whatever follows, and so is an open upper one
            if out[field] == EQUAL and index + 1 >= plan[side + entry + 2] and plan[side + entry + 3] == 1 - bound:
                out[field] = MORE


@kernel
def settle_comparisons_kernel(plan: Ints, out: Ints) -> bool:
    """Whether some comparison is not settled. Settles those that no later digit can change the meaning of."""
    side = SIDES + SIDE_SIZE * out[SIDE]
    is_open = False
    for bound in range(2):
        entry, field = (LOWER, VERSUS_LOWER) if bound == 0 else (UPPER, VERSUS_UPPER)
        if plan[side + entry] and out[field] == EQUAL:
            # without exponent, only a mantissa as long as the bound has to be compared further
            if out[K] == plan[side + entry + 1] or allow_exponent_kernel(plan, out):
                is_open = True
            else:
                out[field] = MORE
    out[READ] = min(out[READ], max(plan[side + LOWER + 2], plan[side + UPPER + 2]))
    return is_open


@kernel
def bound_exponents_kernel(plan: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that the bounds leave to this mantissa, which is not settled: (from, to)."""
    side = SIDES + SIDE_SIZE * row[SIDE]
    read = row[K] + 1 if row[KIND] == WHOLE else row[READ]
    low, high = -FREE, FREE
    if plan[side + LOWER]:
        low = plan[side + LOWER + 1] - row[K]
        versus = row[VERSUS_LOWER]
        if versus == LESS or (versus == EQUAL and (read < plan[side + LOWER + 2] or not plan[side + LOWER + 3])):
            low += 1
    if plan[side + UPPER]:
        high = plan[side + UPPER + 1] - row[K]
        versus = row[VERSUS_UPPER]
        if versus == MORE or (versus == EQUAL and read >= plan[side + UPPER + 2] and not plan[side + UPPER + 3]):
            high -= 1
    return low, high


@kernel
def allow_exponent_kernel(plan: Ints, row: Ints) -> bool:
    """Whether an exponent may follow this mantissa, which is not settled, as far as its position is concerned."""
    side = SIDES + SIDE_SIZE * row[SIDE]
    if not (plan[side + LOWER] or plan[side + UPPER]):
        return plan[WITH_EXPONENT]
    return plan[WITH_EXPONENT] and -1 - plan[SHIFT] <= row[K] <= plan[SHIFT]


@kernel
def find_exponents_kernel(plan: Ints, row: Ints) -> tuple[int, int]:
    """The exponents that may follow the mantissa of a number other than zero: (from, to)."""
    if row[LAST] < 0:
        return 1, 0
    if row[SETTLED]:
        low, high = row[FROM_X], row[TO_X]
    elif allow_exponent_kernel(plan, row):
        low, high = bound_exponents_kernel(plan, row)
    else:
        return 1, 0
    if plan[LEAST] > -FREE:
        low = max(low, plan[LEAST] + row[LAST])
    if plan[BEYOND] < FREE:
        high = min(high, plan[BEYOND] + row[LAST] - 1)
    return low, high


@kernel
def accept_row_kernel(plan: Ints, row: Ints) -> bool:
    """Whether the text read so far spells a number of the set."""
    kind = row[KIND]
    if ZERO <= kind <= ZEROS:
        return plan[WITH_ZERO] and (kind == ZEROS or plan[WITH_PLAIN])
    if kind == SIGNED:
        return row[K] >= 0 and row[FROM_X] <= row[K] <= row[TO_X]
    if kind == COUNTED:
        return row[FROM_X] == 0
    if not (kind == FRACTION_DIGITS or (kind == WHOLE and plan[WITH_PLAIN])):
        return False
    if row[SETTLED]:
        within = row[K] == 1
    else:
        low, high = bound_exponents_kernel(plan, row)
        within = low <= 0 <= high
    return within and check_divisors_kernel(plan, row[RESIDUE], row[PLACE])
