from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.backends.proper_merge.proper_rows cimport ProperRows, TokenReader
from tokdfa.proper.adjacent_pairs cimport AdjacentPairs
from tokdfa.proper.intervals cimport BorderSide


cdef struct Liveness:      # what is known of a state
    int64_t suspect_begin  # its suspects, ascending
    int64_t suspect_end
    int64_t live_count     # its live tokens
    int64_t tried          # those that were tried on the suspects; the others decide


cdef class ProperTable:
    cdef readonly object automaton, canonicity, lock
    cdef readonly TokenReader reader
    cdef ProperRows rows
    cdef AdjacentPairs pairs
    cdef BorderSide before
    cdef int64_t size               # V
    cdef const uint8_t* usable      # by token
    cdef const int32_t* whole_rank  # by token: -1 unless it is an improper one that is a whole piece
    cdef const int16_t* byte_of     # by token: the byte of a byte token, else -1; NULL without byte fallback
    cdef tuple arrays               # what the pointers point into
    # Of the first `settled` states, and of the entries of their rows.
    cdef size_t settled
    cdef vector[uint8_t] status
    cdef vector[Liveness] known
    cdef vector[uint8_t] live
    cdef vector[int32_t] live_tokens  # those of a state begin where its row does, in the order in which they were found
    cdef vector[int32_t] suspects
    # The row that was read last: tokens, keys, numbers of the targets, and which entries are live.
    cdef object scratch, scratch_live
    cdef int32_t* row_tokens
    cdef int32_t* row_keys
    cdef int32_t* row_targets
    cdef uint8_t* row_live

    cpdef bint is_live(self, int64_t key, int64_t last) except -1
    # The state after a token, -1 if it cannot be read; `step`: or if the pair of both is dead.
    cpdef int64_t read(self, int64_t key, int64_t token) except -2
    cpdef int64_t step(self, int64_t key, int64_t token) except -2
    # Read the row of a state. Returns how many entries it has. The caller holds the lock.
    cdef int64_t judge_row(self, int64_t key) except -1

    cdef int check(self, int64_t key, int64_t token) except -1
    cdef int judge_targets(self, int64_t count) except -1 nogil
    cdef int32_t settled_state(self, int64_t key) except -1
    cdef int settle(self) except -1
    cdef int find_live(self) except -1 nogil
    cdef bint sweep_row(self, int64_t state, int32_t sweep, vector[int32_t]& grew) except -1 nogil
    cdef int clear_suspects(self, int64_t state) except -1 nogil
    cdef bint may_live(self, int32_t state, int32_t last) noexcept nogil
