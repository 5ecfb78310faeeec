from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector


cdef struct Name:  # a node of a trie of names (`names`)
    int32_t character
    int32_t parent
    int32_t first
    int32_t past
    int32_t low
    int32_t high
    int32_t least
    int32_t most
    int32_t name


cdef struct NameTrie:
    int32_t nodes
    int32_t order
    int32_t needed


cdef cppclass NameTables:  # of some tables
    vector[Name] nodes
    vector[NameTrie] tables
    vector[int32_t] order


# Add tables of names, behind so many nodes and entries of the order. Raises LimitExceeded for one too large.
cdef int add_tables(list given, NameTables* to, int64_t nodes_before, int64_t order_before) except -1
