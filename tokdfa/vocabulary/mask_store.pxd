from libc.stdint cimport int32_t, int64_t
from libcpp.unordered_map cimport unordered_multimap
from libcpp.vector cimport vector

from tokdfa.core.interning cimport Keys


cdef extern from "tokdfa/vocabulary/mask_words.hpp" namespace "tokdfa" nogil:
    void copy_words(int32_t* out, const int32_t* words, size_t count)
    void clear_words(int32_t* out, size_t count)


ctypedef const int32_t* Words


cdef struct KeptMask:
    Words data     # packed words, or ids
    int64_t count  # of the ids, -1 if it is packed


cdef class MaskStore:
    cdef public int64_t limit
    cdef readonly int64_t nbytes
    cdef readonly int64_t words
    cdef readonly object lock
    cdef Keys states                              # state -> its place in `kept`
    cdef vector[KeptMask] kept
    cdef unordered_multimap[int64_t, Words] same  # signature -> packed masks
    cdef list owners                              # whose memory masks are, but for that of blocks
    cdef list spare, blocks
    cdef int32_t* block                           # the last one
    cdef int64_t used                             # its masks

    # Write the mask of a state, if it is kept, into `words` words; whether it is. It takes no lock but the
    # interpreter's, and calls no Python.
    cdef bint write(self, int64_t state, int32_t* out) noexcept
    # Keep a copy of a mask, of a packed mask, or of the ids of one of at most NARROW tokens. The caller has the lock.
    cdef int keep_mask(self, int64_t state, const int32_t* words) except -1
    cdef int keep_words(self, int64_t state, const int32_t* words, int64_t signature) except -1
    cdef int keep_ids(self, int64_t state, const int32_t* tokens, int64_t count) except -1
    cdef int note(self, int64_t state, KeptMask mask, int64_t nbytes) except -1
    cdef int32_t* take_memory(self) except NULL
    cdef int make_room(self) except -1


cdef enum:
    KEPT_IDS = 512  # the most tokens of a mask that is kept as a list

# A hash of a mask of so many words.
cdef int64_t hash_words(const int32_t* words, int64_t count) noexcept nogil
# Set the bits of tokens, those that fit.
cdef void set_bits(const int32_t* tokens, int64_t count, int32_t* out, int64_t words) noexcept nogil
