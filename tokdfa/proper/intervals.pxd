cimport cython
from libc.stdint cimport int32_t, int64_t
from libcpp.vector cimport vector


cdef extern from "<algorithm>" namespace "std" nogil:
    const int32_t* lower_bound(const int32_t* begin, const int32_t* end, int32_t wanted) noexcept


@cython.final
cdef class IntervalLists:
    cdef readonly object state_of, list_starts, starts, ends  # numpy arrays, into which the pointers point
    cdef const int32_t* first
    cdef const int32_t* begins
    cdef const int32_t* past

    # Whether the token with this number in the merge tree (-1: none) is in the list of a state. Neither is checked.
    cdef inline bint is_listed(self, int32_t state, int32_t number) noexcept nogil:
        cdef const int32_t* stop = self.past + self.first[state + 1]
        cdef const int32_t* place = lower_bound(self.past + self.first[state], stop, number + 1)
        return place < stop and self.begins[place - self.past] <= number


cdef struct Node:  # a token: what it is on its own side of the border, and in the merge tree of the other side
    int32_t row_begin        # its rules
    int32_t row_end
    int32_t part             # the next token down the spine
    int32_t level
    int32_t rest             # the greatest rank still to come once `part` is complete
    int32_t number
    int32_t child_begin
    int32_t irregular_begin
    int32_t child_end


cdef struct Child:  # a child in the merge tree: its subtree
    int32_t begin
    int32_t end
    int32_t level
    int32_t rest             # the greatest rank still to come once its parent is complete


@cython.final
cdef class BorderSide:
    cdef vector[Node] nodes        # by token
    cdef vector[int64_t] rules     # rank << 32 | token on the other side, by rank within a row
    cdef vector[Child] children
    cdef vector[int32_t] order
    cdef int32_t strict            # 1: on equal levels the own side merges first

    # Overwrite `found` with the intervals (begin << 32 | end) of the tokens that cannot stand beside `token`, sorted,
    # neither overlapping nor touching. `token` is not checked.
    cdef int find_intervals(self, int32_t token, vector[int64_t]& found) except -1 nogil
    # Overwrite `tokens` with these tokens, each once, in the order of the merge tree.
    cdef int list_forbidden(self, int32_t token, vector[int32_t]& tokens) except -1 nogil
    cdef int take_rules(
        self, const int32_t* own, const int32_t* other, const int32_t* rank, int32_t count
    ) except -1 nogil
    cdef int add_subtrees(self, const Node* y, int32_t rank, bint y_is_last, vector[int64_t]& found) except -1 nogil
