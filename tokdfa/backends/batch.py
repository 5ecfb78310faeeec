"""Masks kept so that many can be written at once: flat arrays that one kernel call reads for a whole batch.

A serving engine fills the masks of all its sequences at each step. One by one from Python that is about 1 µs a mask,
most of it the call. `BatchMasks` keeps, beside what `MaskCache` keeps, each row's mask in a *slab* of packed masks or a
pool of token lists, so that `fill_known` writes all masks that are known in one call without the GIL, and several
threads can share the work. Masks that are not known are left to the caller.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.backends.mask_cache import MaskCache
from tokdfa.jit import kernel

if TYPE_CHECKING:
    from tokdfa.mask import Mask

#: What `place_of` says of a row whose mask is not kept, and of a matcher that is finished (its mask is empty).
NOT_KEPT, FINISHED = -1, -2


class BatchMasks(MaskCache):
    """Row -> mask as in MaskCache, and as flat arrays. `words`: int32 words of a mask."""

    def __init__(self, limit: int, words: int) -> None:
        super().__init__(limit)
        #: int32: by row, 2 x place in the slab, or 2 x place among the lists + 1, or NOT_KEPT.
        self.place_of: npt.NDArray[np.int32] = np.full(64, NOT_KEPT, dtype=np.int32)
        #: int32, shape (room, words): wide masks.
        self.slab: npt.NDArray[np.int32] = np.zeros((4, words), dtype=np.int32)
        #: int32: tokens of narrow masks, one after another, and where each begins and ends.
        self.tokens: npt.NDArray[np.int32] = np.zeros(1024, dtype=np.int32)
        self.list_begin: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._slab_count = self._list_count = 0
        self._slab_place: dict[bytes, int] = {}

    def keep(self, state: int, mask: Mask) -> None:
        """Remember `mask`; it is copied. O(words)."""
        with self.lock:
            super().keep(state, mask)
            if state >= len(self.place_of):
                more = np.full(max(state + 1, 2 * len(self.place_of)) - len(self.place_of), NOT_KEPT, dtype=np.int32)
                self.place_of = np.concatenate([self.place_of, more])
            narrow = self.narrow.get(state)
            self.place_of[state] = self._add_wide(mask) if narrow is None else self._add_list(narrow)

    def _add_wide(self, mask: Mask) -> int:
        key = mask.tobytes()
        place = self._slab_place.setdefault(key, self._slab_count)
        if place == self._slab_count:
            if place == len(self.slab):
                self.slab = np.concatenate([self.slab, np.zeros_like(self.slab)])
            self.slab[place] = mask
            self._slab_count += 1
            self.nbytes += len(key)
        return 2 * place

    def _add_list(self, tokens: npt.NDArray[np.int32]) -> int:
        number, begin = self._list_count, int(self.list_begin[self._list_count])
        if number + 2 >= len(self.list_begin):
            self.list_begin = np.concatenate([self.list_begin, np.zeros_like(self.list_begin)])
        if begin + len(tokens) > len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.zeros(len(self.tokens) + len(tokens), dtype=np.int32)])
        self.tokens[begin : begin + len(tokens)] = tokens
        self.list_begin[number + 1] = begin + len(tokens)
        self._list_count += 1
        self.nbytes += tokens.nbytes
        return 2 * number + 1

    def _make_room(self) -> None:
        if self.nbytes > self.limit:
            self.place_of[:] = NOT_KEPT
            self._slab_count = self._list_count = 0
            self._slab_place.clear()
        super()._make_room()

    def fill_known(
        self, rows: npt.NDArray[np.int64], out: npt.NDArray[np.int32], threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """Write the kept masks of `rows` (FINISHED for an empty one) into `out`, shape (rows, words).

        The result: which were not kept, as indices. More than one thread pays from about a hundred masks on.
        """
        with self.lock:  # what is kept must not be dropped meanwhile
            arrays = self.place_of, self.slab, self.tokens, self.list_begin
            missing = np.zeros(len(rows), dtype=np.bool_)
            if threads == 1 or len(rows) < 2 * threads:
                _fill_known_kernel(rows, *arrays, out, missing)
            else:
                cuts = [len(rows) * part // threads for part in range(threads + 1)]
                jobs = []
                for begin, end in pairwise(cuts):
                    part = rows[begin:end], *arrays, out[begin:end], missing[begin:end]
                    jobs.append(_workers(threads).submit(lambda given: _fill_known_kernel(*given), part))
                for job in jobs:
                    job.result()
        return np.flatnonzero(missing)


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    """Threads that write masks, kept for the next batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tokdfa-masks")


@kernel
def _fill_known_kernel(rows, place_of, slab, tokens, list_begin, out, missing):  # type: ignore[no-untyped-def]
    """Write the masks of the rows that are kept, and mark the others."""
    for k in range(len(rows)):
        row = rows[k]
        place = np.int64(NOT_KEPT)
        if row == FINISHED:
            out[k, :] = 0
            continue
        if row < len(place_of):
            place = np.int64(place_of[row])
        if place < 0:
            missing[k] = True
        elif place & 1:
            out[k, :] = 0
            for index in range(list_begin[place >> 1], list_begin[(place >> 1) + 1]):
                token = tokens[index]
                out[k, token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
        else:
            out[k, :] = slab[place >> 1]
