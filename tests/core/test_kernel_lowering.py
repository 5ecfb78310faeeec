"""Elements of arrays as `tokdfa.core.kernel_lowering` reads and writes them, against Python and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tokdfa.core.jit import kernel
from tokdfa.core.kernel_struct import Struct

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float64")


class Arrays(Struct, fields=("flat", "square")):
    """One array of each rank."""


@kernel
def _copy(source, target, places, far, struct):  # type: ignore[no-untyped-def]
    """Elements at signed and unsigned places, some counted from the end, of both ranks; and those of a struct."""
    for k in range(len(places)):
        place = places[k]
        target[k, 0] = source[place, 1]
        target[k, -1] = source[-1, place]
        target[k][1] = source[far[0], np.uint64(k)]
    struct.flat[-2] = struct.square[-1, 0]
    struct.square[0, np.uint8(1)] = struct.flat[0]
    return struct.flat.size + len(struct.square) + struct.square.shape[1]


def _expected(source: Any, target: Any, places: Any, far: Any, flat: Any, square: Any) -> int:
    for k, place in enumerate(places.tolist()):
        target[k, 0], target[k, -1] = source[place, 1], source[-1, place]
        target[k, 1] = source[int(far[0]), k]
    flat[-2] = square[-1, 0]
    square[0, 1] = flat[0]
    return int(flat.size + len(square) + square.shape[1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_are_those_of_numpy(dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    source = rng.integers(0, 200, (4, 4)).astype(dtype)
    places, far = np.array([0, 3, -1, -4], dtype=np.int8), np.array([2], dtype=np.uint8)
    flat, square = rng.integers(0, 200, 5).astype(dtype), rng.integers(0, 200, (3, 2)).astype(dtype)
    outcomes = []
    for compiled in (True, False):
        target, own, other = np.zeros((4, 4), dtype=dtype), flat.copy(), square.copy()
        if compiled:
            value = _copy(source, target, places, far, Arrays(own, other))
        else:
            value = _expected(source, target, places, far, own, other)
        outcomes.append((value, target.tolist(), own.tolist(), other.tolist()))
    assert outcomes[0] == outcomes[1]


@kernel
def _write(value, array):  # type: ignore[no-untyped-def]
    """A value of another type, which is cast."""
    array[0] = value
    array[-1] = 7


@pytest.mark.parametrize("value", [-3, 70_000, (1 << 40) + 5, True, np.uint8(250), 2.75, np.float32(1.5)])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "int64", "float64", "bool"])
def test_values_are_cast_as_numba_casts_them(dtype: str, value: Any) -> None:
    import numba

    found, expected = np.zeros(3, dtype=dtype), np.zeros(3, dtype=dtype)
    _write(value, found)
    numba.njit(_write.py_func)(value, expected)
    assert found.tolist() == expected.tolist()
