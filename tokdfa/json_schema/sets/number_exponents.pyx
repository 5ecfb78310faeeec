"""The states of the automaton of a number set behind e or E.

What has been read of an integer from a to b is a number v, and matters only while it may become a or b, or
its digits begin theirs. Otherwise every number of n more digits, v · 10^n to v · 10^n + 10^n - 1, is in the interval or
none is, and it is enough to *count* how many more digits must, and may, follow.
"""

from tokdfa.json_schema.sets.number_rows cimport COUNTED, DIGIT_0, EXPONENT, MINUS, PLUS, SIGNED, Row

from tokdfa.json_schema.sets import number_plan

cdef int FREE = number_plan.FREE


cdef bint follow_exponent(Row* row, int column) noexcept nogil:
    cdef int digit = column - DIGIT_0
    cdef bint is_digit = 0 <= digit <= 9
    if row.kind == EXPONENT and (is_digit or column == PLUS or column == MINUS):
        read_exponent_sign(row, column == MINUS)
    elif not is_digit:
        return False
    return row.to_x >= 0 and (not is_digit or read_exponent_digit(row, digit))


cdef void read_exponent_sign(Row* row, bint is_negative) noexcept nogil:
    """A sign, or none, which is like +: the interval becomes one of magnitudes."""
    if is_negative:
        row.from_x, row.to_x = -row.to_x, -row.from_x
    if row.from_x <= 0 and row.to_x == FREE:
        row.kind, row.from_x = COUNTED, 1
    else:
        row.kind, row.k, row.from_x = SIGNED, -1, max(row.from_x, 0)


cdef bint read_exponent_digit(Row* row, int digit) noexcept nogil:
    """One digit more; False if no text goes on this way."""
    cdef int number, power = 1, fewest = 0, most = 0, low = row.from_x, high = row.to_x
    if row.kind == COUNTED:
        row.from_x, row.to_x = max(low - 1, 0), high if high == FREE else high - 1
        return row.to_x >= 0
    number = 10 * max(row.k, 0) + digit
    if number > high:
        return False
    row.k = number
    if number == 0:
        if low > 0:
            row.k = -1  # nothing but zeros is like nothing
        return True
    while number * power + power - 1 < low:  # the fewest digits with which some number is `low` or more
        fewest, power = fewest + 1, 10 * power
    if number * power < low:
        return True
    if high < FREE:
        power = 1
        while number * power * 10 <= high:
            most, power = most + 1, 10 * power
        if number * power + power - 1 > high:
            return True
    else:
        most = FREE
    row.kind, row.k, row.from_x, row.to_x = COUNTED, 0, fewest, most
    return fewest <= most
