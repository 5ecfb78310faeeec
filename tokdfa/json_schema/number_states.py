"""All states of the automaton of a number set, found breadth-first.

A state is a row of integers (`tokdfa.json_schema.number_rows`) in a normal form, such that prefixes with equal futures
mostly have equal rows. What is left to merge, and dead ends, are for `tokdfa.automata`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.core.interning import COUNT, Column, InterningTable, has_room, intern
from tokdfa.core.jit import kernel
from tokdfa.json_schema.number_exponents import read_exponent_digit_kernel, read_exponent_sign_kernel
from tokdfa.json_schema.number_plan import (
    ASKED,
    BAD,
    BEYOND,
    EXISTS,
    EXPONENT_LIMIT,
    FRACTION,
    FREE,
    GOOD,
    K_CAP,
    LEAST,
    LIMITED,
    LOWER,
    OFF_GRID,
    ONLY_TENS,
    PLACES,
    RESIDUE_0,
    SAME_SIGNS,
    SHIFT,
    SIDE_SIZE,
    SIDES,
    STATE_LIMIT,
    UPPER,
    WITH_POINT,
    WITH_ZERO,
    ZERO_EXPONENT,
    ZEROS_CAP,
    check_divisors_kernel,
    divide_digit_kernel,
    plan_numbers,
    too_many_states,
)
from tokdfa.json_schema.number_rows import (
    COUNTED,
    EQUAL,
    EXPONENT,
    FIELDS,
    FRACTION_DIGITS,
    FROM_X,
    KIND,
    LAST,
    MORE,
    PLACE,
    POINT,
    READ,
    RESIDUE,
    SETTLED,
    SIDE,
    SIGN,
    SIGNED,
    START,
    TO_X,
    VERSUS_LOWER,
    VERSUS_UPPER,
    WHOLE,
    ZERO,
    ZERO_POINT,
    ZEROS,
    K,
    accept_row_kernel,
    allow_exponent_kernel,
    bound_exponents_kernel,
    compare_digit_kernel,
    copy_row_kernel,
    find_exponents_kernel,
    settle_comparisons_kernel,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.json_schema.number_set import NumberSet

    Ints = npt.NDArray[np.int32]

#: Columns of the table, in the order of their smallest bytes: other bytes, + - . and the ten digits, e and E.
COLUMNS = 15
_PLUS, _MINUS, _DOT, _DIGIT_0, _E = 1, 2, 3, 4, 14


#: Work (`tokdfa.core.budget`) of a state, in nanoseconds.
NS_PER_NUMBER_STATE = 600


def explore_states(normal: NumberSet, shift: int) -> tuple[Ints, npt.NDArray[np.bool_], bool]:
    """(table, who accepts, whether hardly any states are equivalent) for a set in normal form; the start is 0.

    The table is int32, shape (states, `COLUMNS`), -1 where no text goes on; some states may be dead ends. About 0.4 us
    a state, more if it does not fit the cache. LimitExceeded if there are more than `STATE_LIMIT` states.
    """
    plan = plan_numbers(normal, shift)
    kinds = {"table": Column(np.int32, COLUMNS, -1), "accepting": Column(np.bool_)}
    states = InterningTable(kinds, entries=256, words=256 * FIELDS)
    head = 0
    while True:
        head = _explore_states_kernel(plan, head, STATE_LIMIT, states.struct, *states.columns.values())
        if head == len(states) or len(states) > STATE_LIMIT:
            break
        states.grow()
    table, accepting = (column[: len(states)] for column in states.columns.values())
    spend(NS_PER_NUMBER_STATE * len(table), table.nbytes)
    if len(table) > STATE_LIMIT:
        raise too_many_states(normal)
    return table, accepting, bool(plan[ONLY_TENS])  # remainders may be equivalent


@kernel
def _explore_states_kernel(
    plan: Ints, head: int, limit: int, states: Any, table: Ints, accepting: npt.NDArray[np.bool_]
) -> int:
    """Go on with `explore_states` at state `head`; returns where it stopped: at the end, past `limit`, or for lack of
    room.
    """
    out = np.zeros(FIELDS, dtype=np.int64)
    if head == 0:
        intern(out, 0, FIELDS, states)
    while head < states.meta[COUNT] <= limit and has_room(COLUMNS, COLUMNS * FIELDS, states):
        row = states.words[head * FIELDS : (head + 1) * FIELDS]
        alike = _treat_alike_kernel(plan, row)
        for column in range(1, COLUMNS):
            if alike and _DIGIT_0 + 1 < column <= _DIGIT_0 + 9:
                table[head, column] = table[head, column - 1]
            elif _follow_kernel(plan, row, column, out):
                table[head, column] = intern(out, 0, FIELDS, states)
        accepting[head] = accept_row_kernel(plan, row)
        head += 1
    return head


@kernel
def _treat_alike_kernel(plan: Ints, row: Ints) -> bool:
    """Whether 1 .. 9 lead to one state for a reason that is easy to see. Asking saves a quarter of the time."""
    kind, side = row[KIND], SIDES + SIDE_SIZE * row[SIDE]
    if kind >= EXPONENT:
        return kind == COUNTED
    lower_open = plan[side + LOWER] and row[VERSUS_LOWER] == EQUAL
    upper_open = plan[side + UPPER] and row[VERSUS_UPPER] == EQUAL
    if kind <= ZEROS or (not row[SETTLED] and (lower_open or upper_open)):
        return False
    return plan[ONLY_TENS] or row[RESIDUE] < 0


@kernel
def _follow_kernel(plan: Ints, row: Ints, column: int, out: Ints) -> bool:
    """Writes the state after `row` and a byte of `column` into `out`; False if surely no text goes on this way."""
    kind = row[KIND]
    copy_row_kernel(row, out)
    if kind >= EXPONENT:
        return _follow_exponent_kernel(row, column, out)
    digit = column - _DIGIT_0
    if 0 <= digit <= 9:
        if kind <= ZEROS:
            return _read_first_kernel(plan, out, digit)
        if kind == WHOLE:
            compare_digit_kernel(plan, out, row[K] + 1, digit)
            out[K] = min(row[K] + 1, plan[SIDES + SIDE_SIZE * row[SIDE] + K_CAP])
            return _read_whole_kernel(plan, out, digit)
        if not row[SETTLED]:
            compare_digit_kernel(plan, out, row[READ], digit)
        return _read_fraction_kernel(plan, out, digit)
    if column == _MINUS:
        out[KIND], out[SIDE] = SIGN, 1
        return kind == START and (plan[WITH_ZERO] or plan[SIDES + SIDE_SIZE + EXISTS])
    if column == _PLUS or not plan[WITH_POINT]:
        return False
    if column == _DOT:
        if kind == ZERO:
            out[KIND] = ZERO_POINT
            return True
        if kind != WHOLE:
            return False
        out[KIND], out[READ] = POINT, row[K] + 1
        return _settle_kernel(plan, out)
    low, high = 1, 0
    if ZERO <= kind <= ZEROS:
        if plan[WITH_ZERO] and plan[ZERO_EXPONENT]:
            low, high = -FREE, FREE
    elif WHOLE <= kind <= FRACTION_DIGITS:
        low, high = find_exponents_kernel(plan, row)
        if plan[LIMITED]:
            low, high = max(low, -EXPONENT_LIMIT), min(high, EXPONENT_LIMIT)
    for field in range(FIELDS):
        out[field] = 0
    out[KIND], out[FROM_X], out[TO_X] = EXPONENT, low, high
    return low <= high


@kernel
def _read_first_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A digit where none other than 0 has been read. `out` is the state before, and after."""
    if out[KIND] == ZERO:
        return False  # no digit follows a leading zero
    is_fraction = out[KIND] >= ZERO_POINT
    if plan[SAME_SIGNS]:
        out[SIDE] = 0
    side = SIDES + SIDE_SIZE * out[SIDE]
    if digit == 0:
        out[KIND] = ZEROS if is_fraction else ZERO
        out[PLACE] = min(out[PLACE] + 1, plan[side + ZEROS_CAP]) if is_fraction else 0
        return plan[WITH_ZERO] or (plan[side + EXISTS] and plan[WITH_POINT])
    if not plan[side + EXISTS]:
        return False
    out[RESIDUE] = plan[RESIDUE_0]
    compare_digit_kernel(plan, out, 0, digit)
    if not is_fraction:
        out[KIND], out[K] = WHOLE, 0
        return _read_whole_kernel(plan, out, digit)
    out[K] = -1 - out[PLACE]
    return _read_fraction_kernel(plan, out, digit)


@kernel
def _read_whole_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A whole digit, already compared and counted in K. `out` is the state before, and after."""
    side, k = SIDES + SIDE_SIZE * out[SIDE], out[K]
    if plan[PLACES] >= 0:
        out[RESIDUE] = divide_digit_kernel(plan, out[RESIDUE], digit)
    out[LAST] = -1 if plan[BEYOND] < FREE and digit == 0 else 0
    if not (plan[side + LOWER] or plan[side + UPPER]):
        return True
    if k == plan[side + K_CAP]:
        out[VERSUS_LOWER] = out[VERSUS_UPPER] = MORE
    if k > plan[SHIFT]:
        out[LAST] = 0
    if not plan[side + UPPER]:
        return True
    # further digits do not make the number smaller, only a negative exponent does
    most = plan[side + UPPER + 1] - k - (out[VERSUS_UPPER] == MORE)
    return most >= 0 or (k <= plan[SHIFT] and most >= plan[LEAST])


@kernel
def _read_fraction_kernel(plan: Ints, out: Ints, digit: int) -> bool:
    """A digit behind the point, already compared. `out` is the state before, and after."""
    place = out[PLACE] + 1
    out[KIND], out[PLACE] = FRACTION_DIGITS, place
    out[READ] += 1
    if digit:
        out[LAST] = place if place <= FRACTION else -1
    elif out[LAST] > 0:
        out[LAST] = -1
    if out[RESIDUE] >= 0 and place <= plan[PLACES]:
        out[RESIDUE] = divide_digit_kernel(plan, out[RESIDUE], digit)
    elif digit:
        out[RESIDUE] = OFF_GRID
    return _settle_kernel(plan, out)


@kernel
def _settle_kernel(plan: Ints, out: Ints) -> bool:
    """Brings a mantissa with a point into its normal form, in place; False if surely no text goes on this way."""
    least, beyond = plan[LEAST], plan[BEYOND]
    # what is known of divisors from here on
    if plan[PLACES] < 0:
        out[RESIDUE] = GOOD
    elif out[RESIDUE] >= 0 and out[PLACE] >= plan[PLACES]:
        out[RESIDUE] = GOOD if check_divisors_kernel(plan, out[RESIDUE], out[PLACE]) else BAD
    if out[RESIDUE] == BAD and plan[ASKED]:
        out[RESIDUE] = OFF_GRID
    followed = least > -FREE or beyond < FREE
    if not followed:
        out[LAST] = 0
    side = SIDES + SIDE_SIZE * out[SIDE]
    if not out[SETTLED]:
        if settle_comparisons_kernel(plan, out):
            place_limit = FRACTION if followed else 0
            if beyond == FREE and plan[side + UPPER]:
                place_limit = max(min(place_limit, plan[side + UPPER + 1] - out[K] - least), 0)
            out[PLACE] = min(out[PLACE], max(plan[PLACES], place_limit))
            return True
        low, high = bound_exponents_kernel(plan, out)
        now = low <= 0 <= high
        if not allow_exponent_kernel(plan, out):
            low, high = 1, 0
        out[SIDE] = out[VERSUS_LOWER] = out[VERSUS_UPPER] = 0
        out[K], out[FROM_X], out[TO_X], out[SETTLED] = now, low, high, 1
    out[READ] = 0
    if followed and out[LAST] < 0 and out[PLACE] >= FRACTION:
        out[TO_X] = -FREE  # no exponent, and none later
    elif followed and beyond == FREE:
        if out[LAST] < 0:
            out[FROM_X] = max(out[FROM_X], least + out[PLACE] + 1)
        elif out[LAST] > 0:
            out[FROM_X], out[LAST] = max(out[FROM_X], least + out[LAST]), 1
        else:
            out[FROM_X] = max(out[FROM_X], least)
    if out[RESIDUE] == OFF_GRID and plan[ASKED]:
        out[K] = 0
    if not out[K]:
        out[RESIDUE] = OFF_GRID
    place_limit = max(plan[PLACES], 0) if out[RESIDUE] >= 0 else 0
    if out[FROM_X] > out[TO_X]:
        out[FROM_X], out[TO_X], out[LAST] = 1, 0, 0
    elif beyond < FREE:
        place_limit = max(place_limit, FRACTION)
    elif followed:
        place_limit = max(place_limit, min(FRACTION, out[TO_X] - least))  # one place more, and no exponent is left
    out[PLACE] = min(out[PLACE], place_limit)
    return out[K] or out[FROM_X] <= out[TO_X]


@kernel
def _follow_exponent_kernel(row: Ints, column: int, out: Ints) -> bool:
    """`_follow_kernel` for states behind e or E; `out` is a copy of `row`."""
    digit = column - _DIGIT_0
    is_digit = 0 <= digit <= 9
    counted, low, high, number = row[KIND] == COUNTED, row[FROM_X], row[TO_X], row[K]
    if row[KIND] == EXPONENT:
        if not (is_digit or _PLUS <= column <= _MINUS):
            return False
        counted, low, high = read_exponent_sign_kernel(low, high, column == _MINUS)
        number = 0 if counted else -1
    elif not is_digit:
        return False
    if is_digit and high >= 0:
        counted, number, low, high = read_exponent_digit_kernel(counted, number, low, high, digit)
    out[KIND], out[K], out[FROM_X], out[TO_X] = COUNTED if counted else SIGNED, number, low, high
    return high >= 0
