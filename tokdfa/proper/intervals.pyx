"""The interval algorithm: which tokens may not follow which, for all tokens at once, without a table of V x V.

Take two proper tokens t and u. Merging the letters of both together starts with each half merging by itself. At any
moment the token that ends the left half is some x on t's right spine, and the token that begins the right half some y
on u's left spine; px is the token on the spine that x becomes a part of, py likewise. If there is a rule (x, y) of rank
r, it is applied (and t u is not proper) iff x and y stand side by side at a moment when r is less than the next rank of
the left half and at most the next rank of the right half: on equal ranks the pair further left merges first. With the
words of `tokdfa.proper.derivations` that is:

- if level(x) <= level(y), so that y is complete last:
  max(r, level(y)) < level(px), and r <= rest_after_left(py);
- otherwise: r < rest_after_right(px), and max(r, level(x)) <= level(py).

Conditions on px fall away for x = t, those on py for y = u. (Where ranks rise along every derivation this is: r <
rank(px) and r <= rank(py).)

For fixed t and (x, y, r), the forbidden u are y itself and the subtrees of those children py of y that meet their
condition: one interval of `tokdfa.proper.merge_tree`'s numbers, and one more for each irregular child that meets it. So
the forbidden successors of t are a short list of intervals, sorted and disjoint. Tokens with equal lists are one
*state* of the automaton of proper sequences.

*From the other side*: which tokens may u not follow? The same in a mirror, with the rules by their right tokens and the
merge tree of right parts: what precedes t u on the left by equal levels does not on the right, so each "less" becomes
an "at most". Liveness asks this (`tokdfa.backends.proper_merge.proper_table`): a state where u may come next is a dead
end only for last tokens among these.

Cost: O(rules in the rows of the right spine), for each token. All lists of Mistral v1 in 0.05 s, of Llama 3 in 0.5 s;
the predecessors of one token in microseconds.
Source: Tran-Thien 2024 builds the same automaton by replaying every merge on it, in 20.9 s for Mistral v1, and fuses
equal states. The intervals are ours.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

from tokdfa.core.border cimport HELD_WORK, int32_array, pay
from tokdfa.proper.bpe cimport int32_data

import numpy as np


cdef extern from "tokdfa/core/interning.hpp" namespace "tokdfa" nogil:
    int64_t pair_key(int32_t first, int32_t second)

    cdef cppclass Contents[Word]:
        size_t size()
        size_t length(int32_t number)
        const Word* content_of(int32_t number)
        int32_t intern(const Word* content, size_t size) except +


@cython.final
cdef class IntervalLists:
    """The forbidden successors of every state; all arrays int32. Immutable.

    `state_of`: shape (V,), the state of each token, -1 for tokens outside the merge tree. The list of state s are the
    intervals ``starts[k] .. ends[k] - 1`` of merge tree numbers, k from ``list_starts[s]`` to ``list_starts[s + 1] -
    1``, sorted, neither overlapping nor touching.
    """

    __match_args__ = ("state_of", "list_starts", "starts", "ends")

    def __init__(self, state_of, list_starts, starts, ends):
        self.state_of, self.list_starts, self.starts, self.ends = state_of, list_starts, starts, ends
        self.first, self.begins = int32_data(list_starts, -1), int32_data(starts, -1)
        self.past = int32_data(ends, len(starts))

    @property
    def state_count(self):
        return len(self.list_starts) - 1

    def add_listed(self, int32_t state, const int32_t[::1] order not None, int32_t[::1] mask not None):
        """Set the bits of the tokens in the list of a state, those that fit."""
        cdef int32_t k, place
        cdef uint32_t token
        if not 0 <= state < self.state_count:
            raise IndexError(f"there is no state {state}")
        for k in range(self.first[state], self.first[state + 1]):
            if self.begins[k] < 0 or self.past[k] > order.shape[0]:
                raise ValueError(f"the merge tree has no tokens {self.begins[k]} .. {self.past[k] - 1}")
            for place in range(self.begins[k], self.past[k]):
                token = order[place]
                if token >> 5 < <size_t>mask.shape[0]:
                    mask[token >> 5] |= <int32_t>(<uint32_t>1 << (token & 31))


@cython.final
cdef class BorderSide:
    """Which tokens cannot stand on the other side of a border, by the token on this side.

    `is_left`: whether this side is the left one. `merge_tree`: that of the other side, so of left parts if this is the
    left side, otherwise of right parts. About 60 bytes a token and 8 a rule. Immutable.
    """

    def __init__(self, rules, derivations, merge_tree, bint is_left):
        cdef int32_t size = rules.size, count = len(rules), token, k
        cdef int32_t child_count = len(merge_tree.children), token_count = len(merge_tree.order)
        of, rest_left, rest_right = derivations, derivations.rest_after_left, derivations.rest_after_right
        own, other = (rules.left, rules.right) if is_left else (rules.right, rules.left)
        part, rest, rest_other = (of.right, rest_right, rest_left) if is_left else (of.left, rest_left, rest_right)
        cdef const int32_t* number = int32_data(merge_tree.number, size)
        cdef const int32_t* end = int32_data(merge_tree.end, size)
        cdef const int32_t* order = int32_data(merge_tree.order, token_count)
        cdef const int32_t* children = int32_data(merge_tree.children, child_count)
        cdef const int32_t* child_starts = int32_data(merge_tree.child_starts, size + 1)
        cdef const int32_t* irregular_starts = int32_data(merge_tree.irregular_starts, size)
        cdef const int32_t* parts = int32_data(part, size)
        cdef const int32_t* level = int32_data(of.level, size)
        cdef const int32_t* rest_of = int32_data(rest, size)
        cdef const int32_t* rest_of_child = int32_data(rest_other, size)
        self.strict = is_left
        self.nodes.reserve(size)
        for token in range(size):
            self.nodes.push_back(
                Node(
                    0, 0, parts[token], level[token], rest_of[token], number[token],
                    child_starts[token], irregular_starts[token], child_starts[token + 1],
                )
            )
        self.children.reserve(child_count)
        for k in range(child_count):
            token = children[k]
            self.children.push_back(Child(number[token], end[token], level[token], rest_of_child[token]))
        self.order.assign(order, order + token_count)
        self.take_rules(int32_data(own, count), int32_data(other, count), int32_data(rules.rank, count), count)

    cdef int take_rules(
        self, const int32_t* own, const int32_t* other, const int32_t* rank, int32_t count
    ) except -1 nogil:
        """Fill the rows, by rank. Rules with a token that is not in the merge tree do not matter."""
        cdef int32_t rule, kept = 0
        cdef size_t token
        for rule in range(count):
            self.nodes[own[rule]].row_end += self.nodes[other[rule]].number >= 0
        for token in range(self.nodes.size()):
            self.nodes[token].row_begin = kept
            kept += self.nodes[token].row_end
            self.nodes[token].row_end = self.nodes[token].row_begin
        self.rules.resize(kept)
        for rule in range(count):
            if self.nodes[other[rule]].number >= 0:
                self.rules[self.nodes[own[rule]].row_end] = pair_key(rank[rule], other[rule])
                self.nodes[own[rule]].row_end += 1
        for token in range(self.nodes.size()):
            sort(self.rules.begin() + self.nodes[token].row_begin, self.rules.begin() + self.nodes[token].row_end)
        return 0

    def forbidden(self, int32_t token):
        """The tokens that cannot stand beside `token` in one piece, each once, in the order of the merge tree."""
        cdef vector[int32_t] tokens
        if not 0 <= token < <int32_t>self.nodes.size():
            raise IndexError(f"there is no token {token}")
        self.list_forbidden(token, tokens)
        return int32_array(tokens)

    cdef int list_forbidden(self, int32_t token, vector[int32_t]& tokens) except -1 nogil:
        cdef vector[int64_t] found
        cdef size_t k
        cdef int32_t place
        tokens.clear()
        self.find_intervals(token, found)
        for k in range(found.size()):
            for place in range(<int32_t>(found[k] >> 32), <int32_t>found[k]):
                tokens.push_back(self.order[place])
        return 0

    cdef int find_intervals(self, int32_t token, vector[int64_t]& found) except -1 nogil:
        cdef const Node* x = &self.nodes[token]
        cdef const Node* px = NULL
        cdef const Node* y
        cdef int32_t k, rank
        cdef bint y_is_last
        found.clear()
        while True:
            for k in range(x.row_begin, x.row_end):
                rank, y = <int32_t>(self.rules[k] >> 32), &self.nodes[<int32_t>self.rules[k]]
                if px is not NULL and rank + self.strict > px.level:
                    break  # neither condition on px can be met from here on
                y_is_last = x.level + 1 - self.strict <= y.level
                if px is NULL or (y.level + self.strict <= px.level if y_is_last else rank + self.strict <= px.rest):
                    self.add_subtrees(y, rank if y_is_last else max(rank, x.level), y_is_last, found)
            if x.part < 0:
                break
            px, x = x, &self.nodes[x.part]
        unite(found)
        return 0

    cdef int add_subtrees(self, const Node* y, int32_t rank, bint y_is_last, vector[int64_t]& found) except -1 nogil:
        """Add y and the subtrees of those of its children that y becomes a part of too late to escape a merge."""
        cdef int32_t bound = rank + 1 - self.strict, low = y.child_begin, high = y.irregular_begin, middle, k
        cdef const Child* child
        while low < high:  # regular children fall by level: the first below the bound
            middle = (low + high) >> 1
            if self.children[middle].level >= bound:
                low = middle + 1
            else:
                high = middle
        if low == y.child_begin:
            found.push_back(pair_key(y.number, y.number + 1))
        else:
            found.push_back(pair_key(y.number, self.children[low - 1].end))
        for k in range(y.irregular_begin, y.child_end):
            child = &self.children[k]
            if (child.rest if y_is_last else child.level) >= bound:
                found.push_back(pair_key(child.begin, child.end))
        return 0


cdef int unite(vector[int64_t]& intervals) except -1 nogil:
    """Sort intervals, and make one of those that overlap or touch."""
    cdef size_t k, last = 0
    sort(intervals.begin(), intervals.end())
    for k in range(1, intervals.size()):
        if intervals[k] >> 32 > <int32_t>intervals[last]:
            last += 1
            intervals[last] = intervals[k]
        elif <int32_t>intervals[k] > <int32_t>intervals[last]:
            intervals[last] = pair_key(<int32_t>(intervals[last] >> 32), <int32_t>intervals[k])
    if intervals.size():
        intervals.resize(last + 1)
    return 0


def build_lists(rules, derivations, merge_tree):
    """The `IntervalLists` of all tokens of the merge tree of left parts, equal lists once."""
    cdef BorderSide side = BorderSide(rules, derivations, merge_tree, True)
    cdef Contents[int64_t] lists
    cdef vector[int64_t] found
    cdef vector[int32_t] list_starts, starts, ends
    cdef size_t k
    state_of = np.full(rules.size, -1, dtype=np.int32)
    cdef int32_t[::1] state = state_of
    cdef int32_t number
    with nogil:
        for k in range(side.order.size()):
            if k % HELD_WORK == 0:
                pay(0, 0)  # signals
            side.find_intervals(side.order[k], found)
            state[side.order[k]] = lists.intern(found.data(), found.size())
        list_starts.push_back(0)
        for number in range(<int32_t>lists.size()):
            for k in range(lists.length(number)):
                starts.push_back(<int32_t>(lists.content_of(number)[k] >> 32))
                ends.push_back(<int32_t>lists.content_of(number)[k])
            list_starts.push_back(<int32_t>starts.size())
    return IntervalLists(state_of, int32_array(list_starts), int32_array(starts), int32_array(ends))
