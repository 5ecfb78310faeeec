from libc.stdint cimport int32_t, int64_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.byte_sets cimport ByteSet
from tokdfa.core.interning cimport Keys


cdef enum:
    LEAST_BELOW = 64  # nodes with fewer descendants have no branch


cdef class Branches:
    cdef Keys keys
    cdef vector[ByteSet] bytes_of
    cdef vector[int32_t] begin
    cdef vector[int32_t] children

    cdef int add(self, const uint64_t* nodes, int64_t begin, int64_t end) except -1
    cdef int forget_after(self, size_t count) except -1
    cdef int64_t bytes_kept(self) noexcept
    # Where the next children begin and end, of a branch whose bytes `left` are to be taken; False if there are none.
    # The byte that is taken is removed from `left`.
    cdef bint take_child(self, int32_t branch, uint64_t* left, int64_t* first, int64_t* past) noexcept
