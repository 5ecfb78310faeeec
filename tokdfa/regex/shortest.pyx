"""A lower bound of the length of an expression's texts, which says where a search for one should look first.

The bound of a node is made of those of its parts: the sum for a concatenation, the least for a union, the greatest
for an intersection, a multiple for a repeat; 0 for a complement and for what is zero-width. It is exact where the
expression has no intersection, no complement and no assertion, and for *nothing* it is `NEVER`. Parts have smaller
numbers than what is made of them, so one pass over the nodes that are new finds all of them, at a few nanoseconds each.
Of texts of some bytes only it is the same, but that a byte set without any of these has none.

A search that follows derivatives and takes the state with the smallest bound first is greedy best-first search
(Russell and Norvig, "Artificial Intelligence", section 3.5): in "an e-mail address of at most 1,024 characters" it
walks straight to a shortest address, and never meets the million states that differ in what has been counted.
"""

from tokdfa.regex.nodes cimport (
    K_BYTES, K_CONCAT, K_INTERSECTION, K_NOTHING, K_REPEAT, K_UNION, count_of, node_of,
)

import numpy as np


cpdef enum:
    NEVER = 1 << 30  # the bound of an expression without texts; larger ones are cut to it


cdef class ShortestTexts:
    """Bounds of the expressions of a store, made when they are asked for. `available`: bool, shape (256,), the bytes
    that texts may have; None: all.
    """

    def __cinit__(self, Nodes store not None, available=None):
        flags = np.ones(256, dtype=np.bool_) if available is None else available
        cdef bytes bits = np.packbits(flags, bitorder="little").tobytes()
        cdef int k
        self.store = store
        for k in range(8):
            self.available[k] = (<const int32_t*><const char*>bits)[k]

    def bound(self, expression):
        """The shortest text of an expression, if it has one, has at least so many bytes (at most `NEVER`)."""
        return self.update()[self.store.checked(expression)]

    cdef const int32_t* update(self) except NULL:
        """The bounds of all expressions that there are now; good until the next update."""
        cdef int32_t count = <int32_t>self.store.contents.size(), expression
        if self.bounds.size() == 0:
            self.bounds.reserve(self.store.room)
        for expression in range(<int32_t>self.bounds.size(), count):
            self.bounds.push_back(<int32_t>min(self.bound_of(expression), <int64_t>NEVER))
        return self.bounds.data()

    cdef int64_t bound_of(self, int32_t expression) noexcept:
        """The bound of an expression by those of its parts."""
        cdef const int32_t* node = node_of(self.store, expression)
        cdef const int32_t* bounds = self.bounds.data()
        cdef int kind = node[0] & 0xFF
        cdef int64_t bound = NEVER
        cdef int32_t k
        if kind == K_NOTHING:
            return NEVER
        if kind == K_BYTES:
            for k in range(8):
                if node[1 + k] & self.available[k]:
                    return 1
            return NEVER
        if kind == K_CONCAT:
            return <int64_t>bounds[node[1]] + bounds[node[2]]
        if kind == K_UNION:
            for k in range(count_of(self.store, expression)):
                bound = min(bound, <int64_t>bounds[node[1 + k]])
            return bound
        if kind == K_INTERSECTION:
            bound = 0
            for k in range(count_of(self.store, expression)):
                bound = max(bound, <int64_t>bounds[node[1 + k]])
            return bound
        return <int64_t>bounds[node[1]] * node[2] if kind == K_REPEAT else 0
