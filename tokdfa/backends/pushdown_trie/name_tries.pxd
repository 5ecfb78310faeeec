from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector


cdef struct Name:      # a node of a trie of names (`names`)
    int32_t character  # -1 for the second number of the node before
    int32_t parent     # -1: it is the root
    int32_t first      # its first child, and the one past the last
    int32_t past
    int32_t low        # the interval of names below it in ascending order
    int32_t high
    int32_t least      # their least and greatest index
    int32_t most
    int32_t name       # the index of the name that ends here, or -1


cdef struct NameTrie:
    int32_t nodes      # where its nodes begin
    int32_t order      # and its order
    int32_t needed     # whether only needed escapes may be used


cdef cppclass NameTables:  # of some tables
    vector[Name] nodes
    vector[NameTrie] tables
    vector[int32_t] order


# Add tables of names, behind so many nodes and entries of the order. Raises LimitExceeded for one too large.
cdef int add_tables(list given, NameTables* to, int64_t nodes_before, int64_t order_before) except -1
