"""Decoder chains: which give tokens exact bytes, and which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizers import decoders, pre_tokenizers

from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.huggingface_spelling import SpellingRule, byte_alphabet, read_decoder, without_dummy_prefix

PATH = Path("tokenizer.json")
METASPACE = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
REPLACE = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
STRIP = {"type": "Strip", "content": " ", "start": 1, "stop": 0}


def sequence(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "decoders": list(steps)}


def test_byte_alphabet_is_the_librarys() -> None:
    assert sorted(byte_alphabet()) == sorted(pre_tokenizers.ByteLevel.alphabet())
    decoder, rule = decoders.ByteLevel(), SpellingRule(byte_level=True)
    for byte, character in enumerate(byte_alphabet()):
        assert rule.spell(character) == bytes([byte])
        assert rule.spell("x" + character) == b"x" + bytes([byte])
        assert decoder.decode([character]) == bytes([byte]).decode(errors="replace")


@pytest.mark.parametrize("character", [" ", "\n", "\x7f", "\xa0", "\xad", "\u0144", "日", "\U0001f389"])
def test_byte_level_tokens_with_other_characters_are_literal(character: str) -> None:
    text = "aé" + character
    assert SpellingRule(byte_level=True).spell(text) == text.encode()
    assert decoders.ByteLevel().decode([text]) == text


def test_byte_fallback_tokens() -> None:
    rule, decoder = SpellingRule(byte_fallback=True), decoders.ByteFallback()
    for text in ("<0x41>", "<0x7e>", "<0x0A>", "<0xZZ>", "<0x4>", "<0x041>", "x<0x41>", "<0X41>", "<0x41> "):
        assert rule.spell(text).decode() == decoder.decode([text])
    assert rule.spell("<0xff>") == b"\xff"


def test_supported_chains() -> None:
    mark = (("\u2581", " "),)
    assert read_decoder(PATH, {"type": "ByteLevel"}) == SpellingRule(byte_level=True)
    assert read_decoder(PATH, METASPACE) == SpellingRule(mark)
    fallback, fuse = {"type": "ByteFallback"}, {"type": "Fuse"}
    assert read_decoder(PATH, sequence(REPLACE, fallback, fuse, STRIP)) == SpellingRule(mark, byte_fallback=True)
    assert read_decoder(PATH, sequence(sequence(METASPACE), fallback)) == SpellingRule(mark, byte_fallback=True)
    assert read_decoder(PATH, fuse) == SpellingRule()
    for chain in (
        (fallback, fuse, REPLACE, STRIP),
        (fallback, REPLACE, fuse),
        (fallback, METASPACE),
        (fuse, METASPACE),
    ):
        assert read_decoder(PATH, sequence(*chain)) == SpellingRule(mark, byte_fallback=fallback in chain)
    assert SpellingRule(mark).spell("\u2581a\u2581") == b" a "


@pytest.mark.parametrize(
    ("decoder", "message"),
    [
        (None, "there is no decoder"),
        (sequence(), "there is no decoder"),
        ({"type": "WordPiece", "prefix": "##", "cleanup": True}, "'WordPiece'"),
        ({"type": "BPEDecoder", "suffix": "</w>"}, "'BPEDecoder'"),
        ({"type": "CTC"}, "'CTC'"),
        (STRIP, "'Strip'"),
        (sequence(REPLACE, STRIP, {"type": "Fuse"}), "'Strip'"),
        (sequence(REPLACE, {"type": "Fuse"}, {**STRIP, "stop": 1}), "'Strip'"),
        (sequence(REPLACE, {"type": "Fuse"}, {**STRIP, "start": 2}), "'Strip'"),
        (sequence({"type": "Fuse"}, {**REPLACE, "pattern": {"String": "ab"}}), "'Replace'"),
        (sequence({"type": "ByteFallback"}, {**REPLACE, "pattern": {"String": "a"}}), "'Replace'"),
        (sequence({"type": "ByteLevel"}, REPLACE), "'Replace'"),
        (sequence({"type": "ByteLevel"}, {"type": "ByteFallback"}), "'ByteFallback'"),
        ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}, "'Replace'"),
        ({"kind": "x"}, "None"),
    ],
)
def test_refused_chains(decoder: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        read_decoder(PATH, decoder)


def test_dummy_prefix_is_taken_out_at_any_depth() -> None:
    prepend, keep = {"type": "Prepend", "prepend": "\u2581"}, {"type": "Prepend", "prepend": "x"}
    normal_strip = {"type": "Strip", "strip_left": True, "strip_right": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    spec = {
        "normalizer": {"type": "Sequence", "normalizers": [prepend, keep, normal_strip]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [byte_level, METASPACE]},
        "decoder": sequence(REPLACE, {"type": "Fuse"}, STRIP),
        "model": {},
    }
    assert without_dummy_prefix(spec) == {
        "normalizer": {"type": "Sequence", "normalizers": [keep, normal_strip]},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {**byte_level, "add_prefix_space": False},
                {**METASPACE, "prepend_scheme": "never", "add_prefix_space": False},
            ],
        },
        "decoder": sequence(REPLACE, {"type": "Fuse"}),
        "model": {},
    }
    assert without_dummy_prefix({"normalizer": prepend})["normalizer"] is None
