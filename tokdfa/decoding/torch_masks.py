"""Packed masks applied to the logits of torch, by torch operations alone, wherever the tensors are.

The layout is that of `tokdfa.mask`, and of the helpers of xgrammar and llguidance: int32, shape (batch, ceil(V/32)),
bit i % 32 of word i // 32 set iff token i is allowed. A matcher fills rows on the CPU (`Matcher.fill_mask`,
`fill_masks`); what goes to another device is V/8 bytes a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokdfa.core.arguments import as_integer, as_sequence
from tokdfa.core.packages import import_library
from tokdfa.errors import ArgumentError, a_type, counted

if TYPE_CHECKING:
    from collections.abc import Sequence


def apply_masks(logits: Any, masks: Any, rows: Sequence[int] | None = None) -> None:
    """Set the logits of refused tokens to minus infinity, in place.

    `logits`: floating tensor, shape (batch, V) or (V,), on any device. `masks`: int32 tensor or array of numpy, shape
    (batch, words) or (words,); a single mask holds for all rows. `rows`: the rows of both that are meant, all if None;
    the others are left alone. Logits past the last bit of a mask are refused. Costs 4 bytes a logit for a while.
    Raises ArgumentError for other types and shapes.
    """
    torch = import_library("torch", "applying masks to tensors")
    if not isinstance(logits, torch.Tensor) or not logits.is_floating_point() or logits.dim() not in (1, 2):
        raise ArgumentError(f"logits is a floating tensor of shape (batch, V) or (V,), not {shown(logits)}")
    packed = masks if isinstance(masks, torch.Tensor) else _as_tensor(torch, masks)
    if packed.dtype != torch.int32 or packed.dim() not in (1, 2):
        raise ArgumentError(f"masks is an int32 tensor of shape (batch, ceil(V/32)), not {shown(packed)}")
    batch = logits if logits.dim() == 2 else logits.unsqueeze(0)
    packed = packed if packed.dim() == 2 else packed.unsqueeze(0)
    if len(packed) not in (1, len(batch)):
        raise ArgumentError(
            f"masks has {counted(len(packed), 'row')} and logits {len(batch)}; give a mask for each row, or one"
        )
    if rows is None:
        batch.masked_fill_(_refused(torch, packed, batch), -float("inf"))
        return
    chosen = [as_integer(row, "rows", 0, len(batch) - 1) for row in as_sequence(rows, "rows", "row numbers")]
    if chosen:
        picked = batch[chosen]
        packed = packed if len(packed) == 1 else packed[chosen]
        batch[chosen] = picked.masked_fill(_refused(torch, packed, picked), -float("inf"))


def _refused(torch: Any, packed: Any, logits: Any) -> Any:
    """Which logits are refused: bool, shape (masks, V), on the device of the logits."""
    words = packed.to(logits.device, non_blocking=True)
    bits = torch.arange(32, device=logits.device, dtype=torch.int32)
    refused = (words.unsqueeze(-1) >> bits).bitwise_and_(1).eq(0).flatten(1)
    missing = logits.shape[-1] - refused.shape[-1]
    if missing > 0:
        return torch.nn.functional.pad(refused, (0, missing), value=True)
    return refused[:, : logits.shape[-1]]


def _as_tensor(torch: Any, masks: Any) -> Any:
    try:
        return torch.as_tensor(masks)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(f"masks is an int32 tensor or array, not {a_type(masks)}") from None


def shown(given: Any) -> str:
    """What was given in place of a tensor, for messages."""
    shape = getattr(given, "shape", None)
    return f"{a_type(given)}" if shape is None else f"{given.dtype} of shape {tuple(shape)}"
