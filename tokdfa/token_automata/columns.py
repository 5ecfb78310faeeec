"""What tokens do to automaton states: partial maps, kept as columns, each distinct one once.

Words. Reading a token takes every state to at most one state: the token's *transformation*, a partial map of the
states. In the table states x tokens it is the token's column, so we call the stored form a *column*: the pairs
(source, target), sources ascending. Tokens with equal columns need only one, as bytes with equal columns form one byte
class: the partition of the tokens by their columns is the coarsest that no state can tell apart.

Equal columns are found by hashing (`ColumnStore`): candidates are written behind the last column, looked up, and kept
or dropped. Numbers are given in order of arrival.

Source: 001, part 6 ("minimise transitions table"), does the merging after the table is built; merging while tokens are
still being read, and the name, are ours (transformation monoid: Eilenberg, "Automata, Languages, and Machines", B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tokdfa.core.budget import hold
from tokdfa.core.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

ScalarT = TypeVar("ScalarT", bound=np.generic)
#: Indices into `ColumnStore.meta`: columns kept, pairs kept.
COLUMNS, PAIRS = range(2)


class Columns(NamedTuple):
    """Token classes and what they do: class k has the pairs ``offsets[k] .. offsets[k + 1] - 1``.

    ``ranks``: int32, ascending, the tokens that have a class, by rank (place in the trie's order); ``class_of``: int32,
    the class of each of them; ``offsets``: int64, shape (classes + 1,); ``sources``, ``targets``: int32, states;
    sources ascend within a class; ``counts``: int32, shape (classes,), the tokens of each class, if classes are
    numbered in the order of their first token and none has an empty column, else None.
    """

    ranks: npt.NDArray[np.int32]
    class_of: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]
    sources: npt.NDArray[np.int32]
    targets: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32] | None = None

    @property
    def class_count(self) -> int:
        return len(self.offsets) - 1


def unite(parts: Sequence[Columns]) -> Columns:
    """Columns of several runs of tokens as one: equal columns are one class, in order of their first token.

    Tokens with empty columns are left out. The parts' tokens follow one another. O(pairs + tokens).
    """
    pairs, count = sum(len(part.sources) for part in parts), sum(part.class_count for part in parts)
    store = ColumnStore(pairs + 1, count + 1)
    ranks, column_of = np.empty((2, sum(len(part.ranks) for part in parts)), dtype=np.int32)
    kept = 0
    for part in parts:
        number = np.full(part.class_count, -1, dtype=np.int32)
        _merge_columns_kernel(part.offsets, part.sources, part.targets, *store.arrays, number, False)
        kept = _rename_classes_kernel(part.ranks, part.class_of, number, kept, ranks, column_of)
    return store.columns(ranks[:kept], column_of[:kept])


def join(parts: Sequence[Columns]) -> Columns:
    """Columns of several runs of tokens one behind the other, equal ones apart."""
    firsts = np.cumsum([0, *(part.class_count for part in parts)], dtype=np.int32)
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return Columns(
        np.concatenate([part.ranks for part in parts]),
        np.concatenate([part.class_of + first for part, first in zip(parts, firsts[:-1], strict=True)]),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


class ColumnStore:
    """Columns, each distinct one once. `room_pairs` and `room`: pairs and columns to begin with; `grow` doubles."""

    def __init__(self, room_pairs: int, room: int) -> None:
        self.offsets: npt.NDArray[np.int64] = np.zeros(room + 1, dtype=np.int64)
        self.sources: npt.NDArray[np.int32] = np.empty(room_pairs, dtype=np.int32)
        self.targets: npt.NDArray[np.int32] = np.empty(room_pairs, dtype=np.int32)
        self.hashes: npt.NDArray[np.uint64] = np.empty(room, dtype=np.uint64)
        self.table: npt.NDArray[np.int32] = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int32)
        self.meta: npt.NDArray[np.int64] = np.zeros(2, dtype=np.int64)

    @property
    def arrays(self) -> tuple[npt.NDArray[np.generic], ...]:
        """What the kernels take."""
        return self.offsets, self.sources, self.targets, self.hashes, self.table, self.meta

    def __len__(self) -> int:
        return int(self.meta[COLUMNS])

    def grow(self, pairs: int) -> None:
        """Make room for as many columns again, and for `pairs` more pairs at least."""
        count, used = self.meta.tolist()
        room_pairs, room = max(2 * len(self.sources), used + pairs), 2 * len(self.hashes)
        hold(8 * (room_pairs - len(self.sources)) + 40 * (room - len(self.hashes)))
        self.sources = enlarge(self.sources, room_pairs, used)
        self.targets = enlarge(self.targets, room_pairs, used)
        self.offsets = enlarge(self.offsets, room + 1, count + 1)
        self.hashes = enlarge(self.hashes, room, count)
        self.table = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int32)
        _rehash_columns_kernel(self.hashes, self.table, count)

    def columns(self, ranks: npt.NDArray[np.int32], column_of: npt.NDArray[np.int32], scale: int = 1) -> Columns:
        """The columns that occur in `column_of`, in order of first occurrence.

        `ranks`: int32, the tokens; `column_of`: int32, `scale` times the column of each; it is overwritten.
        """
        used, counts = np.empty(len(self), dtype=np.int32), np.zeros(len(self), dtype=np.int32)
        count = _number_columns_kernel(column_of, scale, np.full(len(self), -1, dtype=np.int32), used, counts)
        used = used[:count]
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(self.offsets[used + 1] - self.offsets[used], out=offsets[1:])
        sources, targets = np.empty(offsets[-1], dtype=np.int32), np.empty(offsets[-1], dtype=np.int32)
        _gather_columns_kernel(self.offsets, self.sources, self.targets, used, sources, targets)
        return Columns(ranks, column_of, offsets, sources, targets, counts[:count])


def distinct_rows(
    offsets: npt.NDArray[np.integer], keys: npt.NDArray[np.integer], values: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Equal rows of a sparse table once, in order of arrival: (number of each row, offsets, keys, values).

    O(entries).
    """
    offsets, keys, values = np.asarray(offsets, np.int64), np.asarray(keys, np.int32), np.asarray(values, np.int32)
    store = ColumnStore(len(keys) + 1, len(offsets))
    number = np.full(len(offsets) - 1, -1, dtype=np.int32)
    _merge_columns_kernel(offsets, keys, values, *store.arrays, number, True)
    used = int(store.meta[PAIRS])
    return number, store.offsets[: len(store) + 1], store.sources[:used], store.targets[:used]


def transpose(
    row_count: int, offsets: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], values: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """A sparse table by its other index: entries (k, columns[i], values[i]) for i in ``offsets[k]..offsets[k+1]-1``.

    Returns (offsets, ks, values) by column, 0..row_count-1; ks ascend within each. Counting sort: O(entries).
    """
    turned = np.zeros(row_count + 1, dtype=np.int64)
    ks, turned_values = np.empty_like(columns), np.empty_like(values)
    _transpose_kernel(offsets, columns, values, turned, ks, turned_values)
    return turned, ks, turned_values


def enlarge(array: npt.NDArray[ScalarT], room: int, used: int) -> npt.NDArray[ScalarT]:
    """A longer array with the first `used` entries of `array`."""
    larger = np.empty(room, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


# Kernels. `offsets, sources, targets, hashes, table, meta` are the arrays of a ColumnStore, in this order.


@kernel
def mix_pair(value, source, target):  # type: ignore[no-untyped-def]
    """The hash of a column goes over its pairs: take one more in."""
    pair = (np.uint64(np.uint32(source)) << np.uint64(32)) | np.uint64(np.uint32(target))
    value = (value ^ pair) * np.uint64(0x9E3779B97F4A7C15)
    return value ^ (value >> np.uint64(29))


@kernel
def intern_column(end, value, offsets, sources, targets, hashes, table, meta):  # type: ignore[no-untyped-def]
    """The number of the column whose pairs lie behind the last one, up to `end`, with hash `value`; room is given."""
    count = meta[COLUMNS]
    begin = offsets[count]
    slots = np.uint64(len(table) - 1)
    slot = (value ^ (value >> np.uint64(32))) & slots
    while table[slot] >= 0:
        known = np.int64(table[slot])
        first = offsets[known]
        if hashes[known] == value and offsets[known + 1] - first == end - begin:
            same = True
            for k in range(end - begin):
                if sources[first + k] != sources[begin + k] or targets[first + k] != targets[begin + k]:
                    same = False
                    break
            if same:
                return known
        slot = (slot + np.uint64(1)) & slots
    table[slot] = count
    hashes[count] = value
    offsets[count + 1] = end
    meta[COLUMNS] = count + 1
    meta[PAIRS] = end
    return count


@kernel
def _rehash_columns_kernel(hashes, table, count):  # type: ignore[no-untyped-def]
    slots = np.uint64(len(table) - 1)
    for column in range(count):
        slot = (hashes[column] ^ (hashes[column] >> np.uint64(32))) & slots
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & slots
        table[slot] = column


@kernel
def _merge_columns_kernel(  # type: ignore[no-untyped-def]
    from_offsets, from_sources, from_targets, offsets, sources, targets, hashes, table, meta, number, empty_too
):
    """Intern every column, empty ones only if `empty_too`; number[k] is where column k went."""
    for column in range(len(from_offsets) - 1):
        if from_offsets[column] == from_offsets[column + 1] and not empty_too:
            continue
        end = offsets[meta[COLUMNS]]
        value = np.uint64(0)
        for k in range(from_offsets[column], from_offsets[column + 1]):
            sources[end], targets[end] = from_sources[k], from_targets[k]
            value = mix_pair(value, from_sources[k], from_targets[k])
            end += 1
        number[column] = intern_column(end, value, offsets, sources, targets, hashes, table, meta)


@kernel
def _rename_classes_kernel(ranks, class_of, number, kept, new_ranks, column_of):  # type: ignore[no-untyped-def]
    """Append the tokens whose class has a number, with that number, from index `kept` on; returns the new `kept`."""
    for k in range(len(ranks)):
        if number[class_of[k]] >= 0:
            new_ranks[kept], column_of[kept] = ranks[k], number[class_of[k]]
            kept += 1
    return kept


@kernel
def _number_columns_kernel(column_of, scale, number, used, counts):  # type: ignore[no-untyped-def]
    """Replace columns (times `scale`) by numbers in order of first occurrence, and count the tokens of each.

    Returns how many columns there are.
    """
    count = 0
    for k in range(len(column_of)):
        column = np.uint32(column_of[k]) // np.uint32(scale)
        if number[column] < 0:
            number[column] = count
            used[count] = column
            count += 1
        column_of[k] = number[column]
        counts[number[column]] += 1
    return count


@kernel
def _gather_columns_kernel(offsets, sources, targets, used, new_sources, new_targets):  # type: ignore[no-untyped-def]
    end = 0
    for column in used:
        for k in range(offsets[column], offsets[column + 1]):
            new_sources[end], new_targets[end] = sources[k], targets[k]
            end += 1


@kernel
def _transpose_kernel(offsets, columns, values, turned, ks, turned_values):  # type: ignore[no-untyped-def]
    for i in range(len(columns)):
        turned[columns[i] + 1] += 1
    for row in range(1, len(turned)):
        turned[row] += turned[row - 1]
    place = turned[:-1].copy()
    for k in range(len(offsets) - 1):
        for i in range(offsets[k], offsets[k + 1]):
            at = place[columns[i]]
            place[columns[i]] = at + 1
            ks[at] = k
            turned_values[at] = values[i]
