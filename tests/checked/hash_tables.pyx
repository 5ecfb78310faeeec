"""`tokdfa/core/interning.hpp` as Python can call it, without a check of its own."""

from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector


cdef extern from "tokdfa/core/interning.hpp" namespace "tokdfa" nogil:
    cppclass CppKeys "tokdfa::Keys":
        size_t size()
        size_t bytes()
        int64_t key(int32_t number)
        int32_t find(int64_t key)
        int32_t intern(int64_t key) except +
        void clear()

    cppclass CppContents "tokdfa::Contents"[Word]:
        size_t size()
        size_t bytes()
        size_t length(int32_t number)
        const Word* content_of(int32_t number)
        int32_t find(const Word* content, size_t size)
        int32_t intern(const Word* content, size_t size) except +
        int32_t append(const Word* content, size_t size) except +
        void clear()

    int64_t c_pair_key "tokdfa::pair_key" (int32_t first, int32_t second)


def pair_key(int32_t first, int32_t second) -> int:
    return c_pair_key(first, second)


cdef class Keys:
    """Numbers for integers of 64 bits."""

    cdef CppKeys table

    def __len__(self) -> int:
        return self.table.size()

    def bytes(self) -> int:
        return self.table.bytes()

    def of(self, int32_t number) -> int:
        """The key with a number."""
        return self.table.key(number)

    def find(self, int64_t key) -> int:
        return self.table.find(key)

    def intern(self, int64_t key) -> int:
        return self.table.intern(key)

    def clear(self) -> None:
        self.table.clear()


cdef class Contents:
    """Numbers for sequences of integers of 32 bits."""

    cdef CppContents[int32_t] table

    def __len__(self) -> int:
        return self.table.size()

    def bytes(self) -> int:
        return self.table.bytes()

    def of(self, int32_t number) -> tuple[int, ...]:
        """The content with a number."""
        cdef const int32_t* content = self.table.content_of(number)
        cdef size_t k
        return tuple([content[k] for k in range(self.table.length(number))])

    def find(self, vector[int32_t] content) -> int:
        return self.table.find(content.data(), content.size())

    def intern(self, vector[int32_t] content) -> int:
        return self.table.intern(content.data(), content.size())

    def append(self, vector[int32_t] content) -> int:
        return self.table.append(content.data(), content.size())

    def intern_part(self, int32_t number, size_t begin, size_t end) -> int:
        """Intern ``of(number)[begin:end]``, read from the table itself, which may move it."""
        return self.table.intern(self.table.content_of(number) + begin, end - begin)

    def clear(self) -> None:
        self.table.clear()
