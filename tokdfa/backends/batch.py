"""Masks of many matchers at once: what a serving engine asks for at each step, for all its sequences.

The matchers may be of any constraints. Masks that are kept are copied first, in one compiled loop: to hand one to a
thread takes longer. The others are made: long walks run without the GIL, so several threads help where constraints
share no lock.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from tokdfa import mask as masks
from tokdfa.backends.matcher import Matcher
from tokdfa.backends.state_matcher import StateMatcher, fill_kept
from tokdfa.core.arguments import as_integer, as_sequence
from tokdfa.errors import ArgumentError, TokenRefused, a_type, counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tokdfa.mask import Mask


def fill_masks(matchers: Sequence[Matcher], out: npt.NDArray[np.int32], threads: int = 1) -> None:
    """Write the mask of each matcher into a row of `out`: int32, C-contiguous, shape (matchers, words).

    Up to `threads` threads make new masks, the caller's among them. `out` may be a torch tensor on the CPU; without
    matchers it has no rows, of any length. Raises ArgumentError if it does not fit, and what a matcher raises, when all
    others are done.
    """
    matchers = list(as_sequence(matchers, "matchers", "matchers"))
    if not all(issubclass(kind, Matcher) for kind in set(map(type, matchers))):
        raise ArgumentError("matchers: not all of them are matchers, which `CompiledConstraint.start` makes")
    if len({matcher.vocab.size for matcher in matchers}) > 1:
        raise ArgumentError("matchers: their vocabularies have different sizes; fill their masks apart")
    threads = as_integer(threads, "threads", 1)
    size = matchers[0].vocab.size if matchers else 32 * (0, *masks.as_array(out, "out").shape)[-1]
    out = masks.check_mask(out, size, len(matchers), "out")
    fill_rows(matchers, out, threads)


def fill_rows(matchers: Sequence[Matcher | None], out: Mask, threads: int) -> None:
    """Write the mask of each matcher into its row, which fits; None has none. See `fill_masks`."""
    errors: list[BaseException] = []
    rows = [(matcher, out[k]) for k in fill_kept(matchers, out) if (matcher := matchers[k]) is not None]
    if threads == 1:
        _fill_each(rows, errors)
    else:
        _fill_together(rows, threads, errors)
    if errors:  # an interrupt, where there is one
        raise next((error for error in errors if not isinstance(error, Exception)), errors[0])


def _fill_each(rows: Iterable[tuple[Matcher, Mask]], errors: list[BaseException]) -> None:
    for matcher, row in rows:
        try:
            matcher.fill_mask(row)
        except BaseException as error:
            errors.append(error)


def _fill_together(rows: Iterable[tuple[Matcher, Mask]], threads: int, errors: list[BaseException]) -> None:
    """Whatever shares a lock, or a matcher, is made by one thread."""
    groups: dict[int, list[tuple[Matcher, Mask]]] = {}
    for matcher, row in rows:
        store = matcher.store if isinstance(matcher, StateMatcher) else None
        lock = matcher if store is None or matcher.refusals else store.lock
        groups.setdefault(id(lock), []).append((matcher, row))
    left = list(groups.values())

    def fill_groups() -> None:
        with suppress(IndexError):  # another thread took the last one
            while left:
                _fill_each(left.pop(), errors)

    jobs = [_workers(threads).submit(fill_groups) for _ in range(min(threads, len(left)) - 1)]
    fill_groups()
    wait(jobs)


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
    if not isinstance(matcher, Matcher):
        raise ArgumentError(f"matcher is what compiled.start() gives, not {a_type(matcher)}")
    drafted, before = list(as_sequence(tokens, "tokens", "tokens")), list(as_sequence(parents, "parents", "indices"))
    if len(drafted) != len(before):
        raise ArgumentError(f"parents: {len(before)} of them for {counted(len(drafted), 'token')}; each token has one")
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
            ended = walker.is_finished()
            try:
                walker.advance(drafted[node])
            except TokenRefused:
                continue
            walker.fill_mask(out[node])
            allowed[node] = True
            agenda += [*([] if ended else [-1]), *children[node][::-1]]  # after the end nothing is taken
    return allowed


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    """Threads that write masks, kept for the next batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tokdfa-masks")


os.register_at_fork(after_in_child=_workers.cache_clear)  # the child of a fork has none of the threads
