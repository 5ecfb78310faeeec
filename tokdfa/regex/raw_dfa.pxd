from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.regex.derivative cimport DerivativeTable
from tokdfa.regex.expression cimport ExpressionStore
from tokdfa.vocabulary.byte_table cimport ByteTable


cdef enum:
    # entries of `live`
    UNDECIDED = 0
    IS_DEAD = 1
    IS_LIVE = 2


cdef class RawDfa(ByteTable):
    cdef readonly ExpressionStore store
    cdef readonly int32_t root
    cdef readonly int64_t max_states, state_count, explored
    cdef readonly object representatives, bytes_read, raw, accepting, live
    cdef readonly bint needs_proof
    cdef int64_t room                # states that the tables have room for
    cdef int32_t* raw_entries        # into the tables
    cdef int32_t* own_entries
    cdef uint8_t* accepts_in
    cdef uint8_t* live_in
    cdef vector[int32_t] expressions  # by state
    cdef vector[int32_t] states      # by expression without assertions: its state, or -1
    cdef dict contexts, asserting    # of states with assertions: context; (expression, context) -> state
    cdef list after                  # by class: the context behind a byte of it
    cdef vector[int32_t] targets     # by local class, while a row is derived
    cdef DerivativeTable known

    cdef int32_t enter(self, int32_t expression, int context) except -2
    cdef int32_t enter_asserting(self, int32_t expression, int context) except -1
    cdef int32_t state_for(self, int32_t expression, int64_t limit) except -1 nogil
    cdef int32_t new_state(self, int32_t expression, bint accepts, bint inhabited, int64_t limit) except -1 nogil
    cdef int check_limit(self, int64_t limit) except -1 nogil
    cdef int grow(self) except -1 nogil
    cdef int take_room(self, int64_t room) except -1
    cdef int explore_to(self, int64_t limit) except -1 nogil
    cdef int derive_row(self, int32_t state, int64_t limit) except -1 nogil
    cdef int derive_asserting_row(self, int32_t state) except -1
    cdef int32_t entry_for(self, int32_t expression, int context) except -2
