"""What the loaders say about merging, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.proper.small_tokenizers import UNUSED, merge_list, scored_pieces
from tests.vocabulary.tokenizer_files import (
    byte_level,
    metaspace_unigram,
    train_sentencepiece,
)
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def test_tokenizer_json_flags_and_normalizers(tmp_path: Path) -> None:
    name = merge_list(tmp_path / "t.json", "ab", [("a", "b"), ("b", "a"), ("a", "b")], ignore_merges=True)
    content = json.loads((tmp_path / "t.json").read_text())
    content["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]}
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    (tmp_path / "t.json").write_text(json.dumps(content))
    source = load_tokenizer(name).merges
    assert source.whole_pieces
    assert source.normalizers == ("NFC", "Lowercase")
    assert source.read_pairs().tolist() == [[1, 0, 3], [0, 1, 2]]  # the last place counts


def test_what_does_not_merge_or_looks_at_its_neighbours_is_refused(tmp_path: Path) -> None:
    path = byte_level(tmp_path / "t.json")
    content = json.loads(path.read_text())
    next(entry for entry in content["added_tokens"] if entry["content"] == "日本語")["lstrip"] = True
    path.write_text(json.dumps(content))
    less = {"vocab_size": 400, "byte_fallback": False}
    trained = {"unigram": {}, "char": less, "word": less, "bpe": {"normalization_rule_name": "nmt_nfkc"}}
    refused = [
        (f"sentencepiece:{train_sentencepiece(tmp_path / kind, model_type=kind, **options)}", message)
        for (kind, options), message in zip(trained.items(), ("Unigram", "character", "word", "map"), strict=True)
    ]
    refused += [
        (scored_pieces(tmp_path / "unused", {"a": -5.0, "aa": -1.0}, {"aa": UNUSED}), "piece 4 is marked unused"),
        (f"hf:{metaspace_unigram(tmp_path / 'u.json')}", "Unigram"),
        (f"hf:{path}", "日本語"),
    ]
    for name, message in refused:
        with pytest.raises(TokenizerError, match=message):
            _ = load_tokenizer(name).merges
