from cpython.array cimport array
from libc.stdint cimport int32_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents


# Where a number of an array of int32 is, until more is added.
cdef int32_t* number_at(array numbers, Py_ssize_t place) noexcept


cdef class GrowingCode:
    cdef object __weakref__
    cdef public list terminals
    cdef public list token_sets
    cdef public list name_tables
    cdef public list frame_names
    cdef readonly list makes
    cdef public array code
    cdef public array alternatives
    cdef public array arguments
    cdef public array entries
    cdef readonly array written
    cdef readonly object lock
    cdef public object spelled_by
    cdef public str open_names

    cdef int share(self, GrowingCode other) except -1


cdef class ProgramBuilder(GrowingCode):
    cdef public str escapes
    # What tells instructions written so far from others, numbered; their places by number.
    cdef Contents[int32_t] contents
    cdef vector[int32_t] place_of
    cdef vector[int32_t] words
    cdef int32_t any_string  # the number of the terminal of any string; -1: not asked yet
    cdef dict terminal_numbers
    cdef dict table_numbers
    cdef dict counted_places

    cdef int32_t put(self, int32_t operation, int32_t first, int32_t second) except -1
    cdef int32_t either(self, int32_t first, int32_t second) except -1
    cdef int32_t window(self, int32_t table, int32_t low, int32_t high, int32_t targets, int32_t other) except -1
    cdef int32_t any_word(self) except -1
    cdef int32_t known(self, const int32_t* content, size_t size, int32_t* number) except -2
    cdef int32_t append(self, int32_t operation, int32_t first, int32_t second) except -1
