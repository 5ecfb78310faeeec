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

If the state is that of all items of a row, then a token that dies before the text has been complete is refused. The
rest of a partition with the bit ALONE is without these: in a JSON string it is the tokens with a closing quote. With
the bit EXITS, too, these are not in the rest either, but in a trie of what follows the quote (`tokdfa.pushdown.exits`).

A partition with the bit OWN is one of only those tokens that begin with a byte that the state reads. It serves states
that read few bytes, but over and over: blanks, digits. The other tokens are walked in the vocabulary's own trie.

A partition is shared by all states that are alike, so nothing may count for it but the strings that the state reads, up
to the length of the longest token: no flag that says more of a state, and nothing that other states bring about.

Layout. ``nodes``: uint64, packed as in `tokdfa.vocabulary.trie` with ``next`` and depth counted from the beginning of
its own trie, the vocabulary's trie first and then those of rests. ``part_*``: for each partition where its things are:
``part_dense`` the row of ``dense`` (uint32 words) or -1, ``part_ids`` begin and end of its tokens in ``ids`` otherwise,
``part_nodes`` where its rest begins in ``nodes``, where that ends and its exits begin, and where those end;
``part_groups`` its first group of exits and the one after its last. The tries' branches are in
`tokdfa.pushdown.branches`.

Source: 000's slices with what is contained in a lexeme; XGrammar's split of the vocabulary by context-independence.
Here it is exact, and no split is chosen in advance. Cost: one walk of the automaton over the place;
with ALONE and OWN only of what the state reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa.budget import hold, spend
from tokdfa.core.key_map import enter_key, is_crowded, longer_map, look_up, new_map
from tokdfa.jit import kernel
from tokdfa.pushdown.arrays import zeros_by_page
from tokdfa.pushdown.branches import Branches
from tokdfa.pushdown.exits import E_NODES, E_TOKENS, ExitScratch, begin_exits, merge_exit, write_exits_kernel
from tokdfa.pushdown.rows import ACCEPTS, ENDS
from tokdfa.vocabulary.trie import DEPTH_BITS, DEPTH_SHIFT, MAX_NODES, NEXT_SHIFT, TOKEN_SHIFT
from tokdfa.vocabulary.walk import UNKNOWN

if TYPE_CHECKING:
    from tokdfa.vocabulary.trie import TokenTrie

#: Partitions of more tokens inside than this are kept as words, others as a list.
DENSE = 1_024
#: States whose rows one walk finds lacking at most, counted as often as it meets them.
MAX_LACKING = 4_096
#: Added to a state: its strict partition; one for an item that is alone in its row; one of the tokens that begin with a
#: byte that it reads; one (ALONE, too) with exits. What these are added to.
STRICT, ALONE, OWN, EXITS = 1 << 21, 1 << 22, 1 << 23, 1 << 24
STATE_PART = STRICT - 1
#: Key of a partition: its place, and the bits of its state.
KEY_SHIFT = 25
#: The rests may take so many nodes beside the vocabulary's, as many again for each USUAL_NODES of these, and so many
#: partitions may be kept as words; then all are dropped and made anew.
MAX_REST_NODES, MAX_DENSE = 6_000_000, 4_000
USUAL_NODES = 500_000


#: What a node counts as that a partition is made over, in ns.
NODE_WORK = 4


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
        self._exits = ExitScratch(len(trie.nodes), trie.depth_limit)
        self._clear()
        #: Partitions made, those dropped included; how often all were dropped.
        self.made = self.drops = 0

    def _clear(self) -> None:
        self.count = self.key_count = self.dense_count = self.id_count = self.group_count = 0
        self.node_count = len(self.trie.nodes)
        self.part_keys, self.part_slots = new_map(128, -1)
        self.part_dense: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self.part_ids: npt.NDArray[np.int32] = np.zeros((64, 2), dtype=np.int32)
        self.part_nodes: npt.NDArray[np.int32] = np.zeros((64, 3), dtype=np.int32)
        self.part_groups: npt.NDArray[np.int32] = np.zeros((64, 2), dtype=np.int32)
        self.exit_begin: npt.NDArray[np.int32] = np.zeros(256, dtype=np.int32)
        self.exit_tokens: npt.NDArray[np.int32] = np.zeros(1024, dtype=np.int32)
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

    def rest_size(self, part: int) -> int:
        """How many nodes the rest of a partition has."""
        return int(self.part_nodes[part, 1] - self.part_nodes[part, 0])

    def share(self, state: int, part: int) -> None:
        """Have a partition of the whole trie serve another state, too."""
        self._enter(state, part)

    @property
    def nbytes(self) -> int:
        """Memory of the arrays in bytes."""
        kept = (
            self.part_keys, self.part_slots, self.part_dense, self.part_ids, self.part_nodes, self.part_groups,
            self.ids, self.exit_begin, self.exit_tokens,
        )  # fmt: skip
        reserved = 4 * self.mask_words * self.dense_count + 8 * self.node_count + self.branches.nbytes
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
        self, place: int, state: int, transitions: npt.NDArray[np.int32], flags: npt.NDArray[np.uint8], within: int = -1
    ) -> list[int]:
        """Make the partition of a place by a state; or say which states' rows in `transitions` are lacking.

        `within`: a partition of the whole trie, all of whose tokens are inside; then only its rest is walked.
        """
        begin, end = self.extent(place) if within < 0 else self.part_nodes[within, :2].tolist()
        size = end - begin
        spend(NODE_WORK * size)
        trie_nodes = len(self.trie.nodes)
        if self.node_count + size > trie_nodes + most_rest_nodes(trie_nodes) or self.dense_count >= MAX_DENSE:
            self._clear()
            self.drops += 1
            if within >= 0 or place > len(self.trie.nodes):  # it lay in a rest that is gone; whoever asked begins again
                return []
        inside, depth = np.empty(DENSE, dtype=np.int32), self.trie.depth_limit + 2
        stack, above, numbers = np.zeros((3, depth), dtype=np.int32)
        ended = np.zeros(depth, dtype=np.bool_)
        counts = np.zeros(2, dtype=np.int64)
        lacking = np.zeros(MAX_LACKING, dtype=np.int32)
        words, rest = self.dense[self.dense_count], self.nodes[self.node_count :]
        origin, exits = self.base_of(place - 1) if place else 0, self._exits
        words[:] = 0
        if within >= 0:
            origin, counts[0] = begin, DENSE + 1
            words[:] = self.dense[self.part_dense[within]]
        count = _divide_kernel(
            self.nodes, origin, begin, end, state, transitions, flags, self.trie.size, words, inside, rest, stack,
            ended, above, numbers, counts, lacking, exits.links, exits.tokens, exits.counts, exits.way,
        )  # fmt: skip
        if count:
            return np.unique(lacking[:count]).tolist()
        self._keep(place, state, inside[: counts[0]], int(counts[0]), int(counts[1]))
        return []

    def has(self, place: int, state: int) -> bool:
        """Whether the partition of a place by a state is made."""
        return bool(look_up(place << KEY_SHIFT | state, self.part_keys, self.part_slots) >= 0)

    def dense_of(self, state: int) -> tuple[int, npt.NDArray[np.uint32] | None]:
        """(number, words of what is inside) of the partition of the whole trie by a state; None if they are a list."""
        part = int(look_up(state, self.part_keys, self.part_slots))
        dense = int(self.part_dense[part])
        return part, self.dense[dense] if dense >= 0 else None

    def adopt(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over the checked arrays of a file (`tokdfa.pushdown.store`); no partition may have been made."""
        self.count, self.dense_count, self.id_count = (
            len(arrays["part_dense"]),
            len(arrays["dense"]),
            len(arrays["ids"]),
        )
        room = 1 << max(6, self.count.bit_length())
        self.part_keys, self.part_slots = new_map(2 * room, -1)
        for key, number in zip(arrays["keys"].tolist(), arrays["numbers"].tolist(), strict=True):
            self._enter(key, number)
        self.part_dense = _padded(arrays["part_dense"], room)
        self.part_ids, self.part_nodes = _padded(arrays["part_ids"], room), _padded(arrays["part_nodes"], room)
        self.part_groups = _padded(arrays["part_groups"], room)
        self.group_count = len(arrays["exit_begin"]) - 1
        self.exit_begin = _padded(arrays["exit_begin"], self.group_count + 256)
        self.exit_tokens = _padded(arrays["exit_tokens"], len(arrays["exit_tokens"]) + 1024)
        self.dense[: self.dense_count] = arrays["dense"]
        self.ids = _padded(arrays["ids"], self.id_count + 4096)
        self.node_count = len(self.trie.nodes) + len(arrays["rests"])
        self.nodes[len(self.trie.nodes) : self.node_count] = arrays["rests"]
        for begin, middle, end in arrays["part_nodes"].tolist():
            self.branches.add(self.nodes, begin, middle)
            self.branches.add(self.nodes, middle, end)

    def _keep(self, place: int, state: int, tokens: npt.NDArray[np.int32], inside: int, rest: int) -> None:
        """Enter the partition whose mask and rest stand where the next ones begin; `inside`, `rest`: their sizes.

        `tokens`: those inside, int32, all of them if they are not more than DENSE.
        """
        self._make_room()
        hold(8 * rest + (4 * self.mask_words if inside > DENSE else 4 * inside))
        number = self.count
        if inside > DENSE:
            self.part_dense[number] = self.dense_count
            self.part_ids[number] = 0
            self.dense_count += 1
        else:
            self.part_dense[number] = -1
            self.part_ids[number] = self.id_count, self.id_count + inside
            self.ids[self.id_count : self.id_count + inside] = tokens
            self.id_count += inside
        begin, middle = self.node_count, self.node_count + rest
        groups, end = self._keep_exits(middle) if state & EXITS else (0, middle)
        self.part_nodes[number] = begin, middle, end
        self.part_groups[number] = self.group_count, self.group_count + groups
        self.branches.add(self.nodes, begin, middle)
        self.branches.add(self.nodes, middle, end)
        self.node_count, self.group_count = end, self.group_count + groups
        self.count += 1
        self.made += 1
        self._enter(place << KEY_SHIFT | state, number)

    def _enter(self, key: int, number: int) -> None:
        if is_crowded(self.key_count, self.part_keys):
            self.part_keys, self.part_slots = longer_map(self.part_keys, self.part_slots, -1)
        enter_key(key, number, self.part_keys, self.part_slots)
        self.key_count += 1

    def _keep_exits(self, begin: int) -> tuple[int, int]:
        """(groups, where its nodes end): write the trie of exits that was merged last, from node `begin` on."""
        exits, used = self._exits, int(self.exit_begin[self.group_count])
        merged, tokens = (int(exits.counts[which]) for which in (E_NODES, E_TOKENS))
        if merged == 1 and not tokens:
            return 0, begin
        if self.group_count + merged >= len(self.exit_begin):
            self.exit_begin = _padded(self.exit_begin, 2 * len(self.exit_begin) + merged)
        if used + tokens > len(self.exit_tokens):
            self.exit_tokens = _padded(self.exit_tokens, 2 * len(self.exit_tokens) + tokens)
        groups = write_exits_kernel(
            exits.links, exits.tokens, exits.way, self.trie.size, self.nodes[begin:], self.group_count, self.exit_begin,
            self.exit_tokens,
        )  # fmt: skip
        return int(groups), begin + merged - 1

    def _make_room(self) -> None:
        if self.id_count + DENSE > len(self.ids):
            self.ids = np.concatenate([self.ids, np.zeros(len(self.ids) + DENSE, dtype=np.int32)])
        if self.count == len(self.part_dense):
            room = 2 * self.count
            columns = ("part_dense", "part_ids", "part_nodes", "part_groups")  # of one table
            vars(self).update({name: _padded(getattr(self, name), room) for name in columns})


def _padded(array: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    """`array` and zeros, `room` rows in all."""
    return np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), dtype=array.dtype)])


@kernel
def find_partition(place, state, pool):  # type: ignore[no-untyped-def]
    """The number of a partition, or -1."""
    return np.int64(look_up(np.int64(place) << KEY_SHIFT | np.int64(state), pool.part_keys, pool.part_slots))


@kernel
def _divide_kernel(  # type: ignore[no-untyped-def]
    nodes, origin, begin, end, state, transitions, flags, spare, words, inside, rest, stack, ended, above, numbers,
    counts, lacking, links, tokens, exit_counts, way,
):  # fmt: skip
    """How many states' rows are lacking. `counts`: how many tokens stay inside, and how many nodes the rest has.

    The tokens inside are added to the mask `words`, and the first of them to `inside`, after those that `counts` says
    there are. `origin`: where the trie begins in which the nodes from `begin` to `end` are.

    Where a row is lacking its state is put into `lacking` (several times, perhaps), and the walk goes on elsewhere: so
    few walks find all rows that are needed. If any is, what the walk has found is of no use.

    `rest` is the trie of the others: a node is written when a token below it (or its own) is not inside. By depth:
    `above`, the node on the way; `numbers`, its number in `rest`, for the first `written` of them; `ended`, whether the
    text has been complete on the way. `links` to `way`: of `ExitScratch`; with EXITS, what follows the ends of texts
    that cannot go on is merged there, and is not in `rest`.
    """
    low_byte, depth_mask = np.uint64(0xFF), np.uint64((1 << DEPTH_BITS) - 1)
    kept, staying = np.int64(0), np.int64(counts[0])
    strict, alone, own, exits = state & STRICT != 0, state & ALONE != 0, state & OWN != 0, state & EXITS != 0
    begin_exits(links, exit_counts)
    stack[0], ended[0] = state & STATE_PART, False
    counts[1] = 0
    if begin >= end:
        return np.int64(0)
    missing = np.int64(0)
    base = np.int64((nodes[begin] >> np.uint64(DEPTH_SHIFT)) & depth_mask)
    written = np.int64(0)
    here = np.int64(begin)
    while here < end:
        node = nodes[here]
        depth = np.int64((node >> np.uint64(DEPTH_SHIFT)) & depth_mask) - base
        while written > depth:
            written -= 1
            rest[numbers[written]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
        before = np.int64(stack[depth])
        target = np.int64(-1)
        has_ended = ended[depth]
        if before >= 0:
            target = np.int64(transitions[before * 256 + np.int64(node & low_byte)])
            if target == UNKNOWN:
                if missing == 0 or lacking[missing - 1] != before:
                    if missing == len(lacking):
                        return missing
                    lacking[missing] = before
                    missing += 1
                target = np.int64(-1)
            if exits and target >= 0 and not has_ended and flags[target] & ACCEPTS != 0:
                following = origin + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
                if transitions[target * 256] == UNKNOWN:  # whether it can go on is not known yet
                    if missing == len(lacking):
                        return missing
                    lacking[missing] = target
                    missing += 1
                    here = following
                    continue
                if flags[target] & ENDS:
                    merge_exit(nodes, here, following, spare, links, tokens, exit_counts, way)
                    here = following
                    continue
            has_ended = has_ended or (target >= 0 and flags[target] & ACCEPTS != 0)
            if strict and has_ended:
                target = np.int64(-1)
        if target < 0 and ((own and depth == 0) or (alone and not has_ended)):
            here = origin + np.int64((node >> np.uint64(NEXT_SHIFT)) & np.uint64(MAX_NODES))
            continue
        above[depth], stack[depth + 1], ended[depth + 1] = here, target, has_ended
        here += 1
        token = np.int64(node >> np.uint64(TOKEN_SHIFT))
        if token == spare:
            continue
        if target >= 0:
            words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            if staying < len(inside):
                inside[staying] = token
            staying += 1
            continue
        while written <= depth:
            label = np.uint64(token) if written == depth else np.uint64(spare)
            letter = nodes[above[written]] & low_byte
            rest[kept] = letter | np.uint64(written) << np.uint64(DEPTH_SHIFT) | label << np.uint64(TOKEN_SHIFT)
            numbers[written] = kept
            written += 1
            kept += 1
    while written > 0:
        written -= 1
        rest[numbers[written]] |= np.uint64(kept) << np.uint64(NEXT_SHIFT)
    counts[0], counts[1] = staying, kept
    return missing
