"""Lists of tokens and packed masks, against sets. What is kept is tested in tests/backends/test_batch_masks.py."""

from __future__ import annotations

import gc
import os

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokdfa import mask as masks
from tokdfa.vocabulary.mask_store import NARROW, MaskStore, add_tokens, list_tokens

sizes = st.integers(1, 2_000)
ids = st.lists(st.integers(-(2**31), 2**31 - 1) | st.integers(0, 2_000), max_size=50)


@given(sizes, ids, ids)
def test_lists_become_masks_and_lists(size: int, first: list[int], second: list[int]) -> None:
    """Tokens that do not fit are left out, whatever they are."""
    width = 32 * masks.mask_words(size)
    out = np.zeros(width // 32 + 2, dtype=np.int32)
    out[0] = out[-1] = 7
    add_tokens(np.array(first, dtype=np.int32), out[1:-1])
    add_tokens(np.array(second, dtype=np.int32), out[1:-1])
    expected = sorted({token for token in first + second if 0 <= token < width})
    assert masks.mask_to_ids(out[1:-1].copy()).tolist() == expected
    assert (out[0], out[-1]) == (7, 7)
    for room in {0, max(len(expected) - 1, 0), len(expected), len(expected) + 1}:
        found = np.full(room + 1, 7, dtype=np.int32)
        count = list_tokens(out[1:-1], found[:room])
        assert count == (len(expected) if room >= len(expected) else -1)
        if count >= 0:
            assert found[:count].tolist() == expected
        assert found[room] == 7


@given(st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 1_199))), max_size=12), st.integers(0, 20_000))
def test_the_last_mask_of_a_state_comes_back_unless_all_were_dropped(
    kept: list[tuple[int, set[int]]], limit: int
) -> None:
    store, words = MaskStore(limit, masks.mask_words(1_200)), masks.mask_words(1_200)
    expected: dict[int, list[int]] = {}
    for state, tokens in kept:
        wide = tokens | set(range(600)) if state % 2 else tokens
        if store.nbytes > limit:
            expected.clear()
        mask = masks.mask_from_ids(sorted(wide), 1_200)
        store.keep(state, mask)
        mask[:] = 0
        expected[state] = sorted(wide)
        assert len(store) == len(expected)
        out = np.empty(words, dtype=np.int32)
        for one, found in expected.items():
            assert one in store
            assert store.fill(one, out)
            assert masks.mask_to_ids(out).tolist() == found
            assert (store.place(one)[1] >= 0) == (len(found) <= NARROW)
    with pytest.raises(ValueError, match="words"):
        store.fill(0, np.empty(words + 1, dtype=np.int32))
    with pytest.raises(KeyError):
        store.place(6)
    for wrong, error in (([], TypeError), ("0", TypeError), (1 << 63, OverflowError)):
        with pytest.raises(error, match="int"):
            store.fill(wrong, np.empty(words, dtype=np.int32))  # type: ignore[arg-type]


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="sanitizers hold back what is freed")
def test_stores_leave_nothing_behind() -> None:
    wide, narrow = masks.mask_from_ids(range(900), 1_200), masks.mask_from_ids([3], 1_200)
    spare: list[np.ndarray] = []

    def make(count: int) -> int:
        for _ in range(count):
            store = MaskStore(1 << 20, len(wide), spare)
            for state in range(3):
                store.keep(state, wide if state else narrow)
            store.share(1, 9)
        gc.collect()
        return int(psutil.Process().memory_info().rss)

    before = make(1_000)
    assert make(10_000) - before < 2 << 20


@pytest.mark.parametrize("words", [1, 3, 5, 38, 1_001])
def test_masks_are_written_to_any_address(words: int) -> None:
    """Copies go other ways where source and target lie close to each other within their pages."""
    store, size = MaskStore(1 << 20, words), 32 * words
    narrow, wide = masks.mask_from_ids([size - 1], size), masks.mask_from_ids(range(0, size, 2), size)
    store.keep(0, narrow, signature=1)  # packed, as nothing is known of it
    store.keep(1, wide)
    store.keep(2, masks.mask_from_ids([0, size - 1], size))
    for state, mask in enumerate((narrow, wide, masks.mask_from_ids([0, size - 1], size))):
        room = np.empty(words + 2_100, dtype=np.int32)
        for ahead in [*range(0, 132, 4), 2_048, 4_092]:
            room[:] = 7
            begin = 1 + (store.place(state)[0] + ahead - room.ctypes.data - 4) % 4_096 // 4
            assert store.fill(state, room[begin : begin + words])
            assert np.array_equal(room[begin : begin + words], mask)
            assert (room[:begin] == 7).all()
            assert (room[begin + words :] == 7).all()
