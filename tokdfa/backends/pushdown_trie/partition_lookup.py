"""What partitions of the vocabulary do for a row: which of them serve it, and what they allow at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.pushdown_trie.arrays import (
    ALONE,
    M_LONGEST,
    M_PLACE,
    M_STATE,
    NEEDS_PARTITION,
    OK,
    OWN,
    PLACE_SHIFT,
    STACK_BITS,
    STATE_BITS,
    STATE_MASK,
    STATE_PART,
    STRICT,
    find_partition,
    zeros_by_page,
)
from tokdfa.backends.pushdown_trie.closure import close_row
from tokdfa.backends.pushdown_trie.items import item_left, string_state, wide_state
from tokdfa.backends.pushdown_trie.rows import ACCEPTS, LOOPS, ROW_MIDDLE, ROW_WIDE, WIDE
from tokdfa.backends.pushdown_trie.steps import end_row
from tokdfa.core.jit import kernel
from tokdfa.program.program import COUNTED, FIRST, NAMES, NAMES_TABLE, OPERATION, TERMINAL
from tokdfa.vocabulary.byte_table import DEAD, UNKNOWN
from tokdfa.vocabulary.mask_store import NARROW, count_ones
from tokdfa.vocabulary.trie import MAX_NODES, NEXT_SHIFT

if TYPE_CHECKING:
    from tokdfa.backends.pushdown_trie.partition import TrieParts
    from tokdfa.vocabulary.trie import TokenTrie

#: `walk_meta`: nodes of the vocabulary's trie, its depth, V; the signature of the last mask, and how many partitions it
#: wants for those to come; PARTITION_WORK; of a string whose bound is near the characters left, or -1, and its state;
#: what `largest_subtree` finds.
W_NODES, W_DEPTH, W_SIZE, W_SIGNATURE, W_WANTED, W_PRICE, W_LEFT, W_STATE, W_BELOW, W_SHARE = range(10)
#: Column of `part_nodes`: whether the rest is joined.
PART_JOINED = 2
#: What `follow_guide` says where nothing reads a byte.
SKIPS = -2
#: For the number of tokens listed: with what may come it stays less than 0.
NOT_LISTED = -(1 << 40)
#: A rest of so many nodes is good enough not to make further partitions for the same row.
SMALL_REST = 30_000
#: What it takes to make a partition of a small subtree, in nodes of a walk; and as much again for each so many nodes.
PARTITION_WORK, SIZE_UNIT = 25_000, 10_000
#: So many partitions a mask may want.
MOST_WANTED = 1
#: The logarithm of the length of `walk_met`.
MET_BITS = 14
#: Links of a chain of fallbacks at most.
MAX_CHAIN = 100_000
#: So many subtrees a walk puts off at most, others it walks. There is room for one rest for each byte.
MOST_DEFERRED = 1_024


def largest_subtree(nodes: npt.NDArray[np.uint64]) -> tuple[int, int]:
    """(what stands for the subtree below the byte that most tokens begin with, how many nodes only it has below one).

    The second is that of the second largest, or half of its own.
    """
    sizes, here = [(0, -1), (0, -1)], 0
    while here < len(nodes):
        following = int(nodes[here]) >> NEXT_SHIFT & MAX_NODES
        sizes.append((following - here, here + 1))
        here = following
    (second, _), (first, below) = sorted(sizes)[-2:]
    return below, max(second, first // 2)


class WalkScratch:
    """What walks over one vocabulary write to, one at a time: under the lock of the vocabulary's pool."""

    def __init__(self, trie: TokenTrie | TrieParts, end_tokens: tuple[int, ...]) -> None:
        depths = trie.depth_limit + 3
        #: By depth: the row before the byte, -1 where none was made, and the byte.
        self.walk_rows: npt.NDArray[np.int32] = np.zeros(depths, dtype=np.int32)
        self.walk_path: npt.NDArray[np.uint8] = np.zeros(depths, dtype=np.uint8)
        #: int64, by depth: the state, with its kind, by which the walk goes; -1: by the row; LONE - a lone item.
        self.walk_guides: npt.NDArray[np.int64] = np.zeros(depths, dtype=np.int64)
        #: uint64, flat, depth x 4: the set of bytes that a lone item reads.
        self.walk_reads: npt.NDArray[np.uint64] = np.zeros(4 * depths, dtype=np.uint64)
        #: int32: what it is below, row and state passed of each subtree that is put off; ~partition: the rest of one.
        self.walk_deferred: npt.NDArray[np.int32] = np.zeros((MOST_DEFERRED, 3), dtype=np.int32)
        #: The branches that the walk is in: bytes not walked yet, and FRAME_BRANCH, FRAME_STOP, FRAME_END.
        self.frame_left: npt.NDArray[np.uint64] = np.zeros((depths, 4), dtype=np.uint64)
        self.frame_place: npt.NDArray[np.int64] = np.zeros((depths, 3), dtype=np.int64)
        #: uint32: by a hash of subtree and partition class, how many nodes were walked for want of the partition.
        self.walk_met: npt.NDArray[np.uint32] = np.zeros(1 << MET_BITS, dtype=np.uint32)
        #: int64: what it is below and the state, with its kind, of each partition that is wanted.
        self.walk_wanted: npt.NDArray[np.int64] = np.zeros((MOST_WANTED, 2), dtype=np.int64)
        #: int32: the tokens of the last mask, in any order, if it is narrow and was walked only.
        self.listed: npt.NDArray[np.int32] = np.zeros(NARROW, dtype=np.int32)
        #: int32: the rows of a chain of fallbacks (`tokdfa.backends.pushdown_trie.steps`).
        self.chain: npt.NDArray[np.int32] = zeros_by_page(MAX_CHAIN)
        self.end_tokens: npt.NDArray[np.int32] = np.array(end_tokens, dtype=np.int32)
        self.walk_meta: npt.NDArray[np.int64] = np.array(
            [len(trie.nodes), trie.depth_limit, trie.size, 0, 0, PARTITION_WORK, -1, 0, *largest_subtree(trie.nodes)]
        )
        #: Where a walk stopped for want of something, as `fill` writes and reads it.
        self.walk_at: npt.NDArray[np.int64] = np.zeros(13, dtype=np.int64)
        #: `walk_meta`, as Python's own ints.
        self.counts = self.walk_meta.data


@kernel
def mix(signature, number):  # type: ignore[no-untyped-def]
    """A signature with one more number in it."""
    return (signature ^ np.uint64(number)) * np.uint64(0x9E3779B97F4A7C15)


@kernel
def take_inside(part, first, words, pool):  # type: ignore[no-untyped-def]
    """Set the tokens of a partition that stay inside; `first`: nothing was set yet, not even the zeros."""
    dense = pool.part_dense[part]
    if dense >= 0:
        if first:
            for k in range(len(words)):
                words[k] = pool.dense[dense, k]
            return
        for k in range(len(words)):
            words[k] |= pool.dense[dense, k]
        return
    if first:
        words[:] = 0
    for k in range(pool.part_ids[part, 0], pool.part_ids[part, 1]):
        token = pool.ids[k]
        words[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@kernel
def is_alone(row, below, machine, pool):  # type: ignore[no-untyped-def]
    """Whether a closed row has one item, or several of terminals and names in the same state, and no terminal is
    complete.

    Names are in one state if as much of one table is spelled; which state of a terminal that is, one of them knows.
    With the longest match a terminal that dies may have had another end, which its row falls back on. Terminals beside
    names count as several `below` a node, where nobody walks what the names spell once more.
    """
    begin, end, state = machine.live_begin[row], machine.live_end[row], np.int64(-1)
    spelled, is_known, is_plain = np.int64(-1), False, False
    if machine.meta[M_LONGEST] or begin == end:
        return False
    for k in range(begin, end):
        item = machine.live_items[k]
        place, other = item >> PLACE_SHIFT, (item >> STACK_BITS) & STATE_MASK
        operation = machine.code[place, OPERATION]
        if operation == TERMINAL:
            if pool.flags[other] & ACCEPTS:
                return False
            is_plain = True
        elif end - begin == 1:
            return True
        elif operation == NAMES:
            table = np.int64(machine.arguments[machine.code[place, FIRST] + NAMES_TABLE])
            if spelled >= 0 and spelled != (table << STATE_BITS | other):
                return False
            spelled = table << STATE_BITS | other
            other = string_state(item, machine, pool)
            if other < 0:
                continue
            is_known = True
        else:
            return False
        if state >= 0 and other != state:
            return False
        state = other
    if below != 0 and is_plain and spelled >= 0:
        return False
    return state >= 0 and (is_known or spelled < 0)


@kernel
def names_item(row, machine):  # type: ignore[no-untyped-def]
    """The first live item of NAMES of a closed row, or -1."""
    for k in range(machine.live_begin[row], machine.live_end[row]):
        if machine.code[machine.live_items[k] >> PLACE_SHIFT, OPERATION] == NAMES:
            return np.int64(machine.live_items[k])
    return np.int64(-1)


@kernel
def bytes_read(state, pool):  # type: ignore[no-untyped-def]
    """How many different bytes a state reads."""
    count = np.int64(0)
    for quarter in range(4):
        count += count_ones(pool.reads[state, quarter])
    return count


@kernel
def wide_row(row, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the row whose wide states serve a closed row, -1 if none has any).

    In the middle of a lexeme that may end, such as a blank, a byte that it does not read is one of the border after it.
    So states of that border serve, too, if they read none of the bytes that the lexeme goes on with (`is_barred`).
    """
    if machine.row_flags[row] & ROW_WIDE:
        return np.int64(OK), np.int64(row)
    if not machine.row_flags[row] & ROW_MIDDLE:
        return np.int64(OK), np.int64(-1)
    status, border = end_row(row, machine, pool)
    if status != OK or border < 0:
        return np.int64(status), np.int64(-1)
    status = close_row(border, machine, pool)
    if status != OK or not machine.row_flags[border] & ROW_WIDE:
        return np.int64(status), np.int64(-1)
    return np.int64(OK), np.int64(border)


@kernel
def is_barred(state, row, source, machine, pool):  # type: ignore[no-untyped-def]
    """Whether a state of `source`, which is `wide_row` of a row, does not serve that, as its lexemes go on first."""
    if source == row:
        return False
    for k in range(machine.live_begin[row], machine.live_end[row]):
        other = (machine.live_items[k] >> STACK_BITS) & STATE_MASK
        if pool.transitions[other * 256] == UNKNOWN:
            return True
        for quarter in range(4):
            if pool.reads[other, quarter] & pool.reads[state, quarter]:
                return True
    return False


@kernel
def begin_subtree(below, row, source, passed, first, signature, words, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the partition whose rest is to be walked or -1: none, the state it is of, whether nothing was set yet,
    the signature) in a wide row below a node (`tokdfa.backends.pushdown_trie.partition`).

    Of the partitions by the row's wide states it is that with the smallest rest, and what is inside is set. One is
    enough: whatever another state allows is either inside or met in the rest. So others are not even made if one has a
    small rest. The state `passed` is left out, as nothing is inside of it.
    """
    best, least, chosen = np.int64(-1), np.int64(1) << 40, np.int64(-1)
    last, missing, reads = np.int64(-1), np.int64(-1), np.int64(-1)
    alone, names = is_alone(row, below, machine, pool), names_item(row, machine) >= 0
    depth = pool.walk_meta[W_DEPTH]
    for k in range(machine.live_begin[source], machine.live_end[source]):
        wide = wide_state(machine.live_items[k], below, machine.row_flags[source], alone, depth, machine, pool)
        state = wide & STATE_PART
        if wide < 0 or state == passed or is_barred(state, row, source, machine, pool):
            continue
        known = np.int64(pool.partition_class[state])
        if below == 0 and wide == state and pool.flags[state] & LOOPS:
            # its rest would be most of the trie: `take_loops` has one of what it reads, at once if a slice serves it
            if _is_new(below, (known if known >= 0 else state) | OWN, pool):
                machine.meta[M_PLACE], machine.meta[M_STATE] = below, state | OWN
                return NEEDS_PARTITION, best, chosen, first, signature
            continue
        if known >= 0:
            known |= wide & ~STATE_PART
            if known == last:
                continue
        last = known
        part = find_partition(below, known, pool) if known >= 0 else np.int64(-1)
        if part < 0:
            count = bytes_read(state, pool)
            if count > reads:  # its rest is likely to be the smallest
                missing, reads = wide, count
            continue
        if names and known & (ALONE | STRICT) == ALONE and not pool.part_nodes[part, PART_JOINED]:
            continue  # nobody has strings like this; what a name is worth would not be asked
        size = np.int64(pool.part_nodes[part, 1]) - np.int64(pool.part_nodes[part, 0])
        if size < least:
            best, least, chosen = part, size, state
    if missing >= 0 and least > SMALL_REST and (below == 0 or _is_new(below, missing, pool)):
        machine.meta[M_PLACE], machine.meta[M_STATE] = below, missing
        return NEEDS_PARTITION, best, chosen, first, signature
    if best >= 0:
        take_inside(best, first, words, pool)
        first, signature = False, mix(signature, best)
    return OK, best, chosen, first, signature


@kernel
def note_bound(row, machine, pool):  # type: ignore[no-untyped-def]
    """Note characters left and state of a bounded COUNTED that a strict partition served though it is short."""
    begin, depth = machine.live_begin[row], pool.walk_meta[W_DEPTH]
    if machine.live_end[row] - begin != 1:
        return
    item = machine.live_items[begin]
    if machine.code[item >> PLACE_SHIFT, OPERATION] != COUNTED:
        return
    left, needed = item_left(item, machine, pool)
    wide = wide_state(item, np.int64(0), machine.row_flags[row], True, depth, machine, pool)
    if wide >= 0 and left - needed < depth:
        pool.walk_meta[W_LEFT], pool.walk_meta[W_STATE] = left, wide & STATE_PART


@kernel
def closing_rest(row, machine, pool):  # type: ignore[no-untyped-def]
    """(status, the partition that is strict and so not joined) of the one state that the items of a row are in."""
    state, part = np.int64(-1), np.int64(-1)
    for k in range(machine.live_begin[row], machine.live_end[row]):
        item = machine.live_items[k]
        if state < 0 and machine.code[item >> PLACE_SHIFT, OPERATION] == TERMINAL:
            state = (item >> STACK_BITS) & STATE_MASK
        elif state < 0:
            state = string_state(item, machine, pool)
    known = np.int64(pool.partition_class[state])
    if known >= 0:
        part = find_partition(np.int64(0), known | STRICT | ALONE, pool)
    machine.meta[M_PLACE], machine.meta[M_STATE] = 0, state | STRICT | ALONE
    return OK if part >= 0 else NEEDS_PARTITION, part


@kernel
def serve_subtree(row, source, below, size, passed, machine, pool):  # type: ignore[no-untyped-def]
    """(status, whether a partition of a subtree of `size` nodes serves a row by one of its wide states, `passed` left
    out).

    One that is missing is wanted, for the masks to come, when walks without it have cost as much as it will: so no
    more is ever spent than twice what was best, and a first visit costs a walk (Karlin et al. 1988, ski rental).
    """
    depth, wanted, alone = pool.walk_meta[W_DEPTH], np.int64(-1), is_alone(row, below, machine, pool)
    for k in range(machine.live_begin[source], machine.live_end[source]):
        wide = wide_state(machine.live_items[k], below, machine.row_flags[source], alone, depth, machine, pool)
        state = wide & STATE_PART
        if wide < 0 or state == passed or is_barred(state, row, source, machine, pool):
            continue
        known = np.int64(pool.partition_class[state])
        wanted = (known if known >= 0 else state) | wide & ~STATE_PART
        if known >= 0 and find_partition(below, wanted, pool) >= 0:
            return np.int64(OK), True
        if below == pool.walk_meta[W_BELOW] and _is_new(below, wanted, pool):
            machine.meta[M_PLACE], machine.meta[M_STATE] = below, wide
            return np.int64(NEEDS_PARTITION), False
    if wanted >= 0:
        _note_wanted(below, wanted, size, pool.walk_meta[W_PRICE] * (SIZE_UNIT + size) // SIZE_UNIT, pool)
    return np.int64(OK), False


@kernel
def _is_new(below, state, pool):  # type: ignore[no-untyped-def]
    """Whether nobody has walked for want of a partition, or asked this, yet."""
    spot = mix(mix(np.uint64(0), below), state) >> np.uint64(64 - MET_BITS)
    if pool.walk_met[spot]:
        return False
    pool.walk_met[spot] = 1
    return True


@kernel
def _note_wanted(below, state, nodes, work, pool):  # type: ignore[no-untyped-def]
    """Note that `nodes` are walked for want of a partition, and that it is wanted, if all such walks come to `work`."""
    spot = mix(mix(np.uint64(0), below), state) >> np.uint64(64 - MET_BITS)
    pool.walk_met[spot] += np.uint32(nodes)
    count = pool.walk_meta[W_WANTED]
    if pool.walk_met[spot] < work or count == len(pool.walk_wanted):
        return
    pool.walk_wanted[count, 0], pool.walk_wanted[count, 1] = below, state
    pool.walk_meta[W_WANTED] = count + 1


@kernel
def guide_of(row, source, passed, machine, pool):  # type: ignore[no-untyped-def]
    """The wide state of a closed row, with its kind, that reads the most bytes, or -1; `passed` is left out."""
    depth, guide, most = pool.walk_meta[W_DEPTH], np.int64(-1), np.int64(-1)
    for k in range(machine.live_begin[source], machine.live_end[source]):
        wide = wide_state(machine.live_items[k], np.int64(1), machine.row_flags[source], False, depth, machine, pool)
        state = wide & STATE_PART
        if wide < 0 or state == passed or is_barred(state, row, source, machine, pool):
            continue
        count = bytes_read(state, pool)
        if count > most:
            guide, most = wide, count
    return guide


@kernel
def follow_guide(guide, byte, pool):  # type: ignore[no-untyped-def]
    """The state, with its kind, after a byte that stays inside its terminal; -1 if it does not; SKIPS: it is dead."""
    target = np.int64(pool.transitions[np.uint64(guide & STATE_PART) * np.uint64(256) + np.uint64(byte)])
    if target < 0 or (guide & STRICT and pool.flags[target] & ACCEPTS):
        return np.int64(SKIPS) if target == DEAD and guide & ALONE else np.int64(-1)
    return target | (guide & ~STATE_PART)


@kernel
def take_loops(row, source, deferred, listed, signature, words, machine, pool):  # type: ignore[no-untyped-def]
    """(how many rests of partitions were put off, tokens listed, the signature): what states that loop read over and
    over.

    The bytes that they read are taken out of those that frame 1, the root's, has left to walk. A partition that is
    missing is wanted when three masks have missed it, or of a state that reads few bytes a hundred.
    """
    waiting = np.int64(0)
    taken, asked = pool.frame_left[0], machine.reads
    taken[:] = 0
    asked[:] = 0
    for k in range(machine.live_begin[source], machine.live_end[source]):
        item = machine.live_items[k]
        state = (item >> STACK_BITS) & STATE_MASK
        if machine.code[item >> PLACE_SHIFT, OPERATION] != TERMINAL or not pool.flags[state] & LOOPS:
            continue
        if is_barred(state, row, source, machine, pool):
            continue
        reads = pool.reads[state]
        if reads[0] & taken[0] | reads[1] & taken[1] | reads[2] & taken[2] | reads[3] & taken[3]:
            continue
        known = np.int64(pool.partition_class[state])
        part = find_partition(np.int64(0), known | OWN, pool) if known >= 0 else np.int64(-1)
        if part < 0:
            if reads[0] & asked[0] | reads[1] & asked[1] | reads[2] & asked[2] | reads[3] & asked[3]:
                continue  # another item in the same state, mostly
            for quarter in range(4):
                asked[quarter] |= reads[quarter]
            price = pool.walk_meta[W_PRICE]
            missed = 1 + price // (3 if pool.flags[state] & WIDE else 100)
            _note_wanted(np.int64(0), (known if known >= 0 else state) | OWN, missed, price, pool)
            continue
        take_inside(part, False, words, pool)
        begin, size = pool.part_ids[part, 0], pool.part_ids[part, 1] - pool.part_ids[part, 0]
        if pool.part_dense[part] < 0 and 0 <= listed <= NARROW - size:
            for place in range(size):
                pool.listed[listed + place] = pool.ids[begin + place]
            listed += size
        else:
            listed = np.int64(NOT_LISTED)
        signature = mix(signature, part)
        deferred[waiting, 0], deferred[waiting, 1], deferred[waiting, 2] = ~part, row, -1
        waiting += 1
        for quarter in range(4):
            taken[quarter] |= reads[quarter]
            pool.frame_left[1, quarter] &= ~reads[quarter]
    return waiting, listed, signature
