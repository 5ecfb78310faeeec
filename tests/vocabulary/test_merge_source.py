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
    tekken_file,
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


def test_tekken_ranks_are_ids_less_the_special_tokens(tmp_path: Path) -> None:
    source = load_tokenizer(f"tekken:{tekken_file(tmp_path / 'tekken.json')}").merges
    assert source.ranks.tolist() == [-1] * 10 + list(range(257))
    assert source.encode_piece(b"abc") == [266, 10 + ord("c")]


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


def test_sentencepiece_models_that_do_not_merge(tmp_path: Path) -> None:
    for kind, words in (("unigram", "Unigram model"), ("char", "character model"), ("word", "word model")):
        size = {"vocab_size": 400, "byte_fallback": False} if kind != "unigram" else {}
        tokenizer = load_tokenizer(f"sentencepiece:{train_sentencepiece(tmp_path / kind, model_type=kind, **size)}")
        with pytest.raises(TokenizerError, match=words):
            _ = tokenizer.merges


def test_sentencepiece_refusals(tmp_path: Path) -> None:
    path = train_sentencepiece(tmp_path / "nfkc", model_type="bpe", normalization_rule_name="nmt_nfkc")
    with pytest.raises(TokenizerError, match="character map"):
        _ = load_tokenizer(f"sentencepiece:{path}").merges
    path = train_sentencepiece(tmp_path / "plain", model_type="bpe", normalization_rule_name="identity")
    assert load_tokenizer(f"sentencepiece:{path}").merges.byte_tokens is not None
    tokenizer = load_tokenizer(scored_pieces(tmp_path / "unused", {"a": -5.0, "aa": -1.0}, {"aa": UNUSED}))
    with pytest.raises(TokenizerError, match="piece 4 is marked unused"):
        _ = tokenizer.merges


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


def test_tokenizer_json_refusals(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="Unigram model"):
        _ = load_tokenizer(f"hf:{metaspace_unigram(tmp_path / 'u.json')}").merges
    path = byte_level(tmp_path / "t.json")
    content = json.loads(path.read_text())
    next(entry for entry in content["added_tokens"] if entry["content"] == "<tool>")["lstrip"] = True
    path.write_text(json.dumps(content))
    with pytest.raises(TokenizerError, match="'<tool>' looks at its neighbours"):
        _ = load_tokenizer(f"hf:{path}").merges


def test_bytes() -> None:
    source = load_tokenizer("bytes").merges
    assert source.encode_piece(b"a\xff") == [97, 255]
    assert source.read_pairs().shape == (0, 3)
    assert np.array_equal(source.letters, np.arange(256))
