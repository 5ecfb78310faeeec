"""Maps from keys to numbers, against a dict."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from tokdfa.core.key_map import enter_key, is_crowded, longer_map, look_up, new_map

KEYS = st.lists(st.tuples(st.one_of(st.integers(0, 9), st.integers(0, (1 << 63) - 1)), st.integers(-1, 99)))


@given(pairs=KEYS, room=st.integers(1, 9), absent=st.sampled_from([-1, -2]))
def test_like_a_dict(pairs, room, absent):
    keys, numbers = new_map(room, absent)
    assert len(keys) == len(numbers) == 1 << len(keys).bit_length() - 1
    assert not is_crowded(room - 1, keys)
    known: dict[int, int] = {}
    for key, number in pairs:
        assert look_up(key, keys, numbers) == known.get(key, absent)
        if is_crowded(len(known), keys):
            keys, numbers = longer_map(keys, numbers, absent)
        enter_key(key, number, keys, numbers)
        known[key] = number
        assert (keys >= 0).sum() == len(known)
        assert 2 * len(known) <= len(keys) == len(numbers)
    assert {key: look_up(key, keys, numbers) for key in known} == known
    assert (numbers[keys < 0] == absent).all()


def test_equal_places():
    """Keys that differ above the bits that a small map looks at."""
    keys, numbers = new_map(8, -1)
    same = [key for key in range(10_000) if (key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> 24 & 15 == 15][:8]
    for number, key in enumerate(same):
        enter_key(key, number, keys, numbers)
    assert [look_up(key, keys, numbers) for key in same] == list(range(8))
    assert look_up(np.int64(same[-1] + 1), keys, numbers) == -1
