"""Masks of compiled constraints along token sequences: each `Matcher.fill_mask` timed by itself, and compared.

Engines take turns at every position. All masks are compared with those of the first engine: one that differs, or that
refuses a token, has failed and takes no part in further sequences.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa import mask as masks
from tokdfa.errors import TokenRefused
from tokdfa.lab.measure.clock import collector_off
from tokdfa.lab.measure.limits import Failure
from tokdfa.lab.measure.measure import rotated
from tokdfa.lab.measure.workloads import derive_seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokdfa.constraint import Constraint
    from tokdfa.lab.measure.compile_race import Entrant

#: The engine whose masks are not those of the first one.
MISMATCH = "mismatch"


@dataclass
class Racer:
    """A compiled engine and the nanoseconds of its masks; `differing`: how many were not those of the first engine."""

    entrant: Entrant[Any]
    first_ns: list[int] = field(default_factory=list)
    again_ns: list[int] = field(default_factory=list)
    differing: int = 0

    def fail(self, kind: str, message: str) -> None:
        """Note the first failure."""
        self.entrant.failure = self.entrant.failure or Failure(kind, message)


def draw_walks(one: Entrant[Any], constraint: Constraint, count: int, steps: int, seed: int) -> list[list[int]]:
    """Tokens of walks, uniform among the allowed ones. A compile of their own: the timed one is to meet new states."""
    assert one.backend is not None
    compiled, vocab = one.backend.compile(constraint), one.backend.vocab
    mask, walks = masks.allocate_mask(vocab.size), []
    for number in range(count):
        choose, matcher, walk = random.Random(derive_seed(seed, number)), compiled.start(), list[int]()
        while len(walk) < steps:
            matcher.fill_mask(mask)
            allowed = [token for token in masks.mask_to_ids(mask).tolist() if token not in vocab.end_token_set]
            if not allowed:
                break
            walk.append(choose.choice(allowed))
            matcher.advance(walk[-1])
        walks.append(walk)
    return walks


def race_along(racers: Sequence[Racer], tokens: Sequence[int], again: bool) -> int:
    """Fill the masks before each of the tokens and after the last; returns how many positions there were."""
    racing = []
    for one in racers:
        assert one.entrant.compiled is not None
        matcher = one.entrant.compiled.start()
        racing.append((one, matcher, masks.allocate_mask(matcher.vocab.size)))
    with collector_off():
        for position in range(len(tokens) + 1 if racers else 0):
            for one, matcher, mask in rotated(racing, position):
                started = time.perf_counter_ns()
                matcher.fill_mask(mask)
                (one.again_ns if again else one.first_ns).append(time.perf_counter_ns() - started)
            first, matcher, expected = racing[0]
            text = repr(matcher.vocab.spell(tokens[:position])[-60:])
            for one, _, mask in racing[1:]:
                if not np.array_equal(mask, expected):
                    one.differing += 1
                    count = masks.count(mask ^ expected)
                    one.fail(MISMATCH, f"{count} tokens differ from {first.entrant.engine.name} after {text}")
            if position == len(tokens):
                break
            for entry in [*racing]:
                try:
                    entry[1].advance(tokens[position])
                except TokenRefused as refusal:
                    entry[0].fail("wrong_refusal", f"token {tokens[position]} was refused after {text}: {refusal}")
                    racing.remove(entry)
            if not racing:
                break
    return len(tokens) + 1 if racers else 0
