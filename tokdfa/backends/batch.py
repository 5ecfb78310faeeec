"""Masks kept by row, so that one is written with little Python and many are written at once.

One mask: narrow ones are kept as a list of tokens, wide ones packed, equal ones once, as in
`tokdfa.backends.mask_cache`. `RowMasks.take` puts a new mask into the caller's buffer, sets the end tokens, and finds
out what to keep, in one kernel.

Many masks: a serving engine fills those of all its sequences at each step. One by one from Python that is about 1 µs a
mask, most of it the call. `fill_known` writes all masks that are kept in one call without the GIL, and several threads
can share the work; for that, what is kept is copied into a *slab* of packed masks or a pool of lists when it is first
asked for in a batch.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.mask_cache import _write_tokens_kernel
from tokdfa.jit import kernel
from tokdfa.token_automata.ready_masks import NARROW

if TYPE_CHECKING:
    from tokdfa.mask import Mask

#: What `place_of` says of a row whose mask is not in the slab or the pool.
NOT_PLACED = -1
#: Stands for the row of a matcher that is finished; its mask is empty.
FINISHED = -2


class RowMasks:
    """Row -> mask, emptied when it passes `limit` bytes. Changes take the lock; looking up needs none.

    `words`: int32 words of a mask; `end_tokens`: set where the text may end.
    """

    def __init__(self, limit: int, words: int, end_tokens: tuple[int, ...]) -> None:
        self.limit, self.nbytes = limit, 0
        self.lock = threading.RLock()
        #: Row -> tokens, and row -> packed mask; the same dicts for ever, so that matchers may hold on to them.
        self.narrow: dict[Any, npt.NDArray[np.int32]] = {}
        self.wide: dict[Any, Mask] = {}
        self._same: dict[int, list[Mask]] = {}  # hash -> packed masks
        self._ends = np.array(end_tokens, dtype=np.int32)
        self._tokens = np.empty(NARROW, dtype=np.int32)
        #: int32: by row, 2 x place in the slab, or 2 x place among the lists + 1, or NOT_PLACED.
        self.place_of: npt.NDArray[np.int32] = np.full(64, NOT_PLACED, dtype=np.int32)
        #: int32, shape (room, words): wide masks.
        self.slab: npt.NDArray[np.int32] = np.zeros((4, words), dtype=np.int32)
        #: int32: tokens of narrow masks, one after another, and where each begins and ends.
        self.tokens: npt.NDArray[np.int32] = np.zeros(1024, dtype=np.int32)
        self.list_begin: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._slab_count = self._list_count = 0
        self._slab_place: dict[int, int] = {}  # id of a packed mask -> its place

    def __len__(self) -> int:
        return len(self.narrow) + len(self.wide)

    def fill(self, row: int, out: Mask) -> bool:
        """Write the mask of `row` into `out` (checked by the caller); False if it is not kept."""
        tokens, mask = self.narrow.get(row), self.wide.get(row)
        if tokens is not None:
            _write_tokens_kernel(tokens, out)
        elif mask is not None:
            np.copyto(out, mask)
        return tokens is not None or mask is not None

    def take(self, row: int, words: npt.NDArray[np.int32], can_end: bool, out: Mask, keep: bool) -> None:
        """Write `words`, and the end tokens if the text `can_end`, into `out`; remember the mask if `keep`."""
        with self.lock:
            count, key = _take_mask_kernel(words, self._ends, can_end, out, self._tokens)
            if not keep:
                return
            if self.nbytes > self.limit:
                self._clear()
            if count >= 0:
                self.narrow[row] = tokens = self._tokens[:count].copy()
                self.nbytes += tokens.nbytes + 100
                return
            known = self._same.setdefault(key, [])
            for mask in known:
                if _are_equal_kernel(mask, out):
                    self.wide[row] = mask
                    return
            known.append(out.copy())
            known[-1].flags.writeable = False
            self.wide[row] = known[-1]
            self.nbytes += out.nbytes

    def share(self, row: int, other: int) -> None:
        """Keep the mask of `row`, if it is kept, for a row that has the same."""
        with self.lock:
            tokens, mask = self.narrow.get(row), self.wide.get(row)
            if tokens is not None:
                self.narrow[other] = tokens
                self.nbytes += 100
            elif mask is not None:
                self.wide[other] = mask
                self.nbytes += 100

    def _clear(self) -> None:
        for kept in (self.narrow, self.wide, self._same, self._slab_place):
            kept.clear()
        self.place_of[:] = NOT_PLACED
        self._slab_count = self._list_count = self.nbytes = 0

    def _place(self, row: int) -> bool:
        """Copy the mask of a row to where a batch finds it; False if it is not kept."""
        tokens, mask = self.narrow.get(row), self.wide.get(row)
        if tokens is None and mask is None:
            return False
        if row >= len(self.place_of):
            more = np.full(max(row + 1, 2 * len(self.place_of)) - len(self.place_of), NOT_PLACED, dtype=np.int32)
            self.place_of = np.concatenate([self.place_of, more])
        self.place_of[row] = self._place_list(tokens) if tokens is not None else self._place_wide(mask)  # type: ignore[arg-type]
        return True

    def _place_wide(self, mask: Mask) -> int:
        place = self._slab_place.setdefault(id(mask), self._slab_count)
        if place == self._slab_count:
            if place == len(self.slab):
                self.slab = np.concatenate([self.slab, np.zeros_like(self.slab)])
            self.slab[place] = mask
            self._slab_count += 1
            self.nbytes += mask.nbytes
        return 2 * place

    def _place_list(self, tokens: npt.NDArray[np.int32]) -> int:
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

    def fill_known(
        self, rows: npt.NDArray[np.int64], out: npt.NDArray[np.int32], threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """Write the kept masks of `rows` (FINISHED for an empty one) into `out`, shape (rows, words).

        The result: which were not kept, as indices. More than one thread pays from about a hundred masks on.
        """
        with self.lock:  # what is kept must not be dropped meanwhile
            fresh = np.unique(rows[(rows >= len(self.place_of)) | (self.place_of[rows % len(self.place_of)] < 0)])
            for row in fresh[fresh >= 0].tolist():
                self._place(row)
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
def _take_mask_kernel(words, ends, can_end, out, tokens):  # type: ignore[no-untyped-def]
    """Write `words` and the end tokens into `out`. (tokens listed, or -1 if there are too many; a hash of the mask)."""
    for k in range(len(out)):
        out[k] = words[k]
    if can_end:
        for token in ends:
            out[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
    total = np.int64(0)
    for k in range(len(out)):
        total += np.int64(_count_bits(np.uint32(out[k])))
    if total > len(tokens):
        return np.int64(-1), _hash_mask(out)
    count = np.int64(0)
    for k in range(len(out)):
        word = np.uint32(out[k])
        while word:
            below = ~word & (word - np.uint32(1))  # ones below the lowest bit
            tokens[count] = np.int32(32 * k) + np.int32(_count_bits(below))
            count += 1
            word &= word - np.uint32(1)
    return count, np.int64(0)


@kernel
def _are_equal_kernel(first, second):  # type: ignore[no-untyped-def]
    """Whether two masks are equal; several times as fast as numpy's comparison, which makes an array."""
    place = 0
    while place < len(first) and first[place] == second[place]:
        place += 1
    return place == len(first)


@kernel
def _count_bits(word):  # type: ignore[no-untyped-def]
    """The number of ones in a uint32 (Warren, Hacker's Delight, 5-1)."""
    word -= (word >> np.uint32(1)) & np.uint32(0x55555555)
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return np.uint32(word * np.uint32(0x01010101)) >> np.uint32(24)


@kernel
def _hash_mask(mask):  # type: ignore[no-untyped-def]
    """A hash of a mask's words, in four lanes that the processor works on side by side."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    whole = len(mask) & ~3
    for k in range(0, whole, 4):
        a = (a ^ np.uint64(np.uint32(mask[k]))) * prime
        b = (b ^ np.uint64(np.uint32(mask[k + 1]))) * prime
        c = (c ^ np.uint64(np.uint32(mask[k + 2]))) * prime
        d = (d ^ np.uint64(np.uint32(mask[k + 3]))) * prime
    for k in range(whole, len(mask)):
        a = (a ^ np.uint64(np.uint32(mask[k]))) * prime
    value = ((a ^ (b >> np.uint64(7))) * prime ^ (c >> np.uint64(11))) * prime ^ (d >> np.uint64(13))
    return np.int64(value >> np.uint64(1))


@kernel
def _fill_known_kernel(rows, place_of, slab, tokens, list_begin, out, missing):  # type: ignore[no-untyped-def]
    """Write the masks of the rows that have a place, and mark the others."""
    for k in range(len(rows)):
        row = rows[k]
        if row == FINISHED:
            out[k, :] = 0
            continue
        place = np.int64(place_of[row]) if row < len(place_of) else np.int64(NOT_PLACED)
        if place < 0:
            missing[k] = True
        elif place & 1:
            out[k, :] = 0
            for index in range(list_begin[place >> 1], list_begin[(place >> 1) + 1]):
                token = tokens[index]
                out[k, token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))
        else:
            for word in range(out.shape[1]):  # an assignment of rows takes four times as long
                out[k, word] = slab[place >> 1, word]
