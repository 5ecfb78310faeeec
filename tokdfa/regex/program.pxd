from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector


cdef enum:
    LITERAL
    BYTES
    CHOICE
    CONCAT
    UNION
    REPEAT
    BOTH
    NOT


cdef class Program:
    cdef vector[int32_t] code  # what has not been run yet
    cdef vector[int32_t] ran   # the expressions of the values that have been run
    cdef readonly int64_t count
    cdef dict embedded

    cdef int begin(self, int operation, int64_t operands) except -1
    cdef int64_t write(self, int operation, tuple operands) except -1
