"""The class strings of tokens as a forest (see `tokdfa.token_automata.prefix_graphs`), from one walk over their trie.

A node of the forest is a class string that begins some token's. Where two tokens differ in bytes of equal classes, two
nodes of the trie are one of the forest: a child is looked up by (parent, letter). So nodes are made in the order in
which the trie first comes to them, and then laid out depth-first, as a trie.

Cost: 5 to 10 ns for each node of the trie, nearly all of it the look-up.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libcpp.vector cimport vector

from tokdfa.core.border cimport int32_array
from tokdfa.vocabulary.trie_nodes cimport DEPTH_SHIFT, NEXT_SHIFT, TOKEN_SHIFT, depth_of, next_of

import numpy as np


cdef extern from "tokdfa/token_automata/child_map.hpp" namespace "tokdfa" nogil:
    cdef cppclass ChildMap:
        int32_t find_or_add(int32_t parent, int32_t letter, int32_t made) except +


cdef enum:
    NONE = -1


cdef struct Prefix:
    int32_t parent
    int32_t letter
    int32_t first_child   # in the order in which they were made
    int32_t last_child
    int32_t sibling       # the next
    int32_t token_class   # NONE if no token ends here; 0 until it is numbered


cdef class ClassStrings:
    """The forest of the class strings of some tokens, and what they spell.

    `letters`: uint8, shape (256,), the class of each byte; `skip`: bool, shape (256,), bytes whose tokens are dropped;
    `merge`: equal strings are one; else each node of the trie is one of the forest.
    """

    cdef vector[Prefix] forest        # 0: the root, which is the empty string
    cdef ChildMap children
    cdef vector[int32_t] ranks        # of the tokens kept
    cdef vector[int32_t] ends         # the node where each of them ends
    cdef uint8_t[256] letters, skip
    cdef bint merge
    cdef readonly int32_t class_count
    cdef int64_t depth_limit

    def __init__(self, const uint8_t[::1] letters, const uint8_t[::1] skip, bint merge):
        cdef Py_ssize_t byte
        if letters.shape[0] != 256 or skip.shape[0] != 256:
            raise ValueError("letters and skip have an entry for each byte")
        for byte in range(256):
            self.letters[byte], self.skip[byte] = letters[byte], skip[byte]
        self.merge = merge
        self.forest.push_back(Prefix(NONE, NONE, NONE, NONE, NONE, NONE))

    def read(self, const uint64_t[::1] nodes, part, int64_t depth_limit, uint64_t token_count):
        """Enter the tokens of a `TriePart` of a trie with ranks for tokens, after the ancestors of its first node."""
        cdef vector[int32_t] stack
        cdef uint64_t here = part.begin, end = part.end
        self.depth_limit = depth_limit
        stack.assign(depth_limit + 1, 0)
        # memory that is not used stays untouched
        self.forest.reserve(self.forest.size() + len(part.path) + end - here)
        self.ranks.reserve(self.ranks.size() + part.end_rank - part.first_rank)
        self.ends.reserve(self.ranks.capacity())
        for above in part.path:
            if not self._enter(nodes[above], stack):
                here = next_of(nodes[above])
                break
        with nogil:
            while here < end:
                if not self._enter(nodes[here], stack):
                    here = next_of(nodes[here])
                    continue
                if nodes[here] >> TOKEN_SHIFT < token_count:
                    self.ranks.push_back(<int32_t>(nodes[here] >> TOKEN_SHIFT))
                    self._end(stack[depth_of(nodes[here]) + 1])
                here += 1

    cdef bint _enter(self, uint64_t node, vector[int32_t]& stack) except -1 nogil:
        """Go to the node of the forest for one of the trie, which is made if need be; False if its byte is dropped."""
        cdef int32_t* here = &stack[depth_of(node)]
        cdef int32_t parent = here[0], child = <int32_t>self.forest.size(), letter = self.letters[node & 0xFF]
        if self.skip[node & 0xFF]:
            return False
        if self.merge:
            if self.forest[here[1]].parent == parent and self.forest[here[1]].letter == letter:
                return True
            child = self.children.find_or_add(parent, letter, child)
        here[1] = child
        if child < <int32_t>self.forest.size():
            return True
        self.forest.push_back(Prefix(parent, letter, NONE, NONE, NONE, NONE))
        if self.forest[parent].first_child == NONE:
            self.forest[parent].first_child = child
        else:
            self.forest[self.forest[parent].last_child].sibling = child
        self.forest[parent].last_child = child
        return True

    cdef int _end(self, int32_t node) except -1 nogil:
        """A token ends at a node."""
        self.ends.push_back(node)
        if self.forest[node].token_class == NONE:
            self.forest[node].token_class = 0
            self.class_count += 1
        return 0

    def lay_out(self):
        """(nodes, uint64, packed as those of a token trie; ranks, int32, of the tokens kept; the token class of each).

        Token classes are numbered in the order of the nodes; a node that ends no token has the spare one.
        """
        cdef vector[int32_t] path
        cdef vector[Py_ssize_t] places
        cdef int32_t here = self.forest[0].first_child, found = 0
        cdef uint64_t token_class, depth = 0
        cdef Py_ssize_t count = 0, k
        packed, class_of = np.empty(self.forest.size() - 1, dtype=np.uint64), np.empty(self.ends.size(), dtype=np.int32)
        cdef uint64_t[::1] nodes = packed
        cdef int32_t[::1] classes = class_of
        path.resize(self.depth_limit)
        places.resize(self.depth_limit)
        while here != NONE:
            token_class = self.class_count
            if self.forest[here].token_class != NONE:
                token_class = self.forest[here].token_class = found
                found += 1
            nodes[count] = token_class << TOKEN_SHIFT | depth << DEPTH_SHIFT | self.forest[here].letter
            path[depth], places[depth] = here, count
            count, depth = count + 1, depth + 1
            here = self.forest[here].first_child
            while here == NONE and depth > 0:  # leave what has no more children
                depth -= 1
                nodes[places[depth]] |= <uint64_t>count << NEXT_SHIFT
                here = self.forest[path[depth]].sibling
        for k in range(classes.shape[0]):
            classes[k] = self.forest[self.ends[k]].token_class
        return packed, int32_array(self.ranks), class_of
