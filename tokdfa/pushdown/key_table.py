"""Hash tables from keys to numbers, as two arrays that kernels read: for partitions and for branches.

``keys`` int64, -1 where nothing is; ``slots`` int32, the number of each key. Their length is a power of two, and at
most half of it is used: whoever enters keys sees to that.
"""

from __future__ import annotations

import numpy as np

from tokdfa.jit import kernel


@kernel
def _hash_key(key):  # type: ignore[no-untyped-def]
    return np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24))


@kernel
def enter_key_kernel(keys, slots, key, number):  # type: ignore[no-untyped-def]
    """Enter a new key into a table that has room."""
    mask = len(keys) - 1
    slot = _hash_key(key) & mask
    while keys[slot] >= 0:
        slot = (slot + 1) & mask
    keys[slot], slots[slot] = key, number


@kernel
def look_up_key_kernel(keys, slots, key):  # type: ignore[no-untyped-def]
    """The number of a key, or -1."""
    mask = len(keys) - 1
    slot = _hash_key(key) & mask
    while keys[slot] >= 0:
        if keys[slot] == key:
            return np.int64(slots[slot])
        slot = (slot + 1) & mask
    return np.int64(-1)
