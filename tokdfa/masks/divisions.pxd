from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Contents, Keys
from tokdfa.masks.branches cimport Branches
from tokdfa.vocabulary.trie_nodes cimport FlatTrie


cdef extern from "tokdfa/masks/division.hpp" namespace "tokdfa" nogil:
    cdef struct Bits:
        uint32_t* words

    cdef cppclass LeftRange:
        int32_t first
        int32_t past
        int32_t tag
        int32_t begin
        int32_t depth

    cdef cppclass Cut:
        uint32_t* words
        int32_t* tokens
        uint64_t room
        uint64_t count
        uint64_t spare
        LeftRange* ranges
        int64_t range_count
        bint listed

    int64_t left_code(int64_t tag, int64_t begin)
    void add_range(Cut& out, LeftRange range)
    void list_inside(Cut& cut)
    void sort_by_tag(Cut& cut)
    void take_open(Cut& cut, vector[LeftRange]& open)
    int32_t OPEN


cdef enum:
    WHOLE_REST = 0
    # a range in one word: its first node, the node after its last, and the depth at which reading goes on
    PAST_SHIFT = 12
    FIRST_SHIFT = 35
    # the division is made
    MADE = -1


cdef inline int64_t range_word(int64_t first, int64_t past, int64_t begin) noexcept nogil:
    return first << FIRST_SHIFT | past << PAST_SHIFT | begin


cdef inline int64_t range_first(int64_t word) noexcept nogil:
    return word >> FIRST_SHIFT


cdef inline int64_t range_past(int64_t word) noexcept nogil:
    return (word >> PAST_SHIFT) & 0x7FFFFF


cdef inline int64_t range_begin(int64_t word) noexcept nogil:
    return word & 0xFFF


cdef struct Division:
    int32_t met         # what was spent for want of it before it was made; then MADE
    int32_t wide        # of many tokens inside the number of their words, else -1
    int32_t first       # of few tokens: where they begin and end in `tokens`
    int32_t past
    int32_t first_end   # what is left, in `ends`
    int32_t past_end


cdef struct End:
    int32_t tag
    int32_t rest


cdef class Divisions:
    cdef FlatTrie flat
    cdef const uint64_t* nodes            # of the trie, with tries of their own those of rests behind
    cdef int64_t size, word_count
    cdef readonly int64_t made
    cdef bint own_tries
    cdef int64_t node_count               # with those of rests
    cdef object store                     # these nodes, if they are not the trie's own
    cdef Branches branches                # of these tries
    cdef size_t trie_branches
    cdef Contents[int64_t] rests          # ranges
    cdef Keys keys                        # pairs of a rest and a state
    cdef vector[Division] divisions       # by the number of their key
    cdef vector[int32_t] tokens
    cdef vector[vector[uint32_t]] wide
    cdef vector[End] ends
    cdef vector[int64_t] content          # scratch

    cdef int clear(self) except -1
    # The number of a division, entered if need be.
    cdef int32_t number_of(self, int32_t rest, int32_t state) except -1
    # The number of a division that is made, or -1.
    cdef int32_t find(self, int32_t rest, int32_t state) noexcept
    # The rest of one range.
    cdef int32_t rest_of(self, int64_t first, int64_t past, int64_t begin) except -1
    # Whether one more rest of `nodes` nodes may have a trie of its own.
    cdef bint has_room(self, int64_t nodes) noexcept
    # How many nodes a division leaves.
    cdef int64_t nodes_left(self, int32_t number) noexcept
    # Keep what a walk has found in a rest that begins at node `first`, whose words are cleared; sorts its ranges.
    cdef int keep(self, int32_t number, Cut& cut, int64_t first) except -1
    # OR what is inside into so many words of V + 1 bits; `blank`: overwrite them.
    cdef int add_inside(self, int32_t number, uint32_t* words, int64_t count, bint blank) noexcept
    cdef int64_t bytes_kept(self) noexcept
    cdef int add_end(self, int32_t tag) except -1
    cdef int add_trie(self, const LeftRange* ranges, int64_t count, int64_t origin) except -1
    cdef object words_inside(self, int32_t number)
