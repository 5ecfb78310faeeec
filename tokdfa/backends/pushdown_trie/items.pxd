from libc.stdint cimport int32_t, int64_t, uint64_t

from tokdfa.backends.pushdown_trie.names cimport Names


cdef enum:
    # Kinds of divisions (`row_divisions`), added to a state: its strict division; one for an item that is alone in its
    # row; one of the tokens that begin with a byte that it reads. What these are added to.
    STRICT = 1 << 21
    ALONE = 1 << 22
    OWN = 1 << 23
    STATE_PART = (1 << 21) - 1
    # what `walk_guides` has for a lone item, less the item; -1: no guide
    LONE = -2
    # what `step_lone` says where the name ends: the row of the item is to be stepped
    LEAVES = -2


cdef class Items(Names):
    cpdef int64_t representative(self, int64_t row) except -1
    cdef int64_t counted_start(self, int64_t place) noexcept
    cdef int64_t count_left(self, int64_t place, int64_t count) noexcept
    cdef int64_t count_of(self, int64_t place, int64_t state) noexcept
    cdef int step_count(self, int64_t item, int64_t byte) except -1
    cdef int count_reads(self, int64_t place, int64_t state, uint64_t* reads) noexcept
    # The state of the automaton of strings that an item is in, or DEAD: it is in none.
    cdef int64_t string_state(self, int64_t item) noexcept
    # Write the set of bytes that an item reads to `reads`.
    cdef int item_reads(self, int64_t item) noexcept
    # How many characters may begin in the string that an item is in, and how many its end may need at most.
    cdef int64_t item_left(self, int64_t item, int64_t* needed) noexcept
    cdef bint may_close(self, int64_t item) noexcept
    cdef int64_t wide_state(self, int64_t item, int64_t place, int flags, bint alone, int64_t depth) noexcept
    # Append what an item of NAMES or COUNTED is after a byte to `found`.
    cdef int step_item(self, int64_t item, int64_t byte) except -1

    # The item of a closed row that has no other live one, if it can be followed; else -1.
    cdef int64_t lone_item(self, int64_t row) noexcept
    # The guide of a closed row that has one live item; -1 for others.
    cdef int64_t guide_alone(self, int64_t row) noexcept
    # The lone item after a byte; DEAD; or LEAVES. `every`: refused names are followed, too.
    cdef int64_t step_lone(self, int64_t item, int64_t byte, bint every) noexcept
    # Write the set of bytes that a lone item reads to four words; nothing for -1.
    cdef int lone_reads(self, int64_t item, uint64_t* reads, bint every) noexcept
    # The row of a lone item.
    cdef int64_t lone_row(self, int64_t item) except -1
