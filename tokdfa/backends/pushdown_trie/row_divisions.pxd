from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.items cimport ALONE, STATE_PART, STRICT
from tokdfa.backends.pushdown_trie.state_table cimport ACCEPTS, StateTable
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.core.byte_sets cimport ByteSet
from tokdfa.masks.branches cimport Branches
from tokdfa.masks.builder cimport MaskBuilder
from tokdfa.vocabulary.byte_table cimport DEAD


cdef enum:
    SKIPS = -2   # what `follow_guide` says where nothing reads a byte
    # tags of what a state leaves: what the row reads, from the beginning of the rest; what stands behind the only end
    # that the terminal has on the way
    REST = 0
    BEHIND = 1


cdef class RowDivisions(MaskBuilder):
    cdef readonly StateTable automata
    cdef Branches branches
    cdef Steps machine                # whose mask is made
    cdef readonly int64_t trie_nodes, depth_limit, size
    cdef vector[int64_t] states       # by depth, of the division being made; what is added to them all, and its depth
    cdef int64_t kind, begin
    cdef int64_t price, most_due
    cdef readonly object slices
    cdef vector[int32_t] due          # numbers of divisions to be made for the masks to come
    cdef ByteSet taken                # bytes whose tokens need no walk from the root

    cdef int32_t divide_by(self, int32_t rest, int64_t state) except -9
    cdef bint ends_once(self, int32_t number) noexcept
    cdef bint is_alone(self, int64_t row, bint whole) noexcept
    cdef int64_t names_item(self, int64_t row) noexcept
    cdef int64_t wide_row(self, int64_t row) except? -9
    cdef int64_t serving_state(
        self, int64_t k, int64_t row, int64_t source, int64_t place, bint alone, int64_t passed
    ) noexcept
    cdef bint is_barred(self, int64_t state, int64_t row, int64_t source) noexcept
    cdef int32_t best_state(self, int32_t rest, int64_t row, int64_t source, int64_t passed) except -9
    cdef int32_t closing_rest(self, int64_t row) except -9
    cdef bint serve_subtree(
        self, int64_t row, int64_t source, int32_t rest, int64_t size, int64_t passed
    ) except -1
    cdef int try_slices(self, int64_t state) except -1
    cdef int note_wanted(self, int32_t number, int64_t nodes, int64_t work) except -1
    cdef int64_t guide_of(self, int64_t row, int64_t source, int64_t passed) noexcept
    cdef int take_loops(self, int64_t row, int64_t source) except -1


cdef inline int64_t follow_guide(
    int64_t guide, int64_t byte, const int32_t* targets, const uint8_t* flags
) noexcept nogil:
    """The state, with its kind, after a byte that stays inside its terminal; -1 if it does not; SKIPS: it is dead."""
    cdef int64_t target = targets[(guide & STATE_PART) * 256 + byte]
    if target < 0 or (guide & STRICT and flags[target] & ACCEPTS):
        return SKIPS if target == DEAD and guide & ALONE else -1
    return target | (guide & ~<int64_t>STATE_PART)
