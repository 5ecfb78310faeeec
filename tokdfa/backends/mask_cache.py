"""Masks kept by state: wide ones packed, narrow ones as a list of tokens.

A packed mask over 131,072 tokens takes 16 kB, whatever is in it; most masks of most constraints hold a few dozen
tokens. So masks of at most NARROW tokens are kept as int32 ids and written bit by bit into the caller's zeroed buffer,
which is as fast as copying 16 kB; wider ones are kept packed, equal ones once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.jit import kernel
from tokdfa.locks import new_lock
from tokdfa.token_automata.ready_masks import NARROW, _list_tokens_kernel

if TYPE_CHECKING:
    import numpy.typing as npt

    from tokdfa.mask import Mask

__all__ = ["NARROW", "MaskCache"]


class MaskCache:
    """State -> mask, emptied when it passes `limit` bytes. Safe to share between threads: changes take the lock."""

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self.lock = new_lock()
        #: State -> packed mask, and state -> tokens; the same dicts for ever, so that matchers may hold on to them.
        self.wide: dict[Any, Mask] = {}
        self.narrow: dict[Any, npt.NDArray[np.int32]] = {}
        self._same: dict[bytes, Mask] = {}

    def __len__(self) -> int:
        return len(self.wide) + len(self.narrow)

    def fill(self, state: int, out: Mask) -> bool:
        """Write the mask of `state` into `out` (checked by the caller); False if it is not kept."""
        narrow = self.narrow.get(state)
        if narrow is not None:
            _write_tokens_kernel(narrow, out)
            return True
        wide = self.wide.get(state)
        if wide is not None:
            np.copyto(out, wide)
        return wide is not None

    def keep_narrow(self, state: int, tokens: npt.NDArray[np.int32]) -> None:
        """Remember the mask that holds exactly `tokens`, which nobody may change any more."""
        with self.lock:
            self._make_room()
            self.narrow[state] = tokens
            self.nbytes += tokens.nbytes

    def keep(self, state: int, mask: Mask) -> None:
        """Remember `mask`; it is copied. O(words)."""
        tokens = np.empty(NARROW, dtype=np.int32)
        count = _list_tokens_kernel(mask, tokens)
        if count >= 0:
            self.keep_narrow(state, tokens[:count].copy())
            return
        with self.lock:
            self._make_room()
            key = mask.tobytes()
            if key not in self._same:
                self._same[key] = np.frombuffer(key, dtype=np.int32)
                self.nbytes += len(key)
            self.wide[state] = self._same[key]

    def _make_room(self) -> None:
        if self.nbytes > self.limit:
            for kept in (self.wide, self.narrow, self._same):
                kept.clear()
            self.nbytes = 0


@kernel
def _write_tokens_kernel(tokens, out):  # type: ignore[no-untyped-def]
    """Overwrite `out` with exactly `tokens`; what does not fit is left out, so that no buffer is overrun."""
    out[:] = 0
    for k in range(len(tokens)):
        token = tokens[k]
        if token >> 5 < len(out):
            out[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
