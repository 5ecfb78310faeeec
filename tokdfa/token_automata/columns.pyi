from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]
ScalarT = TypeVar("ScalarT", bound=np.generic)

class Columns(NamedTuple):
    """Token classes and what they do: class k has the pairs ``offsets[k] .. offsets[k + 1] - 1``.

    ``ranks``: int32, ascending, the tokens that have a class, by rank (place in the trie's order); ``class_of``: int32,
    the class of each of them; ``offsets``: int64, shape (classes + 1,); ``sources``, ``targets``: int32, states;
    sources ascend within a class; ``in_order``: whether classes are known to be numbered in the order of their first
    token, none with an empty column.
    """

    ranks: Int32
    class_of: Int32
    offsets: Int64
    sources: Int32
    targets: Int32
    in_order: bool = False

    @property
    def class_count(self) -> int: ...

def unite(parts: Sequence[Columns]) -> Columns:
    """Columns of several runs of tokens as one: equal columns are one class, in order of their first token.

    Tokens with empty columns are left out. The parts' tokens follow one another. O(pairs + tokens).
    """

def join(parts: Sequence[Columns]) -> Columns:
    """Columns of several runs of tokens one behind the other, equal ones apart."""

def distinct_rows(offsets: Integers, keys: Integers, values: Integers) -> tuple[Int32, Int64, Int32, Int32]:
    """Equal rows of a sparse table once, in order of arrival: (number of each row, offsets, keys, values).

    O(entries).
    """

def places_of(offsets: Integers, rows: Integers) -> tuple[Int64, Int64]:
    """Where the entries of the chosen rows lie, one row after another; and the offsets of the rows put together so."""

def transpose(row_count: int, offsets: Int64, columns: Int32, values: Int32) -> tuple[Int64, Int32, Int32]:
    """A sparse table by its other index: entries (k, columns[i], values[i]) for i in ``offsets[k]..offsets[k+1]-1``.

    `columns`: from 0 to row_count-1. Returns (offsets, ks, values) by column; ks ascend within each. Counting sort:
    O(entries).
    """

def list_members(ranks: Int32, class_of: Int32, order: Int32, class_count: int, dense: Int32) -> tuple[Int32, Int32]:
    """(offsets, members), int32: ``members[offsets[k] : offsets[k + 1]]`` are the tokens of class k.

    `ranks`, `class_of`: as in `Columns`; `order`: int32, the token of each rank; `dense`: int32, the class of each
    rank, written where there is one; or empty. O(tokens).
    """

def reached_states(start: int, offsets: Int64, targets: Int32) -> tuple[Int32, Int32, Int64]:
    """The states that can be reached from `start` along ``targets[offsets[s]:offsets[s+1]]``, breadth-first.

    Returns them, int32; the place of each state among them, -1 for the others; and where their rows begin if they are
    put in this order, int64. O(entries).
    """

def enlarge(array: npt.NDArray[ScalarT], room: int, used: int) -> npt.NDArray[ScalarT]:
    """A longer array with the first `used` entries of `array`."""
