"""Faults on purpose, one a function: see `test_planted`. Built in the checked build only."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libcpp.vector cimport vector


def past_a_vector(int64_t place) -> int:
    """Write to a vector of three by a pointer."""
    cdef vector[int64_t] words
    words.resize(3)
    cdef int64_t* first = words.data()
    first[place] = 1
    return first[0]


def past_the_size_of_a_vector(int64_t place) -> int:
    """Write by a pointer to a vector of three that has room for eight."""
    cdef vector[int64_t] words
    words.reserve(8)
    words.resize(3)
    cdef int64_t* first = words.data()
    first[place] = 1
    return first[0]


def past_a_vector_by_index(int64_t place) -> int:
    """Read from a vector of three."""
    cdef vector[int64_t] words
    words.resize(3)
    return words[place]


def past_a_memoryview(int64_t[::1] words, int64_t place) -> None:
    """Write by an index."""
    words[place] = 1


def past_a_memoryview_by_pointer(int64_t[::1] words, int64_t place) -> None:
    """Write by a pointer."""
    cdef int64_t* first = &words[0]
    first[place] = 1


def past_bytes(bytes text, int64_t place) -> int:
    """Read from an object of Python by a pointer."""
    cdef const uint8_t* first = text
    return first[place]


def past_an_array(int64_t place) -> int:
    """Write to an array of four on the stack."""
    cdef int64_t[4] words
    words[:] = [1, 2, 3, 4]
    words[place] = 1
    return words[0]


def kept_while_it_grows(int64_t count) -> int:
    """Read by a pointer that was taken before a vector grew by `count`."""
    cdef vector[int64_t] words
    words.push_back(7)
    cdef int64_t* first = words.data()
    cdef int64_t k
    for k in range(count):
        words.push_back(k)
    return first[0]


cdef class Owner:
    """A vector of one."""

    cdef vector[int64_t] words
    cdef int64_t[::1] view

    def __cinit__(self):
        self.words.push_back(7)


def kept_longer_than_its_owner(bint dropped) -> int:
    """Read by a pointer into an object, which may be gone."""
    cdef Owner owner = Owner()
    cdef int64_t* first = owner.words.data()
    if dropped:
        owner = None
    return first[0]


def unset_memoryview(bint unset) -> int:
    """Read from an attribute that may not have been set."""
    cdef Owner owner = Owner()
    if not unset:
        owner.view = <int64_t[:1]>owner.words.data()
    return owner.view[0]


def overflow(int64_t value) -> int:
    """Add one."""
    cdef int64_t more = value + 1
    return more


def shift(int32_t count) -> int:
    """Shift a word of 64 bits."""
    cdef int64_t word = 1
    return word << count


def divide(int64_t divisor) -> int:
    """Divide ten."""
    cdef int64_t ten = 10
    return ten // divisor
