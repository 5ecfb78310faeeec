# Sets of bytes as four words.

from libc.stdint cimport int32_t, int64_t, uint64_t


cdef struct ByteSet:
    uint64_t[4] words


cdef inline void add_byte(uint64_t* words, int64_t byte) noexcept nogil:
    words[byte >> 6] |= <uint64_t>1 << (byte & 63)


cdef inline void drop_byte(uint64_t* words, int64_t byte) noexcept nogil:
    words[byte >> 6] &= ~(<uint64_t>1 << (byte & 63))


cdef inline bint has_byte(const uint64_t* words, int64_t byte) noexcept nogil:
    return words[byte >> 6] >> (byte & 63) & 1


cdef inline bint meets(const uint64_t* one, const uint64_t* other) noexcept nogil:
    """Whether two sets have a byte in common."""
    return ((one[0] & other[0]) | (one[1] & other[1]) | (one[2] & other[2]) | (one[3] & other[3])) != 0


cdef inline int32_t ones(uint64_t word) noexcept nogil:
    """Warren, Hacker's Delight, 5-1."""
    word -= (word >> 1) & <uint64_t>0x5555555555555555
    word = (word & <uint64_t>0x3333333333333333) + ((word >> 2) & <uint64_t>0x3333333333333333)
    return <int32_t>(((word + (word >> 4)) & <uint64_t>0x0F0F0F0F0F0F0F0F) * <uint64_t>0x0101010101010101 >> 56)


cdef inline int32_t set_size(const uint64_t* words) noexcept nogil:
    return ones(words[0]) + ones(words[1]) + ones(words[2]) + ones(words[3])
