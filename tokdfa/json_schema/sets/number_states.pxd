cimport cython
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.json_schema.sets.number_rows cimport Row


cdef struct Interval:
    int low, high


cdef struct Bound:
    bint exists, is_closed
    int position, size  # of the first digit; how many digits
    const char* digits


cdef struct Side:
    bint exists
    int k_cap, zeros_cap
    Bound bounds[2]


cdef struct Tracker:
    int64_t c, g, last_level, cases
    bint is_asked


@cython.final
cdef class NumberStates:
    cdef int shift, least, beyond, places, residue_0, exponent_limit
    cdef bint with_zero, with_plain, with_point, zero_exponent, with_exponent, same_signs
    cdef bint is_asked, only_tens, is_followed  # divisors: some are asked for; all have c = 1; they restrict exponents
    cdef Side sides[2]
    cdef list planned  # the same in Python; it owns the digits
    cdef vector[Tracker] trackers

    cdef int follow_remainders(self, normal, list trackers) except -1
    # Whether the text read so far spells a number of the set.
    cdef bint accepts(self, const Row* row) noexcept nogil
    # Write the state after `before` and a byte of `column` to `row`; False if surely no text goes on this way.
    cdef bint follow(self, const Row* before, int column, Row* row) noexcept nogil
    cdef bint is_bounded(self, const Row* row) noexcept nogil
    cdef bint allows_exponent(self, const Row* row) noexcept nogil
    cdef Interval bound_exponents(self, const Row* row) noexcept nogil
    cdef Interval find_exponents(self, const Row* row) noexcept nogil
    cdef bint read_first(self, Row* row, int digit) noexcept nogil
    cdef bint read_whole(self, Row* row, int digit) noexcept nogil
    cdef bint read_fraction(self, Row* row, int digit) noexcept nogil
    cdef bint settle(self, Row* row) noexcept nogil
    cdef void compare_digit(self, Row* row, int index, int digit) noexcept nogil
    cdef bint is_open(self, Row* row) noexcept nogil
    cdef int32_t divide_digit(self, int64_t residue, int digit) noexcept nogil
    cdef bint divides(self, const Row* row) noexcept nogil
