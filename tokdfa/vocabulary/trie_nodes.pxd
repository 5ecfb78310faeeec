cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector


cdef struct TrieRoot:
    uint64_t here, end  # the nodes of a subtree of depth 0
    uint8_t byte        # of the first of them


cdef enum:  # a node's word (`tokdfa.vocabulary.trie`)
    DEPTH_SHIFT = 8
    DEPTH_MASK = 0xFFF
    NEXT_SHIFT = 20
    NEXT_MASK = 0x7FFFFF
    TOKEN_SHIFT = 43


cdef inline int64_t depth_of(uint64_t node) noexcept nogil:
    return node >> DEPTH_SHIFT & DEPTH_MASK


cdef inline int64_t next_of(uint64_t node) noexcept nogil:
    return node >> NEXT_SHIFT & NEXT_MASK


@cython.final
cdef class FlatTrie:
    cdef const uint64_t* nodes
    cdef uint64_t node_count
    cdef const int64_t* offsets  # token t spells data[offsets[t] : offsets[t + 1]]
    cdef const uint8_t* data
    cdef readonly int64_t size  # V, which is the spare id
    cdef readonly int64_t depth_limit
    cdef vector[TrieRoot] roots  # close together, so that a walk that few of them survive reads few nodes
    cdef tuple arrays  # what the pointers point into
