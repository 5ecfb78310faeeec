"""The walk of 004 over its own node layout, as a kernel: the last rung before ours, to be measured beside it.

A node is two words of 32 bits: a token of 24 bits and a byte of 8; the size of the subtree, 22 bits, and the number of
parents to pop, 10. Our node (`tokdfa.vocabulary.trie`) has its depth in place of the parents, and the next sibling in
place of the size, so that nothing is ever popped. The order of nodes is the same.

With `alphabet` the bytes are mapped to the columns of the automaton's table first (alphabet compression); without it
the table has a column for each byte, and a node takes one read less. Where nothing is skipped a node takes 5 reads
(node, stack, alphabet, table, mask) and 2 writes (stack, mask), as 004 counts them. Source: 004 (toktrie).
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


def source_nodes(trie: TokenTrie) -> npt.NDArray[np.uint32]:
    """The nodes of a trie in the layout of 004: uint32, shape (nodes, 2). VocabularyError for one that is too large."""
    nodes = trie.nodes
    if trie.node_count >= 1 << 32 - PARENT_BITS or trie.depth_limit >= 1 << PARENT_BITS:
        raise VocabularyError(f"the layout of toktrie has no room for {trie.node_count} nodes {trie.depth_limit} deep")
    depth = (nodes >> np.uint64(DEPTH_SHIFT) & np.uint64((1 << DEPTH_BITS) - 1)).astype(np.int64)
    following = (nodes >> np.uint64(NEXT_SHIFT) & np.uint64(MAX_NODES)).astype(np.int64)
    parents = depth + 1 - np.append(depth, 0)[following]
    sizes = following - np.arange(len(nodes))
    tokens = nodes >> np.uint64(TOKEN_SHIFT) << np.uint64(8) | nodes & np.uint64(0xFF)
    return np.stack([tokens, sizes << PARENT_BITS | parents], axis=1).astype(np.uint32)


def walk_source(
    trie: TokenTrie,
    nodes: npt.NDArray[np.uint32],
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
    visited, survived = _walk_source_kernel(nodes, table, alphabet, stack, words)
    return visited, survived


@kernel
def _walk_source_kernel(nodes, table, alphabet, stack, words):  # type: ignore[no-untyped-def]
    """The loop of 004. With None for `alphabet` numba leaves that branch out."""
    here, height, visited, survived = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while here < len(nodes):
        first, second = nodes[here, 0], nodes[here, 1]
        visited += 1
        column = np.int64(first & np.uint32(0xFF))
        if alphabet is not None:
            column = np.int64(alphabet[column])
        target = table[stack[height] + column]
        size, parents = np.int64(second >> np.uint32(PARENT_BITS)), np.int64(second & np.uint32((1 << PARENT_BITS) - 1))
        if target < 0:
            height -= parents - 1
            here += size
            continue
        survived += 1
        token = first >> np.uint32(8)
        words[token >> np.uint32(5)] |= np.uint32(1) << (token & np.uint32(31))
        height += 1
        stack[height] = target
        if size == 1:
            height -= parents
        here += 1
    return visited, survived
