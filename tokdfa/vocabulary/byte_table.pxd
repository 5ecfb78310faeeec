cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef extern from "tokdfa/vocabulary/walker.hpp" namespace "tokdfa" nogil:
    cdef struct WalkProgress:
        uint64_t here
        uint64_t end
        int64_t visited
        int64_t skipped


cdef enum:
    # entries that lead to no row: no text goes on this way; not computed yet
    DEAD = -1
    UNKNOWN = -2


cdef enum:
    HELD_NODES = 1 << 12  # visited before a walk lets go of the interpreter's lock; 7 us


cdef class ByteTable:
    cdef const int32_t* entries       # of `array`: row offset + class -> row offset, DEAD or UNKNOWN
    cdef int64_t entry_count
    cdef uint8_t[256] byte_class_of
    cdef readonly int32_t class_count
    cdef object array, classes        # numpy: `transitions` and `byte_class`

    # Keep a numpy array as `transitions`, and what points into it.
    cdef int set_transitions(self, object array) except -1
    # Make the UNKNOWN entry of a byte known: `fill`, and a check of what it wrote.
    cdef int make_known(self, int32_t row, int32_t byte) except -1
    # The row after a token; DEAD if it may not come or spells nothing; UNKNOWN if an entry on the way is. Nobody may
    # fill rows meanwhile, so hold the interpreter's lock.
    cdef int32_t peek_token(self, int32_t row, FlatTrie trie, int64_t token) noexcept nogil
    # The row after a token, or DEAD; makes what is UNKNOWN.
    cdef int32_t step_token(self, int32_t row, FlatTrie trie, int64_t token) except? -3
    cpdef fill(self, int32_t row, int32_t byte)
    cpdef fill_row(self, int32_t row)


@cython.final
cdef class TableWalk:
    """One walk: the table, the array whose entries it reads, which must not go before them, and what was done."""
    cdef ByteTable table
    cdef object array
    cdef const int32_t* entries
    cdef const uint8_t* byte_class_of
    cdef vector[int32_t] stack
    cdef WalkProgress progress
    cdef int64_t rows_filled


cdef struct FirstTokens:  # those that a walk finds among its first nodes, and whether these were all nodes
    int64_t count
    bint is_all
    int32_t[HELD_NODES + 1] tokens


# OR the tokens that a table allows from a row into a mask of (V + 31) / 32 words, which stays as it is on an error.
cdef TableWalk walk_into(FlatTrie trie, ByteTable table, int32_t row, uint32_t* mask, FirstTokens& first)
