cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Keys
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef enum:
    # bits of `PieceAutomaton.can_stop`
    ENDS = 1
    BORDERS = 2
    INSIDE = 4
    # the node of `WholePieces` after a whole piece
    WHOLE = 2


@cython.final
cdef class TokenReader:
    cdef FlatTrie trie, whole_trie
    cdef const int32_t* table
    cdef const uint8_t* byte_class
    cdef const int32_t* fallback_class
    cdef const int32_t* fallback_tokens
    cdef const uint8_t* can_stop
    cdef const int32_t* marker
    cdef const int32_t* child_starts
    cdef const int32_t* child_ranks
    cdef const int32_t* child_nodes
    cdef const int32_t* rank_of
    cdef const uint8_t* terminal
    cdef uint32_t classes, node_count
    cdef int32_t root
    cdef int64_t key_count
    cdef int64_t row_room       # more entries than a row can have
    cdef vector[int32_t] stack  # of the walk
    cdef tuple arrays           # what the pointers point into

    # Write a row, tokens and the keys they lead to, to arrays with `row_room`. Returns how many entries it has. For one
    # thread at a time.
    cdef int64_t read_row(self, uint32_t key, int32_t* tokens, int32_t* keys) noexcept nogil
    cdef int64_t walk(self, FlatTrie trie, uint32_t state, int32_t* tokens, int32_t* rows) noexcept nogil
    # The offset of the row after the bytes of a token, or -1.
    cdef int32_t run(self, uint32_t state, int64_t token) noexcept nogil
    # The node of the whole pieces after a proper token.
    cdef int32_t node_after(self, uint32_t node, int64_t token) noexcept nogil
    # Whether the text may end, or a border stand, in a state; `how`: ENDS, BORDERS or both.
    cdef bint may_stop(self, uint32_t key, uint8_t how) noexcept nogil
    # Whether a state is live whatever the last token, by what it is.
    cdef bint is_full(self, uint32_t key) noexcept nogil
    # The key of the state behind a border, -1 if none may stand here.
    cdef int32_t behind_border(self, uint32_t key) noexcept nogil


@cython.final
cdef class ProperRows:
    cdef TokenReader reader
    cdef bint every_state
    cdef int64_t max_entries
    cdef Keys numbers
    cdef vector[int64_t] offsets           # row i has the entries offsets[i] .. offsets[i + 1] - 1
    cdef vector[int32_t] tokens, targets
    cdef object scratch                    # one row
    cdef int32_t* row_tokens
    cdef int32_t* row_keys

    cdef size_t row_count(self) noexcept nogil
    # The number of the state that a token leads to, -1 for full ones unless `every_state`.
    cdef int32_t number_target(self, int32_t key) except? -2 nogil
    cdef int make_rows(self) except -1
    cdef int make_room(self) except -1
    cdef int64_t add_rows(self, int64_t most) except -1 nogil
    cdef int clear(self) except -1


# Where the data of an array begins, NULL if it has none.
cdef const uint8_t* byte_data(const uint8_t[::1] array) noexcept
