"""What a partition of the vocabulary is known by: a place of the trie, a state, and its kind (see `partition`)."""

from __future__ import annotations

import numpy as np

from tokdfa.core.jit import kernel
from tokdfa.core.key_map import look_up

#: Added to a state: its strict partition; one for an item that is alone in its row; one of the tokens that begin with a
#: byte that it reads; one (ALONE, too) with exits. What these are added to.
STRICT, ALONE, OWN, EXITS = 1 << 21, 1 << 22, 1 << 23, 1 << 24
STATE_PART = STRICT - 1
#: Key of a partition: its place, and the bits of its state.
KEY_SHIFT = 25


@kernel
def find_partition(place, state, pool):  # type: ignore[no-untyped-def]
    """The number of a partition, or -1."""
    return np.int64(look_up(np.int64(place) << KEY_SHIFT | np.int64(state), pool.part_keys, pool.part_slots))
