"""The judging of sequences: against the reference on all short ones, on drawn ones, and with tables made wrong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tests.proper.judge import draw_pieces, draw_texts_of, judge_piece, judge_text, judge_texts, reproduces
from tests.proper.replay_table import compare_with_replay, untied_rules, with_rules_only
from tests.proper.small_tokenizers import ranked_pieces, real, trained_byte_level, trained_metaspace
from tokdfa.backends.proper import proper_texts
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.intervals import IntervalLists
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module", params=[trained_byte_level, trained_metaspace])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return load_tokenizer(request.param(tmp_path_factory.mktemp("trained") / "tokenizer.json"))


def test_all_short_sequences(tmp_path: Path) -> None:
    """Tokens that run across borders of GPT-2's pieces, whole pieces with improper tokens, and look-ahead."""
    texts = ["ab", "a ", " a", "b'", "'s", "  ", "s1"]
    tokenizer = load_tokenizer(f"{ranked_pieces(tmp_path / 'ranks', texts)}?pattern=gpt2")
    canonicity, compiled = load_canonicity(tokenizer), proper_texts(tokenizer.vocabulary)
    tokens = [*b"a '1", *range(256, 256 + len(texts))]
    proper = 0
    for row in (row for n in (1, 2, 3) for row in itertools.product(tokens, repeat=n)):
        ours, as_piece = judge_text(compiled, row), judge_piece(canonicity, row)
        assert ours == reproduces(lambda data: tokenizer.encode(data.decode()), row, tokenizer.vocabulary), row
        assert as_piece is reproduces(canonicity.source.encode_piece, row, tokenizer.vocabulary), row
        proper += ours
    assert 50 < proper < 700


@pytest.mark.parametrize("name", ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2)])
def test_texts_of_real_tokenizers(name: str) -> None:
    assert min(judge_texts(load_tokenizer(name), 2_000, seed=7)) > 700


def test_draws(trained: Tokenizer) -> None:
    assert min(judge_texts(trained, 2_000, seed=1)) > 500
    rows = list(itertools.islice(draw_texts_of(trained, 3), 1_000))
    assert rows == list(itertools.islice(draw_texts_of(trained, 3), 1_000))
    encoded = {}
    for row, known in rows:
        text = trained.spell(row)
        if known is True:
            assert trained.encode(text.decode()) == row
            encoded[text] = row
        elif known is False:
            assert encoded[text] != row
    assert {known for _, known in rows} == {True, False, None}


def test_wrong_intervals_are_found(trained: Tokenizer) -> None:
    """One number too many at the end of each interval: the draws at the edges meet it, and the pair test differs."""
    right = load_canonicity(trained)
    starts, ends = right.lists.starts, right.lists.ends
    last = np.append(starts[1:] <= ends[:-1], True)
    widened = np.where(last, ends, ends + 1).astype(np.int32)
    lists = IntervalLists(right.lists.state_of, right.lists.list_starts, starts, widened)
    parts = (right.rules, right.derivations, right.merge_tree, lists, right.fallback)
    wrong = Canonicity(right.vocabulary, right.source, *parts)
    verdicts = [judge_piece(wrong, tokens) for tokens in draw_pieces(wrong, 2_000, np.random.default_rng(0))]
    assert verdicts.count(None) > 20


def test_ties_are_left_out_of_the_replay() -> None:
    """Mistral v1's runs of spaces have one score: the replay is not exact with them, which shows in its table."""
    canonicity = real("mistral-v1")
    untied = untied_rules(canonicity.rules)
    left_out = canonicity.rules.result[~untied].tolist()
    assert len(left_out) == 104
    assert {canonicity.vocabulary.token_bytes(token).strip(b" ") for token in left_out} == {b""}
    early = canonicity.rules.rank < 1_500
    assert compare_with_replay(with_rules_only(canonicity, early & untied)).differing == 0
    result = compare_with_replay(with_rules_only(canonicity, (canonicity.rules.rank < 200) | ~untied))
    assert result.rules == (canonicity.rules.rank < 200).sum() + 104
    assert 0 < result.differing < result.rows == canonicity.size
