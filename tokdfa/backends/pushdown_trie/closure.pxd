from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.pushdown_trie.items cimport Items


cdef class Closure(Items):
    # Find the live items of a row, once.
    cdef int close_row(self, int64_t row) except -1
    cdef int pay_items(self) except -1
    cdef int push(self, int64_t place, int64_t state, int64_t stack) except -1
    cdef int widen_seen(self) except -1
    cdef bint reach(self, int64_t row) except -1
    cdef int call(self, int32_t frame, int64_t place, int64_t stack) except -1
    cdef int return_from(self, int64_t stack) except -1
    cdef int write_live(self, int64_t row, bint accepts) except -1
    cdef int note_reads(self, int64_t row) noexcept
    cdef int close_middle(self, int64_t row) except -1
    cdef int division_flags(self, int seen, size_t begin) noexcept
