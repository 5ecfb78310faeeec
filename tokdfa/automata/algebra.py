"""The algebra of byte automata: trim, minimise, combine, compare, count and list.

Results are trim, start in state 0, are numbered breadth-first with the bytes in ascending order, and have the coarsest
byte classes. `minimize` gives a canonical form: two languages are equal iff their minimal automata have equal arrays.
Languages are sets of byte strings, so `complement` contains byte strings that are not UTF-8.

Sources. Minimisation refines a partition of the states and one of the transitions in turn, so that its cost depends on
the live transitions only and not on states x classes: A. Valmari and P. Lehtinen, "Efficient minimization of DFAs with
partial transition functions", STACS 2008; the same in A. Valmari, "Fast brief practical DFA minimization", Information
Processing Letters 112 (2012). Comparison is the union-find algorithm of Hopcroft and Karp as restated by
M. Almeida, N. Moreira, R. Reis, "Testing the equivalence of regular languages", arXiv 0907.5058, section 3, run breadth-
first so that the word it finds is a shortest one (see `distinguishing_word`).

Kernels take writable C-contiguous arrays only: numba compiles anew for read-only ones, which a `Dfa` holds.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.byte_classes import common_classes, merge_equal_columns
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import STATE_LIMIT, state_limit_exceeded
from tokdfa.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Table = npt.NDArray[np.int32]
    States = npt.NDArray[np.int32]
    Flags = npt.NDArray[np.bool_]

# Which side of a pair of states must be alive for the pair to be worth visiting (`_explore_pairs_kernel`).
_BOTH, _FIRST_SIDE, _EITHER = 0, 1, 2

# Rows of a refinable partition of n items: int32, shape (7, n). The items of a set stand together in row ITEM, at
# FIRST[set]..PAST[set]-1, the MARKED[set] marked ones in front; PLACE is the inverse of ITEM; TOUCHED lists sets with marks.
_ITEM, _PLACE, _SET, _FIRST, _PAST, _MARKED, _TOUCHED = range(7)


# ---------------------------------------------------------------------------------------------- liveness and trimming


def distance_to_accept(dfa: Dfa) -> States:
    """The smallest number of bytes from each state to acceptance: int32, shape (states,), -1 where there is no way."""
    return _distances(dfa.transitions, dfa.accepting)


def live_states(dfa: Dfa) -> Flags:
    """Which states can be reached from the start and reach acceptance: bool, shape (states,)."""
    live = np.zeros(dfa.state_count, dtype=np.bool_)
    if dfa.state_count:
        table = np.array(dfa.transitions)
        live[_breadth_first(table, dfa.start, _distances(table, dfa.accepting) >= 0)] = True
    return live


def trim(dfa: Dfa) -> Dfa:
    """The live part of `dfa`: same language, states numbered breadth-first from start 0, coarsest byte classes.

    O(states x classes).
    """
    byte_class, representatives = merge_equal_columns(dfa.transitions, dfa.byte_class)
    table = np.take(dfa.transitions, dfa.byte_class[representatives], axis=1)
    return _trim_table(table, byte_class, np.array(dfa.accepting), dfa.start)


def is_empty(dfa: Dfa) -> bool:
    """Whether no word at all is accepted."""
    return dfa.state_count == 0 or bool(distance_to_accept(dfa)[dfa.start] < 0)


def _trim_table(table: Table, byte_class: npt.NDArray[np.uint8], accepting: Flags, start: int) -> Dfa:
    """`trim` for bare arrays whose classes ascend by their smallest bytes."""
    if start < 0:
        return Dfa.empty()
    order = _breadth_first(table, start, _distances(table, accepting) >= 0)
    if not len(order):
        return Dfa.empty()
    number = np.full(len(table) + 1, -1, dtype=np.int32)  # the last entry is what -1 looks up
    number[order] = np.arange(len(order), dtype=np.int32)
    renumbered = number[table[order]]
    merged_class, representatives = merge_equal_columns(renumbered, byte_class)
    return Dfa(np.take(renumbered, byte_class[representatives], axis=1), merged_class, accepting[order], 0)


def _edges(table: Table) -> tuple[States, States, States]:
    """The live transitions by ascending class: (sources, classes, targets), int32, one entry each."""
    classes, sources = np.nonzero(np.ascontiguousarray(table.T) >= 0)
    return sources.astype(np.int32), classes.astype(np.int32), table[sources, classes]


def _distances(table: Table, accepting: Flags) -> States:
    sources, _, targets = _edges(table)
    distances = np.where(accepting, np.int32(0), np.int32(-1))
    _measure_distances_kernel(sources, targets, distances)
    return distances


def _breadth_first(table: Table, start: int, keep: Flags) -> States:
    """The states that can be reached through states of `keep`, in breadth-first order; none if the start is not kept."""
    order = np.empty(len(table), dtype=np.int32)
    return order[: _order_states_kernel(table, start, keep, order)]


@kernel
def _list_incoming_kernel(targets: States, states: int) -> tuple[States, States]:
    """Edge numbers grouped by target: those into state s are ``edges[offsets[s]:offsets[s + 1]]``."""
    offsets = np.zeros(states + 1, dtype=np.int32)
    for edge in range(len(targets)):
        offsets[targets[edge] + 1] += 1
    for state in range(states):
        offsets[state + 1] += offsets[state]
    fill = offsets.copy()
    edges = np.empty(len(targets), dtype=np.int32)
    for edge in range(len(targets)):
        edges[fill[targets[edge]]] = edge
        fill[targets[edge]] += 1
    return offsets, edges


@kernel
def _measure_distances_kernel(sources: States, targets: States, distances: States) -> None:
    """Breadth-first search backwards. `distances`: 0 at accepting states, -1 elsewhere; filled in place."""
    states = len(distances)
    offsets, incoming = _list_incoming_kernel(targets, states)
    queue = np.empty(states, dtype=np.int32)
    count = 0
    for state in range(states):
        if distances[state] == 0:
            queue[count] = state
            count += 1
    head = 0
    while head < count:
        state = queue[head]
        head += 1
        for index in range(offsets[state], offsets[state + 1]):
            source = sources[incoming[index]]
            if distances[source] < 0:
                distances[source] = distances[state] + 1
                queue[count] = source
                count += 1


@kernel
def _order_states_kernel(table: Table, start: int, keep: Flags, order: States) -> int:
    """Breadth-first search forwards through kept states. Writes `order`, returns how many states it holds."""
    if not keep[start]:
        return 0
    waiting = keep.copy()
    waiting[start] = False
    order[0] = start
    count = 1
    head = 0
    while head < count:
        state = order[head]
        head += 1
        for column in range(table.shape[1]):
            target = table[state, column]
            if target >= 0 and waiting[target]:
                waiting[target] = False
                order[count] = target
                count += 1
    return count


# ------------------------------------------------------------------------------------------------------- minimisation


def minimize(dfa: Dfa) -> Dfa:
    """The minimal automaton of the language of `dfa`, in canonical form.

    O(states x classes + m log m) for m live transitions (Valmari and Lehtinen 2008; see the module's docstring).
    """
    trimmed = trim(dfa)
    if trimmed.state_count < 2:
        return trimmed
    table, accepting = np.array(trimmed.transitions), np.array(trimmed.accepting)
    blocks, count = _refine_blocks_kernel(*_edges(table), accepting)
    if count == len(blocks):
        return trimmed
    member = np.empty(count, dtype=np.int32)
    member[blocks] = np.arange(len(blocks), dtype=np.int32)  # any member stands for its block
    quotient = np.append(blocks, np.int32(-1))[table[member]]
    return _trim_table(quotient, trimmed.byte_class, accepting[member], int(blocks[trimmed.start]))


@kernel
def _new_partition_kernel(size: int) -> Table:
    """A partition of `size` items with one set, 0."""
    partition = np.zeros((7, size), dtype=np.int32)
    for item in range(size):
        partition[_ITEM, item] = item
        partition[_PLACE, item] = item
    partition[_PAST, 0] = size
    return partition


@kernel
def _mark_item_kernel(partition: Table, item: int, touched: int) -> int:
    """Mark an unmarked item. Takes and returns the number of touched sets."""
    group = partition[_SET, item]
    if partition[_MARKED, group] == 0:
        partition[_TOUCHED, touched] = group
        touched += 1
    place = partition[_PLACE, item]
    front = partition[_FIRST, group] + partition[_MARKED, group]
    other = partition[_ITEM, front]
    partition[_ITEM, place] = other
    partition[_PLACE, other] = place
    partition[_ITEM, front] = item
    partition[_PLACE, item] = front
    partition[_MARKED, group] += 1
    return touched


@kernel
def _split_sets_kernel(partition: Table, touched: int, sets: int) -> int:
    """Split each touched set into its marked and unmarked items. Takes and returns the number of sets.

    The smaller half gets the new number. Each set is used as a splitter once, so an item is in O(log n) splitters.
    """
    for index in range(touched):
        group = partition[_TOUCHED, index]
        first, past = partition[_FIRST, group], partition[_PAST, group]
        middle = first + partition[_MARKED, group]
        partition[_MARKED, group] = 0
        if middle == past:
            continue
        if middle - first <= past - middle:
            new_first, new_past = first, middle
            partition[_FIRST, group] = middle
        else:
            new_first, new_past = middle, past
            partition[_PAST, group] = middle
        partition[_FIRST, sets], partition[_PAST, sets] = new_first, new_past
        for place in range(new_first, new_past):
            partition[_SET, partition[_ITEM, place]] = sets
        sets += 1
    return sets


@kernel
def _refine_blocks_kernel(sources: States, labels: States, targets: States, accepting: Flags) -> tuple[States, int]:
    """The blocks of equivalent states of a trim automaton: (block of each state, number of blocks).

    Edges are ordered by label. Two partitions refine each other: *blocks* of states, and *bundles* of edges that have
    one label and lead into one block. States of a block of which only some have an edge of some bundle are split.
    """
    states, edges = len(accepting), len(sources)
    offsets, incoming = _list_incoming_kernel(targets, states)
    blocks, block_count = _new_partition_kernel(states), 1
    touched = 0
    for state in range(states):
        if accepting[state]:
            touched = _mark_item_kernel(blocks, state, touched)
    block_count = _split_sets_kernel(blocks, touched, block_count)

    bundles, bundle_count = _new_partition_kernel(edges), 0
    for edge in range(edges):
        if edge == 0 or labels[edge] != labels[edge - 1]:
            bundles[_FIRST, bundle_count] = edge
            bundle_count += 1
        bundles[_PAST, bundle_count - 1] = edge + 1
        bundles[_SET, edge] = bundle_count - 1

    next_block, next_bundle = 1, 0  # block 0 need not split: what leads elsewhere tells it apart
    while next_bundle < bundle_count:
        touched = 0
        for place in range(bundles[_FIRST, next_bundle], bundles[_PAST, next_bundle]):
            touched = _mark_item_kernel(blocks, sources[bundles[_ITEM, place]], touched)
        block_count = _split_sets_kernel(blocks, touched, block_count)
        next_bundle += 1
        while next_block < block_count:
            touched = 0
            for place in range(blocks[_FIRST, next_block], blocks[_PAST, next_block]):
                state = blocks[_ITEM, place]
                for index in range(offsets[state], offsets[state + 1]):
                    touched = _mark_item_kernel(bundles, incoming[index], touched)
            bundle_count = _split_sets_kernel(bundles, touched, bundle_count)
            next_block += 1
    return blocks[_SET].copy(), block_count


# ------------------------------------------------------------------------------------------------- Boolean operations


def intersection(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that both accept. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, _BOTH, np.logical_and, limit)


def union(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that at least one accepts. LimitExceeded if more than `limit` pairs of states can be reached."""
    return _combine(a, b, _EITHER, np.logical_or, limit)


def difference(a: Dfa, b: Dfa, limit: int = STATE_LIMIT) -> Dfa:
    """The words that `a` accepts and `b` does not. LimitExceeded if more than `limit` pairs can be reached."""
    return _combine(a, b, _FIRST_SIDE, np.greater, limit)


def complement(a: Dfa) -> Dfa:
    """The byte strings that `a` does not accept, among them all that are not UTF-8 (if `a` accepts text)."""
    sink = a.state_count
    table = np.full((sink + 1, a.class_count), sink, dtype=np.int32)
    table[:sink] = np.where(a.transitions < 0, sink, a.transitions)
    return trim(Dfa(table, a.byte_class, np.append(~a.accepting, True), a.start if sink else 0))


def _combine(a: Dfa, b: Dfa, alive: int, accepts: np.ufunc, limit: int) -> Dfa:
    """The product of two automata; `accepts` decides on a pair from what its two states say, the dead saying no."""
    byte_class, representatives = common_classes(a.byte_class, b.byte_class)
    first = np.take(a.transitions, a.byte_class[representatives], axis=1)
    second = np.take(b.transitions, b.byte_class[representatives], axis=1)
    if not _is_alive_kernel(a.start, b.start, alive):
        return Dfa.empty()
    keys, table = _explore_pairs_kernel(first, second, a.start, b.start, alive, limit)
    if len(keys) > limit:
        raise state_limit_exceeded(limit)
    width = b.state_count + 1
    by_first = np.append(a.accepting, False)[keys // width - 1]  # dead is -1, which looks up the last entry
    by_second = np.append(b.accepting, False)[keys % width - 1]
    return _trim_table(table, byte_class, accepts(by_first, by_second), 0)


@kernel
def _is_alive_kernel(p: int, q: int, alive: int) -> bool:
    """Whether a pair of states, -1 being dead, is worth visiting."""
    return (p >= 0 and q >= 0) or (p >= 0 and alive != _BOTH) or (q >= 0 and alive == _EITHER)


@kernel
def _find_slot_kernel(slots: States, keys: npt.NDArray[np.int64], key: int) -> int:
    """Where `key` is, or belongs, in an open-addressing table of indices into `keys`; its length is a power of two."""
    # Multiplying by an odd constant spreads the keys; the sign bit is cleared because numba's product wraps around.
    slot = ((int(key) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF) >> 24
    slot &= len(slots) - 1
    while slots[slot] >= 0 and keys[slots[slot]] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


@kernel
def _explore_pairs_kernel(
    first: Table, second: Table, first_start: int, second_start: int, alive: int, limit: int
) -> tuple[npt.NDArray[np.int64], Table]:
    """Breadth-first search of pairs of states, either of which may be dead (-1).

    Tables: int32, equal columns. Returns the key ``(p + 1) * width + q + 1`` of each pair, width being the number of
    second states + 1 (int64), and the transitions between pairs (int32). Stops soon after `limit` pairs.
    """
    classes = first.shape[1]
    width = second.shape[0] + 1
    keys = np.empty(1024, dtype=np.int64)
    table = np.empty((1024, classes), dtype=np.int32)
    slots = np.full(2048, -1, dtype=np.int32)
    keys[0] = (first_start + 1) * width + second_start + 1
    slots[_find_slot_kernel(slots, keys, keys[0])] = 0
    count = 1
    head = 0
    while head < count and count <= limit:
        if count + classes > len(keys):  # make room for all successors of a pair; slots stay at most half full
            more_keys = np.empty(2 * len(keys), dtype=np.int64)
            more_keys[:count] = keys[:count]
            keys = more_keys
            more_rows = np.empty((len(keys), classes), dtype=np.int32)
            more_rows[:head] = table[:head]
            table = more_rows
            slots = np.full(2 * len(keys), -1, dtype=np.int32)
            for index in range(count):
                slots[_find_slot_kernel(slots, keys, keys[index])] = index
        p = keys[head] // width - 1
        q = keys[head] % width - 1
        for column in range(classes):
            next_p = first[p, column] if p >= 0 else -1
            next_q = second[q, column] if q >= 0 else -1
            if not _is_alive_kernel(next_p, next_q, alive):
                table[head, column] = -1
                continue
            key = (np.int64(next_p) + 1) * width + next_q + 1
            slot = _find_slot_kernel(slots, keys, key)
            if slots[slot] < 0:
                slots[slot] = count
                keys[count] = key
                count += 1
            table[head, column] = slots[slot]
        head += 1
    return keys[:count].copy(), table[:head].copy()


# ----------------------------------------------------------------------------------------------------------- equality


def distinguishing_word(a: Dfa, b: Dfa) -> bytes | None:
    """A shortest word that exactly one of the two accepts; None iff they have the same language.

    Merges the states that equality would force to be equal, breadth-first from the pair of starts (Hopcroft and Karp;
    arXiv 0907.5058, section 3). At most |a| + |b| merges, so O((|a| + |b|) x classes) up to the union-find's logarithm,
    where a product may visit |a| x |b| pairs.

    Why the first word found is a shortest one: a pair is skipped only if a chain of earlier pairs joins its two states.
    If a word tells the skipped pair apart, it tells some pair of the chain apart, and that pair was met at most as deep.
    So skipping never loses the last chance of a shortest word.
    """
    byte_class, representatives = common_classes(a.byte_class, b.byte_class)
    # One automaton with the states of a, those of b, and a dead one at the end, which -1 looks up.
    dead = a.state_count + b.state_count
    table = np.full((dead + 1, len(representatives)), dead, dtype=np.int32)
    first = np.take(a.transitions, a.byte_class[representatives], axis=1)
    second = np.take(b.transitions, b.byte_class[representatives], axis=1)
    table[: a.state_count] = np.where(first < 0, dead, first)
    table[a.state_count : dead] = np.where(second < 0, dead, second + a.state_count)
    accepting = np.concatenate([a.accepting, b.accepting, [False]])
    pairs = np.empty((dead + 2, 2), dtype=np.int32)
    origins = np.empty((dead + 2, 2), dtype=np.int32)
    pairs[0] = (a.start if a.start >= 0 else dead, b.start + a.state_count if b.start >= 0 else dead)
    found = _find_difference_kernel(table, accepting, pairs, origins)
    if found < 0:
        return None
    word = bytearray()
    while found > 0:
        word.append(representatives[origins[found, 1]])
        found = int(origins[found, 0])
    return bytes(reversed(word))


@kernel
def _find_difference_kernel(table: Table, accepting: Flags, pairs: Table, origins: Table) -> int:
    """The index of the first pair, breadth-first from ``pairs[0]``, of which one state accepts; -1 if there is none.

    `table` is complete (no -1). Fills `pairs` (the queue) and `origins`: (index of the pair before, class) of each.
    """
    if accepting[pairs[0, 0]] != accepting[pairs[0, 1]]:
        return 0
    parent = np.arange(len(table))
    parent[pairs[0, 1]] = pairs[0, 0]
    count = 1
    head = 0
    while head < count:
        for column in range(table.shape[1]):
            p, q = table[pairs[head, 0], column], table[pairs[head, 1], column]
            p_root, q_root = parent[p], parent[q]
            while parent[p_root] != p_root:
                parent[p_root] = parent[parent[p_root]]
                p_root = parent[p_root]
            while parent[q_root] != q_root:
                parent[q_root] = parent[parent[q_root]]
                q_root = parent[q_root]
            if p_root == q_root:
                continue
            parent[q_root] = p_root
            pairs[count, 0], pairs[count, 1] = p, q
            origins[count, 0], origins[count, 1] = head, column
            if accepting[p] != accepting[q]:
                return count
            count += 1
        head += 1
    return -1


# ------------------------------------------------------------------------------------------------ words of a language


def shortest_word(dfa: Dfa) -> bytes | None:
    """The first of the shortest accepted words in the order of their bytes; None iff there are none."""
    return next(iter(words(dfa, 1)), None)


def words(dfa: Dfa, limit: int) -> list[bytes]:
    """The first `limit` accepted words, or all if there are fewer, shorter ones first, then in the order of their bytes.

    Every length costs O(states x classes); within a length the search enters no (state, bytes left) without a word twice.
    """
    live = trim(dfa)
    return list(islice(_words_by_length(live), max(limit, 0))) if live.state_count else []


def _words_by_length(live: Dfa) -> Iterator[bytes]:
    """All words of a trim automaton that accepts some."""
    distances = distance_to_accept(live).tolist()
    hopeless: set[tuple[int, int]] = set()
    ahead = np.zeros(
        live.state_count + 1, dtype=np.bool_
    )  # states after exactly `length` bytes; the last entry is dead
    ahead[0] = True
    length = 0
    while ahead[:-1].any():
        if live.accepting[ahead[:-1]].any():
            yield from _words_of_length(live, length, distances, hopeless)
        targets = live.transitions[ahead[:-1]]
        ahead = np.zeros_like(ahead)
        ahead[targets] = True
        length += 1


def _words_of_length(live: Dfa, length: int, distances: list[int], hopeless: set[tuple[int, int]]) -> Iterator[bytes]:
    """All words of one length, depth first. `hopeless` collects (state, bytes left) from which there is no word."""

    def moves(state: int) -> Iterator[tuple[int, int]]:
        row = live.transitions[state, live.byte_class]
        return ((int(byte), int(row[byte])) for byte in np.flatnonzero(row >= 0))

    word = bytearray()
    path = [(0, moves(0))]
    fruitful = [False]  # whether a word was found below each state of the path
    while path:
        state, untried = path[-1]
        left = length - len(word)
        if left == 0:
            yield bytes(word)
            fruitful[-1] = True
        elif entered := next(
            (move for move in untried if distances[move[1]] < left and (move[1], left - 1) not in hopeless), None
        ):
            byte, target = entered
            word.append(byte)
            path.append((target, moves(target)))
            fruitful.append(False)
            continue
        path.pop()
        if fruitful.pop():
            if fruitful:
                fruitful[-1] = True
        else:
            hopeless.add((state, left))
        if word:
            word.pop()


def count_words(dfa: Dfa, max_length: int) -> int:
    """How many words of at most `max_length` bytes are accepted, exactly. O(max_length x transitions) large numbers."""
    live = trim(dfa)
    if max_length < 0 or not live.state_count:
        return 0
    sources, columns = np.nonzero(live.transitions >= 0)
    targets = live.transitions[sources, columns]
    weights = np.bincount(live.byte_class)[columns].astype(object)  # bytes a class; object: Python's unbounded int
    first_edges = np.flatnonzero(np.diff(sources, prepend=-1))
    counts = live.accepting.astype(np.int64).astype(object)  # words of exactly k bytes from each state
    total = int(counts[0])
    for _ in range(max_length):
        longer = np.zeros(live.state_count, dtype=object)
        if len(sources):
            longer[sources[first_edges]] = np.add.reduceat(weights * counts[targets], first_edges)
        counts = longer
        if not counts.any():
            break
        total += int(counts[0])
    return total


def _warm_up() -> None:
    """Compile every kernel of the package, by using each function on a toy automaton."""
    # Any word over a, b that ends in b; states 0 and 2 are equivalent, so that minimising has something to merge.
    table = np.full((3, 256), -1, dtype=np.int32)
    table[:, ord("a")], table[:, ord("b")] = (2, 0, 0), 1
    toy = Dfa.from_table(table, np.array([False, True, False]), 0)
    live_states(toy)
    distinguishing_word(minimize(toy), intersection(toy, complement(toy)))
