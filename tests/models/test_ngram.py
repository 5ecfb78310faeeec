"""The n-gram model against Kneser-Ney written with dictionaries, a sum by hand, held-out text, and bad input."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.naive.kneser_ney import NaiveKneserNey
from tests.packages import needs_smollm2
from tokdfa.errors import LimitExceeded, ModelError, OptionError
from tokdfa.models import ngram
from tokdfa.models.ngram import MAX_ORDER, NgramModel, default_documents, read_text, train_ngram
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

#: Three letters, two end tokens, a special token and two of padding.
VOCABULARY = Vocabulary([b"a", b"", b"b", b"ab", b"", b""], [4, 1], {5: "<begin>"}, size=8)
LETTERS = (0, 2, 3)
POSSIBLE = (*LETTERS, 1, 4)
DOCUMENTS = st.lists(st.lists(st.sampled_from(LETTERS), min_size=1, max_size=12), min_size=1, max_size=5)


def train(documents: list[list[int]], order: int) -> NgramModel:
    return NgramModel("ngram", VOCABULARY, [np.array(document) for document in documents], order)


@settings(max_examples=150)
@given(DOCUMENTS, st.integers(1, 5), st.lists(st.lists(st.sampled_from(LETTERS), max_size=6), min_size=1, max_size=4))
def test_equals_the_dictionaries(documents: list[list[int]], order: int, prefixes: list[list[int]]) -> None:
    model, naive = train(documents, order), NaiveKneserNey(documents, 1, POSSIBLE, order)
    prefixes += [documents[0][:cut] for cut in range(len(documents[0]) + 1)]
    rows = np.exp(model.log_probabilities(prefixes))
    expected = [[naive.probability(token, prefix) for token in range(VOCABULARY.size)] for prefix in prefixes]
    np.testing.assert_allclose(rows, expected, rtol=1e-12, atol=0)
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-12)


def test_a_bigram_by_hand() -> None:
    # Documents "a b" and "a a". After the start: a twice. After a: b, a, end, once each. After b: end once.
    # Bigrams with count 1: 4, with count 2: 1, so D = 4 / 6. Different tokens seen before a: 2 (the start, a), before
    # b: 1 (a), before the end: 2 (b, a), so D = 1 / (1 + 2 * 2) for single tokens, of which 5 are possible.
    model = train([[0, 2], [0, 0]], 2)
    left_over = 1 / 5 * 3 / 5 / 5
    single = np.zeros(8)
    single[list(POSSIBLE)] = left_over
    single[[0, 2, 1]] += np.array([2 - 1 / 5, 1 - 1 / 5, 2 - 1 / 5]) / 5
    start = single * (2 / 3) / 2
    start[0] += (2 - 2 / 3) / 2
    after_a = single * (2 / 3)
    after_a[[0, 2, 1]] += (1 - 2 / 3) / 3
    rows = np.exp(model.log_probabilities([[], [0], [2, 0], [3]]))
    np.testing.assert_allclose(rows, [start, after_a, after_a, single], rtol=1e-13)


def test_tokens_that_spell_nothing_begin_a_document() -> None:
    model = train([[0, 2, 2], [0, 0, 2], [2, 3]], 4)
    for rest in ([], [0], [0, 2], [0, 0, 2, 3]):
        alone, *others = model.log_probabilities([rest, [3, 2, 1, *rest], [5, *rest], [2, 7, 7, *rest]])
        for row in others:
            np.testing.assert_array_equal(row, alone)
    start, elsewhere = model.log_probabilities([[], [3, 2, 2, 3]])
    assert start[0] > elsewhere[0]


def test_rows_do_not_depend_on_those_before() -> None:
    model, fresh = train([[0, 2, 3, 2], [2, 2, 0]], 3), train([[0, 2, 3, 2], [2, 2, 0]], 3)
    prefixes = [[0, 2], [], [2, 2], [0, 2], [3]]
    together = model.log_probabilities(prefixes)
    np.testing.assert_array_equal(together[0], together[3])
    together[0] = 0  # the caller's own
    np.testing.assert_array_equal(fresh.log_probabilities([[3]])[0], model.log_probabilities([[3]])[0])
    assert (model.counts.batches, model.counts.rows, model.counts.tokens) == (2, 6, 2 + 0 + 2 + 2 + 1 + 1)
    assert model.fingerprint == fresh.fingerprint
    assert model.fingerprint != train([[0, 2, 3, 2], [2, 2, 0]], 2).fingerprint
    assert model.fingerprint != train([[0, 2, 3, 2, 2, 2, 0]], 3).fingerprint


@pytest.mark.parametrize("name", ["mistral-v1", "tekken", pytest.param("smollm2", marks=needs_smollm2), "bytes"])
def test_held_out_text(name: str) -> None:
    """Every fifth page, by models that learned from the others."""
    tokenizer, pages = load_tokenizer(name), default_documents()
    training = [page for index, page in enumerate(pages) if index % 5]
    perplexity = {}
    for order in (4, 1):
        model, logs = train_ngram(tokenizer, training, order), []
        for page in pages[::5]:
            tokens = [*tokenizer.encode(page[:300]), tokenizer.vocabulary.end_tokens[0]]
            rows = model.log_probabilities([tokens[:cut] for cut in range(len(tokens))])
            np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, rtol=0, atol=1e-12)
            logs += rows[np.arange(len(tokens)), tokens].tolist()
        perplexity[order] = float(np.exp(-np.mean(logs)))
    assert np.isfinite(list(perplexity.values())).all()
    assert 1 < perplexity[4] < 0.5 * perplexity[1], perplexity


def test_a_text_is_cut_at_form_feeds() -> None:
    tokenizer = load_tokenizer("bytes")
    cut, listed = train_ngram(tokenizer, "one\ftwo\f\f", 3), train_ngram(tokenizer, ["one", "", "two"], 3)
    assert cut.fingerprint == listed.fingerprint
    assert cut.fingerprint != train_ngram(tokenizer, "onetwo", 3).fingerprint
    end = tokenizer.vocabulary.end_tokens[0]
    rows = np.exp(cut.log_probabilities([list(b"one"), list(b"on"), list(b"two")]))
    assert rows[0, end] > 0.5 < rows[2, end]
    assert rows[1, end] < 0.1
    assert cut.sizes == {2: 8, 3: 6}  # "one": start o, o n, n e, e end; start o n, o n e, n e end


def test_unknown_characters_are_left_out(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{_unknown_to_a_token(tmp_path)}?end=</s>")
    model, without = train_ngram(tokenizer, "ab\u4e2dab", 2), train_ngram(tokenizer, "abab", 2)
    assert 0 in tokenizer.encode("ab\u4e2dab")
    assert not tokenizer.vocabulary.lengths[0]
    assert model.fingerprint == without.fingerprint


def _unknown_to_a_token(folder: Path) -> Path:
    """A tokenizer.json that merges nothing and knows the letters a and b; other characters are token 0."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    model = {"type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "</s>": 1, "a": 2, "b": 3}, "merges": []}
    added = [{"id": 0, "content": "<unk>", **special}, {"id": 1, "content": "</s>", **special}]
    content = {"version": "1.0", "added_tokens": added, "model": model, "decoder": {"type": "Fuse"}}
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({"normalizer": None, "pre_tokenizer": None, "post_processor": None} | content))
    return path


@pytest.mark.parametrize("order", [0, -1, MAX_ORDER + 1, 2.5, "4", None])
def test_orders_out_of_range(order: object) -> None:
    with pytest.raises(OptionError, match="the order of an n-gram model is"):
        train_ngram(load_tokenizer("bytes"), "text", order)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "\f\f", [], [""]])
def test_texts_of_no_tokens(text: str | list[str]) -> None:
    with pytest.raises(ModelError, match="the text has no tokens of bytes"):
        train_ngram(load_tokenizer("bytes"), text)


def test_what_is_no_text() -> None:
    for text in ([b"bytes"], b"bytes"):
        with pytest.raises(OptionError, match="is a str or several"):
            train_ngram(load_tokenizer("bytes"), text)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="not valid Unicode"):
        train_ngram(load_tokenizer("bytes"), "\ud800")


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text.txt"
    with pytest.raises(ModelError, match=r"there is no text file .*text\.txt"):
        read_text(path)
    with pytest.raises(ModelError, match="there is no text file"):
        read_text(tmp_path)
    with pytest.raises(ModelError, match="there is no text file"):
        read_text("/dev/zero")
    path.write_bytes(b"caf\xe9 ")
    with pytest.raises(ModelError, match=r"text\.txt is no UTF-8 at byte 3"):
        read_text(path)
    path.write_text("a\r\n\fé", encoding="utf-8", newline="")
    assert read_text(str(path)) == "a\r\n\fé"
    monkeypatch.setattr(ngram, "MAX_TEXT_BYTES", 5)
    with pytest.raises(LimitExceeded, match=r"text\.txt has 6 bytes; .* at most 5"):
        read_text(path)
    with pytest.raises(LimitExceeded, match="the text has 6 bytes"):
        train_ngram(load_tokenizer("bytes"), "ééé")


def test_a_python_without_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(ModelError, match=r"no pydoc_data\.topics .*ngram\?text=PATH"):
        train_ngram(load_tokenizer("bytes"))
