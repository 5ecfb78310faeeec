cimport cython
from libc.stdint cimport int32_t, int64_t, uint16_t
from libcpp.vector cimport vector

from tokdfa.backends.state_matcher cimport StateMatcher
from tokdfa.vocabulary.mask_store cimport MaskStore


@cython.final
cdef class Numbers:
    cdef const void* data
    cdef readonly int64_t size
    cdef int64_t width
    cdef object view

    cdef inline int64_t at(self, int64_t place) noexcept nogil:
        if self.width == 4:
            return (<const int32_t*>self.data)[place]
        if self.width == 2:
            return (<const uint16_t*>self.data)[place]
        return (<const int64_t*>self.data)[place]

    # Where a number stands in an ascending range, or -1.
    cdef int64_t find(self, int64_t number, int64_t begin, int64_t end) noexcept nogil


cdef class NumberedStates:
    cdef public object vocab
    cdef public MaskStore masks
    cdef object __weakref__

    # The state after any number, DEAD if that is no token that is allowed, UNKNOWN if `step` has to be asked.
    cdef int64_t known_step(self, int64_t state, int64_t token) noexcept
    # Overwrite `out`, an array with these words, with a mask that is not kept, and keep it if masks are kept; what that
    # took is added to the counters. By default `make_mask` is called.
    cdef int write_new(self, int64_t state, object out, int32_t* words, object counters) except -1


cdef class NumberedMatcher(StateMatcher):
    cdef NumberedStates states
    cdef int64_t here             # the state, or ENDED
    cdef vector[int64_t] passed   # the state before each token

    cdef int go_back(self, Py_ssize_t count) except -1


cdef class RowTable(NumberedStates):
    cdef readonly object table, accepting
    cdef bint keeps
    cdef Numbers offsets, ranks, target_of, rank_of, order
    cdef vector[int32_t] ends

    cdef int64_t checked(self, int64_t state) except -1
    cdef object entries(self, int64_t state)


# Add to a counter.
cdef int add(object counters, str name, int64_t amount) except -1
