from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector


cdef enum:
    # flags of a state: its terminal may end; it cannot go on; it reads many bytes; it ends where it first may; it reads
    # few bytes, but some of them over and over, or many of these lead to such a state
    ACCEPTS = 1
    ENDS = 2
    WIDE = 4
    SHORTEST = 8
    LOOPS = 16
    # columns of `characters`
    BEGINS = 0
    LEAST = 1
    STATES = 2
    MOST = 3


cdef class StateTable:
    cdef readonly object transitions, flags, reads, division_class, characters, owner, inner
    # what these point into
    cdef int32_t* targets
    cdef uint8_t* flags_of
    cdef uint64_t* reads_of
    cdef int32_t* class_in
    cdef int32_t* characters_of
    cdef int32_t* owner_of
    cdef int32_t* inner_of
    cdef readonly int64_t state_count
    cdef int64_t room
    cdef int64_t wide_bytes, most_bytes
    cdef readonly list lazy_automata
    cdef vector[vector[int32_t]] known  # by number of a lazy automaton: state there -> state here, or -1

    cdef int point(self) except -1
    # Make the row of a state known; pointers into the table may be others then.
    cdef int make_row(self, int64_t state) except -1
    cdef int ensure(self, int64_t states) except -1
    cdef int32_t enter_lazy(self, int32_t number, int32_t there) except -1
    cdef int fill_of(self, int32_t number, const int32_t* states, size_t count) except -1
    cdef int write_row(self, int64_t state, int32_t number) except -1
