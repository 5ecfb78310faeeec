"""Masks kept by state, so that one seen before is written with as little Python as possible.

A packed mask over 131,072 tokens takes 16 kB, whatever is in it; most masks of most constraints hold a few dozen
tokens. So masks of at most NARROW tokens are kept as int32 ids and written bit by bit into the caller's zeroed buffer,
which takes as long as copying 16 kB that are rarely in a cache. Wider ones are kept packed, equal ones once, and copied
from memory to memory by the interpreter itself, without the price of calling a kernel or numpy.

Looking up takes no lock, and is done by `tokdfa.backends.matcher.StateMatcher` for all strategies; changes take it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa.core.jit import kernel
from tokdfa.core.locks import new_lock

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from tokdfa.mask import Mask

#: The most tokens of a mask that is kept as a list (2 kB).
NARROW = 512
#: Packed masks whose memory is taken at once, and of how many such blocks the memory is kept for stores to come.
BLOCK_MASKS, SPARE_BLOCKS = 32, 32
#: Bytes that an entry takes in the tables themselves: one of few tokens, of a packed mask, and of one kept before.
_NARROW_BYTES, _WIDE_BYTES, _SAME_BYTES = 100, 300, 100


class MaskStore:
    """State -> mask, emptied when it passes `limit` bytes. States are anything hashable. `lock`: None for its own.

    `words`: int32 words of a mask. `spare`: memory of masks that nobody needs any more, int32, shape (BLOCK_MASKS,
    words) each; it is taken from there and given back at last, because a page that was touched before costs a tenth.
    """

    def __init__(
        self,
        limit: int,
        words: int,
        spare: list[npt.NDArray[np.int32]] | None = None,
        lock: threading.RLock | None = None,
    ) -> None:
        self.limit, self.words, self.nbytes = limit, words, 0
        self.lock = lock or new_lock()
        #: State -> the bytes of a packed mask, or state -> tokens of a narrow one; the same dicts for ever, so that
        #: matchers may hold on to them.
        self.packed: dict[Any, memoryview] = {}
        self.narrow: dict[Any, npt.NDArray[np.int32]] = {}
        self._same: dict[int, list[tuple[Mask, memoryview]]] = {}  # signature -> packed masks
        self._spare = [] if spare is None else spare
        self._blocks: list[npt.NDArray[np.int32]] = []
        self._used = BLOCK_MASKS  # masks of the last block
        self._tokens: npt.NDArray[np.int32] | None = None  # room for those of one mask

    def __del__(self, is_exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # to make a `weakref.finalize` takes 1 µs and more; at exit, modules may be gone before this object is
        if not is_exiting():
            spare = self._spare
            spare.extend(self._blocks[: max(SPARE_BLOCKS - len(spare), 0)])

    def __len__(self) -> int:
        return len(self.packed) + len(self.narrow)

    def __contains__(self, state: Any) -> bool:
        return state in self.packed or state in self.narrow

    def fill(self, state: Any, out: Mask) -> bool:
        """Write the mask of `state` into `out` (checked by the caller); False if it is not kept."""
        packed = self.packed.get(state)
        if packed is not None:
            out.data.cast("B")[:] = packed
            return True
        tokens = self.narrow.get(state)
        if tokens is not None:
            write_tokens_kernel(tokens, out)
        return tokens is not None

    def keep(self, state: Any, mask: Mask, signature: int | None = None) -> None:
        """Remember a mask, which is copied.

        `signature`: a hash; equal masks should have equal ones. Without one, narrow masks are told from wide ones.
        """
        with self.lock:
            if self.nbytes > self.limit:
                self._clear()
            if signature is None:
                tokens = self._list_tokens(mask)
                if tokens is not None:
                    self.keep_tokens(state, tokens.copy())
                    return
            key = hash(mask.tobytes()) if signature is None else signature
            for same, packed in self._same.get(key, ()):
                if same.tobytes() == mask.tobytes():  # 1 us for 16 kB; numpy's comparison takes 3
                    self.packed[state] = packed
                    self.nbytes += _SAME_BYTES
                    return
            kept = self._take_memory()
            packed = kept.data.cast("B")
            packed[:] = mask.data.cast("B")
            self._same.setdefault(key, []).append((kept, packed))
            self.packed[state] = packed
            self.nbytes += len(packed) + _WIDE_BYTES

    def keep_tokens(self, state: Any, tokens: npt.NDArray[np.int32]) -> None:
        """Remember the mask that holds exactly `tokens`, at most NARROW, which nobody may change any more."""
        with self.lock:
            if self.nbytes > self.limit:
                self._clear()
            self.narrow[state] = tokens
            self.nbytes += 4 * len(tokens) + _NARROW_BYTES

    def keep_all(self, packed: Mapping[Any, Mask], narrow: Mapping[Any, npt.NDArray[np.int32]], nbytes: int) -> None:
        """Take over masks that were made in advance and take `nbytes`, whatever the limit; nobody may change them."""
        with self.lock:
            views = {id(mask): mask.data.cast("B") for mask in packed.values()}
            self.packed.update((state, views[id(mask)]) for state, mask in packed.items())
            self.narrow.update(narrow)
            self.nbytes += nbytes

    def share(self, state: Any, other: Any) -> None:
        """Keep the mask of `state`, if it is kept, for a state that has the same."""
        with self.lock:
            packed, tokens = self.packed.get(state), self.narrow.get(state)
            if packed is not None:
                self.packed[other] = packed
            elif tokens is not None:
                self.narrow[other] = tokens
            self.nbytes += _SAME_BYTES

    def _list_tokens(self, mask: Mask) -> npt.NDArray[np.int32] | None:
        """The tokens of a mask that is narrow, valid until the next call; None if it is wide."""
        if self._tokens is None:
            self._tokens = np.empty(NARROW, dtype=np.int32)
        count = int(list_tokens_kernel(mask, self._tokens))
        return self._tokens[:count] if count >= 0 else None

    def _take_memory(self) -> Mask:
        """Room for one more mask."""
        if self._used == BLOCK_MASKS:
            fits = bool(self._spare) and self._spare[-1].shape[1] == self.words
            self._blocks.append(self._spare.pop() if fits else np.empty((BLOCK_MASKS, self.words), dtype=np.int32))
            self._used = 0
        self._used += 1
        return self._blocks[-1][self._used - 1]

    def _clear(self) -> None:
        # matchers look up without the lock: memory that one may be copying from must not be used again
        for kept in (self.narrow, self.packed, self._same):
            kept.clear()
        self._blocks.clear()
        self._used = BLOCK_MASKS
        self.nbytes = 0


@kernel
def write_tokens_kernel(tokens, out):  # type: ignore[no-untyped-def]
    """Overwrite `out` with exactly `tokens`; what does not fit is left out, so that no buffer is overrun."""
    out[:] = 0
    add_tokens_kernel(tokens, out)


@kernel
def add_tokens_kernel(tokens, out):  # type: ignore[no-untyped-def]
    """Set the bits of `tokens`, those that fit."""
    for k in range(len(tokens)):
        token = tokens[k]
        if token >> 5 < len(out):
            out[token >> 5] |= np.int32(np.uint32(1) << np.uint32(token & 31))


@kernel
def list_tokens_kernel(mask, tokens):  # type: ignore[no-untyped-def]
    """List the tokens of a mask, ascending; how many there are, or -1 if there are more than fit."""
    total = np.int64(0)
    for k in range(len(mask)):
        total += count_ones(np.uint64(np.uint32(mask[k])))
    if total > len(tokens):
        return np.int64(-1)
    count = np.int64(0)
    for k in range(len(mask)):
        word = np.uint32(mask[k])
        while word:
            below = ~word & (word - np.uint32(1))  # ones below the lowest bit
            tokens[count] = 32 * k + count_ones(np.uint64(below))
            count += 1
            word &= word - np.uint32(1)
    return count


@kernel
def count_ones(word):  # type: ignore[no-untyped-def]
    """The number of ones in a uint64 (Warren, Hacker's Delight, 5-1)."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


def _warm_up() -> None:
    """Run every kernel of this page once."""
    mask = np.zeros(1, dtype=np.int32)
    list_tokens_kernel(mask, mask)
    write_tokens_kernel(mask, mask)
    add_tokens_kernel(mask, mask)
