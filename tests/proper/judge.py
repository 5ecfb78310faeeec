"""Verdicts of the interval algorithm against the reference libraries, in the small numbers that tests can afford.

`tokdfa.lab.measure.judge` draws the sequences, and judges millions of them in benchmarks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.lab.measure.canonicity_replay import compare_with_replay
from tokdfa.lab.measure.judge import draw_pieces, judge_piece, reproduces
from tokdfa.proper.explain import explain

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity


def reference_says(canonicity: Canonicity, tokens: list[int]) -> bool:
    """Whether the reference library encodes the text of `tokens` (one piece) as `tokens`."""
    return reproduces(canonicity.source.encode_piece, tokens, canonicity.vocabulary)


def is_proper_piece(canonicity: Canonicity, tokens: list[int]) -> bool:
    """Whether the tokenizer makes exactly `tokens` of their text, taken as one piece."""
    return explain(canonicity, tokens) is None


def judge(canonicity: Canonicity, count: int, seed: int = 0) -> tuple[int, int]:
    """(proper, improper) among `count` sequences, all of which the reference judges alike; AssertionError if not.

    Asked are `tokdfa.lab.measure.judge.judge_piece`, and `Canonicity.pair_is_canonical` where it applies.
    """
    drawn = [list(tokens) for tokens in draw_pieces(canonicity, count, np.random.default_rng(seed))]
    expected = [reference_says(canonicity, tokens) for tokens in drawn]
    for tokens, theirs in zip(drawn, expected, strict=True):
        ours = judge_piece(canonicity, tokens)
        spelled = [canonicity.vocabulary.token_bytes(token) for token in tokens]
        assert ours is theirs, f"{tokens} {spelled}: {ours}, but the reference says {theirs}"
        if len(tokens) == 2 and tuple(tokens) not in canonicity.whole_piece_of and _is_text(canonicity, tokens):
            assert canonicity.pair_is_canonical(*tokens) == theirs, (tokens, spelled)
    return sum(expected), count - sum(expected)


def _is_text(canonicity: Canonicity, tokens: list[int]) -> bool:
    """Whether byte fallback has no say: it looks at more than pairs."""
    return canonicity.fallback is None or all(canonicity.fallback.byte_of[token] < 0 for token in tokens)


def assert_replay_agrees(canonicity: Canonicity) -> None:
    """AssertionError unless the table that 002 replays equals the interval lists, for all pairs of tokens.

    Only where ranks rise along every derivation and no two results share a rank.
    """
    result = compare_with_replay(canonicity)
    assert (result.rows, result.differing) == (canonicity.size, 0)
