"""Forbidden predecessors against forbidden successors, read the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings

from tests.proper.small_tokenizers import MAKERS, real
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tokdfa.proper.canonical import Canonicity


def check(canonicity: Canonicity, tokens: list[int]) -> int:
    """Compare with the intervals of all tokens; returns how many pairs are forbidden."""
    order, lists = canonicity.merge_tree.order, canonicity.lists
    forbidden = 0
    for token in tokens:
        number = int(canonicity.merge_tree.number[token])
        inside = (lists.starts <= number) & (number < lists.ends)
        states = np.unique(np.searchsorted(lists.list_starts, np.flatnonzero(inside), side="right") - 1)
        expected = order[np.isin(lists.state_of[order], states)]
        found = canonicity.predecessors.forbidden(token)
        assert np.array_equal(np.sort(found), np.sort(expected)), token
        assert len(found) == len(set(found.tolist()))
        forbidden += len(found)
    return forbidden


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_real_tokenizers(name: str) -> None:
    canonicity = real(name)
    tokens = np.random.default_rng(0).choice(canonicity.merge_tree.order, 300).tolist()
    assert check(canonicity, tokens) > 1000


@pytest.mark.parametrize("kind", MAKERS)
def test_random_tokenizers(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    forbidden = []

    @settings(max_examples=40)
    @given(MAKERS[kind])
    def check_one(make: Callable[[Path], str]) -> None:
        canonicity = build_canonicity(load_tokenizer(make(tmp_path_factory.mktemp("random") / "model")))
        forbidden.append(check(canonicity, canonicity.merge_tree.order.tolist()))

    check_one()
    assert any(forbidden)
