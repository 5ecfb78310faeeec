"""Keys of 64 bits as numbers, in two plain arrays: for kernels that own them and need no struct.

Key n is ``keys[n]``, int64; ``slots``, int32, is an open-addressing hash table of numbers, -1 where none is, whose
length is a power of two, at most half full. Whoever enters keys sees to the room (`longer_keys`). Tables that Python
owns, with columns, limits and contents of any length: `tokdfa.core.interning`, which keeps its tables of keys so too.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.core.jit import kernel


@kernel
def pack_pair(first, second):  # type: ignore[no-untyped-def]
    """Two numbers of 32 bits, which may be negative, as one key: `first_of` and `second_of` take them apart."""
    return np.int64(first) << 32 | (np.int64(second) & np.int64(0xFFFFFFFF))


@kernel
def first_of(key):  # type: ignore[no-untyped-def]
    """The first number of a pair, int64."""
    return key >> 32


@kernel
def second_of(key):  # type: ignore[no-untyped-def]
    """The second number of a pair, int64."""
    return np.int64(np.int32(key & np.int64(0xFFFFFFFF)))


def slot_count(room: int) -> int:
    """The length of a hash table for so many entries."""
    return 1 << (2 * room - 1).bit_length()


@kernel
def find_slot(key, keys, slots):  # type: ignore[no-untyped-def]
    """Where the number of `key` is, or belongs: uint64. Key n is ``keys[n]``; `slots` is int32, a power of two long."""
    one, wanted = np.uint64(1), np.int64(key)
    mask = np.uint64(len(slots)) - one
    slot = ((np.uint64(wanted) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(24)) & mask
    while slots[slot] >= 0 and keys[np.uint64(slots[slot])] != wanted:
        slot = (slot + one) & mask
    return slot


@kernel
def number_key(key, count, keys, slots):  # type: ignore[no-untyped-def]
    """(the number of a key, new or known, int64; how many keys there are then). There must be room for it."""
    slot = find_slot(key, keys, slots)
    number = np.int64(slots[slot])
    if number < 0:
        number = np.int64(count)
        slots[slot] = number
        keys[number] = key
        count += 1
    return number, np.int64(count)


@kernel
def fill_slots(keys, count, slots):  # type: ignore[no-untyped-def]
    """Enter the first `count` keys into empty slots."""
    for number in range(count):
        slots[find_slot(keys[number], keys, slots)] = number


def new_keys(room: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Arrays of keys and slots with room for so many keys, and none in them."""
    return np.empty(room, dtype=np.int64), np.full(slot_count(room), -1, dtype=np.int32)


@kernel
def longer_keys(least, count, keys):  # type: ignore[no-untyped-def]
    """New arrays of keys and slots with room for `least` keys, by doubling; the first `count` are in them."""
    room = len(keys)
    while room < least:
        room *= 2
    slot_count = 1
    while slot_count < 2 * room:
        slot_count *= 2
    new_keys, new_slots = np.empty(room, dtype=np.int64), np.full(slot_count, -1, dtype=np.int32)
    for number in range(count):  # no slice: numba's check of its length compiles for two seconds
        new_keys[number] = keys[number]
    fill_slots(new_keys, count, new_slots)
    return new_keys, new_slots
