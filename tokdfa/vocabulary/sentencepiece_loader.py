"""SentencePiece models: `mistral-v1` and ``sentencepiece:PATH``.

A model is a list of *pieces*, one per id, each with a kind: NORMAL and USER_DEFINED pieces spell their text, with
U+2581 standing for a space; BYTE pieces ``<0xHH>`` spell one byte, and let text without a piece be spelled (byte
fallback); CONTROL, UNKNOWN and UNUSED pieces spell nothing. A text ``<s>`` is encoded as plain characters; the text of
a USER_DEFINED piece always becomes that piece, which spells it. USER_DEFINED pieces with the form of a marker
(`tokdfa.vocabulary.markers`), or that end a text, are read as CONTROL pieces.

Whitespace. As trained, the encoder puts a *dummy prefix* (a space) before the text, some models also merge runs of
spaces, and the decoder takes the first space away. A constrained text continues a context, so a token must add its
bytes and nothing else. Both rules are therefore switched off here, in encoder and decoder alike: ``encode("a")`` is
the piece ``a`` and ``encode(" a")`` is ``▁a``, and ``spell(encode(text)) == text``. What the original encoder does with
``"a"`` at the start of a prompt is our ``encode(" a")``. A character map of the model (NFKC, say) stays, and then texts
that it changes are spelled as changed; U+2581 itself is read as a space.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.locks import cached_property
from tokdfa.core.packages import import_library
from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.loading import LoadedTokenizer, choose_end_tokens, cut_at_names, read_file
from tokdfa.vocabulary.markers import is_marker
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.sentencepiece_fields import (
    BPE,
    CHARACTER_MAP,
    CONTROL,
    DENORMALIZER_SPEC,
    MODEL_KIND,
    NORMALIZER_SPEC,
    PIECE_KIND,
    PIECES,
    TRAINER_SPEC,
    USER_DEFINED,
    fields_of,
    spans_of,
)
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tokdfa.vocabulary.sentencepiece_fields import Span

SPACE = "\u2581"

#: Appended to a serialized model: a second `normalizer_spec` (field 3), which protobuf merges into the first, with
#: `add_dummy_prefix` (field 3) and `remove_extra_whitespaces` (field 4) false.
_EXACT_WHITESPACE = bytes([3 << 3 | 2, 4, 3 << 3, 0, 4 << 3, 0])

_MODEL_KINDS = {1: "Unigram", 3: "word", 4: "character"}


def load_sentencepiece(
    path: Path,
    end: Sequence[str] = (),
    size: int | None = None,
    name: str = "sentencepiece",
    special: Sequence[str] | None = None,
    data: bytes | None = None,
) -> LoadedTokenizer:
    """A SentencePiece model file. `end`: end tokens by id or name; the model's own eos when empty. `special`:
    user-defined pieces that are special; None: markers. `data`: the content, if `path` is no file.

    Ids past the model's pieces, which other libraries add, spell nothing and may be end tokens.

    O(size of the file). Raises TokenizerError (missing, truncated, another format, no end token), MissingDependency,
    VocabularyError (`size` too small).
    """
    data = read_file(path) if data is None else data
    spans = list(spans_of(path, data))
    _check_model(path, data, spans)
    marked = _with_control_pieces(path, data, spans, special, end)
    library = import_library("sentencepiece", f"the SentencePiece model {path}")
    processor: Any = library.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(marked + _EXACT_WHITESPACE)
        ids = list(range(processor.GetPieceSize()))
        pieces: list[str] = processor.IdToPiece(ids)
    except (RuntimeError, ValueError) as error:
        raise TokenizerError(f"{path}: sentencepiece cannot read this model: {error}") from None
    is_control, is_unused, is_byte = processor.IsControl(ids), processor.IsUnused(ids), processor.IsByte(ids)
    unknown = processor.unk_id()
    named = {i: pieces[i] for i in ids if is_control[i] or is_unused[i] or i == unknown}
    tokens = [piece.replace(SPACE, " ").encode() for piece in pieces]
    for token in ids:
        if token in named:
            tokens[token] = b""
        elif is_byte[token]:
            tokens[token] = _byte_of(path, token, pieces[token])
    if not end and processor.eos_id() < 0:
        raise TokenizerError(f"{path}: the model has no end token (eos); name one with ?end=ID")
    ends = choose_end_tokens(path, end or [str(processor.eos_id())], tokens, named, size=size)
    vocabulary = Vocabulary(tokens, ends, named, size, name)
    merges = partial(_merge_source, path, marked, processor, vocabulary)
    prompts = _PromptEncoder(library, data, vocabulary.special_tokens)
    return LoadedTokenizer(vocabulary, processor.EncodeAsIds, processor.DecodeIds, data, merges, prompts)


def _with_control_pieces(
    path: Path, data: bytes, spans: Sequence[Span], special: Sequence[str] | None, end: Sequence[str]
) -> bytes:
    """The model with the user-defined pieces that are special as control pieces, which no text becomes.

    The kind of a piece is a number of one byte, which is changed in place.
    """
    changed = bytearray(data)
    pieces = [(begin, after) for number, _, begin, after in spans if number == PIECES]
    for token in _pieces_with(data, pieces, bytes([PIECE_KIND << 3, USER_DEFINED])):
        begin, after = pieces[token]
        piece = data[begin:after]
        places = {field: (first, last) for field, _, first, last in spans_of(path, piece)}
        place = places.get(PIECE_KIND, (0, 0))[0]
        if piece[place : place + 1] != bytes([USER_DEFINED]):
            continue
        text = piece[slice(*places.get(1, (0, 0)))].decode(errors="replace")
        listed = is_marker(text) if special is None else not {text, str(token)}.isdisjoint(special)
        if listed or not {text, str(token)}.isdisjoint(end):
            changed[begin + place] = CONTROL
    return bytes(changed)


def _pieces_with(data: bytes, pieces: Sequence[tuple[int, int]], wanted: bytes) -> list[int]:
    """The pieces in which some bytes occur. They are few, so that it is faster to look for the bytes in the whole."""
    begins, found = [begin for begin, _ in pieces], set()
    place = data.find(wanted)
    while place >= 0:
        token = bisect_right(begins, place) - 1
        if token >= 0 and place + len(wanted) <= pieces[token][1]:
            found.add(token)
        place = data.find(wanted, place + 1)
    return sorted(found)


class _PromptEncoder:
    """The model as its file says it. Names of special tokens are these, and each stretch between has the model's dummy
    prefix, as transformers and llama.cpp have it. Built with the first prompt.
    """

    def __init__(self, library: Any, data: bytes, special: Mapping[int, str]) -> None:
        self._library, self._data, self._cut = library, data, cut_at_names(special)

    @cached_property
    def _processor(self) -> Any:
        processor = self._library.SentencePieceProcessor()
        processor.LoadFromSerializedProto(self._data)
        return processor

    def __call__(self, text: str) -> list[int]:
        parts = self._cut(text)
        return [
            one for part in parts for one in ([part] if isinstance(part, int) else self._processor.EncodeAsIds(part))
        ]


def _merge_source(path: Path, data: bytes, processor: Any, vocabulary: Vocabulary) -> MergeSource:
    """Any two adjacent pieces merge whose concatenation is a piece, the highest score first; ties: the leftmost.

    Refused: models that are not BPE, a character map (texts would change under the merges), and unused pieces (which
    the library merges and then takes apart again).
    """
    fields = list(fields_of(path, data))
    messages = [content for number, content in fields if number == PIECES]
    parts = dict(fields)
    kind = _number_in(path, parts[TRAINER_SPEC], MODEL_KIND, default=1)
    if kind != BPE:
        raise TokenizerError(
            f"{path}: this is a {_MODEL_KINDS.get(kind, kind)} model; only BPE models have merge rules"
        )
    if dict(fields_of(path, parts.get(NORMALIZER_SPEC, b""))).get(CHARACTER_MAP):
        raise TokenizerError(f"{path}: the model's character map rewrites texts before merging; use one with identity")
    ids = list(range(len(messages)))
    unused = [token for token, found in zip(ids, processor.IsUnused(ids), strict=True) if found]
    if unused:
        raise TokenizerError(f"{path}: piece {unused[0]} is marked unused; such pieces merge and are split again")
    may_be = [i for i in ids if bytes([PIECE_KIND << 3, USER_DEFINED]) in messages[i]]
    user_defined = [i for i in may_be if _number_in(path, messages[i], PIECE_KIND, default=1) == USER_DEFINED]
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
        (int.from_bytes(content, "little") for found, content in fields_of(path, message) if found == field), default
    )


def _byte_of(path: Path, token: int, piece: str) -> bytes:
    match = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", piece)
    if match is None:
        raise TokenizerError(f"{path}: piece {token} is a byte piece called {piece!r}, not <0xHH>")
    return bytes.fromhex(match[1])


def _check_model(path: Path, data: bytes, spans: Sequence[Span]) -> None:
    """Find what the library would not: a file cut between two pieces, and a decoder that rewrites its output."""
    fields = {number: slice(begin, after) for number, _, begin, after in spans}
    if PIECES not in fields:
        raise TokenizerError(f"{path}: this is not a SentencePiece model: it has no pieces")
    if TRAINER_SPEC not in fields:
        raise TokenizerError(f"{path}: the model is cut off: nothing comes after its pieces")
    denormalizer = dict(fields_of(path, data[fields.get(DENORMALIZER_SPEC, slice(0))]))
    if denormalizer.get(CHARACTER_MAP):
        raise TokenizerError(f"{path}: the model's denormalizer rewrites decoded text, so tokens have no exact bytes")
