"""Packed token masks: the set of allowed next tokens, one bit a token.

A mask is an int32 array of shape ``(ceil(V / 32),)``; bit ``i % 32`` of word ``i // 32`` is set iff token ``i`` is
allowed; bits from V up are zero. llguidance, xgrammar, outlines-core and glrmask use the same layout, so one buffer
serves all. V is the model's logit width (`Vocabulary.size`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokdfa.core.arguments import as_integer, as_sequence, as_token
from tokdfa.errors import ArgumentError, a_type

Mask = npt.NDArray[np.int32]

#: numpy's only dtype object for native int32 (a mask with another object for it is checked the slow way).
INT32 = np.dtype(np.int32)
#: More tokens than any mask has room for.
MAX_SIZE = 1 << 40


def mask_words(size: int) -> int:
    """The number of int32 words of a mask over `size` tokens."""
    return (size + 31) // 32


def allocate_mask(size: int, batch: int | None = None) -> Mask:
    """An empty mask: int32, shape ``(ceil(size/32),)``, or ``(batch, ceil(size/32))`` when `batch` is given."""
    words = mask_words(as_integer(size, "size", 0, MAX_SIZE))
    shape = words if batch is None else (as_integer(batch, "batch", 0, MAX_SIZE), words)
    try:
        return np.zeros(shape, dtype=np.int32)
    except (MemoryError, ValueError):
        raise ArgumentError(f"size is {size} and batch {batch}: there is not so much memory") from None


def as_array(given: Any, name: str = "mask", remedy: str = "") -> npt.NDArray[Any]:
    """`given` as an array over the same memory: an array of numpy as it is, a torch tensor on the CPU by its own way.

    Anything else that has ``numpy()`` or ``__array__()`` is taken, too. Lists are not: nobody would see what is written
    into a copy.
    """
    if isinstance(given, np.ndarray):  # of a subclass, the plain array: its own methods would get in the way
        return given if type(given) is np.ndarray else given.view(np.ndarray)
    convert = getattr(given, "numpy", None) or getattr(given, "__array__", None)
    if convert is None or isinstance(given, type | np.generic):
        raise ArgumentError(f"{name} is a numpy array or a torch tensor, not {a_type(given)}{remedy}")
    try:
        array = convert()
    except Exception as error:  # whatever the other library says of a tensor on a GPU, or one that has a gradient
        raise ArgumentError(f"{name} cannot be used as a numpy array: {error}") from None
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{name} is a numpy array or a torch tensor, not {a_type(given)}")
    return array


def check_mask(mask: Any, size: int, batch: int | None = None, name: str = "mask") -> Mask:
    """`mask` as a writable C-contiguous int32 array over the same memory, or ArgumentError. About 0.3 us.

    Its shape must be that of ``allocate_mask(size, batch)``.
    """
    remedy = f"; use allocate_mask({size}{'' if batch is None else f', {batch}'})"
    array = as_array(mask, name, remedy)
    shape = (mask_words(size),) if batch is None else (batch, mask_words(size))
    if array.dtype != np.int32 or array.shape != shape:
        raise ArgumentError(
            f"{name} must be a mask, an int32 array of shape {shape}, not {array.dtype} of shape {array.shape}{remedy}"
        )
    flags = array.flags
    if not (flags.c_contiguous and flags.writeable and flags.aligned):
        raise ArgumentError(f"{name} must be contiguous and writable; use allocate_mask or a copy")
    return array


def _read(mask: Any) -> Mask:
    """A mask that is only read, of any size."""
    array = mask if type(mask) is np.ndarray else as_array(mask)
    if array.dtype != np.int32 or array.ndim != 1:
        raise ArgumentError(
            f"mask must be one mask, an int32 array of one dimension, not {array.dtype} of shape {array.shape}"
        )
    return array


def mask_from_bool(allowed: npt.NDArray[np.bool_]) -> Mask:
    """Pack booleans of shape ``(V,)`` into a mask."""
    flags = as_array(allowed, "allowed")
    if flags.dtype != np.bool_ or flags.ndim != 1:
        raise ArgumentError(f"allowed is an array of bools of shape (V,), not {flags.dtype} of shape {flags.shape}")
    padded = np.zeros(mask_words(len(flags)) * 32, dtype=np.bool_)
    padded[: len(flags)] = flags
    return np.packbits(padded, bitorder="little").view(np.dtype("<i4")).astype(np.int32, copy=False)


def mask_to_bool(mask: Mask, size: int | None = None) -> npt.NDArray[np.bool_]:
    """Unpack a mask into booleans of shape ``(size,)`` (all of the mask's bits when `size` is None)."""
    words = _read(mask)
    if size is not None:
        size = as_integer(size, "size", 0, 32 * len(words))
    little = np.ascontiguousarray(words).astype("<i4", copy=False)
    return np.unpackbits(little.view(np.uint8), bitorder="little", count=size).astype(np.bool_)


def mask_from_ids(ids: npt.ArrayLike, size: int) -> Mask:
    """The mask over `size` tokens with exactly `ids` set."""
    size = as_integer(size, "size", 0, MAX_SIZE)
    tokens = ids if isinstance(ids, np.ndarray) else np.array(list(as_sequence(ids, "ids", "token ids")))
    if tokens.size and (tokens.dtype.kind not in "iu" or tokens.min() < 0 or tokens.max() >= size):
        raise ArgumentError(f"ids are token ids from 0 to {size - 1}, not {tokens.dtype} such as {tokens.flat[0]!r}")
    allowed = np.zeros(size, dtype=np.bool_)
    allowed[tokens.astype(np.int64, copy=False)] = True
    return mask_from_bool(allowed)


def mask_to_ids(mask: Mask) -> npt.NDArray[np.int32]:
    """The allowed tokens in ascending order, int32."""
    return np.flatnonzero(mask_to_bool(mask)).astype(np.int32)


def count(mask: Mask) -> int:
    """How many tokens are allowed."""
    return int(np.bitwise_count(_read(mask).view(np.uint32)).sum())


def contains(mask: Mask, token: int) -> bool:
    """True iff `token` is allowed. Tokens outside the mask are not."""
    token = token if type(token) is int else as_token(token)
    return 0 <= token < 32 * len(mask) and bool((int(mask[token >> 5]) >> (token & 31)) & 1)


def set_token(mask: Mask, token: int) -> None:
    """Allow `token`, in place."""
    token = _inside(mask, token)
    mask.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))


def clear_token(mask: Mask, token: int) -> None:
    """Refuse `token`, in place."""
    token = _inside(mask, token)
    mask.view(np.uint32)[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)


def _inside(mask: Mask, token: int) -> int:
    if type(token) is int and 0 <= token < 32 * len(mask):
        return token
    return as_integer(token, "token (a token id)", 0, 32 * len(mask) - 1)
