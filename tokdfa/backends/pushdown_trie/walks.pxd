from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.backends.pushdown_trie.row_divisions cimport RowDivisions
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.core.byte_sets cimport ByteSet


cdef enum:
    NOT_LISTED = -(1 << 30)  # for the number of tokens listed: with what may come it stays less than 0
    MAX_LISTED = 512         # NARROW of `tokdfa.vocabulary.mask_store`
    MAX_TRIE_NODES = (1 << 23) - 1


cdef struct BranchFrame:  # a branch that the walk is in: where the children that are walked end, and all of them
    int32_t branch
    int64_t stop
    int64_t end
    ByteSet left  # bytes not walked yet


cdef class PushdownMasks(RowDivisions):
    # by depth: the row before the byte, -1 where none was made; the byte; the state, with its kind, by which the walk
    # goes, -1: by the row, LONE - a lone item; the set of bytes that a lone item reads
    cdef vector[int32_t] rows
    cdef vector[uint8_t] path
    cdef vector[int64_t] guides
    cdef vector[ByteSet] lone_sets
    cdef vector[BranchFrame] frames
    cdef vector[int32_t] end_tokens
    cdef bint divides
    cdef int64_t subtree        # a node with more descendants is worth a division of its own
    # the rest that is walked: the next node and the one after the last, the depth at which it begins, the state it is
    # of, the frame of the branch, whether it is of names that a row has beside a division
    cdef int64_t here, stop, base, passed, frame
    cdef bint spelled
    cdef int64_t visited, paid
    # of the mask: tokens listed; a hash of what it is made of
    cdef int64_t listed
    cdef int32_t[MAX_LISTED] tokens
    cdef readonly uint64_t signature
    # of a string whose bound is near the characters left, or -1, and its state
    cdef readonly int64_t bound_left, bound_state

    # Write the tokens that may be read from a row into as many words as a mask has. `with_ends`: end tokens, too, if
    # the text may end; `divides`: use divisions; `subtrees`: those of nodes with more descendants than this. Returns
    # how many tokens the mask has, which are then in `tokens`, or -1: it is not narrow, or nobody has listed them.
    cdef int64_t write_words(
        self, Steps machine, int64_t row, int32_t* words, int64_t count, bint divides, int64_t subtrees, bint with_ends
    ) except? -9
    cdef int64_t make_mask(self, int64_t row, bint with_ends) except? -9
    cdef int begin_walk(self, int64_t row) except -1
    cdef int walk_nodes_left(self) except -1
    cdef int follow_guides(self) noexcept nogil
    cdef int visit(self) except -1
    cdef bint follow_lone(self, int64_t depth, uint8_t byte, int64_t following, int64_t* guide) except -1
    cdef int open_node(self, int64_t depth, int64_t target, int64_t following) except -1
    cdef int64_t make_rows(self, int64_t depth) except? -9
    cdef int allow(self, int64_t token) noexcept
    cdef int enter_branch(self, int64_t key, const uint64_t* reads, int64_t end) noexcept
    cdef int note_bound(self, int64_t row) noexcept
    cdef int64_t finish(self, int64_t row, bint with_ends) except? -9


cdef inline uint64_t mix(uint64_t signature, uint64_t number) noexcept nogil:
    """A signature with one more number in it."""
    return (signature ^ number) * <uint64_t>0x9E3779B97F4A7C15
