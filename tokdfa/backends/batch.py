"""Masks of many matchers at once: what a serving engine asks for at each step, for all its sequences.

One by one from Python that is about 1 us a mask, most of it the call. Masks that are kept are written by one call of a
kernel for all matchers that serve from one store, without the GIL, and several threads can share the work. For that,
what is kept is copied into a *slab* of packed masks or a pool of lists when it is first asked for in a batch.
"""

from __future__ import annotations

import os
import weakref
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.backends.matcher import Matcher, StateMatcher
from tokdfa.core.arguments import as_integer, as_sequence
from tokdfa.core.jit import kernel
from tokdfa.errors import ArgumentError, TokenRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.vocabulary.mask_store import MaskStore

#: What `place_of` says of a state whose mask is not in the slab.
NOT_PLACED = -1
#: Stands for the state of a matcher that is finished; its mask is empty.
FINISHED = -2


class Slab:
    """Copies of masks of one store whose states are small numbers, where a kernel finds them.

    It is emptied with its store, and what it takes counts there.
    """

    def __init__(self, words: int) -> None:
        self._words = words
        self._begin(0)

    def _begin(self, emptied: int) -> None:
        self._emptied = emptied
        #: int32: by state, 2 x place in the slab, or 2 x place among the lists + 1, or NOT_PLACED.
        self._place_of: npt.NDArray[np.int32] = np.full(64, NOT_PLACED, dtype=np.int32)
        #: int32, shape (room, words): wide masks.
        self._wide: npt.NDArray[np.int32] = np.zeros((4, self._words), dtype=np.int32)
        #: int32: tokens of narrow masks, one after another, and where each begins and ends.
        self._tokens: npt.NDArray[np.int32] = np.zeros(1024, dtype=np.int32)
        self._list_begin: npt.NDArray[np.int32] = np.zeros(64, dtype=np.int32)
        self._wide_count = self._list_count = 0
        self._wide_place: dict[int, int] = {}  # id of a packed mask -> its place

    def fill(
        self, store: MaskStore, states: npt.NDArray[np.int64], out: npt.NDArray[np.int32], threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """Write the kept masks of `states` (FINISHED for an empty one) into `out`, shape (states, words).

        The result: which were not kept, as indices. More than one thread pays from about a hundred masks on.
        """
        with store.lock:  # what is kept must not be dropped meanwhile
            if self._emptied != store.emptied:
                self._begin(store.emptied)
            room = len(self._place_of)
            fresh = np.unique(states[(states >= room) | (self._place_of[states % room] < 0)])
            for state in fresh[fresh >= 0].tolist():
                self._place(store, state)
            arrays = self._place_of, self._wide, self._tokens, self._list_begin
            missing = np.zeros(len(states), dtype=np.bool_)
            if threads == 1 or len(states) < 2 * threads:
                _fill_known_kernel(states, *arrays, out, missing)
            else:
                cuts = [len(states) * part // threads for part in range(threads + 1)]
                jobs = []
                for begin, end in pairwise(cuts):
                    part = states[begin:end], *arrays, out[begin:end], missing[begin:end]
                    jobs.append(_workers(threads).submit(lambda given: _fill_known_kernel(*given), part))
                for job in jobs:
                    job.result()
        return np.flatnonzero(missing)

    def _place(self, store: MaskStore, state: int) -> None:
        """Copy the mask of a state, if it is kept, to where a batch finds it."""
        tokens, packed = store.tokens_of(state), store.packed.get(state)
        if tokens is None and packed is None:
            return
        if state >= len(self._place_of):
            more = np.full(max(state + 1, 2 * len(self._place_of)) - len(self._place_of), NOT_PLACED, dtype=np.int32)
            self._place_of = np.concatenate([self._place_of, more])
        if tokens is not None:
            self._place_of[state] = self._place_list(tokens)
            store.nbytes += tokens.nbytes
        elif packed is not None:
            known = self._wide_count
            self._place_of[state] = self._place_wide(packed)
            store.nbytes += packed.nbytes * (self._wide_count - known)

    def _place_wide(self, packed: memoryview) -> int:
        place = self._wide_place.setdefault(id(packed), self._wide_count)
        if place == self._wide_count:
            if place == len(self._wide):
                self._wide = np.concatenate([self._wide, np.zeros_like(self._wide)])
            self._wide[place] = np.frombuffer(packed, dtype=np.int32)
            self._wide_count += 1
        return 2 * place

    def _place_list(self, tokens: npt.NDArray[np.int32]) -> int:
        number, begin = self._list_count, int(self._list_begin[self._list_count])
        if number + 2 >= len(self._list_begin):
            self._list_begin = np.concatenate([self._list_begin, np.zeros_like(self._list_begin)])
        if begin + len(tokens) > len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.zeros(len(self._tokens) + len(tokens), dtype=np.int32)])
        self._tokens[begin : begin + len(tokens)] = tokens
        self._list_begin[number + 1] = begin + len(tokens)
        self._list_count += 1
        return 2 * number + 1


#: The slabs of stores that batches have asked.
_slabs: weakref.WeakKeyDictionary[MaskStore, Slab] = weakref.WeakKeyDictionary()


def fill_masks(matchers: Sequence[Matcher], out: npt.NDArray[np.int32], threads: int = 1) -> None:
    """Write the mask of each matcher into a row of `out`: int32, C-contiguous, shape (matchers, words).

    Kept masks of matchers of one compiled constraint are written by one kernel call, on `threads` threads; all others
    as by `fill_mask`, each matcher by one of the threads. `out` may be a torch tensor on the CPU. Raises ArgumentError
    if it does not fit, and what a matcher raises, when all others are done.
    """
    matchers = list(as_sequence(matchers, "matchers", "matchers"))
    if not all(issubclass(kind, Matcher) for kind in set(map(type, matchers))):
        raise ArgumentError("matchers: not all of them are matchers, which `CompiledConstraint.start` makes")
    if len({matcher.vocab.size for matcher in matchers}) > 1:
        raise ArgumentError("matchers: their vocabularies have different sizes; fill their masks apart")
    threads = as_integer(threads, "threads", 1)
    words = masks.mask_words(matchers[0].vocab.size) if matchers else 0
    out = masks.check_mask(out, 32 * words, len(matchers), "out")
    stores: dict[MaskStore, list[int]] = {}
    single: list[int] = []
    for k, matcher in enumerate(matchers):
        if isinstance(matcher, StateMatcher) and matcher.store is not None:
            stores.setdefault(matcher.store, []).append(k)
        else:
            single.append(k)
    for store, members in stores.items():
        whole = len(members) == len(matchers)
        batch: list[Any] = [matchers[k] for k in members]
        states = np.array([FINISHED if m.state is m.FINISHED else m.state for m in batch], dtype=np.int64)
        target = out if whole else np.empty((len(members), words), dtype=np.int32)
        slab = _slabs.get(store)
        if slab is None:
            slab = _slabs[store] = Slab(words)
        missing = slab.fill(store, states, target, threads)
        if not whole:
            out[members] = target
        single += [members[k] for k in missing.tolist()]
    _fill_each([(matchers[k], out[k]) for k in single], threads)


def _fill_each(rows: list[tuple[Matcher, npt.NDArray[np.int32]]], threads: int) -> None:
    """Fill masks one by one; with several threads each takes the next matcher, all rows of it."""
    if threads == 1 or len(rows) < 2:
        for matcher, row in rows:
            matcher.fill_mask(row)
        return
    by_matcher: dict[int, list[tuple[Matcher, npt.NDArray[np.int32]]]] = {}
    for matcher, row in rows:  # which is for one thread, and may stand here twice
        by_matcher.setdefault(id(matcher), []).append((matcher, row))
    jobs = [_workers(threads).submit(_fill_each, its_rows, 1) for its_rows in by_matcher.values()]
    wait(jobs)
    for job in jobs:
        job.result()


def fill_tree(
    matcher: Matcher, tokens: Sequence[int], parents: Sequence[int], out: npt.NDArray[np.int32]
) -> npt.NDArray[np.bool_]:
    """Write the masks of all nodes of a tree of drafted tokens, for speculative decoding; `matcher` stays where it is.

    Node k is ``tokens[k]`` after node ``parents[k]``, which comes before it, or after the text of the matcher if that
    is -1. Row k of `out` (int32, C-contiguous, shape (nodes, words)) becomes the mask after node k. The result, bool of
    shape (nodes,), says which nodes the constraint allows with all before them; rows of the others become empty.

    Each node costs an advance, a rollback and a mask, whatever hangs below it: the way to it is not gone again. Raises
    ArgumentError for parents that make no such tree, and for an `out` that does not fit.
    """
    drafted, before = list(as_sequence(tokens, "tokens", "tokens")), list(as_sequence(parents, "parents", "indices"))
    if len(drafted) != len(before):
        raise ArgumentError(f"parents: {len(before)} of them for {len(drafted)} tokens; each token has one")
    out = masks.check_mask(out, matcher.vocab.size, len(drafted), "out")
    out[:] = 0
    allowed = np.zeros(len(drafted), dtype=np.bool_)
    children: list[list[int]] = [[] for _ in range(len(drafted) + 1)]  # the last entry is that of -1
    for node, parent in enumerate(before):
        parent = as_integer(parent, f"parents[{node}]", -1)
        if parent >= node:
            raise ArgumentError(
                f"parents[{node}] is {parent}: a node comes after its parent; number them from the root"
            )
        children[parent].append(node)
    walker = matcher.fork()
    agenda = children[-1][::-1]
    while agenda:
        node = agenda.pop()
        if node < 0:
            walker.rollback(1)
        else:
            try:
                walker.advance(drafted[node])
            except TokenRefused:
                continue
            walker.fill_mask(out[node])
            allowed[node] = True
            agenda += [-1, *children[node][::-1]]
    return allowed


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    """Threads that write masks, kept for the next batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tokdfa-masks")


os.register_at_fork(after_in_child=_workers.cache_clear)  # the child of a fork has none of the threads


@kernel
def _fill_known_kernel(states, place_of, slab, tokens, list_begin, out, missing):  # type: ignore[no-untyped-def]
    """Write the masks of the states that have a place, and mark the others."""
    for k in range(len(states)):
        state = states[k]
        if state == FINISHED:
            out[k, :] = 0
            continue
        place = np.int64(place_of[state]) if state < len(place_of) else np.int64(NOT_PLACED)
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
