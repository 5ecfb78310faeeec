"""Merging replayed step by step, in the plainest way: a slow twin of this package that shares nothing with it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def replay_merges(letters: Iterable[int], rules: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """The tokens that `letters` merge to. Each rule is (left, right, result, rank). O(letters^2)."""
    by_pair = {(left, right): (rank, result) for left, right, result, rank in rules}
    tokens = list(letters)
    while True:
        pairs = enumerate(itertools.pairwise(tokens))
        candidates = [(by_pair[pair][0], place) for place, pair in pairs if pair in by_pair]
        if not candidates:
            return tokens
        _, place = min(candidates)
        tokens[place : place + 2] = [by_pair[tokens[place], tokens[place + 1]][1]]
