# The types of row_walk.hpp.

from libc.stdint cimport int32_t, uint8_t, uint64_t


cdef extern from "tokdfa/token_automata/row_walk.hpp" namespace "tokdfa" nogil:
    cdef struct RowView:
        const int32_t* entries
        const uint8_t* class_of

    cdef struct WordList:
        int32_t* words
        int32_t* rows
        uint64_t count
        uint64_t spare
