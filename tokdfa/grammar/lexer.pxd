from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents


cdef enum:
    # stands first in the content of a start state
    START_MARK = -1
    # entries from here down: a lexeme ends, or a longer match is tried; BORDER - 1 - target, BORDER without a target
    BORDER = -3


cdef inline int32_t target_in(int32_t entry) noexcept nogil:
    """The lexer state that an entry leads to, or DEAD."""
    return entry if entry > BORDER else BORDER - 1 - entry


cdef struct LexerView:  # what a step of a walk reads
    const int32_t* entries
    const uint8_t* class_of
    uint64_t class_count


cdef class Lexer:
    cdef readonly object cfg, components
    cdef readonly int64_t max_states
    cdef readonly int32_t class_count
    cdef readonly bint longest
    cdef tuple arrays                     # of the components, which these point into
    cdef const uint8_t* class_of
    cdef const int32_t* table
    cdef const int32_t* lexeme_of
    cdef const int32_t* start_of
    cdef const uint8_t* accepts_in
    cdef const uint8_t* ends_in
    cdef const uint8_t* is_lazy
    cdef int64_t lexeme_count
    cdef Contents[int32_t] states         # the components of each state
    cdef Contents[int32_t] sets           # the lexemes of each accepting set
    cdef vector[int32_t] entries          # state x classes
    cdef vector[int32_t] accepting_in     # by state: the accepting set, or -1
    cdef vector[int32_t] completes_in     # by state: the set that ends there at once, or -1
    cdef vector[int32_t] content, ended   # scratch
    cdef int64_t work, kept               # moves and bytes that are not paid for

    cdef int view_components(self) except -1
    cdef int fill_component(self, int32_t component) except -1 nogil
    cdef int count(self, int64_t work, int64_t kept) except -1 nogil
    # The state of these components, in the order of their lexemes; made if need be.
    cdef int32_t enter(self, const vector[int32_t]& content) except -1 nogil
    cdef int find_sets(
        self, const vector[int32_t]& content, int32_t* accepting, int32_t* completes
    ) except -1 nogil
    cdef int32_t entry_of(self, int32_t state, int32_t target) noexcept nogil
    # Make an entry known.
    cdef int fill(self, int32_t state, int32_t column) except -1 nogil
    # The state after a byte of a class, or DEAD.
    cdef int32_t target(self, int32_t state, int32_t column) except -2 nogil
    cdef int check_state(self, int64_t state) except -1
