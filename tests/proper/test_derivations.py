"""Last merges, levels and improper tokens, against plain replay and against the package tokenizers."""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import merge_list, real
from tests.proper.test_canonical import LETTERS, merge_lists
from tokdfa.proper.derivations import derive_tokens, merge_letters
from tokdfa.proper.merge_rules import MergeRules, extract_rules
from tokdfa.proper.replay import replay_merges
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.proper.derivations import Derivations


def plain(rules: MergeRules) -> list[tuple[int, int, int, int]]:
    parts = (rules.left, rules.right, rules.result, rules.rank)
    return list(zip(*(part.tolist() for part in parts), strict=True))


def check_derivations(rules: MergeRules, derivations: Derivations, tokens: list[int]) -> None:
    """Against a replay of each token's letters that keeps what it did."""
    by_pair = {(left, right): (rank, result) for left, right, result, rank in plain(rules)}
    for token in tokens:
        symbols = rules.letters(token).tolist()
        done: list[tuple[int, int, int]] = []
        while pairs := [(by_pair[pair][0], k) for k, pair in enumerate(itertools.pairwise(symbols)) if pair in by_pair]:
            rank, k = min(pairs)
            done.append((symbols[k], symbols[k + 1], rank))
            symbols[k : k + 2] = [by_pair[symbols[k], symbols[k + 1]][1]]
        assert derivations.is_proper[token] == (symbols == [token])
        row = [int(array[token]) for array in (derivations.left, derivations.right, derivations.rank)]
        if symbols != [token] or not done:
            assert row == [-1, -1, -1]
            continue
        assert row == list(done[-1])
        assert derivations.level[token] == max(rank for _, _, rank in done)
        _check_rest(rules, derivations, by_pair, token)


def _check_rest(rules: MergeRules, derivations: Derivations, by_pair: dict, token: int) -> None:  # type: ignore[type-arg]
    """The greatest rank after the moment at which the left part, or the right part, stands complete."""
    parts = [int(derivations.left[token]), int(derivations.right[token])]
    cut = len(rules.letters(parts[0]))
    spans = [(symbol, k, k + 1) for k, symbol in enumerate(rules.letters(token).tolist())]
    whole = [(0, cut), (cut, len(spans))]
    later: dict[int, list[int]] = {}
    for side in range(2):
        if (spans[0] if side == 0 else spans[-1])[1:] == whole[side]:
            later[side] = []
    while len(spans) > 1:
        pairs = [(a[0], b[0]) for a, b in itertools.pairwise(spans)]
        rank, k = min((by_pair[pair][0], k) for k, pair in enumerate(pairs) if pair in by_pair)
        for ranks in later.values():
            ranks.append(rank)
        spans[k : k + 2] = [(by_pair[pairs[k]][1], spans[k][1], spans[k + 1][2])]
        for side in range(2):
            if any(span[1:] == whole[side] for span in spans):
                later.setdefault(side, [])
    assert derivations.rest_after_left[token] == max(later[0])
    assert derivations.rest_after_right[token] == max(later[1])


@given(merges=merge_lists())
def test_random_lists(tmp_path_factory: pytest.TempPathFactory, merges: list[tuple[str, str]]) -> None:
    name = merge_list(tmp_path_factory.mktemp("merges") / "t.json", LETTERS, merges)
    rules = extract_rules(load_tokenizer(name))
    check_derivations(rules, derive_tokens(rules), list(range(rules.size - 1)))


@pytest.mark.parametrize("name", ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2)])
def test_real_tokenizers(name: str) -> None:
    canonicity = real(name)
    random = np.random.default_rng(0)
    some = random.choice(np.flatnonzero(canonicity.derivations.is_proper), 300).tolist()
    strange = [*canonicity.derivations.irregular_tokens().tolist(), *canonicity.improper_tokens.tolist()[:20]]
    check_derivations(canonicity.rules, canonicity.derivations, some + strange)


@cache
def library_without_whole_pieces() -> tuple[Canonicity, object]:
    """Llama 3's rules in the package tokenizers, which does not look whole pieces up unless it is told to."""
    from tokenizers import models

    canonicity, alphabet = real("llama3"), byte_alphabet()
    texts = [
        "".join(alphabet[byte] for byte in canonicity.vocabulary.token_bytes(token)) or f"special {token}"
        for token in range(canonicity.size)
    ]
    ordered = canonicity.rules.in_rank_order()
    left, right = canonicity.rules.left[ordered].tolist(), canonicity.rules.right[ordered].tolist()
    merges = [(texts[a], texts[b]) for a, b in zip(left, right, strict=True)]
    return canonicity, (models.BPE({text: token for token, text in enumerate(texts)}, merges), texts)


def test_improper_tokens_of_llama3() -> None:
    """588 of 128,000, each of them and no other according to the package tokenizers."""
    canonicity, (model, texts) = library_without_whole_pieces()  # type: ignore[misc]
    improper = set(canonicity.improper_tokens.tolist())
    assert len(improper) == 588
    for token in range(128_000):
        made = [part.id for part in model.tokenize(texts[token])]
        assert (made != [token]) == (token in improper)
    for token, encoding in canonicity.whole_piece_encodings.items():
        assert tuple(part.id for part in model.tokenize(texts[token])) == encoding
    assert set(canonicity.whole_piece_encodings) == improper
    assert len(canonicity.derivations.irregular_tokens()) == 90
    for name in ("mistral-v1", "tekken"):
        assert not len(real(name).improper_tokens)
        assert not len(real(name).derivations.irregular_tokens())


@pytest.mark.parametrize("name", ["mistral-v1", "llama3"])
def test_merge_letters_is_the_plain_replay(name: str) -> None:
    rules = real(name).rules
    listed = plain(rules)
    random = np.random.default_rng(2)
    letters = np.concatenate([rules.letters(int(token)) for token in random.choice(real(name).merge_tree.order, 60)])
    assert merge_letters(rules, letters).tolist() == replay_merges(letters.tolist(), listed)
    assert merge_letters(rules, []).tolist() == []
