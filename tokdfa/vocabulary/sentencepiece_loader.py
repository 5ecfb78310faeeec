"""SentencePiece models: `mistral-v1` and ``sentencepiece:PATH``.

A model is a list of *pieces*, one per id, each with a kind: NORMAL and USER_DEFINED pieces spell their text, with
U+2581 standing for a space; BYTE pieces ``<0xHH>`` spell one byte, and let text without a piece be spelled (byte
fallback); CONTROL, UNKNOWN and UNUSED pieces spell nothing. A text ``<s>`` is encoded as plain characters; the text of
a USER_DEFINED piece always becomes that piece, which spells it.

Whitespace. As trained, the encoder puts a *dummy prefix* (a space) before the text, some models also merge runs of
spaces, and the decoder takes the first space away. A constrained text continues a context, so a token must add its
bytes and nothing else. Both rules are therefore switched off here, in encoder and decoder alike: ``encode("a")`` is
the piece ``a`` and ``encode(" a")`` is ``▁a``, and ``spell(encode(text)) == text``. What the original encoder does with
``"a"`` at the start of a prompt is our ``encode(" a")``. A character map of the model (NFKC, say) stays, and then texts
that it changes are spelled as changed; U+2581 itself is read as a space.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.packages import import_library
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.loading import (
    LoadedTokenizer,
    choose_end_tokens,
    read_file,
)
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SPACE = "\u2581"

#: Appended to a serialized model: a second `normalizer_spec` (field 3), which protobuf merges into the first, with
#: `add_dummy_prefix` (field 3) and `remove_extra_whitespaces` (field 4) false.
_EXACT_WHITESPACE = bytes([3 << 3 | 2, 4, 3 << 3, 0, 4 << 3, 0])

#: Fields of a serialized model (sentencepiece_model.proto).
_PIECES, _TRAINER_SPEC, _NORMALIZER_SPEC, _DENORMALIZER_SPEC = 1, 2, 3, 5
#: Fields of a piece, of `trainer_spec` and of `normalizer_spec`, and the values that matter here.
_PIECE_KIND, _USER_DEFINED = 3, 4
_MODEL_KIND, _BPE, _MODEL_KINDS = 3, 2, {1: "Unigram", 3: "word", 4: "character"}
_CHARACTER_MAP = 2


def load_sentencepiece(
    path: Path, end: Sequence[str] = (), size: int | None = None, name: str = "sentencepiece"
) -> LoadedTokenizer:
    """A SentencePiece model file. `end`: end tokens by id or name; the model's own eos when empty.

    Ids past the model's pieces, which other libraries add, spell nothing and may be end tokens.

    O(size of the file). Raises TokenizerError (missing, truncated, another format, no end token), MissingDependency,
    VocabularyError (`size` too small).
    """
    data = read_file(path)
    _check_model(path, data)
    library = import_library("sentencepiece", f"the SentencePiece model {path}")
    processor: Any = library.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(data + _EXACT_WHITESPACE)
        ids = list(range(processor.GetPieceSize()))
        pieces: list[str] = processor.IdToPiece(ids)
    except (RuntimeError, ValueError) as error:
        raise TokenizerError(f"{path}: sentencepiece cannot read this model: {error}") from None
    is_control, is_unused, is_byte = processor.IsControl(ids), processor.IsUnused(ids), processor.IsByte(ids)
    special = {i: pieces[i] for i in ids if is_control[i] or is_unused[i] or i == processor.unk_id()}
    added = [int(entry) for entry in end if entry.isdecimal() and len(ids) <= int(entry) < (size or 0)]
    special |= {token: f"<added {token}>" for token in added}
    tokens = [piece.replace(SPACE, " ").encode() for piece in pieces]
    for token in ids:
        if token in special:
            tokens[token] = b""
        elif is_byte[token]:
            tokens[token] = _byte_of(path, token, pieces[token])
    if not end and processor.eos_id() < 0:
        raise TokenizerError(f"{path}: the model has no end token (eos); name one with ?end=ID")
    end_tokens = choose_end_tokens(path, end or [str(processor.eos_id())], special)
    vocabulary = Vocabulary(tokens, end_tokens, special, size, name)
    merges = partial(_merge_source, path, data, processor, vocabulary)
    return LoadedTokenizer(vocabulary, processor.EncodeAsIds, processor.DecodeIds, data, merges)


def _merge_source(path: Path, data: bytes, processor: Any, vocabulary: Vocabulary) -> MergeSource:
    """Any two adjacent pieces merge whose concatenation is a piece, the highest score first; ties: the leftmost.

    Refused: models that are not BPE, a character map (texts would change under the merges), and unused pieces (which
    the library merges and then takes apart again).
    """
    fields = list(_fields(path, data))
    messages = [content for number, content in fields if number == _PIECES]
    parts = dict(fields)
    kind = _number_in(path, parts[_TRAINER_SPEC], _MODEL_KIND, default=1)
    if kind != _BPE:
        raise TokenizerError(
            f"{path}: this is a {_MODEL_KINDS.get(kind, kind)} model; only BPE models have merge rules"
        )
    if dict(_fields(path, parts.get(_NORMALIZER_SPEC, b""))).get(_CHARACTER_MAP):
        raise TokenizerError(f"{path}: the model's character map rewrites texts before merging; use one with identity")
    ids = list(range(len(messages)))
    unused = [token for token, found in zip(ids, processor.IsUnused(ids), strict=True) if found]
    if unused:
        raise TokenizerError(f"{path}: piece {unused[0]} is marked unused; such pieces merge and are split again")
    may_be = [i for i in ids if bytes([_PIECE_KIND << 3, _USER_DEFINED]) in messages[i]]
    user_defined = [i for i in may_be if _number_in(path, messages[i], _PIECE_KIND, default=1) == _USER_DEFINED]
    is_byte = np.array(processor.IsByte(ids), dtype=np.bool_)
    merging = (vocabulary.lengths[: len(ids)] > 0) & ~is_byte
    merging[user_defined] = False
    pieces: list[str] = processor.IdToPiece(ids)
    merging[[token for token in ids if " " in pieces[token]]] = False  # the encoder never sees a space
    ranks = np.full(vocabulary.size, -1, dtype=np.int32)
    _, order = np.unique(-np.array(processor.GetScore(ids))[merging], return_inverse=True)
    ranks[: len(ids)][merging] = order
    byte_tokens = np.full(256, -1, dtype=np.int32)
    for token in np.flatnonzero(is_byte):
        byte_tokens[vocabulary.token_bytes(int(token))[0]] = token
    return MergeSource(
        "pieces",
        "character",
        np.array([token for token in ids if merging[token] and len(pieces[token]) == 1], dtype=np.int32),
        lambda piece: list(processor.EncodeAsIds(piece.decode())),
        ranks,
        byte_tokens=byte_tokens if is_byte.any() else None,
        isolated=tuple(user_defined),
    )


def _number_in(path: Path, message: bytes, field: int, default: int) -> int:
    """The number in `field` of a protobuf message."""
    return next(
        (int.from_bytes(content, "little") for found, content in _fields(path, message) if found == field), default
    )


def _byte_of(path: Path, token: int, piece: str) -> bytes:
    match = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", piece)
    if match is None:
        raise TokenizerError(f"{path}: piece {token} is a byte piece called {piece!r}, not <0xHH>")
    return bytes.fromhex(match[1])


def _check_model(path: Path, data: bytes) -> None:
    """Find what the library would not: a file cut between two pieces, and a decoder that rewrites its output."""
    fields: dict[int, bytes] = {}
    for number, content in _fields(path, data):
        fields[number] = content
    if _PIECES not in fields:
        raise TokenizerError(f"{path}: this is not a SentencePiece model: it has no pieces")
    if _TRAINER_SPEC not in fields:
        raise TokenizerError(f"{path}: the model is cut off: nothing comes after its pieces")
    if any(number == 2 and content for number, content in _fields(path, fields.get(_DENORMALIZER_SPEC, b""))):
        raise TokenizerError(f"{path}: the model's denormalizer rewrites decoded text, so tokens have no exact bytes")


def _fields(path: Path, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The (number, content) of each field of a protobuf message; numbers come as little-endian bytes. O(fields)."""
    position = 0
    while position < len(data):
        start = position
        tag, position = _varint(path, data, position)
        kind, content = tag & 7, b""
        if kind == 0:
            value, position = _varint(path, data, position)
            content = value.to_bytes(10, "little")
        elif kind == 2:
            length, position = _varint(path, data, position)
            content = data[position : position + length]
            position += length
        elif kind in {1, 5}:
            position += 8 if kind == 1 else 4
        else:
            raise TokenizerError(f"{path}: this is not a SentencePiece model: byte {start} starts no protobuf field")
        if position > len(data):
            raise TokenizerError(f"{path}: the model is cut off: the field at byte {start} runs past the file's end")
        yield tag >> 3, content


def _varint(path: Path, data: bytes, position: int) -> tuple[int, int]:
    """The variable-length number at `position`, and the position after it."""
    value = 0
    for index, byte in enumerate(data[position : position + 10]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, position + index + 1
    raise TokenizerError(f"{path}: this is no SentencePiece model, or it is cut off at byte {position}")
