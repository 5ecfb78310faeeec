cimport cython
from libc.stdint cimport int32_t

from tokdfa.proper.bpe cimport find_rule


cdef struct Merge:  # the row of rules with a token on their left; its `Derivations`
    int32_t row_begin
    int32_t row_end
    int32_t left
    int32_t right
    int32_t level
    int32_t rest_after_left
    int32_t rest_after_right


@cython.final
cdef class AdjacentPairs:
    cdef tuple arrays         # what the pointers point into
    cdef const Merge* merges  # by token
    cdef const int32_t* rule_right
    cdef const int32_t* rule_rank
    cdef int32_t size

    cdef inline int32_t checked(self, int32_t token) except -1:
        if not 0 <= token < self.size:
            raise IndexError(f"there is no token {token}")
        return token

    # The first rule that merges across the border of two proper tokens, or -1. Tokens are not checked.
    cdef inline int32_t find_break(self, int32_t t, int32_t u) noexcept nogil:
        cdef const Merge* x = &self.merges[t]
        cdef const Merge* y = &self.merges[u]
        cdef const Merge* px = NULL
        cdef const Merge* py = NULL
        cdef int32_t rule, rank, found = -1
        cdef bint breaks
        while True:
            rule = find_rule(self.rule_right, x.row_begin, x.row_end, u)
            if rule >= 0:
                rank = self.rule_rank[rule]
                if x.level <= y.level:  # y is complete last
                    breaks = px is NULL or (rank < px.level and y.level < px.level)
                    breaks = breaks and (py is NULL or rank <= py.rest_after_left)
                else:
                    breaks = px is NULL or rank < px.rest_after_right
                    breaks = breaks and (py is NULL or max(rank, x.level) <= py.level)
                if breaks:
                    found = rule  # the last one found is the first in time
            if x.level > y.level:
                px, x = x, &self.merges[x.right]
            elif y.left >= 0:
                u, py = y.left, y
                y = &self.merges[u]
            else:  # two letters: there is nothing before
                return found
