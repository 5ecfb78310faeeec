"""Masks kept by state."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokdfa.mask import Mask


class MaskCache:
    """State -> packed mask, equal masks kept once, emptied when it passes a limit in bytes. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self.lock = threading.RLock()
        self.of_state: dict[int, Mask] = {}
        self._same: dict[bytes, Mask] = {}

    def keep(self, state: int, mask: Mask) -> None:
        """Remember `mask`, which nobody may change any more."""
        with self.lock:
            if self.nbytes > self.limit:
                self.of_state, self._same, self.nbytes = {}, {}, 0
            key = mask.tobytes()
            if key not in self._same:
                self._same[key] = mask
                self.nbytes += 2 * mask.nbytes
            self.of_state[state] = self._same[key]
