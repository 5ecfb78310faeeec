"""The trie walk, derived: recursive -> array -> no recursion. Plain Python, to be read, drawn and checked against.

The recogniser is anything with ``try_push(byte) -> bool`` and ``pop(count)``, as in the source: a stack of states of
its own. The first three return the set of allowed tokens and do the same pushes and pops in the same order.

1. `walk_recursive`: over a tree of nested dicts. What the walk means.
2. `walk_array`: the tree laid out in depth-first order. A child is the next entry; a sibling is ``subtree_size``
   further. Still recursive, but the tree needs no pointers.
3. `walk_flat`: no recursion. After a node that has no children, or whose subtree is skipped, the next entry is a
   sibling of the node or of one of its ancestors; ``parents_to_pop`` says how many levels up that is.
4. `walk_by_depth`, over `TokenTrie` itself: the states lie in an array indexed by depth in place of a stack, so that
   nothing is popped, and "next sibling" is an absolute index.

From here to the loop of ``walker.hpp``: pack the node into one word, and write the mask bit at every
node. Source: 004 (toktrie), restated; the fourth is ours. These forms share no code with it; the tests compare all
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from tokdfa.vocabulary.byte_table import WalkCounters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokdfa.mask import Mask
    from tokdfa.vocabulary.byte_table import ByteRecognizer
    from tokdfa.vocabulary.trie import TokenTrie


class StackRecognizer(Protocol):
    """A recogniser with a stack of its own."""

    def try_push(self, byte: int) -> bool:
        """Read `byte` if the text may go on with it; False and no change otherwise."""

    def pop(self, count: int) -> None:
        """Take back the last `count` bytes."""


class StackOfStates:
    """A `StackRecognizer` over a `ByteRecognizer`."""

    def __init__(self, recognizer: ByteRecognizer, state: Any) -> None:
        self._recognizer, self._states = recognizer, [state]

    def try_push(self, byte: int) -> bool:
        following = self._recognizer.step(self._states[-1], byte)
        if following is None:
            return False
        self._states.append(following)
        return True

    def pop(self, count: int) -> None:
        if count:
            del self._states[-count:]

    @property
    def height(self) -> int:
        """How many bytes are on the stack."""
        return len(self._states) - 1


@dataclass
class TreeNode:
    """A node of the pointer trie: children by byte, and the tokens that end here."""

    children: dict[int, TreeNode]
    tokens: list[int]


def build_tree(tokens: Iterable[tuple[int, bytes]]) -> TreeNode:
    """The pointer trie of (id, bytes) pairs; its root stands for the empty prefix. Empty tokens are left out."""
    root = TreeNode({}, [])
    for token, spelled in tokens:
        node = root
        for byte in spelled:
            node = node.children.setdefault(byte, TreeNode({}, []))
        if spelled:
            node.tokens.append(token)
    return root


def walk_recursive(node: TreeNode, recognizer: StackRecognizer) -> set[int]:
    """Form 1. The tokens at and below `node` whose bytes `recognizer` can read from where it stands."""
    allowed = set(node.tokens)
    for byte in sorted(node.children):
        if recognizer.try_push(byte):
            allowed |= walk_recursive(node.children[byte], recognizer)
            recognizer.pop(1)
    return allowed


class FlatNode(NamedTuple):
    """A node in depth-first order. `parents_to_pop`: levels up to the parent of what follows its subtree."""

    byte: int
    tokens: tuple[int, ...]
    subtree_size: int
    parents_to_pop: int


def flatten(root: TreeNode) -> list[FlatNode]:
    """The tree below `root` in depth-first order, siblings in byte order; the root itself is entry 0 (byte -1)."""
    flat: list[FlatNode] = []

    def add(byte: int, node: TreeNode, parents_to_pop: int) -> None:
        here = len(flat)
        flat.append(FlatNode(byte, tuple(node.tokens), 0, 0))
        children = sorted(node.children.items())
        for position, (child_byte, child) in enumerate(children):
            # after the last child's subtree, the walk also leaves this node
            last = position == len(children) - 1
            add(child_byte, child, parents_to_pop + 1 if last else 1)
        flat[here] = FlatNode(byte, tuple(node.tokens), len(flat) - here, parents_to_pop)

    add(-1, root, 0)
    return flat


def walk_array(nodes: list[FlatNode], recognizer: StackRecognizer, position: int = 0) -> set[int]:
    """Form 2. Like `walk_recursive`, over `flatten`'s list, at and below entry `position`."""
    end = position + nodes[position].subtree_size
    allowed = set(nodes[position].tokens)
    child = position + 1
    while child < end:
        if recognizer.try_push(nodes[child].byte):
            allowed |= walk_array(nodes, recognizer, child)
            recognizer.pop(1)
        child += nodes[child].subtree_size
    return allowed


def walk_flat(nodes: list[FlatNode], recognizer: StackRecognizer) -> set[int]:
    """Form 3. One loop: push and go to the next entry, or skip the subtree; pop as many levels as the node says."""
    allowed = set(nodes[0].tokens)
    position = 1
    while position < len(nodes):
        node = nodes[position]
        if recognizer.try_push(node.byte):
            allowed.update(node.tokens)
            if node.subtree_size == 1:
                recognizer.pop(node.parents_to_pop)
            position += 1
        else:
            recognizer.pop(node.parents_to_pop - 1)
            position += node.subtree_size
    return allowed


def walk_by_depth(trie: TokenTrie, recognizer: ByteRecognizer, state: Any, mask: Mask) -> WalkCounters:
    """Form 4: OR the tokens that are allowed from `state` into `mask` (int32), one `step` for each visited node."""
    stack: list[Any] = [None] * (trie.depth_limit + 1)
    stack[0] = state
    unsigned = mask.view(np.uint32)
    position = visited = skipped = 0
    while position < trie.node_count:
        visited += 1
        depth = trie.depth(position)
        following = recognizer.step(stack[depth], trie.byte(position))
        if following is None:
            skipped += trie.next(position) - position - 1
            position = trie.next(position)
            continue
        stack[depth + 1] = following
        token = trie.token(position)
        if token >= 0:
            unsigned[token >> 5] |= np.uint32(1 << (token & 31))
        position += 1
    return WalkCounters(visited, skipped, 0)
