from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents, Keys
from tokdfa.regex.expression cimport ExpressionStore


cpdef enum:
    NEWLINE = 0x0A


cdef struct Place:
    int32_t partition  # -1: not known yet
    int32_t entry      # the first one in `known`


cdef class DerivativeTable:
    cdef readonly ExpressionStore store
    cdef readonly object classes
    cdef int32_t class_count
    cdef uint8_t[256] byte_class, representatives
    cdef size_t most_partitions
    cdef Contents[int16_t] partitions  # local class of each class, that of the outside or -1, how many there are
    cdef Keys joins                    # pairs of partitions
    cdef vector[int32_t] joined        # the partition that each of them gives
    cdef vector[Place] places          # by expression
    cdef vector[int32_t] known         # the derivative by each local class of each expression, or -1
    cdef vector[int16_t] row           # the partition that is being made
    cdef vector[int16_t] renamed       # while one is made: groups of bytes -> local classes, or -1
    cdef dict local_lists

    cdef int32_t classify(self, int32_t expression) except -1 nogil
    cdef int32_t classify_anew(self, int32_t expression) except -1 nogil
    cdef int enter(self, int32_t expression, int32_t partition) except -1 nogil
    cdef int32_t split_by_set(self, const int32_t* byte_set) except -1 nogil
    cdef int32_t split_by_context(self) except -1 nogil
    cdef int32_t join(self, int32_t one, int32_t other) except -1 nogil
    cdef int32_t intern_row(self) except -1 nogil
    cdef int32_t derive(self, int32_t expression, int32_t byte_class) except -1 nogil
    cdef int32_t derive_anew(self, int32_t expression, int32_t byte_class) except -1 nogil
