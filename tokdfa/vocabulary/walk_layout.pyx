"""The walk of toktrie as its source prints it, over its own node layout: to be measured beside ours.

A node is one word of 64 bits, as in the source: a token of 24 bits and a byte of 8 in its lower half; the size of the
subtree, 22 bits, and the number of parents to pop, 10, in its upper one. Our node (`tokdfa.vocabulary.trie`) has its
depth in place of the parents, and the next sibling in place of the size, so that nothing is ever popped. The order of
nodes is the same.

The loop is that of ``add_bias_inner``: it pops at its head what the last node has left to pop, and how much that is, is
a select and no branch, so that "is the byte allowed?" is the only branch that is mispredicted. Indices are unsigned, as
there.

With an alphabet the bytes are mapped to the columns of the automaton's table first (alphabet compression); without it
the table has a column for each byte, and a node takes one read less.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

import numpy as np

from tokdfa.errors import VocabularyError
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

PARENT_BITS = 10


cdef extern from *:
    """
    struct SourceCounts { int64_t visited, survived; };

    template <bool has_alphabet>
    static SourceCounts walk_as_printed(
        const uint64_t* nodes, const uint64_t count, const int32_t* table, const uint8_t* alphabet, int32_t* stack,
        uint32_t* words
    ) {
        uint64_t here = 0, height = 0, pops = 0;
        int64_t visited = 0, survived = 0;
        while (here < count) {
            height -= pops;
            const uint64_t node = nodes[here], byte = node & 0xFF;
            ++visited;
            const int32_t target = table[uint64_t(uint32_t(stack[height])) + (has_alphabet ? alphabet[byte] : byte)];
            const uint64_t size = node >> 42, parents = node >> 32 & 0x3FF;
            if (target >= 0) {
                stack[++height] = target;
                const uint64_t token = node >> 8 & 0xFFFFFF;
                words[token >> 5] |= uint32_t(1) << (token & 31);
                ++survived;
                pops = size == 1 ? parents : 0;
                ++here;
            } else {
                pops = parents - 1;
                here += size;
            }
        }
        return {visited, survived};
    }
    """
    struct SourceCounts:
        int64_t visited
        int64_t survived
    SourceCounts walk_with_alphabet "walk_as_printed<true>" (
        const uint64_t*, uint64_t, const int32_t*, const uint8_t*, int32_t*, uint32_t*) noexcept nogil
    SourceCounts walk_all_bytes "walk_as_printed<false>" (
        const uint64_t*, uint64_t, const int32_t*, const uint8_t*, int32_t*, uint32_t*) noexcept nogil


def source_nodes(trie):
    """The nodes of a trie in the layout of toktrie: uint64. VocabularyError for one that is too large."""
    nodes = trie.nodes
    if trie.node_count >= 1 << 32 - PARENT_BITS or trie.depth_limit >= 1 << PARENT_BITS:
        raise VocabularyError(f"the layout of toktrie has no room for {trie.node_count} nodes {trie.depth_limit} deep")
    depth = (nodes >> np.uint64(DEPTH_SHIFT) & np.uint64((1 << DEPTH_BITS) - 1)).astype(np.int64)
    following = (nodes >> np.uint64(NEXT_SHIFT) & np.uint64(MAX_NODES)).astype(np.int64)
    parents = depth + 1 - np.append(depth, 0)[following]
    sizes = following - np.arange(len(nodes))
    tokens = nodes >> np.uint64(TOKEN_SHIFT) << np.uint64(8) | nodes & np.uint64(0xFF)
    return tokens | (sizes << PARENT_BITS | parents).astype(np.uint64) << np.uint64(32)


def walk_source(
    trie, const uint64_t[::1] nodes, const int32_t[::1] table, const uint8_t[::1] alphabet, int32_t state,
    uint32_t[::1] words not None,
):
    """OR the tokens allowed from `state` into `words` (uint32, V + 1 bits). Returns nodes visited, nodes survived.

    `nodes`: of `source_nodes`. `table`: int32, flat, row offset + column -> row offset, negative where no text goes on.
    """
    cdef vector[int32_t] stack
    cdef SourceCounts done
    if words.shape[0] < trie.size // 32 + 1:
        raise ValueError(f"words has {words.shape[0]} words; {trie.size // 32 + 1} are needed")
    stack.resize(trie.depth_limit + 1)
    stack[0] = state
    if nodes.shape[0] == 0:
        return 0, 0
    if alphabet is None:
        done = walk_all_bytes(&nodes[0], nodes.shape[0], &table[0], NULL, stack.data(), &words[0])
    else:
        done = walk_with_alphabet(&nodes[0], nodes.shape[0], &table[0], &alphabet[0], stack.data(), &words[0])
    return done.visited, done.survived
