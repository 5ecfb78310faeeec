from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.closure cimport Closure


cdef class Steps(Closure):
    cdef vector[int32_t] chain    # of rows that fall back on each other
    cdef vector[int64_t] ending   # items whose terminals end

    # The row after a byte, or DEAD.
    cdef int64_t step_row(self, int64_t row, int64_t byte) except? -9
    cdef int64_t make_step(self, int64_t row, int64_t byte) except? -9
    cdef int64_t step_longest(self, int64_t row, int64_t byte) except? -9
    # The row after some bytes, or DEAD.
    cdef int64_t read(self, int64_t row, const uint8_t* data, int64_t size) except? -9
    # The same as far as it is known without making anything; UNKNOWN else.
    cdef int64_t peek(self, int64_t row, const uint8_t* data, int64_t size) noexcept
    # The row after the terminals and strings of a closed row have ended, not in its names; or DEAD.
    cdef int64_t end_strings(self, int64_t row) except? -9
    # The border after the terminals that may end in a row in the middle of a lexeme, -1 if none may.
    cdef int64_t end_row(self, int64_t row) except? -9
    # The row, closed, in which the next lexeme may begin: `row` itself, or in the middle of a lexeme what follows if it
    # ends here; -1 if it may not.
    cdef int64_t border_of(self, int64_t row) except? -9
    cdef int put_inside(self, int64_t row, int64_t byte, int* together, int* common) except -1
    cdef int put_ended(self) except -1
    cdef int64_t intern_middle(self, int64_t fallback) except? -9
