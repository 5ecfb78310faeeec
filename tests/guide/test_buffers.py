"""Masks in the caller's memory: every buffer that fits is filled in full, every other is refused with the reason."""

from __future__ import annotations

import array
import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
import outlines_core
import pytest
from outlines_core.kernels import numpy as outlines_kernels

import tokdfa.guide
from tests.guide.sides import BACKENDS, index, mask_tokens, vocabulary
from tokdfa.guide import Guide, GuideError, GuideTypeError, Index, Vocabulary, create_mask

if TYPE_CHECKING:
    from collections.abc import Callable

#: V = 61: two words of 32 bits, one of 64.
BUFFERS: dict[str, Callable[[], Any]] = {
    "create_mask": lambda: create_mask(61),
    "array I": lambda: array.array("I", [7, 7]),
    "array Q": lambda: array.array("Q", [7]),
    "int32": lambda: np.full(2, -1, np.int32),
    "one row": lambda: np.full((1, 2), -1, np.int32),
    "ctypes": lambda: (ctypes.c_uint32 * 2)(7, 7),
    "longer array": lambda: array.array("I", [7] * 5),
    "memoryview": lambda: memoryview(array.array("I", [7, 7])),
}
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "list": (lambda: [0, 0], GuideTypeError, r"not list.*tensor\.numpy\(\)"),
    "bytes": (lambda: bytes(8), GuideTypeError, "'B'"),
    "16 bits": (lambda: array.array("H", [0] * 4), GuideTypeError, "'H'"),
    "bool": (lambda: np.zeros(61, np.bool_), GuideTypeError, r"'\?'"),
    "swapped": (lambda: np.zeros(2, np.dtype(np.int32).newbyteorder()), GuideTypeError, "native integers"),
    "scattered": (lambda: np.zeros(8, np.int32)[::2], GuideError, "contiguous"),
    "read-only": (lambda: np.frombuffer(bytes(8), np.int32), GuideError, "writable"),
    "batch": (lambda: np.zeros((3, 2), np.int32), GuideError, r"shape \(3, 2\)"),
    "short": (lambda: array.array("I", [0]), GuideError, "61 tokens has at least 2 words of 32 bits, not 1"),
}


@pytest.mark.parametrize("kind", BUFFERS)
def test_every_buffer_that_fits_is_filled_in_full(kind: str) -> None:
    guide = Guide(index("(abb|cat|0)+"))
    for token in (None, 40, 34):
        if token is not None:
            guide.advance(token, False)
        mask = BUFFERS[kind]()
        assert guide.get_tokens(mask) is None
        assert mask_tokens(mask) == guide.get_tokens() == guide.get_tokens(None)
        words = np.frombuffer(mask, np.uint32)
        assert words[2:].tolist() == [0] * (len(words) - 2)
    for advance, listed in (
        (lambda mask: guide.advance(40, mask), False),
        (lambda mask: guide.advance(40, mask=mask), False),
        (lambda mask: guide.advance(40, False, mask), False),
        (lambda mask: guide.advance(token_id=40, return_tokens=True, mask=mask), True),
    ):
        mask = BUFFERS[kind]()
        guide.reset()
        assert advance(mask) == (guide.get_tokens() if listed else None)
        assert mask_tokens(mask) == guide.get_tokens()
        assert guide.get_allowed_rollback() == 1


@pytest.mark.parametrize("kind", WRONG)
def test_other_buffers_are_refused_and_nothing_moves(kind: str) -> None:
    make, error, said = WRONG[kind]
    guide = Guide(index("(abb|cat|0)+"))
    mask = make()
    for call in (guide.get_tokens, lambda mask: guide.advance(40, mask), lambda mask: guide.advance(40, mask=mask)):
        with pytest.raises(error, match=said):
            call(mask)
    assert (guide.get_state(), guide.get_allowed_rollback()) == (0, 0)


def test_a_refused_token_leaves_the_mask() -> None:
    guide, mask = Guide(index("ab*c")), array.array("I", [5, 6])
    with pytest.raises(GuideError, match="token 0 is not allowed"):
        guide.advance(0, mask)
    assert mask.tolist() == [5, 6]
    with pytest.raises(GuideTypeError, match="one mask"):
        guide.advance(4, mask, mask)
    assert guide.get_state() == 0


def test_the_example_of_the_source() -> None:
    """001, section E, with the token that its `advance` leaves out."""
    vocab = vocabulary(tokdfa.guide)
    guide = Guide(Index("[0-9]{1,3}", vocab, backend="token_index"))
    mask = create_mask(vocab.size())
    guide.get_tokens(mask)
    first = mask_tokens(mask)
    assert first == guide.get_tokens()
    guide.advance(first[0], mask)
    assert mask_tokens(mask) == guide.get_tokens() != first


# write_mask_into


@pytest.mark.parametrize("backend", BACKENDS)
def test_addresses_are_filled_as_outlines_core_fills_them(backend: str) -> None:
    ours = Guide(index("(dog|cat)s?", backend))
    theirs = outlines_core.Guide(outlines_core.Index("(dog|cat)s?", vocabulary(outlines_core)))
    for token in (None, 7, 9, 8, 10):
        for words in (2, 3, 8):
            expected, mask = np.full(10, -1, np.int32), np.full(10, -1, np.int32)
            if token is not None and words == 2:
                ours.advance(token, False)
                theirs.advance(token, False)
            theirs.write_mask_into(expected.ctypes.data, words, 4)
            assert ours.write_mask_into(data_ptr=mask.ctypes.data, numel=words, element_size=4) is None
            assert mask.tolist() == expected.tolist()
            assert mask[words:].tolist() == [-1] * (10 - words)


@pytest.mark.parametrize("side", ["outlines_core", "tokdfa"])
def test_addresses_that_both_refuse(side: str) -> None:
    guide: Any = Guide(index("ab*c"))
    if side == "outlines_core":
        guide = outlines_core.Guide(outlines_core.Index("ab*c", vocabulary(outlines_core)))
    mask = np.full(4, -1, np.int32)
    address = mask.ctypes.data
    for arguments, said in (
        ((address, 4, 8), "(?i)elements? .*8"),
        ((address, 4, 1), "(?i)elements? .*1"),
        ((0, 4, 4), "null|above 0"),
        ((address + 1, 2, 4), "multiple of 4"),
        ((address, 1, 4), "(?i)61 tokens|buffer size"),
        ((address, 0, 4), "(?i)not 0|got 0"),
    ):
        with pytest.raises(ValueError, match=said):
            guide.write_mask_into(*arguments)
    with pytest.raises(TypeError):
        guide.write_mask_into("0", 4, 4)
    assert mask.tolist() == [-1] * 4


def test_the_kernels_of_outlines_core_take_our_guide() -> None:
    guide = Guide(index("(dog|cat)s?"))
    mask = outlines_kernels.allocate_token_bitmask(61)
    outlines_kernels.fill_next_token_bitmask(guide, mask)
    assert mask_tokens(mask) == guide.get_tokens()


def test_masks_cover_ids_with_gaps() -> None:
    """outlines_core counts tokens, here three, and writes one word; token 70 is lost. Ours asks for three words."""
    tokens = {"1": [1], "2": [70]}
    theirs = outlines_core.Guide(outlines_core.Index("[12]", outlines_core.Vocabulary(9, tokens)))
    mask = np.zeros(3, np.int32)
    theirs.write_mask_into(mask.ctypes.data, 1, 4)
    assert (sorted(theirs.get_tokens()), mask_tokens(mask)) == ([1, 70], [1])
    ours = Guide(Index("[12]", Vocabulary(9, tokens), backend="token_index"))
    with pytest.raises(GuideError, match="71 tokens has at least 3 words"):
        ours.write_mask_into(mask.ctypes.data, 1, 4)
    ours.write_mask_into(mask.ctypes.data, 3, 4)
    assert mask_tokens(mask) == ours.get_tokens() == [1, 70]
