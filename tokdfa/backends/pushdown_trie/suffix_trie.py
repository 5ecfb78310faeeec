"""Exits: the ways out of a terminal, merged into one trie of what comes after them.

In a JSON string most tokens stay inside. The others have a closing quote somewhere: ``",`` and ``word",`` and ``s",``
differ before it only, and nothing that follows depends on that. A walk of the rest of the partition (`partition`) comes
to the row after the string once for each of them. Here the bytes after the exit, the *suffixes*, are a trie of their
own, and the tokens that have a suffix in common are a *group* of it. The row after the terminal is walked over this
trie once, and where it can read a suffix, the group is allowed.

This holds where a terminal is alone in its row, because then the row after it is the same however it came to its end,
and for exits at which the terminal cannot go on. Tokens whose terminal is complete earlier, but may go on, stay in the
rest (digits of a number). A string of bounded length may be left wherever it is if it is long enough and no token is
too long.

A partition with the bit EXITS has them: its rest is without the tokens of exits. Layout: the trie of suffixes comes
after that of the rest in ``nodes``, and is packed like it, with the number of a group of the partition in place of a
token; group 0 has the tokens that end with the terminal, which has no node. ``exit_begin`` int32: where the tokens of
each group begin in ``exit_tokens`` int32.

Source: ours. Cost: O(nodes below exits), and the walk of some tens of nodes instead
of some hundreds in a JSON string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.vocabulary.division import FIRST, PAST
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, NEXT_SHIFT, TOKEN_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

#: Columns of `SuffixScratch.links`, by node of the trie that is being merged: its byte, its first child, the next of
#: its siblings, whose bytes ascend, and its first token, as a link; -1 for none.
L_BYTE, L_CHILD, L_SIBLING, L_TOKEN = range(4)
#: Indices into `SuffixScratch.counts`: nodes of the merged trie, the root included; tokens of its groups.
E_NODES, E_TOKENS = range(2)


class SuffixScratch:
    """The trie of suffixes that is being merged. `nodes`: of the trie whose exits these are; `depth`: its depth."""

    def __init__(self, nodes: int, depth: int) -> None:
        #: int32: links of nodes, and (token, next) of tokens; pages that nothing is written to are never touched.
        self.links: npt.NDArray[np.int32] = np.empty((nodes + 1, 4), dtype=np.int32)
        self.tokens: npt.NDArray[np.int32] = np.empty((nodes + 1, 2), dtype=np.int32)
        self.counts: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)
        #: int32, by depth: the node on the way, and its number where it is written.
        self.way: npt.NDArray[np.int32] = np.zeros((2, depth + 2), dtype=np.int32)

    def merge(self, nodes: npt.NDArray[np.uint64], ranges: npt.NDArray[np.int64], spare: int) -> None:
        """Make the trie of the suffixes of exits, each the subtree of a node (`tokdfa.vocabulary.division`)."""
        _merge_exits_kernel(nodes, ranges, spare, self.links, self.tokens, self.counts, self.way)


@kernel
def _merge_exits_kernel(nodes, ranges, spare, links, tokens, counts, way):  # type: ignore[no-untyped-def]
    """Begin a trie of suffixes, and add all exits: of each the token, and what is below it."""
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    links[0, L_CHILD] = links[0, L_TOKEN] = links[0, L_SIBLING] = -1
    counts[E_NODES], counts[E_TOKENS] = 1, 0
    way[0, 0] = 0
    for k in range(len(ranges)):
        base = np.int64((nodes[ranges[k, FIRST]] >> np.uint64(DEPTH_SHIFT)) & depth_mask)
        for number in range(ranges[k, FIRST], ranges[k, PAST]):
            node = nodes[number]
            depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base
            merged = np.int64(0)
            if depth > 0:
                merged = _child(np.int64(way[0, depth - 1]), np.int64(node & np.uint64(0xFF)), links, counts)
                way[0, depth] = merged
            token = np.int64(node >> np.uint64(TOKEN_SHIFT))
            if token != spare:
                place = counts[E_TOKENS]
                tokens[place, 0], tokens[place, 1] = token, links[merged, L_TOKEN]
                links[merged, L_TOKEN] = place
                counts[E_TOKENS] = place + 1


@kernel
def _child(parent, byte, links, counts):  # type: ignore[no-untyped-def]
    """The child of a merged node by a byte, which is made if there is none."""
    before, child = np.int64(-1), np.int64(links[parent, L_CHILD])
    while child >= 0 and links[child, L_BYTE] < byte:
        before, child = child, np.int64(links[child, L_SIBLING])
    if child >= 0 and links[child, L_BYTE] == byte:
        return child
    made = counts[E_NODES]
    links[made, L_BYTE], links[made, L_CHILD], links[made, L_SIBLING], links[made, L_TOKEN] = byte, -1, child, -1
    if before < 0:
        links[parent, L_CHILD] = made
    else:
        links[before, L_SIBLING] = made
    counts[E_NODES] = made + 1
    return made


@kernel
def write_exits_kernel(links, tokens, way, spare, nodes, group, exit_begin, exit_tokens):  # type: ignore[no-untyped-def]
    """How many groups are written: the merged trie to `nodes`, its groups from number `group` on.

    ``exit_begin[group]`` says where the tokens of the first one begin. There is room.
    """
    groups, kept, depth = np.int64(0), np.int64(0), np.int64(0)
    here = np.int64(0)
    way[0, 0] = way[1, 0] = -1
    while True:
        label = np.int64(spare)
        link = np.int64(links[here, L_TOKEN])
        if link >= 0 or here == 0:
            label = groups
            end = exit_begin[group + groups]
            while link >= 0:
                exit_tokens[end] = tokens[link, 0]
                link, end = np.int64(tokens[link, 1]), end + 1
            groups += 1
            exit_begin[group + groups] = end
        if here > 0:
            nodes[kept] = (
                np.uint64(links[here, L_BYTE])
                | np.uint64(depth - 1) << np.uint64(DEPTH_SHIFT)
                | np.uint64(label) << np.uint64(TOKEN_SHIFT)
            )
            kept += 1
        way[0, depth], way[1, depth] = here, kept - 1
        if links[here, L_CHILD] >= 0:
            here = np.int64(links[here, L_CHILD])
            depth += 1
            continue
        while depth > 0:
            nodes[way[1, depth]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
            if links[way[0, depth], L_SIBLING] >= 0:
                break
            depth -= 1
        if depth == 0:
            return groups
        here = np.int64(links[way[0, depth], L_SIBLING])


@kernel
def take_group(group, words, pool):  # type: ignore[no-untyped-def]
    """Set the tokens of a group."""
    for place in range(pool.exit_begin[group], pool.exit_begin[group + 1]):
        token = pool.exit_tokens[place]
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
