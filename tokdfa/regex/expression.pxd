from libc.stdint cimport int32_t, int64_t

from tokdfa.regex.laws cimport Constructors
from tokdfa.regex.program cimport Program


cdef class ExpressionStore(Constructors):
    cdef dict byte_sets

    cdef int begin(self, int64_t operands) except -1
    cdef int push_all(self, object expressions) except -1
    cdef int32_t operand(self, Program program, size_t position, int64_t value) except -1
    cdef int32_t construct(self, Program program, size_t first, size_t end, int64_t value) except -1
