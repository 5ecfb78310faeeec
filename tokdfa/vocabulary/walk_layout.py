"""The walk of 004 as its source prints it, over its own node layout, as a kernel: to be measured beside ours.

A node is one word of 64 bits, as in the source: a token of 24 bits and a byte of 8 in its lower half; the size of the
subtree, 22 bits, and the number of parents to pop, 10, in its upper one. Our node (`tokdfa.vocabulary.trie`) has its
depth in place of the parents, and the next sibling in place of the size, so that nothing is ever popped. The order of
nodes is the same.

The loop is that of ``add_bias_inner``: it pops at its head what the last node has left to pop, and how much that is, is
a select and no branch, so that "is the byte allowed?" is the only branch that is mispredicted. Indices are unsigned, as
there.

With `alphabet` the bytes are mapped to the columns of the automaton's table first (alphabet compression); without it
the table has a column for each byte, and a node takes one read less. Source: 004 (toktrie).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.errors import VocabularyError
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.vocabulary.trie import TokenTrie

PARENT_BITS = 10


def source_nodes(trie: TokenTrie) -> npt.NDArray[np.uint64]:
    """The nodes of a trie in the layout of 004: uint64. VocabularyError for one that is too large."""
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
    trie: TokenTrie,
    nodes: npt.NDArray[np.uint64],
    table: npt.NDArray[np.int32],
    alphabet: npt.NDArray[np.uint8] | None,
    state: int,
    words: npt.NDArray[np.uint32],
) -> tuple[int, int]:
    """OR the tokens allowed from `state` into `words` (uint32, V + 1 bits). Returns nodes visited, nodes survived.

    `table`: int32, flat, row offset + column -> row offset, negative where no text goes on.
    """
    stack = np.empty(trie.depth_limit + 1, dtype=np.int32)
    stack[0] = state
    visited, survived = walk_source_kernel(nodes, table, alphabet, stack, words)
    return visited, survived


@kernel
def walk_source_kernel(nodes, table, alphabet, stack, words):  # type: ignore[no-untyped-def]
    """The loop of 004. With None for `alphabet` numba leaves that branch out."""
    one, zero, low = np.uint64(1), np.uint64(0), np.uint64(0xFF)
    here, stop = zero, np.uint64(len(nodes))
    height, pops, visited, survived = zero, zero, zero, zero
    while here < stop:
        height -= pops
        node = nodes[here]
        visited += one
        column = node & low
        if alphabet is not None:
            column = np.uint64(alphabet[column])
        target = table[np.uint64(stack[height]) + column]
        size = node >> np.uint64(32 + PARENT_BITS)
        parents = node >> np.uint64(32) & np.uint64((1 << PARENT_BITS) - 1)
        if target >= 0:
            height += one
            stack[height] = target
            token = node >> np.uint64(8) & np.uint64(0xFFFFFF)
            words[token >> np.uint64(5)] |= np.uint32(1) << np.uint32(token & np.uint64(31))
            survived += one
            pops = parents if size == one else zero
            here += one
        else:
            pops = parents - one
            here += size
    return np.int64(visited), np.int64(survived)
