"""Branches of the token trie: which children of a node a row can read is looked up there, not tried child by child.

Below the root, below a blank or a quote, a node has up to 256 children, and most rows read few bytes. A walk that goes
from child to child meets mostly ones that are refused at once. A *branch* is the list of a node's children with the set
of their bytes; a walk that knows the set of bytes that a row reads (`tokdfa.backends.pushdown_trie.closure`) takes what
both have in common. Nodes with few children have none: there the walk from child to child is as fast.

A branch is known by its *key*: the number of its node and one, which is where its children begin; for the children at
the root of a trie that begins at node b, b.

Layout. ``branch_keys``, ``branch_slots``: a map (`tokdfa.core.key_map`), key -> number; ``branch_bytes`` uint64, shape
(branches, 4): the set of bytes; ``branch_begin`` int32: where the list of a branch begins in ``branch_children``; that
holds, by byte, where the children of that byte begin (there are several if several tokens are equal), and one number
more: where the last one ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.backends.pushdown_trie.arrays import longer
from tokdfa.core.jit import kernel
from tokdfa.core.key_map import enter_key, is_crowded, longer_map, look_up, new_map
from tokdfa.vocabulary.mask_store import count_ones
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT

if TYPE_CHECKING:
    import numpy.typing as npt

#: Nodes with fewer descendants have no branch, nor have those with children of fewer different bytes.
LEAST_BELOW, LEAST_BYTES = 64, 16
#: Entries of the longest list.
MOST_CHILDREN = 257
#: Columns of `frame_place`: a frame's branch, where the children that are walked end, where all of them end.
FRAME_BRANCH, FRAME_STOP, FRAME_END = range(3)


class Branches:
    """The branches of all tries in one array of nodes, in arrays that kernels read."""

    def __init__(self) -> None:
        self.count = self.child_count = 0
        self.branch_keys, self.branch_slots = new_map(128, -1)
        self.branch_bytes: npt.NDArray[np.uint64] = np.zeros((64, 4), dtype=np.uint64)
        self.branch_begin: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self.branch_children: npt.NDArray[np.int32] = np.zeros(1024, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        kept = self.branch_keys, self.branch_slots, self.branch_bytes, self.branch_begin, self.branch_children
        return sum(array.nbytes for array in kept)

    def copy(self) -> Branches:
        """Another one with the same branches."""
        copied = Branches()
        copied.count, copied.child_count = self.count, self.child_count
        for name in ("branch_keys", "branch_slots", "branch_bytes", "branch_begin", "branch_children"):
            setattr(copied, name, getattr(self, name).copy())
        return copied

    def add(self, nodes: npt.NDArray[np.uint64], begin: int, end: int) -> None:
        """Find the branches of the trie nodes[begin:end]. O(nodes)."""
        while True:
            count, children = _add_branches_kernel(
                nodes, begin, end, self.count, self.child_count, self.branch_keys, self.branch_slots,
                self.branch_bytes, self.branch_begin, self.branch_children,
            )  # fmt: skip
            if count <= len(self.branch_begin) and children + MOST_CHILDREN <= len(self.branch_children):
                break
            self._make_room(count, children + MOST_CHILDREN)
        self.count, self.child_count = count, children

    def _make_room(self, branches: int, children: int) -> None:
        if branches > len(self.branch_begin):
            room = max(branches, 2 * len(self.branch_begin))
            self.branch_bytes, self.branch_begin = longer(self.branch_bytes, room), longer(self.branch_begin, room)
            while is_crowded(room, self.branch_keys):
                self.branch_keys, self.branch_slots = longer_map(self.branch_keys, self.branch_slots, -1)
        if children > len(self.branch_children):
            self.branch_children = longer(self.branch_children, max(children, 2 * len(self.branch_children)))


@kernel
def _add_branches_kernel(  # type: ignore[no-untyped-def]
    nodes, begin, end, number, entry, keys, slots, sets, begins, children
):
    """(branches, entries of their lists) with those of a trie; new ones are written while there is room."""
    for node in range(begin - 1, end):
        last = np.int64(end)
        if node >= begin:
            last = begin + np.int64((nodes[node] >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
        if last - node - 1 < LEAST_BELOW:
            continue
        fits = number < len(begins) and entry + MOST_CHILDREN <= len(children)
        if fits:
            sets[number] = 0
        previous, here, count = np.int64(-1), np.int64(node + 1), np.int64(0)
        while here < last:
            byte = np.int64(nodes[here] & np.uint64(0xFF))
            if byte != previous:
                if fits:
                    sets[number, byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
                    children[entry + count] = here
                count += 1
            previous = byte
            here = begin + np.int64((nodes[here] >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
        if count < LEAST_BYTES:
            continue
        if fits:
            begins[number], children[entry + count] = entry, last
            enter_key(np.int64(node + 1), number, keys, slots)
        number += 1
        entry += count + 1
    return number, entry


@kernel
def find_branch(key, pool):  # type: ignore[no-untyped-def]
    """The number of the branch with this key, or -1."""
    return np.int64(look_up(key, pool.branch_keys, pool.branch_slots))


@kernel
def enter_branch(key, reads, at, end, frame, pool):  # type: ignore[no-untyped-def]
    """The number of the frame in which the children with this key are walked, `frame` if they have no branch.

    `reads`: uint64, flat, from `at` on the set of bytes that are read there; `end`: where the children end. A new frame
    begins before its first child.
    """
    branch = find_branch(key, pool)
    if branch < 0:
        return frame
    frame += 1
    for k in range(4):
        pool.frame_left[frame, k] = reads[at + k] & pool.branch_bytes[branch, k]
    pool.frame_place[frame, FRAME_BRANCH] = branch
    pool.frame_place[frame, FRAME_STOP], pool.frame_place[frame, FRAME_END] = key, end
    return frame


@kernel
def take_child(branch, left, pool):  # type: ignore[no-untyped-def]
    """(where the next children begin, where they end) of a branch, or (-1, -1); `left`, four words: bytes to be taken.

    The byte that is taken is removed from `left`; all of `left` are bytes of the branch.
    """
    place = np.int64(pool.branch_begin[branch])
    for quarter in range(4):
        word = left[quarter]
        here = pool.branch_bytes[branch, quarter]
        if word:
            left[quarter] = word & (word - np.uint64(1))
            below = ~word & (word - np.uint64(1))  # ones below the lowest bit
            place += count_ones(here & below)
            return np.int64(pool.branch_children[place]), np.int64(pool.branch_children[place + 1])
        place += count_ones(here)
    return np.int64(-1), np.int64(-1)
