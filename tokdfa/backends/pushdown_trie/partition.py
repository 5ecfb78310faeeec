"""Partitions: a division (`tokdfa.vocabulary.division`) of the tokens by a terminal's state, with a trie of the rest.

Whatever else may be read in a row: if one of its terminals reads a token to its end and stays alive, the token is
allowed. These tokens depend on the terminal's state alone, so they are found once for all rows and constraints of a
vocabulary. The mask of a row is what its wide states allow inside, and a walk over the trie of the remaining tokens
from that row. In a JSON string 123,000 of Llama 3's 128,000 tokens are inside, and the trie of the rest has a few
thousand nodes.

The same is done for subtrees: where the walk comes to a node with many descendants in a row that has a wide state
(after the quote that opens a string, after a blank), it takes the partition of what is below that node. A partition is
therefore known by the node that it is *below* (0: the whole trie; else the node's number and one) and a state.

A *strict* partition counts a token as inside only if the terminal is not complete after it: for items that do not end
where the terminal does (`tokdfa.backends.pushdown_trie.names`, `tokdfa.backends.pushdown_trie.items`). It is known by
the state with the bit STRICT.

If the state is that of all items of a row, then a token that dies before the terminal has been complete is refused. The
rest of a partition with the bit ALONE is without these: in a JSON string it is the tokens with a closing quote. If the
terminal has one end on the way to each of them, and cannot go on there, the row behind that end is the same for all. So
their rest is *joined*: the trie of what stands behind the end, which is walked from that row.

A partition with the bit OWN is one of only those tokens that begin with a byte that the state reads. It serves states
that read few bytes, but over and over: blanks, digits. The other tokens are walked in the vocabulary's own trie.

A partition is shared by the states of a partition class, so nothing may count for it but the strings that the state
reads, up to the length of the longest token: no flag that says more of a state, and nothing that other states bring
about.

Layout. ``nodes``: uint64, packed as in `tokdfa.vocabulary.trie` with ``next`` and depth counted from the beginning of
its own trie, the vocabulary's trie first and then those of rests. ``part_*``: for each partition where its things are:
``part_dense`` the row of ``dense`` (uint32 words) or -1, ``part_ids`` begin and end of its tokens in ``ids`` otherwise,
``part_nodes`` where its rest begins in ``nodes``, where that ends, and whether it is joined. The tries' branches are in
`tokdfa.backends.pushdown_trie.branches`.

Source: llguidance's slices (000) with what is contained in a lexeme; XGrammar's split of the vocabulary by
context-independence. Here it is exact, and no split is chosen in advance. Cost: one walk of the automaton over these
nodes; with ALONE and OWN only of what the state reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import ALONE, KEY_SHIFT, STRICT, longer, zeros_by_page
from tokdfa.backends.pushdown_trie.branches import Branches
from tokdfa.backends.pushdown_trie.divide import BEHIND, divide
from tokdfa.core.budget import hold
from tokdfa.core.key_map import enter_key, is_crowded, longer_map, look_up, new_map
from tokdfa.vocabulary.division import TAG, Division, cut_ranges_kernel, join_ranges_kernel
from tokdfa.vocabulary.mask_store import list_tokens_kernel
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.automaton_table import AutomatonTable
    from tokdfa.vocabulary.trie import TokenTrie

#: Partitions of more tokens inside than this are kept as words, others as a list.
DENSE = 1_024
#: The rests may take so many nodes beside the vocabulary's, as many again for each USUAL_NODES of these, and so many
#: partitions may be kept as words; then all are dropped and made anew.
MAX_REST_NODES, MAX_DENSE = 8_000_000, 4_000
USUAL_NODES = 500_000


class TrieParts(NamedTuple):
    """What is needed of a token trie, without its vocabulary, which would keep itself alive through its pool."""

    nodes: npt.NDArray[np.uint64]
    size: int
    depth_limit: int


def most_rest_nodes(trie_nodes: int) -> int:
    """How many nodes the rests may take beside those of a vocabulary's trie."""
    return MAX_REST_NODES * (1 + trie_nodes // USUAL_NODES)


class Partitions:
    """The partitions made so far, in arrays that kernels read. Not thread-safe: the pool's lock is held."""

    def __init__(self, trie: TokenTrie | TrieParts) -> None:
        self.trie = trie
        self.mask_words = trie.size // 32 + 1
        self._trie_branches = Branches()
        self._trie_branches.add(trie.nodes, 0, len(trie.nodes))
        self._clear()
        #: Partitions made, those dropped included; how often all were dropped.
        self.made = self.drops = 0

    def _clear(self) -> None:
        self.count = self.key_count = self.dense_count = self.id_count = 0
        self.node_count = len(self.trie.nodes)
        self.part_keys, self.part_slots = new_map(128, -1)
        self.part_dense: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self.part_ids: npt.NDArray[np.int32] = np.zeros((64, 2), dtype=np.int32)
        self.part_nodes: npt.NDArray[np.int32] = np.zeros((64, 3), dtype=np.int32)
        self.dense: npt.NDArray[np.uint32] = zeros_by_page((MAX_DENSE + 1) * self.mask_words, np.uint32).reshape(
            -1, self.mask_words
        )
        self.ids: npt.NDArray[np.int32] = np.zeros(4096, dtype=np.int32)
        # reserved at once, here and for `dense`: pages are taken when they are used, and nothing is copied
        self.nodes: npt.NDArray[np.uint64] = zeros_by_page(
            2 * self.node_count + most_rest_nodes(self.node_count), np.uint64
        )
        self.nodes[: self.node_count] = self.trie.nodes
        self.branches = self._trie_branches.copy()

    def touch(self, nodes: int, dense: int) -> None:
        """Write to the memory of so many nodes of rests and masks to come, as `StateTable.touch` does."""
        self.nodes[self.node_count : self.node_count + nodes] = 0
        self.dense[self.dense_count : self.dense_count + dense] = 0

    def rest_size(self, part: int) -> int:
        """How many nodes the rest of a partition has."""
        return int(self.part_nodes[part, 1] - self.part_nodes[part, 0])

    def share(self, below: int, state: int, part: int) -> None:
        """Have a partition below a node serve another state, too."""
        self._enter(below << KEY_SHIFT | state, part)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        kept = (
            self.part_keys, self.part_slots, self.part_dense, self.part_ids, self.part_nodes, self.ids,
        )  # fmt: skip
        reserved = 4 * self.mask_words * self.dense_count + 8 * self.node_count + self.branches.nbytes
        return sum(array.nbytes for array in kept) + reserved

    def extent(self, below: int) -> tuple[int, int]:
        """The nodes that a partition is of, as a range of ``nodes``."""
        if below == 0:
            return 0, len(self.trie.nodes)
        node = below - 1
        base = self.base_of(node)
        return node + 1, base + (int(self.nodes[node]) >> NEXT_SHIFT & MAX_NODES)

    def base_of(self, node: int) -> int:
        """Where the trie that a node belongs to begins."""
        if node < len(self.trie.nodes):
            return 0
        begins = self.part_nodes[: self.count, 0]
        return int(begins[np.searchsorted(begins, node, side="right") - 1])

    def divide(self, below: int, state: int, automata: AutomatonTable, within: int = -1) -> None:
        """Make the partition below a node by a state, and the rows of lazy automata that it needs.

        `within`: a partition of the same, all of whose tokens are inside; then only its rest is walked. Nothing
        is made if the node lay in a rest that is dropped; whoever asked begins again. Raises what making a row raises.
        """
        begin, end = self.extent(below) if within < 0 else self.part_nodes[within, :2].tolist()
        size = end - begin
        trie_nodes = len(self.trie.nodes)
        if self.node_count + size > trie_nodes + most_rest_nodes(trie_nodes) or self.dense_count >= MAX_DENSE:
            self._clear()
            self.drops += 1
            if within >= 0 or below > len(self.trie.nodes):
                return
        words, origin = self.dense[self.dense_count], self.base_of(below - 1) if below else 0
        if within >= 0:
            origin = begin
            words[:] = self.dense[self.part_dense[within]]
        else:
            words[:] = 0
        nodes, found = self.nodes[origin:], Division(words)
        divide(nodes, begin - origin, end - origin, self.trie.depth_limit, state, automata, found)
        found.finish(self.trie.size)
        path = np.empty((2, self.trie.depth_limit + 1), dtype=np.int64)
        left, room = found.ranges, self.nodes[self.node_count :]
        is_joined = bool(state & ALONE and not state & STRICT and (left[:, TAG] == BEHIND).all())
        if is_joined:
            rest = join_ranges_kernel(nodes, left, self.trie.size, room, path)
        else:
            rest = cut_ranges_kernel(nodes, begin - origin, left, self.trie.size, room, path)
        self._keep(below, state, words, int(rest), is_joined)

    def has(self, below: int, state: int) -> bool:
        """Whether the partition below a node by a state is made."""
        return bool(look_up(below << KEY_SHIFT | state, self.part_keys, self.part_slots) >= 0)

    def dense_of(self, below: int, state: int) -> tuple[int, npt.NDArray[np.uint32] | None]:
        """(number, words of what is inside) of the partition below a node by a state; None if they are a list."""
        part = int(look_up(below << KEY_SHIFT | state, self.part_keys, self.part_slots))
        dense = int(self.part_dense[part])
        return part, self.dense[dense] if dense >= 0 else None

    def _keep(self, below: int, state: int, words: npt.NDArray[np.uint32], rest: int, is_joined: bool) -> None:
        """Enter the partition whose mask, `words`, and rest, of so many nodes, stand where the next ones begin."""
        self._make_room()
        tokens = np.empty(DENSE, dtype=np.int32)
        inside, number = int(list_tokens_kernel(words.view(np.int32), tokens)), self.count
        hold(8 * rest + (4 * inside if inside >= 0 else words.nbytes))
        if inside < 0:
            self.part_dense[number] = self.dense_count
            self.part_ids[number] = 0
            self.dense_count += 1
        else:
            self.part_dense[number] = -1
            self.part_ids[number] = self.id_count, self.id_count + inside
            self.ids[self.id_count : self.id_count + inside] = tokens[:inside]
            self.id_count += inside
        begin, end = self.node_count, self.node_count + rest
        self.part_nodes[number] = begin, end, is_joined
        self.branches.add(self.nodes, begin, end)
        self.node_count = end
        self.count += 1
        self.made += 1
        self._enter(below << KEY_SHIFT | state, number)

    def _enter(self, key: int, number: int) -> None:
        if is_crowded(self.key_count, self.part_keys):
            self.part_keys, self.part_slots = longer_map(self.part_keys, self.part_slots, -1)
        enter_key(key, number, self.part_keys, self.part_slots)
        self.key_count += 1

    def _make_room(self) -> None:
        if self.id_count + DENSE > len(self.ids):
            self.ids = longer(self.ids, 2 * len(self.ids) + DENSE)
        if self.count == len(self.part_dense):
            room = 2 * self.count
            columns = ("part_dense", "part_ids", "part_nodes")  # of one table
            vars(self).update({name: longer(getattr(self, name), room) for name in columns})
