"""tokenizer.json files, written by and compared with `tokenizers`."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import tokenizers

from tests.vocabulary.tokenizer_files import (
    added,
    byte_fallback,
    byte_level,
    metaspace_unigram,
    write_json,
)
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("huggingface")


@pytest.fixture(scope="module")
def bytes_path(folder: Path) -> Path:
    return byte_level(folder / "byte_level.json")


@pytest.fixture(scope="module")
def fallback_path(folder: Path) -> Path:
    return byte_fallback(folder / "byte_fallback.json")


@pytest.fixture(scope="module")
def unigram_path(folder: Path) -> Path:
    return metaspace_unigram(folder / "unigram.json")


def load(path: Path, **options: Any) -> Tokenizer:
    return load_tokenizer(f"hf:{path}", **options)


def check_every_token(path: Path, anchor: str) -> None:
    """Each token, decoded by the unchanged library behind an anchor token, is the anchor's text and its bytes."""
    reference, vocab = tokenizers.Tokenizer.from_file(str(path)), load(path).vocabulary
    first = reference.token_to_id(anchor)
    used = set(reference.get_vocab().values())
    assert vocab.size == max(used) + 1
    compared = 0
    for token in range(vocab.size):
        spelled = vocab.token_bytes(token)
        if token in vocab.special_tokens or token not in used:
            assert spelled == b""
            continue
        text = reference.decode([first, token], skip_special_tokens=False)
        assert text == anchor + spelled.decode(errors="replace"), token
        compared += 1
    assert compared == len(used) - len(vocab.special_tokens)


def test_every_token(bytes_path: Path, fallback_path: Path, unigram_path: Path) -> None:
    for path in (bytes_path, fallback_path, unigram_path):
        check_every_token(path, "a")


def test_every_character_of_byte_tokens(bytes_path: Path, fallback_path: Path) -> None:
    """Bytes that are no UTF-8 by themselves: seen in sequence, by the unchanged library."""
    for path in (bytes_path, fallback_path):
        reference, tokenizer = tokenizers.Tokenizer.from_file(str(path)), load(path)
        single = {tokenizer.spell([token]): token for token in range(tokenizer.vocabulary.size)}
        anchor = single[b"a"]
        for character in map(chr, [*range(0x80, 0xD800, 211), *range(0xE000, 0x110000, 2011)]):
            tokens = [anchor, *(single[bytes([byte])] for byte in character.encode())]
            assert reference.decode(tokens, skip_special_tokens=False) == "a" + character
            assert tokenizer.spell(tokens) == ("a" + character).encode()


@pytest.mark.parametrize("text", ["a", " a", "ab  ab", "  x", "étéab\n"])
def test_a_leading_space_is_the_dummy_prefix(
    bytes_path: Path, fallback_path: Path, unigram_path: Path, text: str
) -> None:
    for path in (bytes_path, fallback_path, unigram_path):
        reference = tokenizers.Tokenizer.from_file(str(path))
        reference.no_padding()
        reference.no_truncation()
        expected = reference.encode(text, add_special_tokens=False).ids
        # ByteLevel and Metaspace add a space only where there is none yet; Prepend always does.
        prefixed = text if text.startswith(" ") and path != fallback_path else " " + text
        assert load(path).encode(prefixed) == expected


def test_special_and_other_added_tokens(bytes_path: Path) -> None:
    tokenizer = load(bytes_path)
    vocab = tokenizer.vocabulary
    reference = tokenizers.Tokenizer.from_file(str(bytes_path))
    tool, spaces, japanese, turn = map(reference.token_to_id, ("<tool>", " " * 6, "日本語", "<|im_end|>"))
    assert vocab.special_tokens == {0: "<|bos|>", 1: "<|endoftext|>", turn: "<|im_end|>", tool: "<tool>"}
    assert vocab.end_tokens == (1, turn)
    assert [vocab.token_bytes(i) for i in (tool, spaces, japanese)] == [b"", b" " * 6, "日本語".encode()]
    assert set(tokenizer.encode("x<tool>      日本語")) >= {spaces, japanese}
    assert not {turn, tool}.intersection(tokenizer.encode("<|im_end|><tool>"))
    as_text = load(bytes_path, special_tokens=[]).vocabulary
    assert (as_text.token_bytes(tool), set(as_text.special_tokens)) == (b"<tool>", {0, 1, turn})
    listed = load(bytes_path, special_tokens=["日本語", str(spaces)]).vocabulary
    assert set(listed.special_tokens) == {0, 1, turn, japanese, spaces}
    assert tokenizer.decode([0, *tokenizer.encode("a<|im_end|>"), turn]) == "a<|im_end|>"


def test_equal_bytes_unused_ids_and_unknown(fallback_path: Path) -> None:
    vocab = load(fallback_path).vocabulary
    capital_a = [token for token in range(vocab.size) if vocab.token_bytes(token) == b"A"]
    assert len(capital_a) == 2
    assert vocab.spell([0, 1, 2, 3, 4]) == b""
    assert set(vocab.special_tokens) == {0, 1, 2}
    assert vocab.end_tokens == (2,)


@pytest.mark.parametrize("order", ["BFRS", "BRF", "BFSR", "BM", "RBFS"])
def test_decoders_in_any_order_that_leaves_bytes_exact(folder: Path, order: str) -> None:
    steps = {
        "R": {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
        "M": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "B": {"type": "ByteFallback"},
        "F": {"type": "Fuse"},
        "S": {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    }
    chain = {"type": "Sequence", "decoders": [steps[step] for step in order]}
    path = byte_fallback(folder / f"{order}.json", decoder=chain)
    check_every_token(path, "a")
    tokenizer, reference = load(path), tokenizers.Tokenizer.from_file(str(path))
    for text in ("ab  ab", " ét\n", "日本 x", "\U0001f389a"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
        assert reference.decode([*reference.encode("A").ids[:1], *tokenizer.encode(text)]).lstrip(" A") == text.lstrip()
    # the text U+2581 itself is read as a space, and its bytes stay what they are
    of_byte = {tokenizer.spell([token]): token for token in range(5, 261)}
    tokens = [of_byte[bytes([byte])] for byte in "\u2581".encode()]
    assert tokenizer.decode(tokens) == tokenizer.spell(tokens).decode() == "\u2581"


def test_a_unigram_model_spells_what_it_knows(unigram_path: Path) -> None:
    tokenizer = load(unigram_path)
    assert tokenizer.spell(tokenizer.encode("ab ab  b")) == b"ab ab  b"
    assert tokenizer.decode(tokenizer.encode(" ab")) == " ab"
    # An unknown character becomes the unknown token, which spells nothing although the file does not call it special.
    assert tokenizer.encode("aXb") == [4, 1, 5]
    assert tokenizer.spell([4, 1, 5]) == b"ab"
    assert tokenizer.decode([4, 1, 5]) == "ab"


def test_dropout_is_switched_off(folder: Path, bytes_path: Path) -> None:
    spec = json.loads(bytes_path.read_text(encoding="utf-8"))
    spec["model"]["dropout"] = 0.9
    path = write_json(folder / "dropout.json", spec)
    assert load(path).encode("Hello world " * 20) == load(bytes_path).encode("Hello world " * 20)


def test_an_added_token_of_the_byte_alphabet_spells_what_it_decodes_to(folder: Path) -> None:
    # "é" is also the alphabet's character of the byte 0xE9: the library encodes é to it and decodes it to 0xE9.
    path = byte_level(folder / "ambiguous.json")
    spec = json.loads(path.read_text(encoding="utf-8"))
    token = spec["model"]["vocab"]["é"]
    spec["added_tokens"] = sorted([*spec["added_tokens"], added(token, "é", special=False)], key=lambda e: e["id"])
    tokenizer = load(write_json(path, spec))
    assert tokenizer.vocabulary.token_bytes(token) == b"\xe9"
    assert (
        tokenizer.decode(tokenizer.encode("é")) == tokenizers.Tokenizer.from_file(str(path)).decode([token]) == "\ufffd"
    )


def test_without_a_known_end_token_one_must_be_named(folder: Path) -> None:
    unnamed = byte_fallback(folder / "unnamed.json", added_tokens=[added(0, "<unk>"), added(1, "<s>")])
    with pytest.raises(TokenizerError, match=r"\?end=NAME"):
        load(unnamed)
    assert load_tokenizer(f"hf:{unnamed}?end=<s>").vocabulary.end_tokens == (1,)


def bpe(**changes: Any) -> dict[str, Any]:
    return {"type": "BPE", "vocab": {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3}, "merges": [], **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "object 'model'"),
        ({"model": bpe(type="WordLevel")}, "WordLevel"),
        ({"model": {"type": "WordPiece", "unk_token": "u", "vocab": {"u": 0, "<s>": 1, "</s>": 2}}}, "WordPiece"),
        ({"model": bpe(type="Foo")}, "Foo"),
        ({"model": bpe(end_of_word_suffix="</w>")}, "end_of_word_suffix '</w>'"),
        ({"model": bpe(continuing_subword_prefix="##")}, "continuing_subword_prefix '##'"),
        ({"model": bpe(vocab=[["a", 0.0]])}, "must be an object of text -> id"),
        ({"model": bpe(vocab={"a": -1})}, "the id -1 of 'a'"),
        ({"model": bpe(vocab={"a": 10**9})}, "the id 1000000000 of 'a'"),
        ({"model": bpe(vocab={"a": "0"})}, "the id '0' of 'a'"),
        ({"model": bpe(vocab={"a": 0, "b": 0})}, "id 0 is given to 'a' and to 'b'"),
        ({"model": bpe(merges=["a z"])}, "tokenizers refuses this file"),
        ({"model": {"type": "Unigram", "vocab": {"a": 0}}}, "must be a list of"),
        ({"model": {"type": "Unigram", "vocab": [["a"]], "unk_id": 0}}, "tokenizers refuses this file"),
        ({"decoder": None}, "there is no decoder"),
        ({"decoder": {"type": "Fuse"}}, "<0xHH>"),
        ({"added_tokens": [added(2, "</s>"), added(7, "<new>")]}, "'<new>' has the id 7"),
        ({"added_tokens": [{"id": 2}]}, "tokenizers refuses this file"),
        ({"pre_tokenizer": {"type": "Foo"}}, "tokenizers refuses this file"),
        ({"decoder": {"type": {"a": 1}}}, "decoder: a step"),
        ({"decoder": {"type": "Sequence", "decoders": 3}}, "decoder: a Sequence"),
        ({"decoder": {"type": "Sequence", "decoders": [3]}}, "decoder: a step"),
        ({"decoder": {"type": "Metaspace", "replacement": 3}}, "replacement of Metaspace"),
        ({"normalizer": {"type": "Prepend", "prepend": []}}, "prepend of Prepend"),
        ({"pre_tokenizer": {"type": "Sequence"}}, "pre_tokenizer: a Sequence"),
        ({"normalizer": "NFC"}, "normalizer: a step"),
    ],
)
def test_faults_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = byte_fallback(tmp_path / "tokenizer.json", **changes)
    with pytest.raises(TokenizerError, match=message) as caught:
        load(path)
    assert "tokenizer.json" in str(caught.value)


def test_a_spelling_that_the_library_decodes_differently_is_refused(tmp_path: Path) -> None:
    # The library also reads <0x+5> as the byte 5, which no published tokenizer contains and our rule does not know.
    path = byte_fallback(tmp_path / "tokenizer.json")
    spec = json.loads(path.read_text(encoding="utf-8"))
    spec["model"]["vocab"]["<0x+5>"] = 3
    with pytest.raises(TokenizerError, match=r"token 3 should spell b'<0x\+5>', but tokenizers decodes '\\x05'"):
        load(write_json(path, spec))


@pytest.mark.parametrize("unknown", [{}, [], 3, "not there"])
def test_an_unknown_token_that_is_none(tmp_path: Path, unknown: Any) -> None:
    """Refused by the package tokenizers, or as good as no unknown token."""
    path = byte_fallback(tmp_path / "tokenizer.json")
    content = json.loads(path.read_text())
    content["model"]["unk_token"] = unknown
    path.write_text(json.dumps(content))
    with suppress(TokenizerError):
        assert load_tokenizer(f"hf:{path}").encode("ab")
