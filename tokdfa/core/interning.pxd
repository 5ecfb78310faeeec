# The hash tables of interning.hpp.

from libc.stdint cimport int32_t, int64_t


cdef extern from "tokdfa/core/interning.hpp" namespace "tokdfa" nogil:
    cdef cppclass Keys:
        size_t size()
        int64_t key(int32_t number)
        size_t bytes()
        int32_t find(int64_t key)  # -1 if it has no number
        int32_t intern(int64_t key) except +
        void clear()

    cdef cppclass Contents[Word]:
        size_t size()
        size_t length(int32_t number)
        const Word* content_of(int32_t number)
        size_t bytes()
        int32_t find(const Word* content, size_t size)
        int32_t intern(const Word* content, size_t size) except +
        int32_t append(const Word* content, size_t size) except +  # a new number, even for a content that has one
        void clear()

    int64_t pair_key(int32_t first, int32_t second)
