"""Masks kept by row, so that one is written with little Python and many are written at once.

One mask: narrow ones are kept as lists of tokens, as in `tokdfa.backends.mask_cache`. Wide ones are kept packed, equal
ones once, and copied from memory to memory by the interpreter itself, without the price of calling a kernel or numpy.
Narrow ones are not: the 16 kB that such a copy takes are rarely in a cache.

Many masks: a serving engine fills those of all its sequences at each step. One by one from Python that is about 1 µs a
mask, most of it the call. `fill_known` writes all masks that are kept in one call without the GIL, and several threads
can share the work; for that, what is kept is copied into a *slab* of packed masks or a pool of lists when it is first
asked for in a batch.
"""

from __future__ import annotations

import os
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.backends.mask_cache import _write_tokens_kernel
from tokdfa.jit import kernel
from tokdfa.locks import new_lock
from tokdfa.token_automata.ready_masks import NARROW

if TYPE_CHECKING:
    from tokdfa.mask import Mask

#: What `place_of` says of a row whose mask is not in the slab or the pool.
NOT_PLACED = -1
#: Before the first batch: shared, and never written to.
NO_PLACES, NO_SLAB = np.zeros(0, dtype=np.int32), np.zeros((0, 1), dtype=np.int32)
#: Stands for the row of a matcher that is finished; its mask is empty.
FINISHED = -2
#: Packed masks whose memory is taken at once, and of how many such blocks the memory is kept for constraints to come.
BLOCK_MASKS, SPARE_BLOCKS = 32, 32


class RowMasks:
    """Row -> mask, emptied when it passes `limit` bytes. Changes take the lock; looking up needs none.

    `words`: int32 words of a mask. `spare`: memory of masks that nobody needs any more, int32, shape (BLOCK_MASKS,
    words) each; it is taken from there and given back at last, because a page that was touched before costs a tenth.
    """

    def __init__(self, limit: int, words: int, spare: list[npt.NDArray[np.int32]] | None = None) -> None:
        self.limit, self.nbytes = limit, 0
        self.lock = new_lock()
        #: Row -> the bytes of a packed mask, or row -> tokens of a narrow one; the same dicts for ever, so that
        #: matchers may hold on to them.
        self.packed: dict[Any, memoryview] = {}
        self.narrow: dict[Any, npt.NDArray[np.int32]] = {}
        self._same: dict[int, list[tuple[Mask, memoryview]]] = {}  # signature -> packed masks
        self._words = words
        self._spare = [] if spare is None else spare
        self._blocks: list[npt.NDArray[np.int32]] = []
        self._free: list[tuple[Mask, memoryview]] = []  # masks of the last block that are not used yet
        weakref.finalize(self, _give_back, self._spare, self._blocks).atexit = False
        self._tokens: npt.NDArray[np.int32] | None = None  # room for those of one mask
        self._begin_batches(0)

    def _begin_batches(self, room: int) -> None:
        """Nothing is placed; arrays are made with the first batch, many constraints have none."""
        #: int32: by row, 2 x place in the slab, or 2 x place among the lists + 1, or NOT_PLACED.
        self.place_of: npt.NDArray[np.int32] = np.full(room, NOT_PLACED, dtype=np.int32) if room else NO_PLACES
        #: int32, shape (room, words): wide masks.
        self.slab: npt.NDArray[np.int32] = np.zeros((room // 16, self._words), dtype=np.int32) if room else NO_SLAB
        #: int32: tokens of narrow masks, one after another, and where each begins and ends.
        self.tokens: npt.NDArray[np.int32] = np.zeros(16 * room, dtype=np.int32) if room else NO_PLACES
        self.list_begin: npt.NDArray[np.int32] = np.zeros(room, dtype=np.int32) if room else NO_PLACES
        self._slab_count = self._list_count = 0
        self._slab_place: dict[int, int] = {}  # id of a packed mask -> its place

    def __len__(self) -> int:
        return len(self.narrow) + len(self.packed)

    def fill(self, row: int, out: Mask) -> bool:
        """Write the mask of `row` into `out` (checked by the caller); False if it is not kept."""
        packed = self.packed.get(row)
        if packed is not None:
            out.data.cast("B")[:] = packed
            return True
        tokens = self.narrow.get(row)
        if tokens is not None:
            _write_tokens_kernel(tokens, out)
        return tokens is not None

    def keep(
        self, row: int, mask: Mask, signature: int | None = None, tokens: npt.NDArray[np.int32] | None = None
    ) -> None:
        """Remember a mask, which is copied. `signature`: a hash; equal masks should have equal ones.

        `tokens`: those of the mask if it is narrow, in any order; if they are None they are looked for.
        """
        with self.lock:
            if self.nbytes > self.limit:
                self._clear()
            if tokens is None and signature is None:
                tokens = self._list_tokens(mask)
            if tokens is not None:
                self.narrow[row] = tokens = tokens.copy()
                self.nbytes += tokens.nbytes + 100
                return
            key = int(_hash_mask_kernel(mask)) if signature is None else signature
            known = self._same.get(key)
            if known is not None:
                for same, packed in known:
                    if _are_equal_kernel(same, mask):
                        self.packed[row] = packed
                        self.nbytes += 100
                        return
            if not self._free:
                self._take_memory()
            taken = self._free.pop()
            packed = taken[1]
            packed[:] = mask.data.cast("B")
            self._same.setdefault(key, []).append(taken)
            self.packed[row] = packed
            self.nbytes += len(packed) + 300

    def _list_tokens(self, mask: Mask) -> npt.NDArray[np.int32] | None:
        """The tokens of a mask that is narrow, valid until the next call; None if it is wide."""
        if self._tokens is None:
            self._tokens = np.empty(NARROW, dtype=np.int32)
        count = int(_list_tokens_kernel(mask, self._tokens))
        return self._tokens[:count] if count >= 0 else None

    def tokens_of(self, row: int) -> npt.NDArray[np.int32] | None:
        """The tokens of a narrow mask, int32, ascending; None if it is wide or not kept."""
        tokens = self.narrow.get(row)
        packed = self.packed.get(row)
        if tokens is None and packed is not None:  # narrow masks are packed where nobody had counted their tokens
            with self.lock:
                tokens = self._list_tokens(np.frombuffer(packed, dtype=np.int32))
        return None if tokens is None else np.unique(tokens)

    def share(self, row: int, other: int) -> None:
        """Keep the mask of `row`, if it is kept, for a row that has the same."""
        with self.lock:
            packed, tokens = self.packed.get(row), self.narrow.get(row)
            if packed is not None:
                self.packed[other] = packed
            elif tokens is not None:
                self.narrow[other] = tokens
            self.nbytes += 100

    def _take_memory(self) -> None:
        """Make room for masks."""
        fits = bool(self._spare) and self._spare[-1].shape[1] == self._words
        self._blocks.append(self._spare.pop() if fits else np.empty((BLOCK_MASKS, self._words), dtype=np.int32))
        self._free = [(mask, mask.data.cast("B")) for mask in self._blocks[-1][::-1]]

    def _clear(self) -> None:
        # matchers look up without the lock: memory that one may be copying from must not be used again
        for kept in (self.narrow, self.packed, self._same):
            kept.clear()
        self._blocks.clear()
        self._free.clear()
        self._begin_batches(0)
        self.nbytes = 0

    def _place(self, row: int) -> bool:
        """Copy the mask of a row to where a batch finds it; False if it is not kept."""
        tokens, packed = self.tokens_of(row), self.packed.get(row)
        if tokens is None and packed is None:
            return False
        if row >= len(self.place_of):
            more = np.full(max(row + 1, 2 * len(self.place_of)) - len(self.place_of), NOT_PLACED, dtype=np.int32)
            self.place_of = np.concatenate([self.place_of, more])
        self.place_of[row] = self._place_list(tokens) if tokens is not None else self._place_wide(packed)  # type: ignore[arg-type]
        return True

    def _place_wide(self, packed: memoryview) -> int:
        place = self._slab_place.setdefault(id(packed), self._slab_count)
        if place == self._slab_count:
            if place == len(self.slab):
                self.slab = np.concatenate([self.slab, np.zeros_like(self.slab)])
            self.slab[place] = np.frombuffer(packed, dtype=np.int32)
            self._slab_count += 1
            self.nbytes += packed.nbytes
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
            if not len(self.place_of):
                self._begin_batches(64)
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


def _give_back(spare: list[npt.NDArray[np.int32]], blocks: list[npt.NDArray[np.int32]]) -> None:
    """Keep the memory of masks that are gone for others."""
    spare.extend(blocks[: max(SPARE_BLOCKS - len(spare), 0)])


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    """Threads that write masks, kept for the next batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tokdfa-masks")


os.register_at_fork(after_in_child=_workers.cache_clear)  # the child of a fork has none of the threads


@kernel
def _list_tokens_kernel(mask, tokens):  # type: ignore[no-untyped-def]
    """List the tokens of a mask; how many there are, or -1 if there are too many."""
    total = np.int64(0)
    for k in range(len(mask)):
        total += np.int64(_count_bits(np.uint32(mask[k])))
    if total > len(tokens):
        return np.int64(-1)
    count = np.int64(0)
    for k in range(len(mask)):
        word = np.uint32(mask[k])
        while word:
            below = ~word & (word - np.uint32(1))  # ones below the lowest bit
            tokens[count] = np.int32(32 * k) + np.int32(_count_bits(below))
            count += 1
            word &= word - np.uint32(1)
    return count


@kernel
def _are_equal_kernel(first, second):  # type: ignore[no-untyped-def]
    """Whether two masks are equal, without the array that numpy's comparison makes."""
    different = np.int32(0)
    for k in range(len(first)):  # to the end: a loop that may stop early takes one word at a time
        different |= first[k] ^ second[k]
    return different == 0


@kernel
def _count_bits(word):  # type: ignore[no-untyped-def]
    """The number of ones in a uint32 (Warren, Hacker's Delight, 5-1)."""
    word -= (word >> np.uint32(1)) & np.uint32(0x55555555)
    word = (word & np.uint32(0x33333333)) + ((word >> np.uint32(2)) & np.uint32(0x33333333))
    word = (word + (word >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return np.uint32(word * np.uint32(0x01010101)) >> np.uint32(24)


@kernel
def _hash_mask_kernel(mask):  # type: ignore[no-untyped-def]
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
