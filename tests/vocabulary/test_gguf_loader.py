"""Tokenizers in GGUF files: SmolLM2, small files written by the package gguf, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.packages import needs_smollm2
from tests.vocabulary.tokenizer_files import SMOLLM2_FILE, TEXTS, train_sentencepiece
from tokdfa.errors import TokenizerError, VocabularyCannotSpell
from tokdfa.proper.piece_borders import load_marked_dfa, pre_tokenizer_steps
from tokdfa.proper.rules_cache import load_canonicity
from tokdfa.vocabulary.gguf_loader import BYTE, CONTROL, NORMAL, PRE_TOKENIZERS, UNKNOWN, UNUSED, USER_DEFINED
from tokdfa.vocabulary.huggingface_spelling import byte_alphabet
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: SmolLM2's tokens of some texts, as other programs have published them to check themselves.
PUBLISHED = {
    "Hello, we can use": [19556, 28, 392, 416, 722],
    "The capital of France is": [504, 3575, 282, 4649, 314],
    "\n": [198],
    "Hello world! 123": [19556, 905, 17, 216, 33, 34, 35],
    "Café déjà vu.": [51, 1939, 2756, 32564, 90, 16739, 386, 101, 30],
    "  multiple   spaces": [216, 2701, 256, 5600],
}

MERGES = ["a b", "Ġ Ġ", "Ġ a", "ab 1"]
#: (text, kind) of the tokens of a small file, after the bytes.
EXTRA = [
    *((merge.replace(" ", ""), NORMAL) for merge in MERGES),
    *(("<|im_end|>", CONTROL), ("<stop>", CONTROL), ("<unk>", UNKNOWN), ("<tool>", USER_DEFINED), ("[PAD1]", UNUSED)),
]


def small_gguf(path: Path, **changes: Any) -> Path:
    """A GGUF file with the 256 bytes and EXTRA. A key with the value None is left out."""
    import gguf

    texts = [*byte_alphabet(), *(text for text, _ in EXTRA)]
    keys: dict[str, Any] = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": texts,
        "token_type": [NORMAL] * 256 + [kind for _, kind in EXTRA],
        "merges": MERGES,
        "eos_token_id": texts.index("<stop>"),
        **changes,
    }
    writer = gguf.GGUFWriter(path, "toy")
    for key, value in keys.items():
        if value is not None:
            add = {str: writer.add_string, int: writer.add_uint32, list: writer.add_array}[type(value)]
            add(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def load(path: Path, **changes: Any) -> Tokenizer:
    return load_tokenizer(f"gguf:{small_gguf(path, **changes)}")


def spelled(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [tokenizer.vocabulary.token_bytes(token) for token in tokenizer.encode(text)]


@needs_smollm2
def test_smollm2() -> None:
    tokenizer = load_tokenizer("smollm2")
    vocabulary = tokenizer.vocabulary
    assert (vocabulary.size, vocabulary.name) == (49_152, "smollm2")
    assert vocabulary.end_tokens == (0, 2)
    assert sorted(vocabulary.special_tokens) == list(range(17))
    assert vocabulary.special_tokens[0] == "<|endoftext|>"
    assert vocabulary.special_tokens[2] == "<|im_end|>"
    assert {text: tokenizer.encode(text) for text in PUBLISHED} == PUBLISHED
    assert load_tokenizer(f"gguf:{SMOLLM2_FILE}").encode("Hello") == tokenizer.encode("Hello")
    assert load_tokenizer("smollm2", size=50_000).vocabulary.size == 50_000


@needs_smollm2
def test_all_tokens_of_smollm2() -> None:
    """Each token's bytes, as the decoder of the package tokenizers says, and no two alike."""
    import gguf
    from tokenizers import decoders

    texts = gguf.GGUFReader(SMOLLM2_FILE).fields["tokenizer.ggml.tokens"].contents()
    decoder, vocabulary = decoders.ByteLevel(), load_tokenizer("smollm2").vocabulary
    found = [vocabulary.token_bytes(token) for token in range(49_152)]
    assert set(found[:17]) == {b""}
    for text, token_bytes in zip(texts[17:], found[17:], strict=True):
        assert len(token_bytes) == len(text)
        assert token_bytes.decode(errors="replace") == decoder.decode([text])
    assert len(set(found[17:])) == 49_152 - 17


@needs_smollm2
def test_bytes_that_smollm2_lacks_are_named() -> None:
    tokenizer = load_tokenizer("smollm2")
    present = {tokenizer.vocabulary.token_bytes(token) for token in range(49_152)}
    lacking = [byte for byte in range(0xF5) if byte not in (0xC0, 0xC1) and bytes([byte]) not in present]
    assert lacking == [0x04, 0x06, 0x13, 0x14, 0x16, 0x1D, 0xF1, 0xF2]
    for text, byte, position in (("a\x04b", 0x04, 1), ("é\U00040000\x06", 0xF1, 2), ("\x1d", 0x1D, 0)):
        with pytest.raises(VocabularyCannotSpell, match=f"byte {byte:#04x}.*position {position} ") as caught:
            tokenizer.encode(text)
        assert byte in caught.value.missing
    assert tokenizer.spell(tokenizer.encode("é and \U0001f600")) == "é and \U0001f600".encode()


@needs_smollm2
def test_merges_and_pieces_of_smollm2() -> None:
    tokenizer = load_tokenizer("smollm2")
    source = tokenizer.merges
    assert (source.rule, source.unit, source.whole_pieces) == ("pairs", "byte", False)
    assert (source.isolated, source.normalizers, source.byte_tokens) == ((), (), None)
    assert len(source.letters) == 235
    assert pre_tokenizer_steps(tokenizer) == [
        {"kind": "digits", "individual": True},
        {"kind": "byte_level", "use_regex": True, "add_prefix_space": False},
    ]
    canonicity, marked = load_canonicity(tokenizer), load_marked_dfa(tokenizer)
    assert len(canonicity.rules) == 48_900
    assert not len(canonicity.improper_tokens)
    assert marked is not None
    assert marked.state_count == 1428
    for text in TEXTS:
        made: list[int] = []
        for piece in marked.pieces(text):
            made += source.encode_piece(piece)
        assert made == tokenizer.encode(text)


def test_a_small_file(tmp_path: Path) -> None:
    tokenizer = load(tmp_path / "small.gguf")
    vocabulary = tokenizer.vocabulary
    stop, turn, unknown, tool, padding = 261, 260, 262, 263, 264
    assert vocabulary.size == 265
    assert vocabulary.special_tokens == {turn: "<|im_end|>", stop: "<stop>", unknown: "<unk>", tool: "<tool>"}
    assert vocabulary.end_tokens == (turn, stop)
    assert tokenizer.markers == {turn: "<|im_end|>", unknown: "<unk>", tool: "<tool>"}
    assert vocabulary.token_bytes(padding) == b""
    assert [vocabulary.token_bytes(token) for token in range(256, 260)] == [b"ab", b"  ", b" a", b"ab1"]
    # ab and 1 would merge, but a digit is a piece of its own
    assert spelled(tokenizer, "ab1 a   7") == [b"ab", b"1", b" a", b"  ", b" ", b"7"]
    assert spelled(tokenizer, "a<tool>") == [bytes([byte]) for byte in b"a<tool>"], "a marker is no text"
    as_text = load_tokenizer(f"{tokenizer.name}?special=")
    assert spelled(as_text, "a<tool>b<stop>") == [b"a", b"<tool>", b"b", *(bytes([c]) for c in b"<stop>")]
    assert as_text.merges.isolated == (tool,)


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("smollm", ["ab", "1", "2", "  ", "3", "'", "S", " x"]),
        ("starcoder", ["ab", "1", "2", "  ", "3", "'", "S", " x"]),
        ("refact", ["ab", "1", "2", "  ", "3", "'", "S", " x"]),
        ("gpt-2", ["ab", "12", " ", " 3", "'", "S", " x"]),
        ("llama-bpe", ["ab", "12", " ", " ", "3", "'S", " x"]),
        ("qwen2", ["ab", "1", "2", " ", " ", "3", "'S", " x"]),
    ],
)
def test_pre_tokenizers(tmp_path: Path, pre: str, expected: Sequence[str]) -> None:
    tokenizer = load(tmp_path / "small.gguf", pre=pre)
    marked = load_marked_dfa(tokenizer)
    assert marked is not None
    assert marked.pieces("ab12  3'S x") == [piece.encode() for piece in expected]
    assert tokenizer.merges.whole_pieces == (pre == "llama-bpe")
    made: list[int] = []
    for piece in expected:
        made += tokenizer.merges.encode_piece(piece.encode())
    assert made == tokenizer.encode("ab12  3'S x")


def test_all_known_pre_tokenizers_are_tested() -> None:
    (mark,) = test_pre_tokenizers.pytestmark
    assert {pre for pre, _ in mark.args[1]} == set(PRE_TOKENIZERS)


def test_end_tokens(tmp_path: Path) -> None:
    for number, (keys, ends) in enumerate([({}, (260,)), ({"eot_token_id": 262}, (260, 262))]):
        tokenizer = load(tmp_path / f"{number}.gguf", eos_token_id=None, **keys)
        assert tokenizer.vocabulary.end_tokens == ends


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": None}, "tokenizer.ggml.model"),
        ({"model": "bert"}, "model is 'bert'"),
        ({"model": "llama"}, "tokenizer.ggml.scores must be a list of numbers"),
        ({"model": "llama", "scores": [0.5]}, "265 tokens with 1 scores"),
        ({"pre": None}, "known are smollm"),
        ({"pre": "deepseek-llm"}, "known are smollm"),
        ({"pre": ["smollm"]}, "names the pre-tokenizer"),
        ({"tokens": None}, "tokenizer.ggml.tokens must be a list"),
        ({"tokens": [1, 2]}, "tokenizer.ggml.tokens must be a list"),
        ({"token_type": ["a"]}, "tokenizer.ggml.token_type must be a list"),
        ({"token_type": [1, 1]}, "token_type"),
        ({"token_type": [BYTE] * 265}, "token 0"),
        ({"merges": None}, "tokenizer.ggml.merges must be a list"),
        ({"merges": ["a z q"]}, "tokenizers refuses this file"),
        ({"merges": ["z q"]}, "tokenizers refuses this file"),
        ({"tokens": ["a"] * 265}, "tokens 0 and 1"),
        ({"eos_token_id": None, "token_type": [NORMAL] * 265}, "no special token"),
        ({"eos_token_id": 265}, "end token '265'"),
    ],
)
def test_faults_are_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message) as caught:
        load(tmp_path / "small.gguf", **changes)
    assert "small.gguf" in str(caught.value)


@pytest.mark.parametrize("kind", [CONTROL, UNKNOWN])
def test_a_byte_that_is_no_normal_token_is_named_when_merges_are_read(kind: int, tmp_path: Path) -> None:
    space = byte_alphabet().index("Ġ")
    kinds = [NORMAL] * 256 + [known for _, known in EXTRA]
    kinds[space] = kind
    tokenizer = load(tmp_path / "broken.gguf", token_type=kinds)
    with pytest.raises(TokenizerError, match=r"broken\.gguf: token .*make it a normal token"):
        load_canonicity(tokenizer)


@pytest.mark.parametrize(("kind", "name"), [("bpe", "llama"), ("unigram", "t5")])
def test_a_sentencepiece_model_inside_is_that_model(tmp_path: Path, kind: str, name: str) -> None:
    import sentencepiece

    path = train_sentencepiece(
        tmp_path / "trained.model", model_type=kind, user_defined_symbols=["<tool>", "word"],
        control_symbols=["<turn>"], remove_extra_whitespaces=False,
        normalization_rule_name="identity" if name == "llama" else "nmt_nfkc",
    )  # fmt: skip
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ids = range(model.GetPieceSize())

    def kind_of(token: int) -> int:
        for is_kind, number in (("IsUnknown", UNKNOWN), ("IsControl", CONTROL), ("IsUnused", UNUSED), ("IsByte", BYTE)):
            if getattr(model, is_kind)(token):
                return number
        return USER_DEFINED if model.IdToPiece(token) in ("<tool>", "word") else NORMAL

    filed = load_tokenizer(str(path))
    keys = {
        "model": name, "pre": "default", "merges": None, "tokens": [model.IdToPiece(token) for token in ids],
        "scores": [float(model.GetScore(token)) for token in ids], "token_type": [kind_of(token) for token in ids],
        "bos_token_id": model.bos_id(), "eos_token_id": model.eos_id(), "unknown_token_id": model.unk_id(),
    }  # fmt: skip
    if name == "t5":
        keys["precompiled_charsmap"] = list(character_map(path))
    inside = load(tmp_path / "model.gguf", **keys)
    assert inside.vocabulary.fingerprint == filed.vocabulary.fingerprint
    assert inside.vocabulary.special_tokens[model.PieceToId("<tool>")] == "<tool>"
    for text in TEXTS:
        assert inside.encode(text) == filed.encode(text)
        assert inside.encode(f"<s>{text}", special=True) == filed.encode(f"<s>{text}", special=True)
        if not text.startswith("<"):
            assert filed.encode(text, special=True) == model.EncodeAsIds(text)
    if name == "llama":
        assert load_canonicity(inside).rules.left.tolist() == load_canonicity(filed).rules.left.tolist()


def character_map(path: Path) -> bytes:
    """The character map of a SentencePiece model."""
    from tokdfa.vocabulary import sentencepiece_fields as fields

    model = dict(fields.fields_of(path, path.read_bytes()))
    return dict(fields.fields_of(path, model[fields.NORMALIZER_SPEC]))[fields.CHARACTER_MAP]
