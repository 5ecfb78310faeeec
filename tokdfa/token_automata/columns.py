"""What tokens do to automaton states: partial maps, kept as columns, each distinct one once.

Words. Reading a token takes every state to at most one state: the token's *transformation*, a partial map of the
states. In the table states x tokens it is the token's column, so we call the stored form a *column*: the pairs
(source, target), sources ascending. Tokens with equal columns need only one, as bytes with equal columns form one byte
class: the partition of the tokens by their columns is the coarsest that no state can tell apart.

Equal columns are found by interning (`column_store`), a pair a word: candidates are written behind the last column,
looked up, and kept or dropped. Numbers are given in order of arrival.

Source: 001, part 6 ("minimise transitions table"), does the merging after the table is built; merging while tokens are
still being read, and the name, are ours (transformation monoid: Eilenberg, "Automata, Languages, and Machines", B).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from tokdfa.core.interning import COUNT, InterningTable, intern
from tokdfa.core.jit import kernel
from tokdfa.core.keys import pack_pair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokdfa.core.interning import Column

ScalarT = TypeVar("ScalarT", bound=np.generic)


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
    store = column_store(pairs + 1, count + 1)
    ranks, column_of = [], []
    for part in parts:
        number = np.full(part.class_count, -1, dtype=np.int32)
        _merge_columns_kernel(part.offsets, part.sources, part.targets, store.struct, number, False)
        found = number[part.class_of]
        ranks.append(part.ranks[found >= 0])
        column_of.append(found[found >= 0])
    return columns_of(store, np.concatenate(ranks), np.concatenate(column_of))


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


def column_store(pairs: int, columns: int, kinds: Mapping[str, Column] | None = None) -> InterningTable:
    """A table of columns, each distinct one once, with room for so many at first; `kinds`: columns of the table."""
    return InterningTable(kinds, entries=columns, words=pairs)


def columns_of(
    store: InterningTable, ranks: npt.NDArray[np.int32], column_of: npt.NDArray[np.int32], scale: int = 1
) -> Columns:
    """The columns that occur in `column_of`, in order of first occurrence.

    `ranks`: int32, the tokens; `column_of`: int32, `scale` times the column of each; it is overwritten.
    """
    used, counts = np.empty(len(store), dtype=np.int32), np.zeros(len(store), dtype=np.int32)
    count = _number_columns_kernel(column_of, scale, np.full(len(store), -1, dtype=np.int32), used, counts)
    used = used[:count]
    places, offsets = places_of(store.begin, used)
    pairs = store.words[places]
    return Columns(ranks, column_of, offsets, (pairs >> 32).astype(np.int32), pairs.astype(np.int32), counts[:count])


def places_of(
    offsets: npt.NDArray[np.integer], rows: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the entries of the chosen rows lie, one row after another; and the offsets of the rows put together so."""
    lengths = offsets[rows + 1] - offsets[rows]
    together = np.append(0, np.cumsum(lengths))
    return np.repeat(offsets[rows] - together[:-1], lengths) + np.arange(together[-1]), together


def distinct_rows(
    offsets: npt.NDArray[np.integer], keys: npt.NDArray[np.integer], values: npt.NDArray[np.integer]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Equal rows of a sparse table once, in order of arrival: (number of each row, offsets, keys, values).

    O(entries).
    """
    offsets, keys, values = np.asarray(offsets, np.int64), np.asarray(keys, np.int32), np.asarray(values, np.int32)
    store = column_store(len(keys) + 1, len(offsets))
    number = np.full(len(offsets) - 1, -1, dtype=np.int32)
    _merge_columns_kernel(offsets, keys, values, store.struct, number, True)
    pairs = store.words[: store.words_used]
    return number, store.begin[: len(store) + 1], (pairs >> 32).astype(np.int32), pairs.astype(np.int32)


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


def reached_states(
    start: int, offsets: npt.NDArray[np.int64], targets: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The states that can be reached from `start` along ``targets[offsets[s]:offsets[s+1]]``, breadth-first.

    Returns them, int32; the place of each state among them, -1 for the others; and where their rows begin if they are
    put in this order, int64.
    """
    number = np.full(len(offsets) - 1, -1, dtype=np.int32)
    order, new_offsets = np.empty(len(number), dtype=np.int32), np.empty(len(offsets), dtype=np.int64)
    count = _number_states_kernel(start, offsets, targets, number, order, new_offsets)
    return order[:count], number, new_offsets[: count + 1]


def enlarge(array: npt.NDArray[ScalarT], room: int, used: int) -> npt.NDArray[ScalarT]:
    """A longer array with the first `used` entries of `array`."""
    larger = np.empty(room, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


@kernel
def _merge_columns_kernel(from_offsets, from_sources, from_targets, store, number, empty_too):  # type: ignore[no-untyped-def]
    """Intern every column, empty ones only if `empty_too`; number[k] is where column k went. There must be room."""
    for column in range(len(from_offsets) - 1):
        if from_offsets[column] == from_offsets[column + 1] and not empty_too:
            continue
        begin = store.begin[store.meta[COUNT]]
        end = begin
        for k in range(from_offsets[column], from_offsets[column + 1]):
            store.words[end] = pack_pair(from_sources[k], from_targets[k])
            end += 1
        number[column] = intern(store.words, begin, end, store)


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


@kernel
def _number_states_kernel(start, offsets, targets, number, order, new_offsets):  # type: ignore[no-untyped-def]
    """See `reached_states`. Returns how many there are."""
    number[start] = 0
    order[0] = start
    new_offsets[0] = 0
    count, done = 1, 0
    while done < count:
        state = order[done]
        done += 1
        new_offsets[done] = new_offsets[done - 1] + offsets[state + 1] - offsets[state]
        for k in range(offsets[state], offsets[state + 1]):
            target = targets[k]
            if number[target] < 0:
                number[target] = count
                order[count] = target
                count += 1
    return count
