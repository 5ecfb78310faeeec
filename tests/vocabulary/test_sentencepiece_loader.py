"""SentencePiece models against the library itself, with the dummy prefix that we switch off left on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mistral_common
import pytest
import sentencepiece

from tests.vocabulary.tokenizer_files import SPACE, TEXTS, train_sentencepiece
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.tokenizers import Tokenizer, load_tokenizer

MODEL = Path(mistral_common.__path__[0]) / "data" / "tokenizer.model.v1"


@pytest.fixture(scope="module")
def mistral() -> Tokenizer:
    return load_tokenizer("mistral-v1")


@pytest.fixture(scope="module")
def reference() -> Any:
    return sentencepiece.SentencePieceProcessor(model_file=str(MODEL))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """NFKC, whitespace runs merged, a user-defined symbol, a second control symbol, unigram."""
    path = tmp_path_factory.mktemp("sentencepiece") / "small.model"
    return train_sentencepiece(path, user_defined_symbols=["<tool>"], control_symbols=["<turn>"])


def test_every_token_of_mistral(mistral: Tokenizer, reference: Any) -> None:
    vocab = mistral.vocabulary
    assert vocab.size == reference.GetPieceSize() == 32_000
    anchor = reference.PieceToId("a")
    normal = [i for i in range(32_000) if not (reference.IsControl(i) or reference.IsUnknown(i) or reference.IsByte(i))]
    decoded = reference.DecodeIds([[anchor, token] for token in normal])
    assert [("a" + vocab.token_bytes(token).decode()) for token in normal] == decoded
    silent = [token for token in range(32_000) if not vocab.token_bytes(token)]
    assert silent == [reference.unk_id(), reference.bos_id(), reference.eos_id()]
    assert vocab.special_tokens == {0: "<unk>", 1: "<s>", 2: "</s>"}
    assert vocab.end_tokens == (2,)


def test_every_byte_token_of_mistral(mistral: Tokenizer, reference: Any) -> None:
    byte_ids = [token for token in range(32_000) if reference.IsByte(token)]
    assert [mistral.vocabulary.token_bytes(token) for token in byte_ids] == [bytes([byte]) for byte in range(256)]
    anchor, of_byte = reference.PieceToId("a"), dict(enumerate(byte_ids))
    for character in [*map(chr, range(128)), *map(chr, range(0x80, 0x110000, 1013))]:
        if not 0xD800 <= ord(character) < 0xE000:
            assert reference.DecodeIds([anchor, *(of_byte[byte] for byte in character.encode())]) == "a" + character


@pytest.mark.parametrize("text", TEXTS)
def test_encode_is_the_reference_behind_a_line(mistral: Tokenizer, reference: Any, text: str) -> None:
    # No piece contains a line break, so what follows one is encoded as a continuation by the unchanged model too.
    prefix = reference.EncodeAsIds("\n")
    assert mistral.encode(text) == reference.EncodeAsIds("\n" + text)[len(prefix) :]


def test_a_leading_space_is_the_dummy_prefix(mistral: Tokenizer, reference: Any) -> None:
    assert mistral.encode(" Hello world") == reference.EncodeAsIds("Hello world")
    assert mistral.decode(mistral.encode(" Hello")) == " Hello"
    assert reference.DecodeIds(mistral.encode(" Hello")) == "Hello"


def test_the_space_mark_itself_is_read_as_a_space(mistral: Tokenizer) -> None:
    assert mistral.decode(mistral.encode(f"a{SPACE}b")) == "a b"


def test_a_trained_model(trained: Path) -> None:
    reference = sentencepiece.SentencePieceProcessor(model_file=str(trained))
    tokenizer = load_tokenizer(f"sentencepiece:{trained}")
    vocab, tool, turn = tokenizer.vocabulary, reference.PieceToId("<tool>"), reference.PieceToId("<turn>")
    assert vocab.end_tokens == (reference.eos_id(),)
    assert set(vocab.special_tokens) == {0, 1, 2, turn, tool}
    anchor = reference.PieceToId("a")
    for token in range(vocab.size):
        if token not in vocab.special_tokens and not reference.IsByte(token):
            assert "a" + vocab.token_bytes(token).decode() == reference.DecodeIds([anchor, token])
    # The character map (NFKC) stays, the whitespace rules do not: runs, leading and trailing space are spelled.
    assert reference.DecodeIds(reference.EncodeAsIds("  ﬁn  ①  ")) == "fin 1"
    assert tokenizer.decode(tokenizer.encode("  ﬁn  ①  ")) == "  fin  1  "
    assert tokenizer.spell(tokenizer.encode("  ﬁn  ①  ")) == b"  fin  1  "
    # A control symbol and a marker are plain text, another user-defined one is itself.
    assert not {turn, tool}.intersection(tokenizer.encode("x<turn>y<tool>"))
    assert tokenizer.decode(tokenizer.encode("x<turn>y<tool>")) == "x<turn>y<tool>"
    as_text = load_tokenizer(str(trained), special_tokens=[])
    assert tool in as_text.encode("x<tool>y")
    assert as_text.decode([turn, tool, 1]) == "<tool>"


def test_unused_pieces_spell_nothing(trained: Path, tmp_path: Path) -> None:
    path = tmp_path / "unused.model"
    # One more piece (field 1): text "unused" (field 1), score 0.0 (field 2), type UNUSED = 5 (field 3).
    piece = b"\x0a\x06unused" + b"\x15" + bytes(4) + b"\x18\x05"
    path.write_bytes(trained.read_bytes() + b"\x0a" + bytes([len(piece)]) + piece)
    reference = sentencepiece.SentencePieceProcessor(model_file=str(path))
    token = reference.GetPieceSize() - 1
    assert reference.IsUnused(token)
    tokenizer = load_tokenizer(f"sentencepiece:{path}")
    assert tokenizer.vocabulary.special_tokens[token] == "unused"
    assert tokenizer.decode([token, *tokenizer.encode("unused")]) == "unused"
    assert token not in tokenizer.encode("unused")


def test_a_model_without_end_token_is_refused_until_one_is_named(tmp_path: Path) -> None:
    path = train_sentencepiece(tmp_path / "no_eos.model", eos_id=-1, control_symbols=["<stop>"])
    with pytest.raises(TokenizerError, match=r"no_eos.model: the model has no end token \(eos\)"):
        load_tokenizer(f"sentencepiece:{path}")
    assert len(load_tokenizer(f"sentencepiece:{path}?end=<stop>").vocabulary.end_tokens) == 1


def test_a_model_that_rewrites_its_output_is_refused(tmp_path: Path) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("41\t42\n")
    path = train_sentencepiece(tmp_path / "denormalizer.model", denormalization_rule_tsv=str(rules))
    with pytest.raises(TokenizerError, match="denormalizer rewrites decoded text"):
        load_tokenizer(f"sentencepiece:{path}")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has no pieces"),
        (b"\x00\x01\x02", "cut off at byte 3"),
        (b"\xff" * 100, "no SentencePiece model"),
        (b'{"model": {}}', "byte 0 starts no protobuf field"),
        (b"\x0a\x7fabc", "the field at byte 0 runs past"),
        (b"\x0a\x03abc\x12\x00", "sentencepiece cannot read this model"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.model").write_bytes(data)
    with pytest.raises(TokenizerError, match=message) as caught:
        load_tokenizer(f"sentencepiece:{tmp_path / 'x.model'}")
    assert "x.model" in str(caught.value)


def test_a_model_cut_anywhere_before_its_settings_is_refused(tmp_path: Path) -> None:
    data = MODEL.read_bytes()
    path = tmp_path / "cut.model"
    # Some of these cuts fall between two pieces, where the library itself notices nothing.
    for length in [1, 2, 15, 16, 17, 100_000, *range(200_000, 200_040), len(data) // 2, len(data) - 1000]:
        path.write_bytes(data[:length])
        with pytest.raises(TokenizerError, match=r"cut off|runs past|no SentencePiece model"):
            load_tokenizer(f"sentencepiece:{path}")
