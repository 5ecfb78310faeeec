"""Reads and writes of a trie walk, counted: the kernel's own Python code, run on arrays that count.

What is compiled is the same code, and a compiler may keep nothing of these arrays in a register from node to node, as
each place is another one. Counted are nodes, the stack of states, the alphabet, the automaton's table, and the words of
the mask (a bit is set by a read and a write). Some 10 µs a node: seconds for a wide mask.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.vocabulary import byte_table, walker
from tokdfa.vocabulary.walk_layout import walk_source_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from tokdfa.vocabulary.trie import TokenTrie


class Accesses(NamedTuple):
    """Of one node in the mean over the nodes visited."""

    reads: float
    writes: float


class _Counted:
    """An array that counts its reads and writes."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._array, self.reads, self.writes = array, 0, 0

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return self._array[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        self.writes += 1
        self._array[place] = value


def _in_python(kernel: Any, **holes: Any) -> Callable[..., Any]:
    """A kernel's function, not compiled, with some of its globals replaced by Python functions."""
    function = getattr(kernel, "py_func", kernel)
    return FunctionType(function.__code__, {**function.__globals__, **holes}, function.__name__)


def count_source(
    trie: TokenTrie,
    nodes: npt.NDArray[np.uint64],
    table: npt.NDArray[np.int32],
    alphabet: npt.NDArray[np.uint8] | None,
    state: int,
) -> Accesses:
    """Of the walk of 004 (`tokdfa.vocabulary.walk_layout`)."""
    arrays = [_Counted(nodes), _Counted(table), None if alphabet is None else _Counted(alphabet)]
    arrays += [_Counted(_stack(trie, state)), _Counted(np.zeros(trie.size // 32 + 1, dtype=np.uint32))]
    visited, _ = _in_python(walk_source_kernel)(*arrays)
    return _means(arrays, visited)


def count_ours(trie: TokenTrie, table: Any, state: int) -> Accesses:
    """Of `tokdfa.vocabulary.byte_table.walk`. The table's rows are filled already."""
    arrays = [_Counted(trie.nodes), _Counted(table.transitions), _Counted(table.byte_class)]
    arrays += [_Counted(_stack(trie, state)), _Counted(np.zeros(trie.size // 32 + 1, dtype=np.uint32))]
    nodes, transitions, byte_class, stack, words = arrays
    step = _in_python(byte_table.step_table)
    walk = _in_python(
        walker.walk_in_python, step=step, take=_in_python(walker.set_bit), leave=_in_python(walker.stop_walk)
    )
    stopped, _, visited, _ = walk(nodes, 0, trie.node_count, (transitions, byte_class), stack, words, 0)
    if stopped < trie.node_count:
        raise AssertionError("the walk has met a row that is not filled")
    return _means(arrays, visited)


def _stack(trie: TokenTrie, state: int) -> npt.NDArray[np.int32]:
    stack = np.zeros(trie.depth_limit + 1, dtype=np.int32)
    stack[0] = state
    return stack


def _means(arrays: Sequence[_Counted | None], visited: int) -> Accesses:
    counted = [array for array in arrays if array is not None]
    return Accesses(*(sum(getattr(array, what) for array in counted) / visited for what in ("reads", "writes")))
