"""Masks of many matchers of one constraint: one after another, and by an engine's own call for batches.

A serving engine holds many texts under one constraint, each at another place, and needs all their masks before the
model's next step. Here so many matchers are led to places spread over the walks, and all their masks are filled into
one array. A *call* is a loop over ``fill_mask`` (``threads`` 0), or the engine's call for batches with a number of
threads. Two *phases* are timed apart: ``first``, in which the constraint was just compiled, and ``seen``, in which it
has filled these masks before for other matchers. The masks of a call for batches must be those of the loop.

A sample's measure is ``batch_SIZE_THREADS_PHASE``, its `repeat` the round; contenders take turns within a round.
"""

from __future__ import annotations

import itertools
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from tokdfa import mask as masks
from tokdfa.backends.batch import fill_masks
from tokdfa.lab.measure.clock import collector_off, time_call
from tokdfa.lab.measure.contenders import Contender, Sample, rotated
from tokdfa.lab.measure.limits import Failure, attempt
from tokdfa.lab.measure.settings import Strict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.backends.base import CompiledConstraint, Matcher
    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.contenders import Begin
    from tokdfa.lab.measure.workloads import Walk

    #: int32, shape (matchers, words), C-contiguous.
    Masks = npt.NDArray[np.int32]

LOOP = 0
Count = Annotated[int, Field(ge=1, le=4096)]


class Batch(Strict):
    """How many matchers have their masks filled together, and by how many threads in an engine's call for batches."""

    sizes: Annotated[list[Count], Field(min_length=1)] = Field(default_factory=lambda: [8, 32, 128])
    threads: Annotated[list[Count], Field(min_length=1)] = Field(default_factory=lambda: [1, 2])


def measure_batches(
    contenders: Sequence[Contender],
    constraint: Constraint,
    walks: Sequence[Walk],
    batch: Batch,
    rounds: int,
    seconds: float,
    begin: Begin,
) -> None:
    """Time all calls of all contenders on batches of every size; `seconds` is for a call of one size."""
    for size in batch.sizes:
        places = spread_places([walk.tokens for walk in walks], size)
        calls = [(one, threads) for one in contenders for threads in _calls(one, batch)]
        spent = [0.0] * len(calls)
        with collector_off():
            for turn in range(-1, rounds):  # the first round fills what is compared, and is not timed
                for number, (one, threads) in rotated(list(enumerate(calls)), max(turn, 0)):
                    if one.dropped or spent[number] > seconds:
                        continue
                    begin(one.index, "batch")
                    taken = attempt(_round, one, constraint, places, threads, turn)
                    if isinstance(taken, Failure):
                        one.drop(taken)
                    else:
                        spent[number] += taken


def _calls(contender: Contender, batch: Batch) -> list[int]:
    own = contender.backend.name in BATCH_CALLS
    return [LOOP, *(batch.threads if own else ())] if not contender.dropped else []


def spread_places(walks: Sequence[Sequence[int]], size: int) -> list[tuple[int, ...]]:
    """The tokens read at `size` places, evenly spread over all places of the walks; again from the first if too few."""
    places = list(dict.fromkeys(tuple(walk[:length]) for walk in walks for length in range(len(walk)))) or [()]
    if size > len(places):
        return [places[k % len(places)] for k in range(size)]
    return [places[k * len(places) // size] for k in range(size)]


def _round(one: Contender, constraint: Constraint, places: Sequence[tuple[int, ...]], threads: int, turn: int) -> float:
    """Both phases once; the seconds that they took. Before the first round the masks are compared with the loop's."""
    compiled = one.backend.compile(constraint)
    vocab_size = one.backend.vocab.size
    out: Masks = np.zeros((len(places), masks.mask_words(vocab_size)), dtype=np.int32)
    taken = 0
    for phase in ("first", "seen"):
        matchers = _matchers(compiled, places)
        if phase == "seen":  # what is kept is copied to where a call for batches finds it when it is first asked for
            _fill(one.backend.name, _matchers(compiled, places), out, threads)
        _, ns = time_call(partial(_fill, one.backend.name, matchers, out, threads))
        taken += ns
        if turn >= 0:
            one.outcome.samples.append(Sample(f"batch_{len(places)}_{threads}_{phase}", turn, 0, ns))
        elif threads != LOOP:
            expected = np.zeros_like(out)
            _fill(one.backend.name, _matchers(compiled, places), expected, LOOP)
            differing = int((out != expected).any(axis=1).sum())
            if differing:
                one.drop(Failure("error", f"{differing} of {len(out)} masks of a batch are not those of the loop"))
    return taken * 1e-9


def _matchers(compiled: CompiledConstraint, places: Sequence[tuple[int, ...]]) -> list[Matcher]:
    """A matcher for each place that has read its tokens, as far as they are allowed, and filled no mask."""
    found = []
    for tokens in places:
        matcher = compiled.start()
        for token in tokens:
            if not matcher.allows(token):
                break
            matcher.advance(token)
        found.append(matcher)
    return found


def _fill(backend: str, matchers: Sequence[Matcher], out: Masks, threads: int) -> None:
    if threads != LOOP:
        BATCH_CALLS[backend](matchers, out, threads)
        return
    for matcher, row in zip(matchers, out, strict=True):
        matcher.fill_mask(row)


def _fill_llguidance(matchers: Sequence[Matcher], out: Masks, threads: int) -> None:
    """All masks by llguidance's executor; those at the end of a text once more, as its adapter does it."""
    from llguidance.numpy import fill_next_token_bitmask_par

    peers = [matcher.peer for matcher in matchers]  # type: ignore[attr-defined]
    fill_next_token_bitmask_par(_executor(threads), list(zip(peers, itertools.count(), strict=False)), out)
    for peer, matcher, row in zip(peers, matchers, out, strict=True):
        if peer.is_stopped():
            matcher.fill_mask(row)


@cache
def _executor(threads: int) -> Any:
    """llguidance's threads, kept for the next batch."""
    from llguidance import LLExecutor

    return LLExecutor(threads)


#: Backend -> its call for many matchers: (matchers, out, threads).
BATCH_CALLS: dict[str, Callable[[Sequence[Matcher], Masks, int], None]] = {
    "pushdown_trie": fill_masks,
    "earley_trie": fill_masks,
    "token_index": fill_masks,
    "tokens_dfa": fill_masks,
    "llguidance": _fill_llguidance,
}
