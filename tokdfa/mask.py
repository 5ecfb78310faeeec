"""Packed token masks: the set of allowed next tokens, one bit a token.

A mask is an int32 array of shape ``(ceil(V / 32),)``; bit ``i % 32`` of word ``i // 32`` is set iff token ``i`` is
allowed; bits from V up are zero. llguidance, xgrammar, outlines-core and glrmask use the same layout, so one buffer
serves all. V is the model's logit width (`Vocabulary.size`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokdfa.errors import TokdfaError

Mask = npt.NDArray[np.int32]


def mask_words(size: int) -> int:
    """The number of int32 words of a mask over `size` tokens."""
    return (size + 31) // 32


def allocate_mask(size: int, batch: int | None = None) -> Mask:
    """An empty mask: int32, shape ``(ceil(size/32),)``, or ``(batch, ceil(size/32))`` when `batch` is given."""
    words = mask_words(size)
    return np.zeros(words if batch is None else (batch, words), dtype=np.int32)


def check_mask(mask: Mask, size: int) -> None:
    """Raise TokdfaError unless `mask` is a writable C-contiguous int32 mask over `size` tokens. About 0.3 us."""
    if not isinstance(mask, np.ndarray) or mask.dtype != np.int32 or mask.shape != ((size + 31) // 32,):
        got = f"{mask.dtype} {mask.shape}" if isinstance(mask, np.ndarray) else type(mask).__name__
        raise TokdfaError(
            f"the mask must be an int32 array of shape ({mask_words(size)},), not {got}; use allocate_mask({size})"
        )
    flags = mask.flags
    if not (flags.c_contiguous and flags.writeable):
        raise TokdfaError("the mask must be contiguous and writable; use allocate_mask or a copy")


def mask_from_bool(allowed: npt.NDArray[np.bool_]) -> Mask:
    """Pack booleans of shape ``(V,)`` into a mask."""
    padded = np.zeros(mask_words(len(allowed)) * 32, dtype=np.bool_)
    padded[: len(allowed)] = allowed
    return np.packbits(padded, bitorder="little").view(np.dtype("<i4")).astype(np.int32, copy=False)


def mask_to_bool(mask: Mask, size: int | None = None) -> npt.NDArray[np.bool_]:
    """Unpack a mask into booleans of shape ``(size,)`` (all of the mask's bits when `size` is None)."""
    little = np.ascontiguousarray(mask).astype("<i4", copy=False)
    return np.unpackbits(little.view(np.uint8), bitorder="little", count=size).astype(np.bool_)


def mask_from_ids(ids: npt.ArrayLike, size: int) -> Mask:
    """The mask over `size` tokens with exactly `ids` set."""
    allowed = np.zeros(size, dtype=np.bool_)
    allowed[np.asarray(ids, dtype=np.int64)] = True
    return mask_from_bool(allowed)


def mask_to_ids(mask: Mask) -> npt.NDArray[np.int32]:
    """The allowed tokens in ascending order, int32."""
    return np.flatnonzero(mask_to_bool(mask)).astype(np.int32)


def count(mask: Mask) -> int:
    """How many tokens are allowed."""
    return int(np.bitwise_count(mask.view(np.uint32)).sum())


def contains(mask: Mask, token: int) -> bool:
    """True iff `token` is allowed. Tokens outside the mask are not."""
    return 0 <= token < 32 * len(mask) and bool((int(mask[token >> 5]) >> (token & 31)) & 1)


def set_token(mask: Mask, token: int) -> None:
    """Allow `token`, in place."""
    mask.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))


def clear_token(mask: Mask, token: int) -> None:
    """Refuse `token`, in place."""
    mask.view(np.uint32)[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)


def apply_to_logits(mask: Mask, logits: npt.NDArray[np.floating]) -> None:
    """Set the logits (floating, shape ``(V,)``) of refused tokens to minus infinity, in place."""
    logits[~mask_to_bool(mask, len(logits))] = -np.inf
