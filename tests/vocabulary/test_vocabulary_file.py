"""Vocabularies on disk: what is read is what was loaded, a changed file is loaded anew, damage costs time only."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tokdfa
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary import tokenizers, vocabulary_file
from tokdfa.vocabulary.given_tokenizer import Content
from tokdfa.vocabulary.loading import LoadedTokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.vocabulary_file import KeptTokenizer, load_kept

if TYPE_CHECKING:
    from pathlib import Path

TOKENS = [b"", *(bytes([byte]) for byte in range(256)), b"the", b"then", b"\x00\x00", b"the"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tokdfa" / "vocabularies"


def made(tokens: list[bytes] = TOKENS, size: int = 300) -> LoadedTokenizer:
    vocabulary = Vocabulary(tokens, [0, 299], {0: "<end>", 290: "<more>"}, size, "toy")
    return LoadedTokenizer(
        vocabulary, lambda text: [1 + b for b in text.encode()], lambda _: "decoded", b"id", lambda: None
    )  # type: ignore[arg-type, return-value]


def assert_equal(found: Vocabulary, wanted: Vocabulary) -> None:
    assert found.fingerprint == wanted.fingerprint
    assert [getattr(found, name) for name in ("size", "name", "end_tokens", "end_token_set", "special_tokens")] == [
        getattr(wanted, name) for name in ("size", "name", "end_tokens", "end_token_set", "special_tokens")
    ]
    assert [found.token_bytes(token) for token in range(300)] == [wanted.token_bytes(token) for token in range(300)]
    for array in ("nodes", "order"):
        kept, built = getattr(found.trie, array), getattr(wanted.trie, array)
        assert np.array_equal(kept, built)
        assert kept.dtype == built.dtype
        assert not kept.flags.writeable
    assert (found.trie.size, found.trie.depth_limit) == (wanted.trie.size, wanted.trie.depth_limit)


def test_what_is_kept_is_what_was_loaded(folder: Path) -> None:
    first = load_kept(b"content", "options", made)
    assert not folder.exists()  # there is no trie yet
    assert first.vocabulary.trie.find(b"then") > 0
    assert len(list(folder.iterdir())) == 1
    second = load_kept(b"content", "options", lambda: pytest.fail("it was to be read"))
    assert_equal(second.vocabulary, made().vocabulary)
    for other in ((b"other content", "options"), (b"content", "other options")):
        assert isinstance(load_kept(*other, made), LoadedTokenizer)


def test_the_rest_is_loaded_when_it_is_asked_for() -> None:
    _ = load_kept(b"content", "", made).vocabulary.trie
    loads: list[int] = []

    def load() -> LoadedTokenizer:
        loads.append(1)
        return made()

    kept = load_kept(b"content", "", load)
    assert not loads
    assert (kept.encode("a"), kept.decode([1]), kept.identity) == ([98], "decoded", b"id")
    assert len(loads) == 1


def test_another_vocabulary_behind_a_kept_one_is_refused() -> None:
    _ = load_kept(b"content", "", made).vocabulary.trie
    kept = load_kept(b"content", "", lambda: made([*TOKENS[:-1], b"thy"]))
    with pytest.raises(TokenizerError, match="delete that folder"):
        kept.encode("a")


def test_damage_costs_time_only(folder: Path) -> None:
    _ = load_kept(b"content", "", made).vocabulary.trie
    (file,) = folder.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert_equal(load_kept(b"content", "", made).vocabulary, made().vocabulary)
    assert isinstance(load_kept(b"content", "", made), KeptTokenizer)  # it was written again


@pytest.mark.parametrize(
    ("array", "change"),
    [("nodes", np.uint64(1 << 63)), ("order", np.int32(1000)), ("lengths", np.uint16(9)), ("bytes", None)],
)
def test_arrays_that_do_not_fit_are_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, array: str, change: Any
) -> None:
    write = vocabulary_file.FileFormat.write

    def write_other(self: Any, path: Any, header: Any, arrays: Any, **options: Any) -> None:
        other = arrays[array].copy()[:-1] if change is None else arrays[array] + change
        write(self, path, header, {**arrays, array: other}, **options)

    monkeypatch.setattr(vocabulary_file.FileFormat, "write", write_other)
    _ = load_kept(b"content", "", made).vocabulary.trie
    assert isinstance(load_kept(b"content", "", made), LoadedTokenizer)


def test_a_file_that_changes_is_loaded_anew(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def write(content: bytes, age: float) -> None:
        path.write_bytes(content)
        os.utime(path, (age, age))

    write(b"one", 1e9)
    _ = load_kept(path, "", made).vocabulary.trie
    # its times are those of a moment ago, so a change might not show
    assert isinstance(load_kept(path, "", made), LoadedTokenizer)


def test_a_settled_file_is_known_by_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_file, "_UNSETTLED_SECONDS", -1.0)
    path = tmp_path / "file"
    path.write_bytes(b"one")
    _ = load_kept(path, "", made).vocabulary.trie
    assert isinstance(load_kept(path, "", made), KeptTokenizer)
    path.write_bytes(b"other")
    assert isinstance(load_kept(path, "", made), LoadedTokenizer)


def test_a_tokenizer_json_without_a_file() -> None:
    library = pytest.importorskip("tokenizers")
    model = library.models.BPE(vocab={**{chr(97 + i): i for i in range(26)}, "</s>": 26, "ab": 27}, merges=[("a", "b")])
    made = library.Tokenizer(model)
    made.decoder = library.decoders.Fuse()
    made.add_special_tokens(["</s>"])
    content = made.to_str()
    assert json.loads(content)
    first = tokenizers.tokenizer_from_content(Content("hf:", content.encode(), "made"))
    _ = first.vocabulary.trie
    tokenizers._from_content.cache_clear()
    second = tokenizers.tokenizer_from_content(Content("hf:", content.encode(), "made"))
    assert isinstance(second._loaded, KeptTokenizer)
    assert second.encode("abc") == first.encode("abc") == [27, 2]
    assert second.fingerprint == first.fingerprint
    assert tokdfa.compile(tokdfa.Choice(["ab"]), second).start().allows(27)
