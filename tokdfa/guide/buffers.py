"""The caller's memory as mask words: any writable buffer of integers, or an address.

A mask is a row of bits: token i is bit i % 32 of the 32-bit word i // 32 (see `tokdfa.mask`). 001 passes an
``array.array`` whose words have 64 bits, outlines_core the address of 32-bit words. In memory both are the same bits,
as the low byte comes first on x86 and ARM.
"""

from __future__ import annotations

import array
import ctypes
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.guide.arguments import GuideError, GuideTypeError, as_count
from tokdfa.mask import mask_words

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from tokdfa.mask import Mask

#: The bytes of a mask word.
WORD_BYTES = 4
#: What a buffer may call its items: native integers of 4 or 8 bytes.
_ITEM_FORMATS = frozenset(order + code for order in ("", "@", "=", "<") for code in "iIlLqQ")


def create_mask(size: int) -> array.array[int]:
    """An empty mask for `Guide.get_tokens`: 64-bit words (as in 001) with a bit for each of `size` tokens.

    ``tokdfa.mask_to_ids(numpy.frombuffer(mask, numpy.int32))`` lists its tokens.
    """
    if as_count(size, "size") == 0:
        raise GuideError("a mask holds at least one token; pass the vocabulary's size()")
    return array.array("Q", bytes((size + 63) // 64 * 8))


def words_of_buffer(mask: Buffer, size: int) -> Mask:
    """The memory of a mask over `size` tokens: int32, shape (words,), at least ceil(size/32). About 1 us.

    GuideTypeError if it is no buffer of integers, GuideError if it is read-only, scattered, a batch or too short.
    """
    try:
        view = memoryview(mask)
    except TypeError:
        raise GuideTypeError(
            f"a mask is a writable buffer such as create_mask({size}), not {type(mask).__name__}; "
            "of a torch tensor pass tensor.numpy(), or use write_mask_into"
        ) from None
    if view.format not in _ITEM_FORMATS:
        raise GuideTypeError(f"a mask has native integers of 4 or 8 bytes, not items of format {view.format!r}")
    if view.readonly or not view.c_contiguous:
        raise GuideError("the mask must be writable and contiguous")
    if view.ndim > 1 and view.shape is not None and view.shape[-1] * view.itemsize != view.nbytes:
        raise GuideError(f"a guide fills one mask, not one of shape {view.shape}; pass one row")
    _check_length(view.nbytes // WORD_BYTES, size)
    words: Mask = np.frombuffer(mask, dtype=np.int32)  # type: ignore[call-overload]  # any buffer will do
    return words


def words_at(address: int, count: int, item_bytes: int, size: int) -> Mask:
    """`count` words of memory from `address` on, which the caller vouches for, as int32, shape (count,). About 2 us.

    GuideError if an item has not 4 bytes, the address is 0 or unaligned, or `size` tokens need more words.
    """
    if item_bytes != WORD_BYTES:
        raise GuideError(f"a mask has elements of {WORD_BYTES} bytes, not {item_bytes}; use int32")
    start, given = as_count(address, "data_ptr"), as_count(count, "numel")
    if not start or start % WORD_BYTES:
        raise GuideError(f"data_ptr is the address of 32-bit words, a multiple of {WORD_BYTES} above 0, not {start}")
    _check_length(given, size)
    words: Mask = np.frombuffer((ctypes.c_int32 * given).from_address(start), dtype=np.int32)  # type: ignore[call-overload]
    return words


def _check_length(words: int, size: int) -> None:
    if words < mask_words(size):
        raise GuideError(f"a mask over {size} tokens has at least {mask_words(size)} words of 32 bits, not {words}")
