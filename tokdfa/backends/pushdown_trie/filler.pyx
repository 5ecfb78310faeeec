# cython: auto_pickle=False
"""The masks of rows: made by the pool's builder (`tokdfa.backends.pushdown_trie.walks`), and kept."""

from libc.stdint cimport int32_t, int64_t

from tokdfa.backends.pushdown_trie.rows cimport ROW_COUNTED
from tokdfa.backends.pushdown_trie.steps cimport Steps
from tokdfa.backends.pushdown_trie.walks cimport MAX_TRIE_NODES, PushdownMasks
from tokdfa.vocabulary.mask_store cimport MaskStore

from contextlib import nullcontext

import numpy as np

from tokdfa.backends.pushdown_trie import walks


cdef class Filler:
    """See filler.pyi."""

    def __init__(self, bint divides=True, bint use_subtrees=True):
        self.divides = divides
        self.subtrees = walks.SUBTREE if divides and use_subtrees else MAX_TRIE_NODES

    def fill(self, machine, row):
        out = np.zeros((machine.pool.masks.flat.size + 31) // 32, dtype=np.int32)
        cdef int32_t[::1] words = out
        self.write(machine, row, &words[0], words.shape[0], nullcontext(), False)
        return out

    def keep(self, machine, kept, row, int32_t[::1] out not None, working, keeps):
        if out.shape[0] != (<MaskStore>kept).words:
            raise ValueError(f"out has {out.shape[0]} words, not {kept.words}")
        return bool(self.make(machine, kept, row, &out[0], working, keeps))

    cdef int64_t write(
        self, Steps machine, int64_t row, int32_t* words, int64_t count, object working, bint with_ends
    ) except? -9:
        cdef PushdownMasks builder = machine.pool.masks
        cdef int64_t listed = -1, k
        cdef const int32_t[::1] short
        with working:
            listed = builder.write_words(machine, row, words, count, self.divides, self.subtrees, with_ends)
        self.signature = <int64_t>builder.signature
        if builder.bound_left >= 0:  # tokens that stay inside a string, but have more characters than it may still have
            short = machine.pool.lengths.short_tokens(builder.bound_state, builder.bound_left).view(np.int32)
            for k in range(count):
                words[k] &= short[k]
            self.signature ^= 1 + builder.bound_left
        if listed < 0:
            builder.divide_due()
        return listed

    cdef int make(
        self, Steps machine, MaskStore kept, int64_t row, int32_t* words, object working, bint keeps
    ) except -1:
        cdef int64_t listed, other = row
        if machine.flags_at[machine.checked(row)] & ROW_COUNTED:
            with working:
                other = machine.representative(row)
            if other != row and kept.write(other, words):
                kept.share(other, row)
                return 0
        listed = self.write(machine, row, words, kept.words, working, True)
        if keeps:
            if listed >= 0:
                kept.keep_ids(other, (<PushdownMasks>machine.pool.masks).tokens, listed)
            else:
                kept.keep_words(other, words, self.signature)
            if other != row:
                kept.share(other, row)
        return 1
