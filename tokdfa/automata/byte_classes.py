"""Partitions of the 256 bytes into classes that an automaton cannot tell apart.

A partition is a uint8 array `byte_class` of shape (256,): byte -> number of its class. Classes are numbered in the
order of their smallest bytes, so equal partitions are equal arrays. With each partition come its `representatives`:
uint8, shape (C,), the smallest byte of each class; they ascend.

All functions sort the columns by their content: O(rows x 256 log 256) time at most, 40 us if there are few rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.errors import AutomatonError

ByteClasses = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def byte_classes(table: npt.NDArray[np.integer]) -> ByteClasses:
    """The coarsest partition such that bytes of one class have equal columns in `table`: integers, shape (S, 256).

    Returns (byte_class, representatives). A table without rows has one class.
    """
    if table.ndim != 2 or table.shape[1] != 256:
        raise AutomatonError(f"a table by bytes has shape (states, 256), not {table.shape}")
    return _classes_of_columns(np.ascontiguousarray(table.T), np.arange(256))


def merge_equal_columns(table: npt.NDArray[np.integer], byte_class: npt.NDArray[np.uint8]) -> ByteClasses:
    """`byte_classes` of a table that has one column a class already: shape (S, C), `byte_class`: byte -> column."""
    return _classes_of_columns(np.ascontiguousarray(table.T), byte_class)


def common_classes(first: npt.NDArray[np.uint8], second: npt.NDArray[np.uint8]) -> ByteClasses:
    """The coarsest common refinement: bytes are together iff they are together in both partitions."""
    return _classes_of_columns(np.stack([first, second], axis=1), np.arange(256))


def _classes_of_columns(columns: npt.NDArray[np.generic], column_of: npt.NDArray[np.integer]) -> ByteClasses:
    """Number the distinct rows of `columns` (C-contiguous) by the smallest byte whose `column_of` has that content."""
    width = columns.shape[1] * columns.itemsize
    if not width:
        return np.zeros(256, dtype=np.uint8), np.zeros(1, dtype=np.uint8)
    contents = columns.view(np.dtype((np.void, width)))[:, 0]
    same = np.unique(contents, return_inverse=True)[1].reshape(-1)  # columns of equal content have equal numbers
    _, representatives, numbers = np.unique(same[column_of], return_index=True, return_inverse=True)
    order = np.argsort(representatives)
    rank = np.empty(len(order), dtype=np.uint8)
    rank[order] = np.arange(len(order))
    return rank[numbers.reshape(-1)], representatives[order].astype(np.uint8)
