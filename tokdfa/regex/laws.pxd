from libc.stdint cimport int32_t, int64_t

from tokdfa.regex.nodes cimport Nodes


cdef class Constructors(Nodes):
    cdef int laws

    cdef int32_t make_bytes(self, const int32_t* words) except -1 nogil
    cdef int32_t combine_sets(self, int32_t one, int32_t other, bint intersect) except -1 nogil
    cdef int32_t make_literal(self, const int32_t* text, size_t size) except -1 nogil
    cdef int32_t make_repeat(self, int32_t body, int64_t low, int64_t high) except -1 nogil
    cdef int32_t join(self, int32_t head, int32_t tail) except -1 nogil
    cdef int32_t make_concat(self, int32_t head, int32_t tail) except -1 nogil
    cdef int32_t loop_of(self, int32_t expression) noexcept nogil
    cdef bint is_written_in(self, int32_t expression, int32_t letters, int* most) noexcept nogil
    cdef int sort_parts(self, size_t base, int kind) except -1 nogil
    cdef int32_t merge_pair(self, int32_t one, int32_t other) except -1 nogil
    cdef int merge_parts(self, size_t base) except -1 nogil
    cdef int absorb(self, size_t base) except -1 nogil
    cdef int32_t make_union(self, size_t base) except -1 nogil
    cdef int32_t make_choice(self, size_t base) except -1 nogil
    cdef int intersect_sets(self, size_t base) except -1 nogil
    cdef int32_t make_intersection(self, size_t base) except -1 nogil
    cdef int32_t make_complement(self, int32_t body) except -1 nogil
