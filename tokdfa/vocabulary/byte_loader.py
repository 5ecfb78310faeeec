"""One token a byte: `bytes`, and the tokenizers of ByT5 and Perceiver, which number the bytes from some id on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.vocabulary.loading import LoadedTokenizer, choose_end_tokens, cut_at_names, parse_json
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def load_bytes(size: int | None = None, end: Sequence[str] = ()) -> LoadedTokenizer:
    """Token i is byte i; the end token is 256."""
    return _load("bytes", list(range(256)), {256: "<end>"}, end or ["256"], size)


def load_numbered(
    path: Path, data: bytes, end: Sequence[str] = (), size: int | None = None, name: str = "bytes"
) -> LoadedTokenizer:
    """Bytes by id, as `numbered_bytes` writes them. `path`: for messages."""
    content = parse_json(path, data)
    return _load(name, content["ids"], dict(content["special"]), end or content["end"], size, path)


def numbered_bytes(ids: Sequence[int], special: Mapping[int, str], end: Sequence[str]) -> bytes:
    """What `load_numbered` reads: the id of each byte, the special tokens, and which of them end a text."""
    return json.dumps({"ids": list(ids), "special": sorted(special.items()), "end": list(end)}).encode()


def _load(
    name: str,
    ids: list[int],
    special: dict[int, str],
    end: Sequence[str],
    size: int | None,
    path: Path = Path(),
) -> LoadedTokenizer:
    tokens = [b""] * (max(*ids, *special) + 1)
    for byte, token in enumerate(ids):
        tokens[token] = bytes([byte])
    ends = choose_end_tokens(path, end, tokens, special, size=size)
    vocabulary = Vocabulary(tokens, ends, special, size, name)
    byte_of = {token: byte for byte, token in enumerate(ids)}
    cut = cut_at_names(vocabulary.special_tokens)

    def encode(text: str) -> list[int]:
        return [ids[byte] for byte in text.encode()]

    def merges() -> MergeSource:
        letters = np.array(ids, dtype=np.int32)
        return MergeSource("pairs", "byte", letters, encode_piece=lambda piece: [ids[byte] for byte in piece])

    return LoadedTokenizer(
        vocabulary,
        encode,
        lambda given: bytes(byte_of[token] for token in given).decode(errors="replace"),
        b"utf-8",
        merges,
        lambda text: [one for part in cut(text) for one in ([part] if isinstance(part, int) else encode(part))],
    )
