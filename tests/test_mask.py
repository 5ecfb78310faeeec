from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa import mask as masks
from tokdfa.errors import TokdfaError


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.integers(1, 200).flatmap(lambda size: st.tuples(st.just(size), st.sets(st.integers(0, size - 1)))))
def test_round_trips(drawn: tuple[int, set[int]]) -> None:
    size, ids = drawn
    mask = masks.mask_from_ids(sorted(ids), size)
    assert mask.dtype == np.int32
    assert mask.shape == (masks.mask_words(size),)
    assert masks.mask_to_ids(mask).tolist() == sorted(ids)
    assert masks.count(mask) == len(ids)
    flags = masks.mask_to_bool(mask, size)
    assert flags.shape == (size,)
    assert masks.mask_from_bool(flags).tolist() == mask.tolist()
    for token in range(-1, size + 40):
        assert masks.contains(mask, token) == (token in ids)
    built = masks.allocate_mask(size)
    for token in ids:
        masks.set_token(built, token)
    assert built.tolist() == mask.tolist()
    for token in ids:
        masks.clear_token(built, token)
    assert not built.any()


def test_bit_order_is_little() -> None:
    assert masks.mask_from_ids([0, 33], 64).tolist() == [1, 2]
    assert masks.mask_from_ids([31], 32).tolist() == [-(1 << 31)]


@pytest.mark.parametrize(
    "wrong", [np.zeros(2, np.int32), np.zeros(1, np.int64), [0], np.zeros(4, np.int32)[::4], np.zeros((1, 1), np.int32)]
)
def test_wrong_masks_are_named(wrong: object) -> None:
    with pytest.raises(TokdfaError, match="allocate_mask"):
        masks.check_mask(wrong if not isinstance(wrong, np.ndarray) or wrong.shape != (1,) else wrong[:0], 20)  # type: ignore[arg-type]


def test_batches() -> None:
    assert masks.allocate_mask(100, batch=3).shape == (3, 4)
