from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents


cpdef enum:
    # the expressions that every store begins with
    NOTHING = 0
    EMPTY = 1
    ANY_BYTE = 2
    ANY_BYTES = 3

    K_NOTHING = 0
    K_EMPTY = 1
    K_BYTES = 2
    K_CONCAT = 3
    K_UNION = 4
    K_INTERSECTION = 5
    K_COMPLEMENT = 6
    K_REPEAT = 7
    K_LOOK_AHEAD = 8
    K_ASSERTION = 9

    F_NULLABLE = 1 << 8
    F_INHABITED = 1 << 9
    F_ASSERTS = 1 << 10
    F_BOOLEAN = 1 << 11
    F_CONTEXT = 1 << 12
    # a node has these if one of its parts has them
    F_PARTS = F_ASSERTS | F_BOOLEAN | F_CONTEXT

    INFINITE = -1  # the upper bound of an unbounded repeat
    MAX_REPEAT = 1 << 30


cdef class Nodes:
    cdef Contents[int32_t] contents
    cdef vector[int32_t] stack    # of parts: those from `base` up belong to the call that has pushed them
    cdef vector[int32_t] content  # of a node with parts, while it is looked for
    cdef int64_t max_expressions
    # what the budget was told: nodes and words of 8 bytes that there is room for, words in use; work not told yet
    cdef readonly int64_t room
    cdef int64_t room_for_words, words, unpaid

    cdef int count_work(self, int64_t units) except -1 nogil
    cdef int pay(self) except -1 nogil
    cdef int make_room(self, int64_t words) except -1 nogil
    cdef int32_t intern(self, const int32_t* content, size_t size, int64_t words) except -1 nogil
    cdef int32_t intern_node(self, int32_t word, int32_t a, int32_t b, int32_t c) except -1 nogil
    cdef int32_t intern_parts(self, int32_t word, size_t base) except -1 nogil
    cdef int32_t checked(self, object expression) except -1


cdef inline const int32_t* node_of(Nodes nodes, int32_t expression) noexcept nogil:
    """Kind and flags, and what follows; good until the next node is made."""
    return nodes.contents.content_of(expression)


cdef inline int32_t kind_of(Nodes nodes, int32_t expression) noexcept nogil:
    return nodes.contents.content_of(expression)[0] & 0xFF


cdef inline int32_t count_of(Nodes nodes, int32_t expression) noexcept nogil:
    """How many parts a union or an intersection has."""
    return <int32_t>nodes.contents.length(expression) - 1


cdef inline bint has_byte(const int32_t* byte_set, int byte) noexcept nogil:
    """Whether a node that is a byte set has a byte."""
    return byte_set[1 + (byte >> 5)] >> (byte & 31) & 1


# Counts towards the thread's budget (`tokdfa.core.budget`), whether or not the interpreter's lock is held.
cdef int spend_work(int64_t nanoseconds) except -1 nogil
cdef int hold_bytes(int64_t nbytes) except -1 nogil
