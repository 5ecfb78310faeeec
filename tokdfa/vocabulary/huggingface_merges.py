"""The merges of a tokenizer.json: its list of pairs, its byte fallback, the steps before merging.

The library looks pairs up by token, the precedence of a pair is its place in the list (its last place, if it is listed
twice), and a merge gives the token whose text is the concatenation. Letters are the characters of the (normalized)
text; with a ByteLevel decoder these stand for bytes, so letters are bytes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.errors import TokenizerError
from tokdfa.vocabulary.huggingface_spelling import SPACE, byte_alphabet, component_steps, without_dummy_prefix
from tokdfa.vocabulary.loading import parse_json
from tokdfa.vocabulary.merge_source import MergeSource, PreTokenizerSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    from tokdfa.vocabulary.huggingface_spelling import SpellingRule
    from tokdfa.vocabulary.vocabulary import Vocabulary


def merge_source(path: Path, data: bytes, tokenizer: Any, rule: SpellingRule, vocabulary: Vocabulary) -> MergeSource:
    """The merges of the tokenizer.json whose content is `data` (read again: it is not worth keeping parsed).

    Raises TokenizerError for a Unigram model, for an added token that looks at its neighbours, and for a letter that
    does not spell its byte.
    """
    spec = without_dummy_prefix(parse_json(path, data))
    model = spec["model"]
    if isinstance(model["vocab"], list):
        raise TokenizerError(f"{path}: this is a Unigram model; only BPE models have merge rules")
    ids: dict[str, int] = model["vocab"]
    normalizers = component_steps(spec.get("normalizer"), "normalizers")
    steps = component_steps(spec.get("pre_tokenizer"), "pretokenizers")
    hides_spaces = any(map(_hides_spaces, [*normalizers, *steps]))
    letters = [
        token
        for text, token in ids.items()
        if len(text) == 1 and vocabulary.token_bytes(token) and text != (" " if hides_spaces else SPACE)
    ]
    if rule.byte_level:
        letters = _byte_letters(path, ids, vocabulary)
    byte_tokens = None
    if model.get("byte_fallback"):
        byte_tokens = np.array([ids.get(f"<0x{byte:02X}>", -1) for byte in range(256)], dtype=np.int32)
    return MergeSource(
        "pairs",
        "byte" if rule.byte_level else "character",
        np.array(letters, dtype=np.int32),
        _piece_encoder(tokenizer, rule.byte_level, hides_spaces),
        read_pairs=lambda: _read_pairs(path, model, ids),
        byte_tokens=byte_tokens,
        whole_pieces=bool(model.get("ignore_merges")),
        isolated=tuple(sorted(_isolated(path, tokenizer))),
        normalizers=tuple(str(step.get("type")) for step in normalizers if not _hides_spaces(step)),
        pre_tokenizer=PreTokenizerSource(
            "oniguruma", sections={key: spec.get(key) for key in ("normalizer", "pre_tokenizer")}
        ),
    )


def _byte_letters(path: Path, ids: dict[str, int], vocabulary: Vocabulary) -> list[int]:
    """The tokens of the byte alphabet. One that is marked as special spells nothing."""
    letters = []
    for byte, character in enumerate(byte_alphabet()):
        token = ids.get(character)
        if token is None:
            continue
        if vocabulary.token_bytes(token) != bytes([byte]):
            raise TokenizerError(
                f"{path}: token {token} ({character!r}) stands for the byte {byte:02X} but spells "
                f"{vocabulary.token_bytes(token)!r}, so nothing merges as it should; make it a normal token, "
                "not a control token, or get an undamaged file"
            )
        letters.append(token)
    return letters


def _read_pairs(path: Path, model: dict[str, Any], ids: dict[str, int]) -> npt.NDArray[np.int32]:
    """int32, shape (n, 3): left, right, result. The library has refused files that name a token it does not know."""
    rows: dict[tuple[int, int], int] = {}
    for place, entry in enumerate(model.get("merges") or []):
        left, right = entry if isinstance(entry, list) else entry.split(" ")
        try:
            pair = ids[left], ids[right]
            result = ids[left + right]
        except KeyError as error:
            raise TokenizerError(f"{path}: model.merges[{place}] needs the token {error.args[0]!r}") from None
        rows.pop(pair, None)
        rows[pair] = result
    return np.array([(*pair, result) for pair, result in rows.items()], dtype=np.int32).reshape(-1, 3)


def _hides_spaces(step: dict[str, Any]) -> bool:
    """Whether a step turns spaces into U+2581, which the decoder turns back."""
    if step.get("type") == "Metaspace":
        return bool(step.get("replacement", SPACE) == SPACE)
    return (step.get("type"), step.get("pattern"), step.get("content")) == ("Replace", {"String": " "}, SPACE)


def _isolated(path: Path, tokenizer: Any) -> list[int]:
    """Added tokens that text can reach: all but the special ones."""
    found = []
    for token, added in tokenizer.get_added_tokens_decoder().items():
        if added.special:
            continue
        if added.single_word or added.lstrip or added.rstrip:
            raise TokenizerError(
                f"{path}: the added token {added.content!r} looks at its neighbours (single_word, lstrip or rstrip), "
                "which no rule here can say"
            )
        found.append(token)
    return found


def _piece_encoder(tokenizer: Any, byte_level: bool, hides_spaces: bool) -> Callable[[bytes], list[int]]:
    """The model alone: no normalizer, no pre-tokenizer, no added tokens."""
    model = tokenizer.model
    alphabet = byte_alphabet()

    def encode_piece(piece: bytes) -> list[int]:
        if byte_level:
            text = "".join([alphabet[byte] for byte in piece])
        else:
            text = piece.decode().replace(" ", SPACE) if hides_spaces else piece.decode()
        return [token.id for token in model.tokenize(text)] if text else []

    return encode_piece
