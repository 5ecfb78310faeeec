"""The slow twins: against the example of the source, the package tokenizers, and the interval lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.proper.judge import assert_replay_agrees
from tests.proper.replay_table import replay_bigrams, with_rules_only
from tests.proper.small_tokenizers import merge_list, merge_lists, real, trained_byte_level, trained_metaspace
from tests.proper.test_canonical import LETTERS
from tokdfa.proper.replay import replay_merges
from tokdfa.proper.rules_cache import build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def test_the_example_of_the_source() -> None:
    """002, table 1: [(a, b), (a, a), (a, c)] on aaaabaacac gives aa a ab aa c ac."""
    texts = ["a", "b", "c", "ab", "aa", "ac"]
    rules = [(0, 1, 3, 0), (0, 0, 4, 1), (0, 2, 5, 2)]
    tokens = replay_merges([texts.index(letter) for letter in "aaaabaacac"], rules)
    assert [texts[token] for token in tokens] == ["aa", "a", "ab", "aa", "c", "ac"]
    assert replay_merges([], rules) == []
    allowed = np.unpackbits(replay_bigrams(range(3), [rule[:3] for rule in rules], 6), axis=1, bitorder="little")
    assert {texts[u] for u in np.flatnonzero(allowed[0])} == {"ab"}  # after a: aa and ac would have merged
    assert {texts[u] for u in np.flatnonzero(allowed[4])} == set(texts) - {"b"}  # aab is a ab, but aac is aa c
    assert {texts[u] for u in np.flatnonzero(allowed[3])} == set(texts)


@given(merges=merge_lists(), text=st.text(LETTERS, max_size=14))
def test_merges_as_the_library(
    tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]], text: str
) -> None:
    tokenizer = load_tokenizer(merge_list(tmp_path_factory.mktemp("merges") / "t.json", LETTERS, merges))
    rules = [(*map(int, row), rank) for rank, row in enumerate(tokenizer.merges.read_pairs())]
    letters = {tokenizer.vocabulary.token_bytes(int(token)): int(token) for token in tokenizer.merges.letters}
    tokens = replay_merges([letters[letter.encode()] for letter in text], rules)
    assert tokens == tokenizer.encode(text)


@given(merges=merge_lists(in_any_order=False))
def test_bigrams_of_random_lists(tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]]) -> None:
    name = merge_list(tmp_path_factory.mktemp("merges") / "t.json", LETTERS, merges)
    canonicity = build_canonicity(load_tokenizer(name))
    assume(not len(canonicity.derivations.irregular_tokens()))
    assert_replay_agrees(canonicity)


@pytest.mark.parametrize("make", [trained_byte_level, trained_metaspace])
def test_bigrams_of_trained_tokenizers(make, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    canonicity = build_canonicity(load_tokenizer(make(tmp_path / "tokenizer.json")))
    assert not len(canonicity.derivations.irregular_tokens())
    assert_replay_agrees(canonicity)


def test_bigrams_of_mistral_v1() -> None:
    """Its first 500 ranks. All 58,876 rules but those of the runs of spaces take 30 s: a matter for a benchmark."""
    canonicity = real("mistral-v1")
    assert_replay_agrees(with_rules_only(canonicity, canonicity.rules.rank < 500))


def test_runs_of_spaces_are_tied() -> None:
    """In Mistral v1 all runs of spaces have one score, so a run grows from the left; 002's replay cannot say that."""
    canonicity = real("mistral-v1")
    ranks, counts = np.unique(canonicity.source.ranks[canonicity.source.ranks >= 0], return_counts=True)
    tied = np.flatnonzero(np.isin(canonicity.source.ranks, ranks[counts > 1]))
    assert {len(canonicity.vocabulary.token_bytes(int(token)).strip(b" ")) for token in tied} == {0}
    of_spaces = {len(canonicity.vocabulary.token_bytes(int(token))): int(token) for token in tied}
    for length in range(2, 13):
        assert canonicity.derivations.left[of_spaces[length]] == of_spaces[length - 1]
