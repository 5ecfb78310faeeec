"""The flat token trie: all token bytes as one prefix tree, laid out in depth-first order, one 64-bit word a node.

Words. A *node* stands for a non-empty prefix of some token; its *byte* is the last byte of that prefix and its *depth*
the number of bytes before it. There is no root node: the nodes of depth 0 lie side by side, as do all children of one
node, in byte order. The *subtree* of node p is the range ``p .. next(p) - 1``; its first child, if any, is ``p + 1``,
and its next sibling, if any, is ``next(p)``. A node that ends a token carries the token's id, any other the *spare* id,
V (one past the vocabulary), so that a walk can write a bit at every node without asking.

Several ids with equal bytes: each gets a node of its own, as siblings with the same byte; the last of them has the
children. A walk visits all of them, so all ids are set.

Packing (low bits first): byte 8, depth 12, next 23, token 21. So a trie holds at most 2**23 - 1 nodes, tokens of at
most 4,095 bytes and ids below 2**21 - 1.

Cost: O(total bytes) after sorting. Llama 3's 128,000 tokens give 274,520 nodes, 2.14 a token.
Source: 004 (toktrie): depth-first layout and subtree skip. There a node counts the parents to pop; we store the depth
instead and index the stack of states with it, so that nothing is ever popped. Sorting is ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.core.locks import cached_property
from tokdfa.errors import VocabularyError
from tokdfa.vocabulary.trie_nodes import FlatTrie, write_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

BYTE_BITS, DEPTH_BITS, NEXT_BITS = 8, 12, 23  # and 21 for the token
DEPTH_SHIFT = BYTE_BITS
NEXT_SHIFT = DEPTH_SHIFT + DEPTH_BITS
TOKEN_SHIFT = NEXT_SHIFT + NEXT_BITS
MAX_NODES = (1 << NEXT_BITS) - 1


@dataclass(frozen=True, eq=False)
class TokenBytes:
    """What tokens spell: token i is ``joined[offsets[i] : offsets[i + 1]]``. `offsets`: int64, shape (V + 1,)."""

    joined: bytes
    offsets: npt.NDArray[np.int64]

    @property
    def data(self) -> npt.NDArray[np.uint8]:
        """`joined` as uint8, which compiled code reads."""
        return np.frombuffer(self.joined, dtype=np.uint8)

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return len(self.offsets) - 1

    def of(self, token: int) -> bytes:
        """What a token spells."""
        return self.joined[self.offsets[token] : self.offsets[token + 1]]


@dataclass(frozen=True, eq=False)
class TokenTrie:
    """A flat token trie; immutable. See the module's docstring for the layout.

    `nodes`: uint64, shape (node_count,). `order`: int32, the ids in the trie, sorted by bytes and then by id.
    `size`: V, also the spare id. `depth_limit`: the longest token in bytes. `token_bytes`: what it was built from.
    """

    nodes: npt.NDArray[np.uint64]
    order: npt.NDArray[np.int32]
    size: int
    depth_limit: int
    token_bytes: TokenBytes

    @property
    def node_count(self) -> int:
        return len(self.nodes)

    @property
    def nbytes(self) -> int:
        return self.nodes.nbytes + self.order.nbytes

    @cached_property
    def flat(self) -> FlatTrie:
        """The nodes and what the tokens spell, as compiled code reads them."""
        return FlatTrie(self.nodes, self.token_bytes.offsets, self.token_bytes.data, self.depth_limit)

    @cached_property
    def rank_of(self) -> npt.NDArray[np.int32]:
        """int32, shape (V,): the position of each token in `order`, -1 for those that are not in the trie."""
        ranks = np.full(self.size, -1, dtype=np.int32)
        ranks[self.order] = np.arange(len(self.order), dtype=np.int32)
        return ranks

    @cached_property
    def ranked_nodes(self) -> npt.NDArray[np.uint64]:
        """`nodes` with positions in `order` in place of ids; they ascend along a walk. The spare is ``len(order)``."""
        ids = self.nodes >> np.uint64(TOKEN_SHIFT)
        ranks = np.append(self.rank_of, np.int32(len(self.order)))[ids]
        return (self.nodes & np.uint64((1 << TOKEN_SHIFT) - 1)) | (ranks.astype(np.uint64) << np.uint64(TOKEN_SHIFT))

    @cached_property
    def nodes_below(self) -> npt.NDArray[np.int64]:
        """int64, shape (2, 256): how many nodes lie at and below those of each byte, at depth 0 and at depth 1."""
        depths = self.nodes >> np.uint64(DEPTH_SHIFT) & np.uint64((1 << DEPTH_BITS) - 1)
        below = np.zeros((2, 256), dtype=np.int64)
        for depth in range(2):
            here = np.flatnonzero(depths == depth)
            sizes = (self.nodes[here] >> np.uint64(NEXT_SHIFT) & np.uint64(MAX_NODES)).astype(np.int64) - here
            np.add.at(below[depth], (self.nodes[here] & np.uint64(0xFF)).astype(np.int64), sizes)
        return below

    def byte(self, node: int) -> int:
        """The last byte of the node's prefix."""
        return int(self.nodes[node]) & 0xFF

    def depth(self, node: int) -> int:
        """The number of bytes before the node's byte."""
        return int(self.nodes[node]) >> DEPTH_SHIFT & (1 << DEPTH_BITS) - 1

    def next(self, node: int) -> int:
        """The first node after the node's subtree."""
        return int(self.nodes[node]) >> NEXT_SHIFT & (1 << NEXT_BITS) - 1

    def token(self, node: int) -> int:
        """The token that ends here, or -1."""
        token = int(self.nodes[node]) >> TOKEN_SHIFT
        return -1 if token == self.size else token

    def children(self, node: int = -1) -> Iterator[int]:
        """The children of `node` in byte order; those of the (absent) root for -1."""
        child, end = (0, self.node_count) if node < 0 else (node + 1, self.next(node))
        while child < end:
            yield child
            child = self.next(child)

    def branches(self, node: int = -1) -> Iterator[tuple[int, int, int]]:
        """By byte, in order, the children of `node`: (byte, first, last), several where tokens have equal bytes.

        The longer prefixes are below the last; ``first .. next(last) - 1`` are the nodes of all tokens that begin so.
        """
        for byte, equal in groupby(self.children(node), self.byte):
            first, *others = equal
            yield byte, first, others[-1] if others else first

    def find(self, prefix: bytes) -> int:
        """The node of a non-empty `prefix` (of equal ones the last, which has the children), or -1. O(256 x bytes)."""
        node = -1
        for byte in prefix:
            node = next((last for other, _, last in self.branches(node) if other == byte), -1)
            if node < 0:
                break
        return node

    def span(self, prefix: bytes) -> range:
        """The nodes of all tokens that begin with `prefix`, those with equal bytes among them; all for b""."""
        if not prefix:
            return range(self.node_count)
        parent = self.find(prefix[:-1]) if len(prefix) > 1 else -1
        if parent < 0 < len(prefix) - 1:
            return range(0)
        branches = (branch for branch in self.branches(parent) if branch[0] == prefix[-1])
        return next((range(first, self.next(last)) for _, first, last in branches), range(0))

    def prefixes_of(self, text: bytes) -> list[int]:
        """The tokens whose bytes are a prefix of `text`, `text` itself included."""
        tokens: list[int] = []
        node = -1
        for byte in text:
            branch = next((found for found in self.branches(node) if found[0] == byte), None)
            if branch is None:
                break
            _, first, node = branch
            tokens += [self.token(child) for child in range(first, node + 1) if self.token(child) >= 0]
        return tokens

    def filter(self, keep: npt.NDArray[np.bool_]) -> TokenTrie:
        """The trie of the tokens with ``keep[token]`` (bool, shape (V,)) only; ids and spare id stay the same."""
        return _build(self.token_bytes, self.order[keep[self.order]])

    def excerpt(self, prefix: bytes = b"", limit: int = 40) -> list[tuple[bytes, int]]:
        """The first `limit` (prefix, token or -1) pairs at and below `prefix`, for people to look at."""
        spelled = bytearray(prefix[:-1])
        found = []
        for here in self.span(prefix)[:limit]:
            del spelled[self.depth(here) :]
            spelled.append(self.byte(here))
            found.append((bytes(spelled), self.token(here)))
        return found


def build_trie(token_bytes: TokenBytes) -> TokenTrie:
    """The trie of all tokens that spell something. Raises VocabularyError beyond 2**23 - 1 nodes."""
    return _build(token_bytes, sort_tokens(token_bytes))


def sort_tokens(token_bytes: TokenBytes) -> npt.NDArray[np.int32]:
    """The ids that spell something, int32, sorted by bytes (as Python sorts bytes) and then by id.

    Sorts by eight bytes at a time, read as big-endian numbers with zeros past the end, and goes on only with the
    tokens that still tie. Two tokens that tie to the end differ in trailing zero bytes at most; the shorter is first.
    O(n log n) number comparisons per eight bytes.
    """
    lengths = np.diff(token_bytes.offsets)
    order = np.flatnonzero(lengths).astype(np.int32)
    tied = np.arange(len(order))  # positions in `order` that still belong to a run of equal prefixes
    run = np.zeros(len(order), dtype=np.int64)  # for each position of `tied`, the number of its run
    skip = 0
    while len(tied):
        subset = order[tied]
        keys = _pack_keys(token_bytes, subset, skip)
        skip += 8
        again = np.lexsort((keys, run)) if skip > 8 else np.argsort(keys, kind="stable")
        order[tied] = subset = subset[again]
        keys, run = keys[again], run[again]
        fresh = np.ones(len(subset), dtype=np.bool_)
        fresh[1:] = (keys[1:] != keys[:-1]) | (run[1:] != run[:-1])
        run = np.cumsum(fresh)
        shared = ~fresh
        shared[:-1] |= ~fresh[1:]
        tied, run, subset = tied[shared], run[shared], subset[shared]
        if len(tied) and lengths[subset].max() <= skip:
            order[tied] = subset[np.lexsort((subset, lengths[subset], run))]
            break
    return order


def _pack_keys(token_bytes: TokenBytes, tokens: npt.NDArray[np.int32], skip: int) -> npt.NDArray[np.uint64]:
    """Bytes skip .. skip+7 of each token as a big-endian number, zeros past the end."""
    keys = np.zeros((len(tokens), 8), dtype=np.uint8)
    ends = token_bytes.offsets[tokens + 1]
    for place in range(8):
        positions = token_bytes.offsets[tokens] + (skip + place)
        inside = positions < ends
        keys[inside, place] = token_bytes.data[positions[inside]]
    return keys.view(">u8").ravel().astype(np.uint64)


def _build(token_bytes: TokenBytes, order: npt.NDArray[np.int32]) -> TokenTrie:
    lengths = np.diff(token_bytes.offsets)[order]
    nodes = write_nodes(token_bytes.data, token_bytes.offsets, order)
    if len(nodes) > MAX_NODES:
        raise VocabularyError(f"the vocabulary needs {len(nodes)} trie nodes; at most {MAX_NODES} fit")
    for array in (nodes, order):
        array.flags.writeable = False
    return TokenTrie(nodes, order, token_bytes.size, int(lengths.max(initial=0)), token_bytes)
