"""Maps from keys to numbers, as two arrays that kernels read beside others, where a look-up has to touch one place.

``keys`` int64, not negative, -1 where nothing is; ``numbers`` int32, the number of each key, and where nothing is what
a look-up answers then. Their length is a power of two and at most half of it is used: whoever enters keys sees to that
(`is_crowded`, `longer_map`). Numbers that are given in order, and found by content, are an interning table
(`tokdfa.core.interning`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.core.jit import kernel

Keys = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]


def new_map(room: int, absent: int) -> tuple[Keys, Numbers]:
    """An empty map with room for so many keys at least. `absent`: what a look-up answers for other keys."""
    size = 1 << (2 * room - 1).bit_length()
    return np.full(size, -1, dtype=np.int64), np.full(size, absent, dtype=np.int32)


def longer_map(keys: Keys, numbers: Numbers, absent: int) -> tuple[Keys, Numbers]:
    """A map in arrays twice as long. Linear in them. What it takes is the caller's to count
    (`tokdfa.core.budget.hold`).
    """
    grown = new_map(len(keys), absent)
    _copy_map_kernel(keys, numbers, *grown)
    return grown


def is_crowded(count: int, keys: Keys) -> bool:
    """Whether there is no room for another key beside `count`."""
    return 2 * count + 2 > len(keys)


@kernel
def find_place(key, keys):  # type: ignore[no-untyped-def]
    """Where a key is, or belongs: uint64."""
    one, wanted = np.uint64(1), np.int64(key)
    mask = np.uint64(len(keys)) - one
    place = ((np.uint64(wanted) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while keys[place] >= 0 and keys[place] != wanted:
        place = (place + one) & mask
    return place


@kernel
def look_up(key, keys, numbers):  # type: ignore[no-untyped-def]
    """The number of a key, int32."""
    return numbers[find_place(key, keys)]


@kernel
def enter_key(key, number, keys, numbers):  # type: ignore[no-untyped-def]
    """Give a key a number; there must be room for it if it is new."""
    place = find_place(key, keys)
    keys[place] = key
    numbers[place] = number


@kernel
def _copy_map_kernel(keys, numbers, new_keys, new_numbers):  # type: ignore[no-untyped-def]
    """Copy a map into an empty one."""
    for place in range(len(keys)):
        if keys[place] >= 0:
            enter_key(keys[place], numbers[place], new_keys, new_numbers)
