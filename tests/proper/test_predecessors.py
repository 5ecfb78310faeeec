"""Forbidden predecessors against forbidden successors, read the other way round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proper.small_tokenizers import merge_list, ranked_pieces, real
from tokdfa.proper.intervals import list_predecessors_kernel
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
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
        found = list_predecessors_kernel(token, canonicity.predecessors)
        assert np.array_equal(np.sort(found), np.sort(expected)), token
        assert len(found) == len(set(found.tolist()))
        forbidden += len(found)
    return forbidden


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_real_tokenizers(name: str) -> None:
    canonicity = real(name)
    tokens = np.random.default_rng(0).choice(canonicity.merge_tree.order, 300).tolist()
    assert check(canonicity, tokens) > 1000


@settings(max_examples=60)
@given(st.data())
def test_random_merge_lists(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Merge lists in any order make irregular tokens."""
    texts = ["a", "b"]
    pairs: list[tuple[str, str]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        left, right = data.draw(st.sampled_from(texts)), data.draw(st.sampled_from(texts))
        if (left, right) not in pairs and len(left + right) < 8:
            pairs.append((left, right))
            if left + right not in texts:
                texts.append(left + right)
    shuffled = data.draw(st.permutations(pairs))
    canonicity = build_canonicity(
        load_tokenizer(merge_list(tmp_path_factory.mktemp("merges") / "tokenizer.json", "ab", shuffled))
    )
    check(canonicity, canonicity.merge_tree.order.tolist())


def test_ranked_pieces(tmp_path: Path) -> None:
    texts = ["aa", "ab", "aaa", "aab", "ba", "aaaa", "bab", "abab"]
    canonicity = build_canonicity(load_tokenizer(ranked_pieces(tmp_path / "ranks.tiktoken", texts)))
    assert check(canonicity, canonicity.merge_tree.order.tolist()) > 0
