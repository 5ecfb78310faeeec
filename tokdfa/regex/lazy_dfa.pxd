from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.regex.expression cimport ExpressionStore
from tokdfa.regex.raw_dfa cimport RawDfa
from tokdfa.regex.shortest cimport ShortestTexts


cdef class LazyDfa(RawDfa):
    cdef object __weakref__
    cdef ShortestTexts shortest
    cdef bint tried_all
    cdef object empty_parts

    cdef int fill_many(self, const int32_t* states, size_t count) except -1
    cdef int settle(self, const int32_t* states, size_t count, vector[int32_t]& undecided) except -1
    cdef int decide_many(self, vector[int32_t]& states) except -1
    cdef int mark_live(self, vector[int32_t]& reached) noexcept
    cdef int32_t nearest_target(self, int32_t state, const int32_t* bounds) noexcept
    cdef int decide(self, int32_t state) except -1
    cdef bint search(self, int32_t state, int64_t most) except -1
    cdef bint decide_all(self) except -1
