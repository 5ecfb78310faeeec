"""Merging replayed step by step, in the plainest way: on one string, and on the automaton of all strings.

Two slow twins of this package, sharing nothing with it but the list of rules (left, right, result), lowest rank first:

- `replay_merges` merges one sequence of letters as the definition says.
- `replay_bigrams` builds the table of allowed successors as 002 does (technical appendix, algorithms 3 and 4), by
  running DirectMerge on the automaton of all strings. That automaton keeps one state for each token, entered by that
  token only, so it is a table: bit u of row t says that u may follow t. A rule (a, b) -> ab with a != b: wherever a may
  stand, ab may; what may follow b may follow ab; b may no longer follow a. A rule (a, a) -> aa: wherever a may stand
  but after a, aa may; what may follow a may follow aa; a may no longer follow a.

`replay_bigrams` replays rules in order of rank, each once, as 002 does. That is right where ranks rise along every
derivation and no two results share a rank. Mistral v1 breaks the second condition: its runs of two to sixteen spaces
have one score, so the leftmost pair decides which of them is made next, and no order of the rules says that. Everywhere
else in Mistral v1 the table and the interval lists are equal, bit by bit.

It holds the one table of tokens x tokens in this project: 128 MB for Mistral v1, in 15 s. It is here to be compared
with, in tests and in the reproduction of the 20.9 s of 002's Table 2.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt


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


def replay_bigrams(letters: Iterable[int], rules: Iterable[tuple[int, int, int]], size: int) -> npt.NDArray[np.uint8]:
    """Which token may follow which: uint8, shape (size, ceil(size / 8)), bit u % 8 of byte u // 8 of row t.

    `letters`: the tokens of one letter; `rules`: (left, right, result), lowest rank first. Rows of tokens that are
    never made are zero. O(rules x size), and size**2 / 8 bytes.
    """
    table = np.zeros((size, (size + 7) // 8), dtype=np.uint8)
    first = np.zeros(table.shape[1], dtype=np.uint8)
    for letter in letters:
        first[letter >> 3] |= 1 << (letter & 7)
    for letter in np.flatnonzero(np.unpackbits(first, bitorder="little", count=size)):
        table[letter] = first
    for left, right, result in rules:
        if not table[left, right >> 3] >> (right & 7) & 1:
            continue  # they never stand side by side
        before = table[:, left >> 3] >> (left & 7) & 1
        if left == right:
            before[left] = 0
        table[:, result >> 3] |= before << (result & 7)
        table[result] = table[right]
        if left == right:
            table[result, result >> 3] |= 1 << (result & 7)
        table[left, right >> 3] &= ~np.uint8(1 << (right & 7))
    return table
