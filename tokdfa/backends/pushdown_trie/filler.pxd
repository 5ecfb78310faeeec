from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.vocabulary.mask_store cimport MaskStore


cdef class Filler:
    cdef bint divides
    cdef int64_t subtrees
    cdef int64_t signature  # of the last mask: equal ones have equal masks

    # Write the tokens that may be read from a row into as many words as a mask has. Returns how many they are, or -1:
    # the mask is not narrow, or nobody has listed them; else the pool's builder has them until the next mask.
    cdef int64_t write(
        self, Steps machine, int64_t row, int32_t* words, int64_t count, object working, bint with_ends
    ) except? -9
    # Write the mask of a row, and keep it if asked to. The text can be ended from wherever bytes lead to, and special
    # tokens have no part in it.
    cdef int make(
        self, Steps machine, MaskStore kept, int64_t row, int32_t* words, object working, bint keeps
    ) except -1
