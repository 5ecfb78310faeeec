"""Masks on tensors: by torch alone, on any device, as numpy says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokdfa
from tests.packages import needs
from tokdfa import mask as masks
from tokdfa.errors import ArgumentError

torch: Any = pytest.importorskip("torch", reason="torch is not installed (extra lm)")
torch.set_num_threads(1)
pytestmark = needs("torch")


def refused(logits: Any) -> list[list[bool]]:
    found: list[list[bool]] = torch.isneginf(logits).tolist()
    return found


@given(st.data())
def test_as_numpy_says(data: st.DataObject) -> None:
    size, batch = data.draw(st.integers(1, 100)), data.draw(st.integers(1, 4))
    width = size + data.draw(st.integers(-min(size - 1, 40), 40))
    bits = st.lists(st.booleans(), min_size=size, max_size=size)
    allowed = np.array(data.draw(st.lists(bits, min_size=batch, max_size=batch)))
    packed = np.stack([masks.mask_from_bool(row) for row in allowed])
    rows = data.draw(st.none() | st.lists(st.integers(0, batch - 1), unique=True))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64, torch.bfloat16, torch.float16]))
    logits = torch.zeros((batch, width), dtype=dtype)
    tokdfa.apply_masks(logits, torch.from_numpy(packed) if data.draw(st.booleans()) else packed, rows)
    wanted = np.ones((batch, width), dtype=bool)
    wanted[:, : min(size, width)] = ~allowed[:, :width]
    for row in range(batch):
        wanted[row] &= rows is None or row in rows
    assert refused(logits) == wanted.tolist()


def test_one_mask_for_all_rows_and_one_row_by_itself() -> None:
    packed = masks.mask_from_ids([1, 40], 64)
    logits = torch.zeros((3, 64))
    tokdfa.apply_masks(logits, packed)
    single = torch.zeros(64)
    tokdfa.apply_masks(single, packed)
    assert refused(logits) == [refused(single)] * 3
    assert np.flatnonzero(~np.array(refused(single))).tolist() == [1, 40]
    logits = torch.zeros((3, 64))
    tokdfa.apply_masks(logits, packed, [2])
    assert [sum(row) for row in refused(logits)] == [0, 0, 62]
    tokdfa.apply_masks(logits, packed, [])
    assert [sum(row) for row in refused(logits)] == [0, 0, 62]


def test_views_are_written_in_place() -> None:
    whole = torch.zeros((4, 100))
    tokdfa.apply_masks(whole[::2, :64], masks.mask_from_ids([3], 64))
    assert [sum(row) for row in refused(whole)] == [63, 0, 63, 0]


def test_nothing_goes_through_numpy_or_another_device() -> None:
    """Tensors without values, as on a device of their own: reading one would raise."""
    logits = torch.zeros((2, 100), device="meta")
    for rows in (None, [1]):
        tokdfa.apply_masks(logits, torch.zeros((2, 4), dtype=torch.int32, device="meta"), rows)


def test_with_matchers() -> None:
    vocabulary = tokdfa.load_tokenizer("bytes").vocabulary
    matchers = [tokdfa.compile(tokdfa.Regex(pattern), vocabulary).start() for pattern in ("[ab]", "x")]
    packed = torch.from_numpy(tokdfa.allocate_mask(vocabulary.size, 2))
    tokdfa.fill_masks(matchers, packed)
    logits = torch.zeros((2, vocabulary.size))
    tokdfa.apply_masks(logits, packed)
    assert [np.flatnonzero(~np.array(row)).tolist() for row in refused(logits)] == [[97, 98], [120]]


@pytest.mark.parametrize(
    ("named", "logits", "packed", "rows"),
    [
        ("logits", np.zeros((1, 32)), np.zeros((1, 1), np.int32), None),
        ("logits", torch.zeros((1, 32), dtype=torch.int64), np.zeros((1, 1), np.int32), None),
        ("logits", torch.zeros((1, 1, 32)), np.zeros((1, 1), np.int32), None),
        ("masks", torch.zeros((1, 32)), np.zeros((1, 1), np.int64), None),
        ("masks", torch.zeros((1, 32)), "mask", None),
        ("masks has 2 rows and logits 3", torch.zeros((3, 32)), np.zeros((2, 1), np.int32), None),
        ("rows", torch.zeros((3, 32)), np.zeros((3, 1), np.int32), [3]),
        ("rows", torch.zeros((3, 32)), np.zeros((3, 1), np.int32), 1),
        ("rows", torch.zeros((3, 32)), np.zeros((3, 1), np.int32), ["0"]),
    ],
)
def test_wrong_calls(named: str, logits: Any, packed: Any, rows: Any) -> None:
    with pytest.raises(ArgumentError, match=named):
        tokdfa.apply_masks(logits, packed, rows)
