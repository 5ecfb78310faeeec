from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.rows cimport Rows


cdef struct OpenFrame:  # a frame on the way, and its next caller to look at
    int32_t frame
    int32_t caller


cdef class Stacks(Rows):
    cdef vector[OpenFrame] way
    cdef vector[int32_t] met      # frames met and not in a group yet
    cdef vector[int32_t] waiting  # members of a group whose callers are gathered
    cdef vector[int64_t] gathered

    # Give a frame that the present closure has called its stack, and first those that it refers to.
    cdef int resolve_frame(self, int32_t root) except -1
    cdef int enter_frame(self, int32_t frame, int32_t index) except -1
    cdef int put_callers(self, int32_t frame, vector[int64_t]& entries) except -1
    cdef bint is_recursive(self, int32_t frame) noexcept
    cdef int resolve_single(self, int32_t frame) except -1
    cdef int resolve_group(self, size_t first) except -1
    cdef int gather_member(self, int32_t member) except -1
    cdef int64_t intern_group(self, int64_t size) except -1
