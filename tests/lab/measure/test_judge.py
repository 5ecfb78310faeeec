"""The compiled judge: against the reference on all short sequences, on drawn ones, and with tables made wrong."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.packages import needs_smollm2
from tests.proper.small_tokenizers import ranked_pieces, real
from tests.vocabulary.tokenizer_files import byte_level
from tokdfa.errors import OptionError
from tokdfa.lab.measure import judge as module
from tokdfa.lab.measure.canonicity_replay import compare_with_replay, untied_rules, with_rules_only
from tokdfa.lab.measure.judge import (
    IMPROPER,
    PROPER,
    Judge,
    Tally,
    TokenSequences,
    reference_on_pieces,
    reference_on_texts,
)
from tokdfa.lab.measure.judge_draws import draw_pieces, draw_texts_of, judge_pieces, judge_texts
from tokdfa.lab.measure.trained_tokenizers import TRAINED, train_tokenizer
from tokdfa.proper.canonical import Canonicity
from tokdfa.proper.piece_borders import load_marked_dfa
from tokdfa.proper.pretokenizer_dfa import MarkedDfa
from tokdfa.proper.rules_cache import build_canonicity, load_canonicity
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module", params=TRAINED)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("trained") / "tokenizer.json"
    return load_tokenizer(train_tokenizer(request.param, path, 1_500, 2_000, seed=5))


def all_sequences(tokens: list[int], length: int) -> TokenSequences:
    return TokenSequences.of(row for n in range(1, length + 1) for row in itertools.product(tokens, repeat=n))


def test_all_short_sequences_of_texts(tmp_path: Path) -> None:
    """Tokens that run across borders of GPT-2's pieces, whole pieces with improper tokens, and look-ahead."""
    texts = ["ab", "a ", " a", "b'", "'s", "  ", "s1", "abba", "bab"]
    name = ranked_pieces(tmp_path / "ranks", texts)
    tokenizer = load_tokenizer(f"{name}?pattern=gpt2")
    canonicity = build_canonicity(tokenizer)
    assert len(canonicity.whole_piece_encodings) > 0
    sequences = all_sequences([*b"a '1", *range(256, 256 + len(texts))], 4)
    verdicts = Judge(canonicity, load_marked_dfa(tokenizer)).verdicts(sequences)
    expected = reference_on_texts(tokenizer, sequences)
    assert len(sequences) > 30_000
    assert 100 < expected.sum() < len(sequences) / 2
    assert np.array_equal(verdicts, expected)
    as_pieces = Judge(canonicity).verdicts(sequences)
    assert np.array_equal(as_pieces, reference_on_pieces(canonicity, sequences))
    assert not np.array_equal(as_pieces, verdicts)


@pytest.mark.parametrize("name", ["mistral-v1", "tekken", "llama3", pytest.param("smollm2", marks=needs_smollm2)])
def test_texts_of_real_tokenizers(name: str) -> None:
    tally = judge_texts(load_tokenizer(name), 4_000, seed=7)
    assert tally.examples == []
    assert (tally.judged, tally.mismatches, tally.disputed) == (4_000, 0, 0)
    assert min(tally.proper, tally.improper) > 1_500
    assert tally.distinct > 3_500


def test_trained_tokenizers(trained: Tokenizer) -> None:
    pieces = judge_pieces(load_canonicity(trained), 4_000, seed=1)
    texts = judge_texts(trained, 4_000, seed=1)
    for tally in (pieces, texts):
        assert tally.examples == []
        assert (tally.judged, tally.mismatches) == (4_000, 0)
        assert min(tally.proper, tally.improper) > 1_000
        assert 0 < tally.our_seconds < tally.our_seconds + tally.reference_seconds


def test_draws_are_what_they_say(trained: Tokenizer) -> None:
    rows = list(itertools.islice(draw_texts_of(trained, 3), 2_000))
    assert rows == list(itertools.islice(draw_texts_of(trained, 3), 2_000))
    kinds = {known: [row for row, one in rows if one is known] for known in (True, False, None)}
    assert min(map(len, kinds.values())) > 200
    encoded = {}
    for row, known in rows:
        text = trained.spell(row)
        if known is True:
            assert trained.encode(text.decode()) == row
            encoded[text] = row
        elif known is False:
            assert encoded[text] != row
    sequences = TokenSequences.of(row for row, _ in rows)
    assert sequences.spell(trained.vocabulary) == [trained.spell(row) for row, _ in rows]
    canonicity = load_canonicity(trained)
    pieces = draw_pieces(canonicity, 999, np.random.default_rng(2))
    assert len(pieces) == 999
    assert pieces.lists() == draw_pieces(canonicity, 999, np.random.default_rng(2)).lists()


def with_lists(canonicity: Canonicity, **changes: np.ndarray) -> Canonicity:
    parts = (canonicity.rules, canonicity.derivations, canonicity.merge_tree, replace(canonicity.lists, **changes))
    return Canonicity(canonicity.vocabulary, canonicity.source, *parts, canonicity.fallback)


def test_wrong_intervals_are_found(trained: Tokenizer) -> None:
    """One number too many at the end of each interval: the draws at the edges meet it, and the pair test differs."""
    canonicity = load_canonicity(trained)
    starts, ends = canonicity.lists.starts, canonicity.lists.ends
    last = np.append(starts[1:] <= ends[:-1], True)
    wrong = with_lists(canonicity, ends=np.where(last, ends, ends + 1).astype(np.int32))
    sequences = draw_pieces(canonicity, 2_000, np.random.default_rng(0))
    tally = Tally(trained.vocabulary)
    tally.add(Judge(wrong), sequences, reference_on_pieces(canonicity, sequences))
    assert tally.mismatches >= tally.disputed > 20
    assert len(tally.examples) == module.EXAMPLES
    assert all("disputed, but the reference says" in example for example in tally.examples)


def test_a_wrong_marked_language_is_found() -> None:
    """Llama 3's tokens, cut as Tekken cuts them."""
    llama, marked = load_tokenizer("llama3"), load_marked_dfa(load_tokenizer("tekken"))
    rows = list(itertools.islice(draw_texts_of(llama, 1), 4_000))
    sequences = TokenSequences.of(row for row, known in rows if known is True)
    tally = Tally(llama.vocabulary)
    tally.add(Judge(load_canonicity(llama), marked), sequences, np.ones(len(sequences), dtype=np.bool_))
    assert tally.disputed == 0
    assert tally.mismatches > 20


def test_many_hypotheses() -> None:
    """State n after n borders, and only the last one accepts: all 40 ways to cut are alive together."""
    count = 40
    marker = np.append(np.arange(1, count), -1).astype(np.int32)
    stay = np.arange(count, dtype=np.int32)[:, None]
    accepting = np.arange(count) == count - 1
    marked = MarkedDfa(stay, np.zeros(256, dtype=np.uint8), accepting, 0, marker)
    judge = Judge(build_canonicity(load_tokenizer("bytes")), marked)
    sequences = TokenSequences.of([[97] * (count - 1), [97] * count, [97] * 100])
    assert judge.verdicts(sequences).tolist() == [IMPROPER, PROPER, PROPER]


def test_what_cannot_be_judged(tmp_path: Path) -> None:
    isolated = load_tokenizer(f"hf:{byte_level(tmp_path / 'tokenizer.json')}")
    with pytest.raises(OptionError, match="isolated tokens cannot be judged"):
        Judge(build_canonicity(isolated))
    with pytest.raises(OptionError, match="bytes: without a pre-tokenizer, sequences of bytes need not be texts"):
        judge_texts(load_tokenizer("bytes"), 10, seed=0)


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
    assert result.table_bytes == 32_000 * 4_000
