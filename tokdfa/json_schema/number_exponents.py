"""The exponents of numbers: texts of the integers of an interval, with a sign or not and leading zeros, digit by digit.

What has been read of an integer from a to b is a number v, and matters only while it may become a or b, or its digits
begin theirs. Otherwise every number of n more digits, v · 10^n to v · 10^n + 10^n - 1, is in the interval or none is,
and it is enough to know how many more digits must, and may, follow. So there are about as many states as a and b have
digits, if they are equal in the same things as the numbers they are made of.
"""

from __future__ import annotations

from tokdfa.core.jit import kernel
from tokdfa.json_schema.number_plan import FREE


@kernel
def read_exponent_sign_kernel(low: int, high: int, is_negative: bool) -> tuple[bool, int, int]:
    """The magnitudes behind a sign (or none, which is like +) of the exponents `low` .. `high`; -FREE, FREE: no limit.

    Returns (counted, low, high) as for `read_exponent_digit_kernel`.
    """
    if is_negative:
        low, high = -high, -low
    if low <= 0 and high == FREE:
        return True, 1, FREE
    return False, max(low, 0), high


@kernel
def read_exponent_digit_kernel(
    counted: bool, number: int, low: int, high: int, digit: int
) -> tuple[bool, int, int, int]:
    """One digit more: (counted, number, low, high), the last being negative if no text goes on this way.

    Not `counted`: magnitudes `low` .. `high` of which `number` has been read, -1 at first. `counted`: `low` to `high`
    more digits may follow.
    """
    if counted:
        return True, 0, max(low - 1, 0), high if high == FREE else high - 1
    number = 10 * max(number, 0) + digit
    if number == 0:
        if low > 0:
            return False, -1, low, high  # nothing but zeros is like nothing
        return False, 0, low, high
    if number > high:
        return False, 0, 0, -1
    fewest, power = 0, 1  # the fewest digits with which some number is `low` or more; 10 ** fewest
    while number * power + power - 1 < low:
        fewest, power = fewest + 1, 10 * power
    if number * power < low:
        return False, number, low, high
    if high == FREE:
        return True, 0, fewest, FREE
    most, power = 0, 1
    while number * power * 10 <= high:
        most, power = most + 1, 10 * power
    if number * power + power - 1 > high:
        return False, number, low, high
    return (True, 0, fewest, most) if fewest <= most else (False, 0, 0, -1)
