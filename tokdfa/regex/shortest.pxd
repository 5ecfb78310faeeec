from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.regex.nodes cimport Nodes


cdef class ShortestTexts:
    cdef Nodes store
    cdef int32_t[8] available
    cdef vector[int32_t] bounds

    cdef const int32_t* update(self) except NULL
    cdef int64_t bound_of(self, int32_t expression) noexcept
