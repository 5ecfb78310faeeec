"""Masks kept by state, and packed masks from lists of tokens and back.

A packed mask over 131,072 tokens takes 16 kB, whatever is in it; most masks of most constraints hold a few dozen
tokens. So masks of at most NARROW tokens are kept as int32 ids and written bit by bit into the caller's zeroed buffer,
which takes as long as copying 16 kB that are rarely in a cache. Wider ones are kept packed, equal ones once.

States are numbers. Looking up takes no lock but the interpreter's, and no Python; changes take the lock. Cost of a mask
that is kept: a look-up in a hash table, 10 ns, and a copy.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.operator cimport dereference, preincrement
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp
from libcpp.utility cimport pair

import numpy as np

from tokdfa.core.locks import new_lock

cdef enum:
    # Packed masks whose memory is taken at once, and of how many such blocks the memory is kept for stores to come.
    MASKS_A_BLOCK = 32
    SPARE_BLOCKS = 32
    # Bytes that an entry takes in the tables themselves: one of few tokens, of a packed mask, and of one kept before.
    NARROW_BYTES = 100
    WIDE_BYTES = 300
    SAME_BYTES = 100

#: The most tokens of a mask that is kept as a list (2 kB).
NARROW = KEPT_IDS
#: Packed masks whose memory is taken at once.
BLOCK_MASKS = MASKS_A_BLOCK


cdef void set_bits(const int32_t* tokens, int64_t count, int32_t* out, int64_t words) noexcept nogil:
    """What does not fit is left out, so that no buffer is overrun."""
    cdef uint32_t token
    cdef int64_t k
    for k in range(count):
        token = tokens[k]
        if token >> 5 < words:
            (<uint32_t*>out)[token >> 5] |= <uint32_t>1 << (token & 31)


cdef class MaskStore:
    """State -> mask, emptied when it passes `limit` bytes. States are int64. `lock`: None for its own.

    `words`: int32 words of a mask. `spare`: memory of masks that nobody needs any more, int32, shape (BLOCK_MASKS,
    words) each; it is taken from there and given back at last, because a page that was touched before costs a tenth.
    """

    def __init__(self, int64_t limit, int64_t words, list spare=None, lock=None):
        self.limit, self.words = limit, words
        self.lock = new_lock() if lock is None else lock
        self.owners, self.blocks = [], []
        self.spare = [] if spare is None else spare
        self.used = MASKS_A_BLOCK

    def __del__(self):
        if self.blocks:
            self.spare.extend(self.blocks[: max(SPARE_BLOCKS - len(self.spare), 0)])

    def __len__(self):
        return self.states.size()

    def __contains__(self, int64_t state):
        return self.states.find(state) >= 0

    cdef bint write(self, int64_t state, int32_t* out) noexcept:
        cdef int32_t place = self.states.find(state)
        cdef KeptMask mask
        if place < 0:
            return False
        mask = self.kept[place]
        if mask.count < 0:
            copy_words(out, mask.data, self.words)
        else:
            clear_words(out, self.words)
            set_bits(mask.data, mask.count, out, self.words)
        return True

    def fill(self, int64_t state, int32_t[::1] out not None):
        """Write the mask of `state` into `out` (int32, shape (words,)); False if it is not kept."""
        if out.shape[0] != self.words:
            raise ValueError(f"out has {out.shape[0]} words, not {self.words}")
        return self.words > 0 and self.write(state, &out[0])

    def place(self, int64_t state):
        """(the address of the mask of `state`, how many tokens are listed there; -1 if it is packed)."""
        cdef int32_t place = self.states.find(state)
        if place < 0:
            raise KeyError(state)
        return <size_t>self.kept[place].data, self.kept[place].count

    def keep(self, int64_t state, const int32_t[::1] mask not None, signature=None):
        """Remember a mask, which is copied.

        `signature`: a hash; equal masks should have equal ones. Without one, narrow masks are told from wide ones.
        """
        if mask.shape[0] != self.words or not self.words:
            raise ValueError(f"mask has {mask.shape[0]} words, not {self.words}")
        with self.lock:
            if signature is None:
                self.keep_mask(state, &mask[0])
            else:
                self.keep_words(state, &mask[0], signature)

    cdef int keep_mask(self, int64_t state, const int32_t* words) except -1:
        cdef int32_t[KEPT_IDS] tokens
        cdef int64_t count = list_bits(words, self.words, tokens, KEPT_IDS)
        if count >= 0:
            return self.keep_ids(state, tokens, count)
        return self.keep_words(state, words, hash_words(words, self.words))

    cdef int keep_words(self, int64_t state, const int32_t* words, int64_t signature) except -1:
        cdef int32_t* copy
        self.make_room()
        equals = self.same.equal_range(signature)
        while equals.first != equals.second:
            if memcmp(dereference(equals.first).second, words, 4 * self.words) == 0:
                return self.note(state, KeptMask(dereference(equals.first).second, -1), SAME_BYTES)
            preincrement(equals.first)
        copy = self.take_memory()
        copy_words(copy, words, self.words)
        self.same.insert(pair[int64_t, Words](signature, copy))
        return self.note(state, KeptMask(copy, -1), 4 * self.words + WIDE_BYTES)

    cdef int keep_ids(self, int64_t state, const int32_t* tokens, int64_t count) except -1:
        self.make_room()
        copy = PyBytes_FromStringAndSize(<const char*>tokens, 4 * count)
        self.owners.append(copy)
        return self.note(state, KeptMask(<const int32_t*>PyBytes_AS_STRING(copy), count), 4 * count + NARROW_BYTES)

    cdef int note(self, int64_t state, KeptMask mask, int64_t nbytes) except -1:
        """Enter a mask, whose memory stays."""
        if self.states.find(state) < 0:
            self.kept.push_back(mask)  # first, so that there is one for each state whatever fails
        self.kept[self.states.intern(state)] = mask
        self.nbytes += nbytes
        return 0

    def keep_all(self, packed, narrow, int64_t nbytes):
        """Take over masks that were made in advance and take `nbytes`, whatever the limit; nobody may change them.

        State -> mask, and state -> tokens; one object for several states is kept once.
        """
        cdef const int32_t[::1] view
        cdef Words data
        cdef dict made = {}  # by object: a state that has it
        with self.lock:
            for masks, is_packed in ((packed, True), (narrow, False)):
                for state, mask in masks.items():
                    if id(mask) in made:
                        self.note(state, self.kept[self.states.find(made[id(mask)])], 0)
                        continue
                    view = mask
                    if is_packed and view.shape[0] != self.words:
                        raise ValueError(f"a mask has {view.shape[0]} words, not {self.words}")
                    made[id(mask)] = state
                    self.owners.append(mask)
                    data = &view[0] if view.shape[0] else NULL
                    self.note(state, KeptMask(data, -1 if is_packed else view.shape[0]), 0)
            self.nbytes += nbytes

    def share(self, int64_t state, int64_t other):
        """Keep the mask of `state`, if it is kept, for a state that has the same."""
        cdef int32_t place
        with self.lock:
            place = self.states.find(state)
            if place >= 0:
                self.note(other, self.kept[place], SAME_BYTES)

    cdef int32_t* take_memory(self) except NULL:
        """Room for one more packed mask."""
        cdef int32_t[:, ::1] view
        if self.used == MASKS_A_BLOCK:
            fits = bool(self.spare) and self.spare[len(self.spare) - 1].shape[1] == self.words
            block = self.spare.pop() if fits else np.empty((MASKS_A_BLOCK, self.words), dtype=np.int32)
            view = block
            self.blocks.append(block)
            self.block, self.used = &view[0, 0], 0
        self.used += 1
        return self.block + (self.used - 1) * self.words

    cdef int make_room(self) except -1:
        """Drop everything past the limit. A copy that is being made holds the interpreter's lock."""
        if self.nbytes > self.limit:
            self.states.clear()
            self.kept.clear()
            self.same.clear()
            self.owners.clear()
            self.blocks.clear()
            self.used, self.nbytes = MASKS_A_BLOCK, 0
        return 0


def add_tokens(const int32_t[::1] tokens not None, int32_t[::1] out not None):
    """Set the bits of `tokens`, those that fit."""
    if tokens.shape[0] and out.shape[0]:
        set_bits(&tokens[0], tokens.shape[0], &out[0], out.shape[0])


def list_tokens(const int32_t[::1] mask not None, int32_t[::1] tokens not None):
    """Write the tokens of a mask, ascending; how many there are, or -1 if there are more than fit."""
    return list_bits(
        &mask[0] if mask.shape[0] else NULL, mask.shape[0], &tokens[0] if tokens.shape[0] else NULL, tokens.shape[0]
    )


cdef int64_t list_bits(const int32_t* mask, int64_t words, int32_t* tokens, int64_t room) noexcept nogil:
    cdef int64_t count = 0, k
    cdef uint32_t word
    for k in range(words):
        word = mask[k]
        while word:
            if count == room:
                return -1
            tokens[count] = <int32_t>(32 * k + count_ones(~word & (word - 1)))  # ones below the lowest bit
            count += 1
            word &= word - 1
    return count


cdef inline uint32_t count_ones(uint32_t word) noexcept nogil:
    """Warren, Hacker's Delight, 5-1."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    return (((word + (word >> 4)) & 0x0F0F0F0F) * <uint32_t>0x01010101) >> 24


cdef int64_t hash_words(const int32_t* words, int64_t count) noexcept nogil:
    """A hash of a mask: two sums of products, so that they do not wait for each other."""
    cdef uint64_t first = 1, second = 2
    cdef int64_t k
    for k in range(0, count - 1, 2):
        first = (first ^ <uint32_t>words[k]) * <uint64_t>0x9E3779B97F4A7C15
        second = (second ^ <uint32_t>words[k + 1]) * <uint64_t>0xC2B2AE3D27D4EB4F
    if count & 1:
        first = (first ^ <uint32_t>words[count - 1]) * <uint64_t>0x9E3779B97F4A7C15
    first ^= first >> 32
    second ^= second >> 29
    return <int64_t>(first ^ second * <uint64_t>0x9E3779B97F4A7C15)
