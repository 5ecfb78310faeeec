"""Pairs, interval lists and masks: against brute force over small rule sets, and against the libraries on real ones."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings

from tests.packages import needs_smollm2
from tests.proper.judge import is_proper_piece, judge, reference_says
from tests.proper.small_tokenizers import (
    BYTE,
    HARD,
    MAKERS,
    real,
    scored_pieces,
    trained_byte_level,
    trained_metaspace,
)
from tokdfa.errors import TokdfaError, VocabularyError
from tokdfa.mask import allocate_mask, mask_to_ids
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokdfa.proper.canonical import Canonicity

REAL = ("mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2))
LETTERS = "abc"


def check_all(canonicity: Canonicity) -> None:
    """Every pair of tokens over LETTERS, and triples, against the reference; masks and intervals against the pairs."""
    vocabulary = canonicity.vocabulary
    tokens = [t for t in range(vocabulary.size) if vocabulary.token_bytes(t).strip(LETTERS.encode()) == b""]
    tokens = [t for t in tokens if vocabulary.token_bytes(t)]
    for token in tokens:
        assert is_proper_piece(canonicity, [token]) == reference_says(canonicity, [token])
    for pair in itertools.product(tokens, tokens):
        expected = reference_says(canonicity, list(pair))
        assert is_proper_piece(canonicity, pair) == expected, [vocabulary.token_bytes(token) for token in pair]
        if pair not in canonicity.whole_piece_of:
            assert canonicity.pair_is_canonical(*pair) == expected
    proper = [token for token in tokens if canonicity.state_of(token) >= 0]
    for token in proper:
        out = allocate_mask(vocabulary.size)
        canonicity.forbidden_mask(token, out)
        assert set(mask_to_ids(out)) & set(proper) == {u for u in proper if not canonicity.pair_is_canonical(token, u)}
        starts, ends = canonicity.forbidden(token)
        assert np.all(starts < ends)
        assert np.all(ends[:-1] < starts[1:])  # sorted, and none touches the next
    some = np.random.default_rng(0).choice(tokens, (60, 3)).tolist()
    for triple in some:
        assert is_proper_piece(canonicity, triple) == reference_says(canonicity, triple)


@pytest.mark.parametrize("kind", MAKERS)
def test_random_tokenizers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    @settings(max_examples=70)
    @given(MAKERS[kind])
    def check(make: Callable[[Path], str]) -> None:
        check_all(build_canonicity(load_tokenizer(make(tmp_path_factory.mktemp("random") / "model"))))

    check()


@pytest.mark.parametrize("pattern", HARD)
def test_irregular_tokens_ties_and_whole_pieces(pattern: str, tmp_path: Path) -> None:
    """Of ties: a bound that is met exactly, by a rule whose rank is less than that of a part of the token."""
    for number, make in enumerate(HARD[pattern]):
        check_all(build_canonicity(load_tokenizer(make(tmp_path / str(number)))))


@pytest.mark.parametrize("name", REAL)
def test_real_tokenizers(name: str) -> None:
    proper, improper = judge(real(name), 12_000)
    assert min(proper, improper) > 3_000


@pytest.mark.parametrize("make", [trained_byte_level, trained_metaspace])
def test_trained_tokenizers(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    canonicity = build_canonicity(load_tokenizer(make(tmp_path / "tokenizer.json")))
    proper, improper = judge(canonicity, 10_000)
    assert min(proper, improper) > 2_000


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("mistral-v1", 12_260),
        ("tekken", 124_465),
        ("llama3", 120_871),
        pytest.param("smollm2", 45_537, marks=needs_smollm2),
    ],
)
def test_real_masks_agree_with_pairs(name: str, most: int) -> None:
    """12,260 is what 002's notebook reports for Mistral v1; the others are ours, pinned."""
    canonicity = real(name)
    assert canonicity.forbidden_counts.max() == most
    random = np.random.default_rng(1)
    out = allocate_mask(canonicity.size)
    for token in random.choice(canonicity.merge_tree.order, 25).tolist():
        canonicity.forbidden_mask(token, out)
        forbidden = set(mask_to_ids(out).tolist())
        starts, ends = canonicity.forbidden(token)
        assert len(forbidden) == (ends - starts).sum() == canonicity.forbidden_counts[canonicity.state_of(token)]
        others = random.choice(canonicity.merge_tree.order, 200).tolist()
        some = random.choice(list(forbidden), 50).tolist() if forbidden else []
        for other in others + some:
            assert canonicity.pair_is_canonical(token, other) == (other not in forbidden)


def test_tokens_that_cannot_be_asked_about() -> None:
    canonicity = real("llama3")
    improper = int(canonicity.improper_tokens[0])
    assert not canonicity.pair_is_canonical(improper, 0)
    assert not canonicity.pair_is_canonical(0, improper)
    with pytest.raises(VocabularyError, match=f"token {improper} is not proper"):
        canonicity.forbidden(improper)
    with pytest.raises(VocabularyError, match="outside"):
        canonicity.pair_is_canonical(0, canonicity.size)
    with pytest.raises(TokdfaError, match="mask must be"):
        canonicity.forbidden_mask(0, np.zeros(3, dtype=np.int32))


def test_usable_tokens(tmp_path: Path) -> None:
    """Tokens that spell an isolated token's text are never used, nor byte tokens of characters that are tokens."""
    byte_pieces = {f"<0x{byte:02X}>": 0.0 for byte in range(256)}
    scores = byte_pieces | {"a": -9.0, "b": -9.0, "é": -9.0, "ab": -1.0, "bab": -2.0, "[x]": 0.0}
    kinds = dict.fromkeys(byte_pieces, BYTE) | {"ab": 4, "[x]": 4}
    canonicity = build_canonicity(load_tokenizer(scored_pieces(tmp_path / "model", scores, kinds)))
    vocabulary = canonicity.vocabulary
    usable = [vocabulary.token_bytes(int(token)) for token in np.flatnonzero(canonicity.usable)]
    assert [text for text in usable if text not in {bytes([byte]) for byte in range(256)}] == ["é".encode()]
    by_byte = {vocabulary.token_bytes(3 + byte): bool(canonicity.usable[3 + byte]) for byte in range(256)}
    assert not by_byte[b"a"]
    assert by_byte[b"c"]
    assert by_byte[b"\xa9"]
    assert not by_byte[b"\xff"]
