"""Partitions of the vocabulary by a state of an automaton: what stays inside its text, and a trie of the rest.

Whatever else may be read in a row: if one of its texts reads a token to its end and stays alive, the token is allowed.
These tokens depend on the text's state alone, so they are found once for all rows and constraints of a vocabulary. The
mask of a row is what its wide states allow inside, and a walk over the trie of the remaining tokens from that row.
In a JSON string 123,000 of Llama 3's 128,000 tokens are inside, and the trie of the rest has a few thousand nodes.

The same is done for subtrees: where the walk comes to a node with many descendants in a row that has a wide state
(after the quote that opens a string, after a blank), it takes the partition of what is below that node. A partition is
therefore known by a *place* of the trie (0: all of it; else a node's number and one) and a state.

A *strict* partition counts a token as inside only if the text is not complete after it: for items that do not end
where the text does (`tokdfa.pushdown.names`, `tokdfa.pushdown.counted`). It is known by the state with the bit STRICT.

If the state is that of the only item of a row, then a token that dies before the text has been complete is refused. The
rest of a partition with the bit ALONE is without these: in a JSON string it is the tokens with a closing quote.

Layout. ``nodes``: uint64, packed as in `tokdfa.vocabulary.trie` with ``next`` and depth counted from the beginning of
its own trie, the vocabulary's trie first and then those of rests. ``part_*``: for each partition where its things are:
``part_dense`` the row of ``dense`` (uint32 words) or -1, ``part_ids`` begin and end of its tokens in ``ids`` otherwise,
``part_nodes`` begin and end of its rest in ``nodes``.

Source: 000's slices with what is contained in a lexeme; XGrammar's split of the vocabulary by context-independence.
Here it is exact, and no split is chosen in advance. Cost: one walk of the automaton over the place, 1 to 3 ns a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.jit import kernel
from tokdfa.pushdown.rows import ACCEPTS
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.vocabulary.trie import TokenTrie

#: Partitions of more tokens inside than this are kept as words, others as a list.
DENSE = 1_024
#: States whose rows one walk finds lacking at most, counted as often as it meets them.
MAX_LACKING = 4_096
#: Added to a state: its strict partition; one for an item that is alone in its row. What both are added to.
STRICT, ALONE = 1 << 21, 1 << 22
STATE_PART = STRICT - 1
#: Key of a partition: its place, and the bits of its state.
KEY_SHIFT = 23
#: The rests may take so many nodes beside the vocabulary's, and so many partitions may be kept as words; then all are
#: dropped and made anew.
MAX_REST_NODES, MAX_DENSE = 6_000_000, 4_000


class TrieParts(NamedTuple):
    """What is needed of a token trie, without its vocabulary, which would keep itself alive through its pool."""

    nodes: npt.NDArray[np.uint64]
    size: int
    depth_limit: int


class Partitions:
    """The partitions made so far, in arrays that kernels read. Not thread-safe: the pool's lock is held."""

    def __init__(self, trie: TokenTrie | TrieParts) -> None:
        self.trie = trie
        self.words = trie.size // 32 + 1
        self._clear()
        #: Partitions made, those dropped included; how often all were dropped.
        self.made = self.drops = 0

    def _clear(self) -> None:
        self.count = self.dense_count = self.id_count = 0
        self.node_count = len(self.trie.nodes)
        self.part_keys: npt.NDArray[np.int64] = np.full(256, -1, dtype=np.int64)
        self.part_slots: npt.NDArray[np.int32] = np.full(256, -1, dtype=np.int32)
        self.part_dense: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self.part_ids: npt.NDArray[np.int32] = np.zeros((64, 2), dtype=np.int32)
        self.part_nodes: npt.NDArray[np.int32] = np.zeros((64, 2), dtype=np.int32)
        self.dense: npt.NDArray[np.uint32] = np.zeros((MAX_DENSE + 1, self.words), dtype=np.uint32)
        self.ids: npt.NDArray[np.int32] = np.zeros(4096, dtype=np.int32)
        # reserved at once, here and for `dense`: pages are taken when they are used, and nothing is copied
        self.nodes: npt.NDArray[np.uint64] = np.zeros(2 * self.node_count + MAX_REST_NODES, dtype=np.uint64)
        self.nodes[: self.node_count] = self.trie.nodes

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        kept = (self.part_keys, self.part_slots, self.part_dense, self.part_ids, self.part_nodes, self.ids)
        reserved = 4 * self.words * self.dense_count + 8 * self.node_count
        return sum(array.nbytes for array in kept) + reserved

    def extent(self, place: int) -> tuple[int, int]:
        """The nodes below a place of the trie, as a range of ``nodes``."""
        if place == 0:
            return 0, len(self.trie.nodes)
        node = place - 1
        base = self.base_of(node)
        return node + 1, base + (int(self.nodes[node]) >> NEXT_SHIFT & MAX_NODES)

    def base_of(self, node: int) -> int:
        """Where the trie that a node belongs to begins."""
        if node < len(self.trie.nodes):
            return 0
        begins = self.part_nodes[: self.count, 0]
        return int(begins[np.searchsorted(begins, node, side="right") - 1])

    def divide(
        self, place: int, state: int, transitions: npt.NDArray[np.int32], flags: npt.NDArray[np.uint8]
    ) -> list[int]:
        """Make the partition of a place by a state; or say which states' rows in `transitions` are lacking."""
        begin, end = self.extent(place)
        size = end - begin
        if self.node_count + size > len(self.trie.nodes) + MAX_REST_NODES or self.dense_count >= MAX_DENSE:
            self._clear()
            self.drops += 1
            if place > len(self.trie.nodes):  # it lay in a rest that is gone; whoever asked begins again
                return []
        inside = np.empty(size, dtype=np.int32)
        rest = np.empty(size, dtype=np.uint64)
        stack = np.zeros(self.trie.depth_limit + 2, dtype=np.int32)
        ended = np.zeros(self.trie.depth_limit + 2, dtype=np.bool_)
        path = np.zeros((self.trie.depth_limit + 2, 2), dtype=np.int64)
        counts = np.zeros(2, dtype=np.int64)
        lacking = np.zeros(MAX_LACKING, dtype=np.int32)
        count = _divide_kernel(
            self.nodes, begin, end, state, transitions, flags, self.trie.size, inside, rest, stack, ended, path,
            counts, lacking,
        )  # fmt: skip
        if count:
            return np.unique(lacking[:count]).tolist()
        self._keep(place, state, inside[: counts[0]], rest[: counts[1]])
        return []

    def has(self, place: int, state: int) -> bool:
        """Whether the partition of a place by a state is made."""
        return bool(_look_up_kernel(self.part_keys, self.part_slots, place << KEY_SHIFT | state) >= 0)

    def adopt(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over the checked arrays of a file (`tokdfa.pushdown.store`); no partition may have been made."""
        self.count, self.dense_count, self.id_count = (
            len(arrays["part_dense"]),
            len(arrays["dense"]),
            len(arrays["ids"]),
        )
        room = 1 << max(6, self.count.bit_length())
        self.part_keys = np.full(4 * room, -1, dtype=np.int64)
        self.part_slots = np.full(4 * room, -1, dtype=np.int32)
        for key, number in zip(arrays["keys"].tolist(), arrays["numbers"].tolist(), strict=True):
            _enter_kernel(self.part_keys, self.part_slots, key, number)
        self.part_dense = _padded(arrays["part_dense"], room)
        self.part_ids, self.part_nodes = _padded(arrays["part_ids"], room), _padded(arrays["part_nodes"], room)
        self.dense[: self.dense_count] = arrays["dense"]
        self.ids = _padded(arrays["ids"], self.id_count + 4096)
        self.node_count = len(self.trie.nodes) + len(arrays["rests"])
        self.nodes[len(self.trie.nodes) : self.node_count] = arrays["rests"]

    def _keep(self, place: int, state: int, tokens: npt.NDArray[np.int32], rest: npt.NDArray[np.uint64]) -> None:
        self._make_room()
        number = self.count
        if len(tokens) > DENSE:
            _set_tokens_kernel(tokens, self.dense[self.dense_count])
            self.part_dense[number] = self.dense_count
            self.part_ids[number] = 0
            self.dense_count += 1
        else:
            self.part_dense[number] = -1
            self.part_ids[number] = self.id_count, self.id_count + len(tokens)
            self.ids[self.id_count : self.id_count + len(tokens)] = tokens
            self.id_count += len(tokens)
        self.part_nodes[number] = self.node_count, self.node_count + len(rest)
        self.nodes[self.node_count : self.node_count + len(rest)] = rest
        self.node_count += len(rest)
        self.count += 1
        self.made += 1
        _enter_kernel(self.part_keys, self.part_slots, place << KEY_SHIFT | state, number)

    def _make_room(self) -> None:
        if self.id_count + DENSE > len(self.ids):
            self.ids = np.concatenate([self.ids, np.zeros(len(self.ids) + DENSE, dtype=np.int32)])
        if self.count == len(self.part_dense):
            self.part_dense = np.concatenate([self.part_dense, np.zeros_like(self.part_dense)])
            self.part_ids = np.concatenate([self.part_ids, np.zeros_like(self.part_ids)])
            self.part_nodes = np.concatenate([self.part_nodes, np.zeros_like(self.part_nodes)])
            keys, slots = self.part_keys, self.part_slots
            self.part_keys = np.full(2 * len(keys), -1, dtype=np.int64)
            self.part_slots = np.full(2 * len(slots), -1, dtype=np.int32)
            for key, number in zip(keys[keys >= 0].tolist(), slots[keys >= 0].tolist(), strict=True):
                _enter_kernel(self.part_keys, self.part_slots, key, number)


def _padded(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """`array` and zeros, `room` rows in all."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), dtype=array.dtype)])


@kernel
def _hash_key(key):  # type: ignore[no-untyped-def]
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24))


@kernel
def _enter_kernel(keys, slots, key, number):  # type: ignore[no-untyped-def]
    """Enter a partition into a hash table that has room."""
    mask = len(keys) - 1
    slot = _hash_key(key) & mask
    while keys[slot] >= 0:
        slot = (slot + 1) & mask
    keys[slot], slots[slot] = key, number


@kernel
def _look_up_kernel(keys, slots, key):  # type: ignore[no-untyped-def]
    """The number of a partition, or -1."""
    mask = len(keys) - 1
    slot = _hash_key(key) & mask
    while keys[slot] >= 0:
        if keys[slot] == key:
            return np.int64(slots[slot])
        slot = (slot + 1) & mask
    return np.int64(-1)


@kernel
def find_partition(place, state, pool):  # type: ignore[no-untyped-def]
    """The number of a partition, or -1."""
    return _look_up_kernel(pool.part_keys, pool.part_slots, np.int64(place) << KEY_SHIFT | np.int64(state))


@kernel
def _set_tokens_kernel(tokens, words):  # type: ignore[no-untyped-def]
    """Make `words` the mask that holds exactly `tokens`."""
    words[:] = 0
    for token in tokens:
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def _divide_kernel(  # type: ignore[no-untyped-def]
    nodes, begin, end, state, transitions, flags, spare, inside, rest, stack, ended, path, counts, lacking
):
    """How many states' rows are lacking. `inside` gets the tokens that stay inside; `counts`: how many, and nodes.

    Where a row is lacking its state is put into `lacking` (several times, perhaps), and the walk goes on elsewhere: so
    few walks find all rows that are needed. If any is, what the walk has found is of no use.

    `rest` is the trie of the others: a node is written when a token below it (or its own) is not inside. `path`: by
    depth, the node on the way and its number in `rest`, -1 if it is not written yet; `ended`: by depth, whether the
    text has been complete on the way.
    """
    low_byte, depth_mask = np.uint64(0xFF), np.uint64((1 << DEPTH_BITS) - 1)
    kept, staying = np.int64(0), np.int64(0)
    strict, alone = state & STRICT != 0, state & ALONE != 0
    stack[0] = state & STATE_PART
    if begin >= end:
        return np.int64(0)
    missing = np.int64(0)
    base = np.int64((nodes[begin] >> np.uint64(DEPTH_SHIFT)) & depth_mask)
    open_depth = np.int64(0)  # path[:open_depth] are the nodes above
    for here in range(begin, end):
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base
        for level in range(depth, open_depth):
            if path[level, 1] >= 0:
                rest[path[level, 1]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
        open_depth = depth + 1
        path[depth, 0], path[depth, 1] = here, -1
        before = np.int64(stack[depth])
        target = np.int64(-1)
        if before >= 0:
            target = np.int64(transitions[before * 256 + np.int64(node & low_byte)])
            if target == UNKNOWN:
                if missing == 0 or lacking[missing - 1] != before:
                    if missing == len(lacking):
                        return missing
                    lacking[missing] = before
                    missing += 1
                target = np.int64(-1)
            ended[depth + 1] = ended[depth] or (target >= 0 and flags[target] & ACCEPTS != 0)
            if strict and ended[depth + 1]:
                target = np.int64(-1)
        else:
            ended[depth + 1] = ended[depth]
        stack[depth + 1] = target
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if token == spare:
            continue
        if target >= 0:
            inside[staying] = token
            staying += 1
            continue
        if alone and not ended[depth + 1]:
            continue
        for level in range(depth + 1):
            if path[level, 1] < 0:
                source = nodes[path[level, 0]]
                label = np.uint64(token) if level == depth else np.uint64(spare)
                rest[kept] = (
                    (source & low_byte) | np.uint64(level) << np.uint64(DEPTH_SHIFT) | label << np.uint64(TOKEN_SHIFT)
                )
                path[level, 1] = kept
                kept += 1
    for level in range(open_depth):
        if path[level, 1] >= 0:
            rest[path[level, 1]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
    counts[0], counts[1] = staying, kept
    return missing


def _warm_up() -> None:
    """Compile what small vocabularies never need."""
    _set_tokens_kernel(np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.uint32))
