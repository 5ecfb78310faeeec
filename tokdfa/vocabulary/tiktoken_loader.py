"""Byte-pair rank files, encoded by tiktoken: `llama3`, `tekken`, ``tiktoken:PATH`` and ``tekken:PATH``.

A byte-level BPE of this kind is two things: a list of byte strings in order of merge priority (the *rank* of a token),
and a regex that cuts text into words before merging (the *pattern*). A token's bytes are simply those of its rank.

- A *rank file* holds one line a token: base64 of its bytes, a space, its rank, which is also its id. It names neither
  the pattern nor any special token, so both are a matter of knowledge: `PATTERNS` are the published ones, a regex is
  taken as it is, ``?special=NAME=ID`` names special tokens, and the end token is what ``?end=ID`` says, or else the id
  after the last rank (right for gpt2 and r50k; p50k_base needs ``end=50256``, cl100k_base 100257, o200k_base 199999,
  and Whisper's files 50257). With a wrong pattern token bytes and masks are still exact; only `encode` cuts words
  differently from the model's own tokenizer. A rank that is written ``=`` has no bytes.
- A *Tekken file* (Mistral) is JSON with the pattern, the ranks and the special tokens. Special tokens have the first
  ids, so that a token's id is its rank plus their number (1,000), and ranks past the vocabulary size are dropped.

tiktoken is given no special tokens at all: whatever a text says, it is encoded as plain text.
"""

from __future__ import annotations

import binascii
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tokdfa.core.packages import import_library
from tokdfa.errors import TokenizerError, a_noun
from tokdfa.vocabulary.loading import LoadedTokenizer, choose_end_tokens, parse_json, read_file
from tokdfa.vocabulary.merge_source import MergeSource, PreTokenizerSource
from tokdfa.vocabulary.vocabulary import MAX_SIZE, Vocabulary
from tokdfa.vocabulary.word_patterns import PATTERNS, word_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

_LLAMA3_SPECIAL = (
    "<|begin_of_text|> <|end_of_text|> <|reserved_special_token_0|> <|reserved_special_token_1|> "
    "<|finetune_right_pad_id|> <|step_id|> <|start_header_id|> <|end_header_id|> <|eom_id|> <|eot_id|> "
    "<|python_tag|> <|image|>"
)
_LLAMA3_SPECIAL_COUNT = 256

#: The special tokens of Tekken files that list none (those up to version v7).
_TEKKEN_SPECIAL = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
)


def load_llama3(path: Path, size: int | None = None, name: str = "llama3", end: Sequence[str] = ()) -> LoadedTokenizer:
    """Llama 3: 128,000 ranks and 256 special tokens. Three end tokens: of the text, of a message, of a turn."""
    ranked = _read_ranks(path)
    names = _LLAMA3_SPECIAL.split()
    names += [f"<|reserved_special_token_{index + 2}|>" for index in range(_LLAMA3_SPECIAL_COUNT - len(names))]
    special = {len(ranked) + index: name for index, name in enumerate(names)}
    tokens = ranked + [b""] * len(names)
    ends = choose_end_tokens(path, end or ("<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"), tokens, special)
    vocabulary = Vocabulary(tokens, ends, special, size, name)
    return _with_encoder(path, vocabulary, dict(zip(ranked, range(len(ranked)), strict=True)), PATTERNS["llama3"])


def load_rank_file(
    path: Path,
    pattern: str = "cl100k",
    end: Sequence[str] = (),
    size: int | None = None,
    name: str = "tiktoken",
    special: Sequence[str] = (),
    data: bytes | None = None,
) -> LoadedTokenizer:
    """A rank file. `pattern`: a key of `PATTERNS`, or a regex; `end`: the end tokens, by default the id after the last
    rank; `special`: special tokens as ``NAME=ID``; `data`: the content, if `path` is no file.

    O(size of the file). Raises TokenizerError (with the line), UnknownNameError (pattern), VocabularyError (`size` too
    small), MissingDependency.
    """
    regex = word_pattern(pattern)
    by_rank = _parse_ranks(path, read_file(path) if data is None else data)
    highest = max(by_rank)
    named = _rank_file_special(path, special, by_rank)
    wanted = list(end) or [str(highest + 1)]
    ids = [int(entry) for entry in wanted if entry.isdecimal() and len(entry) < 8 and int(entry) < MAX_SIZE]
    tokens = [by_rank.get(token, b"") for token in range(max([highest, *named, *ids]) + 1)]
    ends = choose_end_tokens(path, wanted, tokens, named)
    gap = next((token for token in range(highest) if token not in by_rank and token not in named), None)
    if gap is not None:
        raise TokenizerError(f"{path}: no line has the rank {gap}; if it is an end token, add ?end={gap}")
    vocabulary = Vocabulary(tokens, ends, named, size, name)
    ranks = {spelled: rank for rank, spelled in by_rank.items() if spelled}
    return _with_encoder(path, vocabulary, ranks, regex)


def _rank_file_special(path: Path, listed: Sequence[str], by_rank: Mapping[int, bytes]) -> dict[int, str]:
    """id -> name of the special tokens that are listed as ``NAME=ID``."""
    found: dict[int, str] = {}
    for entry in listed:
        name, _, number = entry.rpartition("=")
        token = int(number) if number.isdecimal() and len(number) < 8 else -1
        if not name or not 0 <= token < MAX_SIZE or by_rank.get(token) or found.setdefault(token, name) != name:
            raise TokenizerError(f"{path}: special token {entry!r} is not NAME=ID with an id that no line has")
    return found


def load_tekken(
    path: Path,
    size: int | None = None,
    name: str = "tekken",
    end: Sequence[str] = (),
    data: bytes | None = None,
) -> LoadedTokenizer:
    """A Tekken file; that of mistral-common has 131,072 tokens, 1,000 of them special.

    `end`: end tokens by id or name, by default ``</s>``; `data`: the content, if `path` is no file. O(size of the
    file). Raises TokenizerError, VocabularyError (`size` too small), MissingDependency.
    """
    content = parse_json(path, read_file(path) if data is None else data)
    config = content.get("config")
    if not isinstance(config, dict):
        raise TokenizerError(f"{path}: this is not a Tekken file: it has no object 'config'")
    pattern = _entry(path, config, "pattern", str)
    total = _entry(path, config, "default_vocab_size", int)
    shift = _entry(path, config, "default_num_special_tokens", int)
    if not 0 < shift < total <= MAX_SIZE:
        raise TokenizerError(f"{path}: a vocabulary of {total} tokens, {shift} of them special, is impossible")
    special = _tekken_special(path, content.get("special_tokens"), shift)
    ranked = _tekken_tokens(path, content.get("vocab"), total - shift)
    tokens = [b""] * shift + ranked
    ends = choose_end_tokens(path, end or ["</s>"], tokens, special)
    vocabulary = Vocabulary(tokens, ends, special, size, name)
    return _with_encoder(path, vocabulary, dict(zip(ranked, range(len(ranked)), strict=True)), pattern, shift)


def _with_encoder(
    path: Path, vocabulary: Vocabulary, ranks: Mapping[bytes, int], pattern: str, shift: int = 0
) -> LoadedTokenizer:
    """Attach tiktoken's encoder; ids are ranks plus `shift`."""
    missing = next((byte for byte in range(256) if bytes([byte]) not in ranks), None)
    if missing is not None:
        raise TokenizerError(f"{path}: no token is the single byte {missing:#04x}; a byte-level BPE needs all 256")
    tiktoken = import_library("tiktoken", f"the tokenizer {path}")
    try:
        encoding: Any = tiktoken.Encoding(vocabulary.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    except ValueError as error:
        raise TokenizerError(f"{path}: tiktoken refuses this tokenizer: {error}") from None
    encode, decode = _catching_panics(encoding.encode_ordinary), encoding.decode
    merges = partial(_merge_source, vocabulary, encoding, pattern, shift)
    if shift:
        return LoadedTokenizer(
            vocabulary,
            lambda text: [token + shift for token in encode(text)],
            lambda tokens: str(decode([token - shift for token in tokens])),
            pattern.encode(),
            merges,
        )
    return LoadedTokenizer(vocabulary, encode, decode, pattern.encode(), merges)


def _merge_source(vocabulary: Vocabulary, encoding: Any, pattern: str, shift: int) -> MergeSource:
    """Any two tokens merge whose concatenation is a token; its rank is its id less `shift`."""
    ranks = np.where(vocabulary.lengths > 0, np.arange(vocabulary.size) - shift, -1).astype(np.int32)
    encode_piece = encoding._core_bpe.encode_single_piece
    return MergeSource(
        "pieces",
        "byte",
        np.flatnonzero(vocabulary.lengths == 1).astype(np.int32),
        lambda piece: [token + shift for token in encode_piece(piece)] if piece else [],
        ranks,
        whole_pieces=True,
        pre_tokenizer=PreTokenizerSource("tiktoken", pattern),
    )


def _catching_panics(encode: Callable[[str], list[int]]) -> Callable[[str], list[int]]:
    """tiktoken's regex engine runs out of stack on white space of some 10^6 characters, and panics past `Exception`."""

    def checked_encode(text: str) -> list[int]:
        try:
            return encode(text)
        except BaseException as error:
            if type(error).__name__ != "PanicException":
                raise
            raise TokenizerError(
                f"tiktoken cannot encode this text of {len(text)} characters ({error}); "
                "a very long run of white space is the usual reason"
            ) from None

    return checked_encode


def _read_ranks(path: Path) -> list[bytes]:
    """The tokens of a rank file without gaps, in order of rank."""
    by_rank = _parse_ranks(path, read_file(path))
    if max(by_rank) != len(by_rank) - 1:
        raise TokenizerError(f"{path}: the ranks are not 0 to {len(by_rank) - 1}")
    return [by_rank[rank] for rank in range(len(by_rank))]


def _parse_ranks(path: Path, data: bytes) -> dict[int, bytes]:
    """rank -> token bytes. Each fault is named with its line."""
    by_rank: dict[int, bytes] = {}
    for number, line in enumerate(data.splitlines(), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 2 or not fields[1].isdigit() or len(fields[1]) > 9:
            raise TokenizerError(f"{path}, line {number}: {_shown(line)} is not a base64 token, a space and a rank")
        rank = int(fields[1])
        # the files of Whisper have a rank without bytes, the last one, written as "="
        spelled = b"" if fields[0] == b"=" else _decode_base64(f"{path}, line {number}", fields[0])
        if rank >= MAX_SIZE:
            raise TokenizerError(f"{path}, line {number}: rank {rank} is too large; at most {MAX_SIZE - 1}")
        if rank in by_rank:
            raise TokenizerError(f"{path}, line {number}: rank {rank} was given to {by_rank[rank]!r} before")
        by_rank[rank] = spelled
    if not by_rank:
        raise TokenizerError(f"{path}: the file holds no tokens")
    if len(set(by_rank.values())) != len(by_rank):
        first, second, spelled = _first_repeat(by_rank)
        raise TokenizerError(f"{path}: ranks {first} and {second} are both {spelled!r}")
    return by_rank


def _first_repeat(by_rank: Mapping[int, bytes]) -> tuple[int, int, bytes]:
    seen: dict[bytes, int] = {}
    return next((seen[b], rank, b) for rank, b in by_rank.items() if seen.setdefault(b, rank) != rank)


def _decode_base64(place: str, text: str | bytes) -> bytes:
    try:
        spelled = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:  # binascii.Error, or a str that is not ASCII
        raise TokenizerError(f"{place}: {_shown(text)} is not base64: {error}") from None
    if not spelled:
        raise TokenizerError(f"{place}: the token is empty")
    return spelled


def _shown(text: str | bytes) -> str:
    return repr(text if len(text) <= 40 else text[:40])


def _entry(path: Path, config: Mapping[str, Any], key: str, kind: type) -> Any:
    value = config.get(key)
    if type(value) is not kind:
        raise TokenizerError(f"{path}: config.{key} must be {a_noun(kind.__name__)}, not {value!r}")
    return value


def _tekken_special(path: Path, listed: Any, count: int) -> dict[int, str]:
    """id -> name of all `count` special tokens; those without a name are called ``<SPECIAL_id>``."""
    special = {token: f"<SPECIAL_{token}>" for token in range(count)}
    if listed is None:
        return special | dict(list(enumerate(_TEKKEN_SPECIAL.split()))[:count])
    if not isinstance(listed, list):
        raise TokenizerError(f"{path}: special_tokens must be a list")
    for index, entry in enumerate(listed):
        rank, text = (entry.get("rank"), entry.get("token_str")) if isinstance(entry, dict) else (None, None)
        if type(rank) is not int or not 0 <= rank < count or not isinstance(text, str):
            raise TokenizerError(f"{path}: special_tokens[{index}] needs a rank from 0 to {count - 1} and a token_str")
        special[rank] = text
    return special


def _tekken_tokens(path: Path, listed: Any, count: int) -> list[bytes]:
    """The bytes of the first `count` entries of a Tekken file's vocabulary."""
    if not isinstance(listed, list) or len(listed) < count:
        found = f"{len(listed)} tokens" if isinstance(listed, list) else "no list"
        raise TokenizerError(f"{path}: 'vocab' holds {found}, but config promises {count} besides the special tokens")
    tokens = []
    for index, entry in enumerate(listed[:count]):
        encoded = entry.get("token_bytes") if isinstance(entry, dict) and entry.get("rank") == index else None
        if not isinstance(encoded, str):
            raise TokenizerError(f"{path}: vocab[{index}] needs token_bytes and the rank {index}")
        tokens.append(_decode_base64(f"{path}: vocab[{index}]", encoded))
    if len(set(tokens)) != count:
        first, second, spelled = _first_repeat(dict(enumerate(tokens)))
        raise TokenizerError(f"{path}: vocab[{first}] and vocab[{second}] are both {spelled!r}")
    return tokens
