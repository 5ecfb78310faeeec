"""Branches: nodes of a trie with many children, for walks from where few bytes can be read.

Below the root, below a blank or a quote, a node has up to 256 children, and most situations read few bytes. A walk that
goes from child to child meets mostly ones that are refused at once, each in a cache line of its own. A *branch* is the
list of a node's children with the set of their bytes; a walk that knows the set of bytes that can be read takes what
both have in common. Nodes with few children have none: there the walk from child to child is as fast.

A branch is known by its *key*: the number of its node and one, which is where its children begin; for the children at
the root of a trie that begins at node b, b. Its list holds, by byte, where the children of that byte begin (there are
several if several tokens are equal), and one number more: where the last one ends.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset
from libcpp.vector cimport vector

from tokdfa.core.byte_sets cimport ByteSet, add_byte, ones
from tokdfa.vocabulary.trie_nodes cimport next_of


cdef enum:
    LEAST_BYTES = 16  # nodes with children of fewer different bytes have no branch


cdef class Branches:
    """The branches of all tries in one array of nodes."""

    cdef int add(self, const uint64_t* nodes, int64_t begin, int64_t end) except -1:
        """Find the branches of the trie nodes[begin:end]. O(nodes)."""
        cdef int64_t node, last, here, byte, previous
        cdef ByteSet found
        cdef size_t first
        for node in range(begin - 1, end):
            last = next_of(nodes[node]) if node >= begin else end
            if last - node - 1 < LEAST_BELOW:
                continue
            previous, here, first = -1, node + 1, self.children.size()
            memset(&found, 0, sizeof(ByteSet))
            while here < last:
                byte = nodes[here] & 0xFF
                if byte != previous:
                    add_byte(found.words, byte)
                    self.children.push_back(<int32_t>here)
                previous = byte
                here = next_of(nodes[here])
            if self.children.size() - first < LEAST_BYTES:
                self.children.resize(first)
                continue
            self.children.push_back(<int32_t>last)
            self.keys.intern(node + 1)
            self.bytes_of.push_back(found)
            self.begin.push_back(<int32_t>first)
        return 0

    cdef int forget_after(self, size_t count) except -1:
        """Keep the first `count` only."""
        cdef vector[int64_t] kept
        cdef size_t k
        if count == self.keys.size():
            return 0
        for k in range(count):
            kept.push_back(self.keys.key(<int32_t>k))
        self.children.resize(self.begin[count])
        self.begin.resize(count)
        self.bytes_of.resize(count)
        self.keys.clear()
        for k in range(count):
            self.keys.intern(kept[k])
        return 0

    cdef int64_t bytes_kept(self) noexcept:
        return self.keys.bytes() + 36 * self.begin.capacity() + 4 * self.children.capacity()

    cdef bint take_child(self, int32_t branch, uint64_t* left, int64_t* first, int64_t* past) noexcept:
        cdef int64_t place = self.begin[branch]
        cdef uint64_t word, here
        cdef int quarter
        for quarter in range(4):
            word, here = left[quarter], self.bytes_of[branch].words[quarter]
            if word:
                left[quarter] = word & (word - 1)
                place += ones(here & ~word & (word - 1))  # those below the lowest bit
                first[0], past[0] = self.children[place], self.children[place + 1]
                return True
            place += ones(here)
        return False
