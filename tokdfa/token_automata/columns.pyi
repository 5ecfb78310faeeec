from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Integers = npt.NDArray[np.integer]
ScalarT = TypeVar("ScalarT", bound=np.generic)

class Columns(NamedTuple):
    ranks: Int32
    class_of: Int32
    offsets: Int64
    sources: Int32
    targets: Int32
    in_order: bool = False

    @property
    def class_count(self) -> int: ...

def unite(parts: Sequence[Columns]) -> Columns: ...
def join(parts: Sequence[Columns]) -> Columns: ...
def distinct_rows(offsets: Integers, keys: Integers, values: Integers) -> tuple[Int32, Int64, Int32, Int32]: ...
def places_of(offsets: Integers, rows: Integers) -> tuple[Int64, Int64]: ...
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
