"""What the loaders say about merging, and what they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.proper.small_tokenizers import UNUSED, USER_DEFINED, merge_list, scored_pieces
from tests.vocabulary.tokenizer_files import (
    TEXTS,
    byte_fallback,
    byte_level,
    metaspace_unigram,
    rank_file,
    train_sentencepiece,
)
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.tiktoken_loader import PATTERNS
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def test_tiktoken(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(f"tiktoken:{rank_file(tmp_path / 'ranks', {b'ab': 256})}?pattern=gpt2&end=300")
    source = tokenizer.merges
    assert (source.rule, source.unit, source.whole_pieces) == ("pieces", "byte", True)
    assert source.ranks[:257].tolist() == list(range(257))
    assert source.ranks[257:].tolist() == [-1] * (tokenizer.vocabulary.size - 257)
    assert source.letters.tolist() == list(range(256))
    assert source.pre_tokenizer is not None
    assert (source.pre_tokenizer.dialect, source.pre_tokenizer.pattern) == ("tiktoken", PATTERNS["gpt2"])
    assert source.encode_piece(b"ab c\xff") == [256, 32, 99, 255]
    assert source.encode_piece(b"") == []
    assert tokenizer.merges is source


def test_sentencepiece(tmp_path: Path) -> None:
    scores = {"a": -5.0, "\u2581": -5.0, "\u2581a": -1.0, "aa": -1.0, "[x]": 0.0, " aa": -3.0}
    tokenizer = load_tokenizer(scored_pieces(tmp_path / "m", scores, {"[x]": USER_DEFINED}))
    source = tokenizer.merges
    assert (source.rule, source.unit, source.whole_pieces) == ("pieces", "character", False)
    assert source.ranks.tolist() == [-1, -1, -1, 1, 1, 0, 0, -1, -1]
    assert [tokenizer.vocabulary.token_bytes(int(token)) for token in source.letters] == [b"a", b" "]
    assert source.isolated == (7,)
    assert source.byte_tokens is None
    assert source.pre_tokenizer is None
    assert source.encode_piece(b" a") == [5]


def test_tokenizer_json_byte_level(tmp_path: Path) -> None:
    path = byte_level(tmp_path / "t.json")
    model = json.loads(path.read_text())["model"]
    tokenizer = load_tokenizer(f"hf:{path}")
    source = tokenizer.merges
    assert (source.rule, source.unit, source.whole_pieces, source.normalizers) == ("pairs", "byte", False, ())
    assert sorted(tokenizer.vocabulary.token_bytes(int(token)) for token in source.letters) == [
        bytes([byte]) for byte in range(256)
    ]
    pairs = [[model["vocab"][text] for text in (left, right, left + right)] for left, right in model["merges"]]
    assert source.read_pairs().tolist() == pairs
    assert [tokenizer.vocabulary.token_bytes(token) for token in source.isolated] == [
        b"<tool>",
        b"      ",
        "日本語".encode(),
    ]
    assert source.pre_tokenizer is not None
    assert source.pre_tokenizer.sections["pre_tokenizer"]["add_prefix_space"] is False
    for text in TEXTS:
        for word in text.split(" "):
            assert tokenizer.spell(source.encode_piece(word.encode())) == word.encode()


def test_tokenizer_json_byte_fallback(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{byte_fallback(tmp_path / 't.json')}")
    source = tokenizer.merges
    assert (source.unit, source.normalizers) == ("character", ())
    assert source.byte_tokens is not None
    assert source.byte_tokens.tolist() == list(range(5, 261))
    assert tokenizer.spell(source.letters[:1].tolist()) in {bytes([letter]) for letter in b"\n Aabt"}
    assert source.encode_piece(b" ab") == tokenizer.encode(" ab")
    assert tokenizer.spell(source.encode_piece(" ab é".encode())) == " ab é".encode()


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


def test_bytes() -> None:
    source = load_tokenizer("bytes").merges
    assert source.encode_piece(b"a\xff") == [97, 255]
    assert source.read_pairs().shape == (0, 3)
    assert np.array_equal(source.letters, np.arange(256))


def test_what_does_not_merge_or_looks_at_its_neighbours_is_refused(tmp_path: Path) -> None:
    path = byte_level(tmp_path / "t.json")
    content = json.loads(path.read_text())
    next(entry for entry in content["added_tokens"] if entry["content"] == "<tool>")["lstrip"] = True
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
        (f"hf:{path}", "<tool>"),
    ]
    for name, message in refused:
        with pytest.raises(TokenizerError, match=message):
            _ = load_tokenizer(name).merges
