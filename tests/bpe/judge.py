"""Verdicts of the interval algorithm against the reference libraries, on as many sequences as asked for.

`judge` is called with small numbers by the tests and with large ones by benchmarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.bpe.canonical import Canonicity
from tokdfa.bpe.derivations import derive_tokens
from tokdfa.bpe.explain import is_proper_piece
from tokdfa.bpe.forest import build_forest
from tokdfa.bpe.intervals import build_lists
from tokdfa.bpe.merge_rules import MergeRules
from tokdfa.bpe.replay import replay_bigrams
from tokdfa.mask import allocate_mask, mask_to_bool

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


def reference_says(canonicity: Canonicity, tokens: list[int]) -> bool:
    """Whether the reference library encodes the text of `tokens` (one piece) as `tokens`."""
    piece = canonicity.vocabulary.spell(tokens)
    try:
        return canonicity.source.encode_piece(piece) == tokens
    except UnicodeDecodeError:  # letters are characters, and this is no text
        return False


def judge(canonicity: Canonicity, count: int, seed: int = 0) -> tuple[int, int]:
    """(proper, improper) among `count` sequences, all of which the reference judges alike; AssertionError if not.

    Half are pairs in which the intervals forbid the second token, or rules that merge; the others are random pairs,
    triples, and real encodings with one border moved.
    """
    verdicts = [0, 0]
    for tokens in _sequences(canonicity, count, np.random.default_rng(seed)):
        ours, theirs = is_proper_piece(canonicity, tokens), reference_says(canonicity, tokens)
        spelled = [canonicity.vocabulary.token_bytes(token) for token in tokens]
        assert ours == theirs, f"{tokens} {spelled}: {ours}, but the reference says {theirs}"
        if len(tokens) == 2 and tuple(tokens) not in canonicity.whole_piece_of and _is_text(canonicity, tokens):
            assert canonicity.pair_is_canonical(*tokens) == theirs, (tokens, spelled)
        verdicts[not ours] += 1
    return verdicts[0], verdicts[1]


def _is_text(canonicity: Canonicity, tokens: list[int]) -> bool:
    """Whether byte fallback has no say: it looks at more than pairs."""
    return canonicity.fallback is None or all(canonicity.fallback.byte_of[token] < 0 for token in tokens)


def _sequences(canonicity: Canonicity, count: int, random: np.random.Generator) -> Iterator[list[int]]:
    order, rules = canonicity.forest.order, canonicity.rules
    spelling = np.flatnonzero(canonicity.vocabulary.lengths)
    for _ in range(count):
        kind = random.integers(8)
        left = int(random.choice(order))
        starts, ends = canonicity.forbidden(left)
        if kind < 3 and len(starts):
            # At the edges of an interval and just outside it, where a wrong bound would show.
            interval = int(random.integers(len(starts)))
            place = random.choice([starts[interval] - 1, starts[interval], ends[interval] - 1, ends[interval]])
            yield [left, int(order[np.clip(place, 0, len(order) - 1)])]
        elif kind == 3 and len(rules):
            rule = int(random.integers(len(rules)))
            yield [int(rules.left[rule]), int(rules.right[rule])]
        elif kind == 4:
            yield random.choice(spelling, 3).tolist()
        elif kind == 5:
            yield random.choice(order, 3).tolist()
        elif kind == 6:
            # The proper tokens of both halves of some text, side by side.
            letters = np.concatenate([canonicity.rules.letters(int(token)) for token in random.choice(order, 3)])
            cut = int(random.integers(len(letters) + 1))
            halves = [canonicity.vocabulary.spell(half.tolist()) for half in (letters[:cut], letters[cut:])]
            yield [token for half in halves for token in canonicity.source.encode_piece(half)]
        else:
            yield [left, int(random.choice(spelling))]


def with_rules_only(canonicity: Canonicity, keep: npt.NDArray[np.bool_]) -> Canonicity:
    """The canonicity of a tokenizer that has only the rules with ``keep[rule]``, and no byte fallback."""
    rules = canonicity.rules
    row_starts = np.zeros(rules.size + 1, dtype=np.int32)
    np.cumsum(np.bincount(rules.left[keep], minlength=rules.size), out=row_starts[1:])
    kept = MergeRules(
        *(part[keep] for part in (rules.left, rules.right, rules.result, rules.rank)),
        *(row_starts, rules.spelling, rules.spelling_starts),
    )
    derivations = derive_tokens(kept)
    forest = build_forest(derivations, np.zeros(0, dtype=np.int32))
    parts = (kept, derivations, forest, build_lists(kept, derivations, forest), None)
    return Canonicity(canonicity.vocabulary, canonicity.source, *parts)


def compare_with_replay(canonicity: Canonicity) -> None:
    """AssertionError unless the table that 002 replays equals the interval lists, for all pairs of proper tokens.

    Only where ranks rise along every derivation and no two results share a rank. For Mistral v1 without its runs of
    spaces (`with_rules_only`, all ranks but the last): 15 s for the replay, 15 s for comparing 31,000 rows.
    """
    ordered = canonicity.rules.in_rank_order()
    parts = (canonicity.rules.left, canonicity.rules.right, canonicity.rules.result)
    rules = list(zip(*(part[ordered].tolist() for part in parts), strict=True))
    table = replay_bigrams(canonicity.source.letters.tolist(), rules, canonicity.size)
    merging = canonicity.derivations.is_proper  # byte tokens are no part of the replay
    out = allocate_mask(canonicity.size)
    for token in range(canonicity.size):
        allowed = np.unpackbits(table[token], bitorder="little", count=canonicity.size).astype(np.bool_)
        if merging[token]:
            canonicity.forbidden_mask(token, out)
            assert np.array_equal(allowed, merging & ~mask_to_bool(out, canonicity.size)), token
        else:
            assert not allowed.any(), token
