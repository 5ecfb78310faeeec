from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents


cdef class ColumnStore:
    cdef Contents[int64_t] columns  # of `pair_key(source, target)`

    # Intern rows of a sparse table, those that are empty only if `empty_too`; number[k]: where row k went, else -1.
    cdef int add_all(
        self, const int64_t[::1] offsets, const int32_t[::1] sources, const int32_t[::1] targets, int32_t[::1] number,
        bint empty_too,
    ) except -1 nogil

    # `Columns` of tokens: int32, by rank, and `scale` times the column of each, which is overwritten.
    cdef object columns_of(self, object ranks, object column_of, uint32_t scale)
    # Replace columns, times `scale`, by numbers in order of first occurrence; `used`: the column of each number.
    cdef int renumber(self, int32_t[::1] column_of, uint32_t scale, vector[int32_t]& used) except -1 nogil
    # (offsets, sources, targets) of some columns.
    cdef tuple spell(self, const vector[int32_t]& used)
