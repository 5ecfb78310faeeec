from libc.stdint cimport int32_t
from libcpp.vector cimport vector


cdef int sort_by_key(
    const int32_t* keys, size_t count, size_t key_count, vector[int32_t]& offsets, vector[int32_t]& places
) except -1 nogil
