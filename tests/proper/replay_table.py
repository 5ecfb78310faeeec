"""The replay of 002 as the baseline: how long it takes, and whether its table is ours.

    python -m tests.proper.replay_table mistral-v1

`replay_bigrams` builds the table of allowed successors as 002 does (technical appendix, algorithms 3 and 4), by running
DirectMerge on the automaton of all strings. That automaton keeps one state for each token, entered by that token only,
so it is a table: bit u of row t says that u may follow t. A rule (a, b) -> ab with a != b: wherever a may stand, ab
may; what may follow b may follow ab; b may no longer follow a. A rule (a, a) -> aa: wherever a may stand but after a,
aa may; what may follow a may follow aa; a may no longer follow a. It takes 128 MB for Mistral v1 and some 10 s.

The replay applies each rule once, in order of rank. That is the tokenizer only where no two results share a rank, and
where ranks rise along every derivation. So it is run, and compared, on the rules that satisfy the first condition
(`untied_rules`): for Mistral v1 all but those that make its runs of spaces. The interval lists of the same rules are
compared with the table row by row, all tokens x all tokens.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tokdfa.mask import allocate_mask, mask_from_bool
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.derivations import derive_tokens
from tokdfa.proper.intervals import build_lists
from tokdfa.proper.merge_rules import MergeRules
from tokdfa.proper.merge_tree import build_merge_tree
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt


class ReplayResult(NamedTuple):
    """`seconds`: of the replay alone; `rules`: how many it has replayed; `table_bytes`: of its table; `rows`: how many
    tokens were compared, with all others each; `differing`: in how many of these rows the table and the lists differ.
    """

    seconds: float
    rules: int
    table_bytes: int
    rows: int
    differing: int


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


def untied_rules(rules: MergeRules) -> npt.NDArray[np.bool_]:
    """For each rule whether all rules of its rank have the same result; bool, shape (rules,)."""
    pairs = np.unique(np.stack([rules.rank, rules.result], axis=1), axis=0)
    ranks, results = np.unique(pairs[:, 0], return_counts=True)
    return np.isin(rules.rank, ranks[results == 1])


def with_rules_only(canonicity: Canonicity, keep: npt.NDArray[np.bool_]) -> Canonicity:
    """The canonicity of a tokenizer that has only the rules with ``keep[rule]``, and no byte fallback."""
    rules = canonicity.rules
    row_starts = np.zeros(rules.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(rules.left[keep], minlength=rules.size), out=row_starts[1:])
    left, right, result, rank = (part[keep] for part in (rules.left, rules.right, rules.result, rules.rank))
    kept = MergeRules(left, right, result, rank, row_starts, rules.spelling, rules.spelling_starts)
    derivations = derive_tokens(kept)
    merge_tree = build_merge_tree(derivations, np.zeros(0, dtype=np.int32))
    parts = (kept, derivations, merge_tree, build_lists(kept, derivations, merge_tree), None)
    return Canonicity(canonicity.vocabulary, canonicity.source, *parts)


def compare_with_replay(canonicity: Canonicity) -> ReplayResult:
    """Replay the rules of `canonicity`, which must be untied, and compare the table with the interval lists.

    15 s and 128 MB for Mistral v1, nearly all of it the replay.
    """
    ordered = canonicity.rules.in_rank_order()
    parts = (canonicity.rules.left, canonicity.rules.right, canonicity.rules.result)
    rules = list(zip(*(part[ordered].tolist() for part in parts), strict=True))
    started = time.perf_counter()
    table = replay_bigrams(canonicity.source.letters.tolist(), rules, canonicity.size)
    seconds = time.perf_counter() - started
    merging = canonicity.derivations.is_proper  # byte tokens are no part of the replay
    proper, forbidden = mask_from_bool(merging), allocate_mask(canonicity.size)
    differing = 0
    for token in range(canonicity.size):
        allowed = np.zeros_like(proper)
        if merging[token]:
            canonicity.forbidden_mask(token, forbidden)
            allowed = proper & ~forbidden
        # bit u % 32 of a little-endian word is bit u % 8 of a byte, as in the table
        differing += not np.array_equal(allowed.astype("<i4").view(np.uint8)[: table.shape[1]], table[token])
    return ReplayResult(seconds, len(rules), table.nbytes, canonicity.size, differing)


def main() -> None:
    """Print a line for each tokenizer that is named."""
    for name in sys.argv[1:]:
        started = time.perf_counter()
        canonicity = build_canonicity(load_tokenizer(name))
        built = time.perf_counter() - started
        found = compare_with_replay(with_rules_only(canonicity, untied_rules(canonicity.rules)))
        print(
            f"{name}: {found.rules:,} rules replayed in {found.seconds:.3g} s, {found.seconds / built:.3g} times our"
            f" whole build; {found.table_bytes:,} bytes; {found.differing:,} of {found.rows:,} rows differ"
        )


if __name__ == "__main__":
    main()
