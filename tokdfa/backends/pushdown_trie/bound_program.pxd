from libc.stdint cimport int32_t, int64_t

from tokdfa.program.builder cimport GrowingCode


cdef enum:  # the arrays of a program
    CODE
    ALTERNATIVES
    ENTRIES
    ARGUMENTS
    TABLES
    NODES
    ORDER
    PARTS


cdef struct Instruction:
    int32_t operation
    int32_t first
    int32_t second


cdef class ProgramArrays:
    cdef object memory  # int32, all arrays one after another
    cdef int32_t* data
    # where each array begins; numbers that it has, and that it has room for
    cdef int64_t[PARTS] begin
    cdef int64_t[PARTS] used
    cdef int64_t[PARTS] room
    cdef list views         # of the arrays, as they were asked for last
    cdef int64_t[PARTS] seen  # how many numbers these have

    cdef int32_t* at(self, int part) noexcept


cdef class BoundProgram:
    cdef readonly object program
    cdef readonly bint is_spelled
    cdef readonly ProgramArrays arrays
    cdef object automata
    cdef GrowingCode source
    cdef bint anew
    cdef list starts       # by terminal
    cdef int64_t followed  # places written later that are known

    cdef list new_starts(self, list terminals)
    cdef int extend(self) except -1
