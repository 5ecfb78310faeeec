"""The comparison with the reference library: it passes on every tokenizer, and finds what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import real, trained_byte_level, trained_metaspace
from tokdfa.errors import TokenizerError
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.proper.verify import check_against_reference, encode_piece, sample_pieces
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name", ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2), "bytes"]
)
def test_named_tokenizers_pass(name: str) -> None:
    canonicity = real(name)
    check_against_reference(canonicity, name)
    for piece in sample_pieces(canonicity):
        assert canonicity.vocabulary.spell(encode_piece(canonicity, piece)) == piece


@pytest.mark.parametrize("make", [trained_byte_level, trained_metaspace])
def test_trained_tokenizers_pass(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    check_against_reference(build_canonicity(load_tokenizer(make(tmp_path / "t.json"))), "trained")


def with_rules(canonicity: Canonicity, **changes: np.ndarray) -> Canonicity:
    parts = (canonicity.derivations, canonicity.merge_tree, canonicity.lists, canonicity.fallback)
    return Canonicity(canonicity.vocabulary, canonicity.source, replace(canonicity.rules, **changes), *parts)


@pytest.mark.parametrize("name", ["mistral-v1", "tekken"])
def test_a_wrong_order_is_found(name: str) -> None:
    rules = real(name).rules
    backwards = (rules.rank.max() - rules.rank).astype(np.int32)
    with pytest.raises(
        TokenizerError, match=r"toy: the merge rules .* do not reproduce .* from token \d+ on"
    ) as caught:
        check_against_reference(with_rules(real(name), rank=backwards), "toy")
    assert "Hello, world" in str(caught.value)


@pytest.mark.parametrize("late", [b"in", b"er", b"he", b" a", b"re"])
def test_one_late_token_is_found(late: bytes) -> None:
    """The rules that make one common token of Mistral v1 come last."""
    canonicity = real("mistral-v1")
    token = next(t for t in range(canonicity.size) if canonicity.vocabulary.token_bytes(t) == late)
    rank = np.where(canonicity.rules.result == token, canonicity.rules.rank.max() + 1, canonicity.rules.rank)
    with pytest.raises(TokenizerError, match="do not reproduce"):
        check_against_reference(with_rules(canonicity, rank=rank.astype(np.int32)), "toy")
