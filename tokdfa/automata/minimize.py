"""The minimal automaton, by refining a partition of the states and one of the moves in turn.

Two states of a trim automaton are told apart by acceptance, and then by where their moves (see
`tokdfa.automata.liveness.Moves`) lead, until nothing is left to tell apart. The algorithm is that of A. Valmari and
P. Lehtinen, "Efficient minimization of DFAs with partial transition functions", STACS 2008; also A. Valmari, "Fast
brief practical DFA minimization", Information Processing Letters 112 (2012). It works on partial transition functions
as they are, so its cost depends on the moves and not on states x classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.dfa import Dfa
from tokdfa.automata.liveness import build_table_kernel, list_incoming_kernel, live_part, select_moves_kernel
from tokdfa.core.budget import hold, spend
from tokdfa.core.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.automata.liveness import Flags, States, Table

# Rows of a refinable partition of n items: int32, shape (7, n). The items of a set stand together in row ITEM, at
# FIRST[set]..PAST[set]-1, the MARKED[set] marked ones in front; PLACE is the inverse of ITEM; TOUCHED lists the sets
# that have marks.
_ITEM, _PLACE, _SET, _FIRST, _PAST, _MARKED, _TOUCHED = range(7)

#: What it takes to refine the partitions by a move; log m does not show.
NS_PER_MOVE = 60


def minimize(dfa: Dfa) -> Dfa:
    """The minimal automaton of the language of `dfa`, in canonical form.

    O(states x classes + m log m) for m moves (Valmari and Lehtinen 2008; see the module's docstring).
    """
    return minimize_from(dfa, [dfa.start])[0]


def minimize_from(dfa: Dfa, starts: Sequence[int]) -> tuple[Dfa, States]:
    """The minimal automaton of the languages that `dfa` accepts from each of `starts`, and the state in which each of
    them begins there, -1 for one without texts. Its own start is the first of these.
    """
    live = live_part(dfa.transitions, dfa.byte_class, dfa.accepting, starts)
    if not len(live.order):
        return Dfa.empty(), live.starts
    moves = len(live.moves.sources)
    spend(NS_PER_MOVE * moves)
    hold(28 * (moves + len(live.order)))
    table, byte_class, accepting, starts_now = _minimize_kernel(
        *live.moves, live.labels_of_bytes, live.accepting, live.starts
    )
    return Dfa.trusted(table, byte_class, accepting, 0), starts_now


@kernel
def _minimize_kernel(offsets, sources, labels, targets, labels_of_bytes, accepting, starts):  # type: ignore[no-untyped-def]
    """(table, byte class, accepting) of the minimal automaton of a live one, and the state of each start in it."""
    blocks, count = refine_blocks_kernel(sources, labels, targets, accepting)
    moves = offsets, sources, labels, targets
    if count < len(blocks):
        # States are in breadth-first order, and blocks numbered by their first states: so blocks are, too.
        first = np.empty(count, dtype=np.int32)
        merged = np.empty(count, dtype=np.bool_)
        for state in range(len(blocks) - 1, -1, -1):
            first[blocks[state]], merged[blocks[state]] = state, accepting[state]
        moves, accepting = select_moves_kernel(offsets, labels, targets, first, blocks), merged
        for place in range(len(starts)):
            starts[place] = blocks[starts[place]] if starts[place] >= 0 else -1
    table, byte_class = build_table_kernel(moves[0], moves[1], moves[2], moves[3], labels_of_bytes)
    return table, byte_class, accepting, starts


@kernel
def _new_partition_kernel(size: int) -> Table:
    """A partition of `size` items with one set, 0; without sets if there are no items."""
    partition = np.zeros((7, size), dtype=np.int32)
    for item in range(size):
        partition[_ITEM, item] = item
        partition[_PLACE, item] = item
    if size > 0:
        partition[_PAST, 0] = size
    return partition


@kernel
def _mark_item_kernel(partition: Table, item: int, touched: int) -> int:
    """Mark an unmarked item. Takes and returns the number of touched sets."""
    group = partition[_SET, item]
    if partition[_PAST, group] - partition[_FIRST, group] == 1:
        return touched  # nothing to split; without this test, a third slower
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
def refine_blocks_kernel(sources: States, labels: States, targets: States, accepting: Flags) -> tuple[States, int]:
    """The blocks of equivalent states of a trim automaton: (block of each state, number of blocks).

    Blocks are numbered by their first states. Two partitions refine each other: *blocks* of states, and *bundles* of
    moves that have one label and lead into one block. States of a block of which only some have a move of some bundle
    are split.
    """
    states, moves = len(accepting), len(sources)
    offsets, incoming = list_incoming_kernel(targets, states)
    blocks, block_count = _new_partition_kernel(states), 1
    touched = 0
    for state in range(states):
        if accepting[state]:
            touched = _mark_item_kernel(blocks, state, touched)
    block_count = _split_sets_kernel(blocks, touched, block_count)

    label_count = 1 + (labels.max() if moves else 0)
    starts, by_label = list_incoming_kernel(labels, label_count)
    bundles, bundle_count = _new_partition_kernel(moves), 0
    for label in range(label_count):
        if starts[label] == starts[label + 1]:
            continue
        bundles[_FIRST, bundle_count], bundles[_PAST, bundle_count] = starts[label], starts[label + 1]
        for place in range(starts[label], starts[label + 1]):
            bundles[_ITEM, place] = by_label[place]
            bundles[_PLACE, by_label[place]] = place
            bundles[_SET, by_label[place]] = bundle_count
        bundle_count += 1

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
    number = np.full(block_count, -1, dtype=np.int32)
    block_of = np.empty(states, dtype=np.int32)
    named = 0
    for state in range(states):
        block = blocks[_SET, state]
        if number[block] < 0:
            number[block] = named
            named += 1
        block_of[state] = number[block]
    return block_of, block_count
