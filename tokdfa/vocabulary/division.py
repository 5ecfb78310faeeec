"""Dividing the vocabulary's tokens by a state: those inside it, those refused, and those that are left to others.

Words. A strategy reads tokens from a *state* of something that knows only part of a constraint: a lexer, the automaton
of one text. A token that the state reads to its end, still alive, is *inside*: allowed, whatever else the constraint
says. Where the state cannot go on, the tokens below are *refused*, or they are *left*: the rest of the constraint
decides about them. That depends on nothing but the state, so it is found once, by one walk over the trie, and serves
every mask in which the state is met again; what is left is walked each time.

The walk is that of `tokdfa.vocabulary.walker`, with `allow` and `note_range` as its holes; a strategy gives the step,
which returns the state after a byte, DEAD for what is refused, and ``LEFT - tag`` for what is left; the *tag*, a number
from 0 on, says what else has to be known of it. What is left comes as *ranges* of nodes, each of whole subtrees.

A strategy that can go on at each range from what it knows there keeps the ranges (`tokdfa.backends.earley_trie`: the
parser's row after a lexeme does not depend on the way to it). One that has to read what is left from its first byte on
cuts it out of the trie, as a trie of its own with the nodes above it: `cut_ranges_kernel`. One that is at all ranges in
the same state makes one trie of them: `join_ranges_kernel`.

Sources: 000 (llguidance) asks the same of slices of the vocabulary, by proving that a regex is contained in what may
follow; XGrammar splits the vocabulary by what depends on the context. A division is exact, and is chosen by the state.
Cost: 2 to 3 ns a node that the state reads, 8 kB for 65,536 tokens inside, and 24 bytes a range.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walker import DEAD, set_bit

#: What a step returns to stop the walk, and less a tag, which is not negative, for a subtree that is left.
STOP, LEFT = DEAD - 1, DEAD - 2
#: Columns of a range: its first node, the node after its last, its tag.
FIRST, PAST, TAG = range(3)
#: Ranges for which there is room at first: a walk that finds more begins again, and few do.
_ROOM = 16_384

_FIELDS = {"words": ("uint32", 1), "ranges": ("int64", 2), "counts": ("int64", 1)}


class _DivisionArrays(Struct, fields=tuple(_FIELDS), declared=_FIELDS):
    """What the holes of a dividing walk write to; `counts` holds the number of ranges."""


class Division:
    """What one dividing walk finds.

    `words`: uint32, V + 1 bits: the tokens inside, added to what is set already; the spare bit V means nothing until
    `finish`. `arrays`: what the walk takes as `out`.
    """

    def __init__(self, words: npt.NDArray[np.uint32]) -> None:
        self.words = words
        self._ranges: npt.NDArray[np.int64] = np.empty((_ROOM, 3), dtype=np.int64)
        self._counts: npt.NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self.arrays = _DivisionArrays(words, self._ranges, self._counts)

    def make_room(self) -> bool:
        """Whether the walk stopped because there was no room for a range; then there is."""
        if self._counts[0] < len(self._ranges):
            return False
        hold(self._ranges.nbytes)
        self._ranges = np.concatenate([self._ranges, np.empty_like(self._ranges)])
        self.arrays = _DivisionArrays(self.words, self._ranges, self._counts)
        return True

    @property
    def ranges(self) -> npt.NDArray[np.int64]:
        """int64, shape (ranges, 3): FIRST, PAST, TAG, in the order in which they were found."""
        return self._ranges[: self._counts[0]]

    def keep_ranges(self, ranges: npt.NDArray[np.int64]) -> None:
        """Go on with only these ranges, a part of those found."""
        self._ranges[: len(ranges)] = ranges
        self._counts[0] = len(ranges)

    def finish(self, size: int) -> None:
        """Clear the spare bit of a vocabulary of `size` tokens."""
        self.words[size >> 5] &= np.uint32(~(1 << (size & 31)) & 0xFFFFFFFF)


@kernel
def allow(out, count, token, target):  # type: ignore[no-untyped-def]
    """Add a token to those inside."""
    return set_bit(out.words, count, token, target)


@kernel
def note_range(out, here, following, target):  # type: ignore[no-untyped-def]
    """Note what is left, with its tag; False if there is no room, or the step asks to stop."""
    if target > LEFT or out.counts[0] >= len(out.ranges):
        return False
    place = out.counts[0]
    out.ranges[place, FIRST], out.ranges[place, PAST], out.ranges[place, TAG] = here, following, LEFT - target
    out.counts[0] = place + 1
    return True


@kernel
def cut_ranges_kernel(nodes, begin, ranges, spare, rest, path):  # type: ignore[no-untyped-def]
    """Write the trie of the nodes in `ranges`, which ascend, and of those above them; how many nodes it has.

    `nodes`: a trie; the ranges are below the node before `begin`, whose depth is counted as 0 in `rest`, which has
    room. Nodes above a range end no token in `rest`. `path`: int64, shape (2, depths), scratch.
    """
    low_byte, depth_mask = np.uint64(0xFF), np.uint64((1 << DEPTH_BITS) - 1)
    kept, above, here = np.int64(0), np.int64(0), np.int64(begin)
    if len(ranges) == 0:
        return kept
    base = (nodes[begin] >> np.uint64(DEPTH_SHIFT)) & depth_mask
    for k in range(len(ranges)):
        first, past = ranges[k, FIRST], ranges[k, PAST]
        while above > 0 and next_node(nodes, path[0, above - 1]) <= first:
            above -= 1
            rest[path[1, above]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
            here = max(here, next_node(nodes, path[0, above]))
        while here < first:
            following = next_node(nodes, here)
            if following <= first:
                here = following
                continue
            path[0, above], path[1, above] = here, kept
            rest[kept] = (
                nodes[here] & low_byte
                | np.uint64(above) << np.uint64(DEPTH_SHIFT)
                | np.uint64(spare) << np.uint64(TOKEN_SHIFT)
            )
            above, kept, here = above + 1, kept + 1, here + 1
        # subtrees as they are, moved up and to the left; the numbers of nodes wrap around as they should
        shift = (np.uint64(kept) - np.uint64(first)) << np.uint64(NEXT_SHIFT)
        shift -= base << np.uint64(DEPTH_SHIFT)
        for node in range(first, past):
            rest[kept] = nodes[node] + shift
            kept += 1
        here = past
    while above > 0:
        above -= 1
        rest[path[1, above]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
    return kept


@kernel
def join_ranges_kernel(nodes, ranges, spare, joined, path):  # type: ignore[no-untyped-def]
    """Write the trie of the nodes in `ranges`, as if all of them were children of one node; how many nodes it has.

    No more than the ranges have: there is room for these in `joined`. `path`: as in `cut_ranges_kernel`.
    """
    depth_mask = np.uint64((1 << DEPTH_BITS) - 1)
    total = np.int64(1)
    for k in range(len(ranges)):
        total += ranges[k, PAST] - ranges[k, FIRST]
    # by node of the new trie: byte, first child, next sibling, the last of its tokens; by token: its id, the one before
    tree, tokens = np.full((total, 4), -1, dtype=np.int32), np.empty((total, 2), dtype=np.int32)
    count, token_count, last = np.int64(1), np.int64(0), np.int64(-1)
    path[0, 0] = 0
    for k in range(len(ranges)):
        base = (nodes[ranges[k, FIRST]] >> np.uint64(DEPTH_SHIFT)) & depth_mask
        for here in range(ranges[k, FIRST], ranges[k, PAST]):
            depth = np.int64(((nodes[here] >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base)
            byte, parent, token = (
                np.int32(nodes[here] & np.uint64(0xFF)),
                path[0, depth],
                nodes[here] >> np.uint64(TOKEN_SHIFT),
            )
            before, node = np.int64(-1), np.int64(tree[parent, 1])
            if (
                depth == 0 and last >= 0 and tree[last, 0] < byte
            ):  # most siblings are there, and a range's come in order
                before, node = last, np.int64(tree[last, 2])
            while node >= 0 and tree[node, 0] < byte:
                before, node = node, np.int64(tree[node, 2])
            if node < 0 or tree[node, 0] != byte:
                tree[count, 0], tree[count, 2] = byte, node
                node, count = count, count + 1
                if before < 0:
                    tree[parent, 1] = node
                else:
                    tree[before, 2] = node
            path[0, depth + 1] = node
            if depth == 0:
                last = node
            if token != np.uint64(spare):
                tokens[token_count, 0], tokens[token_count, 1] = token, tree[node, 3]
                tree[node, 3] = token_count
                token_count += 1
    kept, depth, node = np.int64(0), np.int64(0), np.int64(tree[0, 1])
    while node >= 0:
        token, word = np.int64(tree[node, 3]), np.uint64(tree[node, 0]) | np.uint64(depth) << np.uint64(DEPTH_SHIFT)
        while token >= 0 and tokens[token, 1] >= 0:  # all but one are nodes without children
            joined[kept] = (
                word
                | np.uint64(tokens[token, 0]) << np.uint64(TOKEN_SHIFT)
                | np.uint64(kept + 1) << np.uint64(NEXT_SHIFT)
            )
            token, kept = np.int64(tokens[token, 1]), kept + 1
        joined[kept] = word | np.uint64(tokens[token, 0] if token >= 0 else spare) << np.uint64(TOKEN_SHIFT)
        path[0, depth], path[1, depth] = node, kept
        kept += 1
        if tree[node, 1] >= 0:
            node, depth = np.int64(tree[node, 1]), depth + 1
            continue
        joined[kept - 1] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
        while tree[node, 2] < 0 and depth > 0:
            depth -= 1
            node = path[0, depth]
            joined[path[1, depth]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
        node = np.int64(tree[node, 2])
    return kept


@kernel
def next_node(nodes, node):  # type: ignore[no-untyped-def]
    """The node after a node's subtree."""
    return np.int64((nodes[node] >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
