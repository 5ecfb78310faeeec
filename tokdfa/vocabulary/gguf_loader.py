"""The tokenizer inside a GGUF file: `smollm2` and ``gguf:PATH``, rewritten as what another loader reads.

A GGUF file (`tokdfa.vocabulary.gguf_file`) holds a model and its tokenizer, of which ``tokenizer.ggml.model`` names the
kind. Taken are

- ``gpt2``, byte-level BPE: a list of tokens in GPT-2's byte alphabet, a list of merges and a kind for each token. They
  become the content of a tokenizer.json, which `huggingface_loader` reads with the package `tokenizers`;
- ``llama`` and ``t5``, SentencePiece BPE and Unigram: pieces, scores and kinds. They become a serialized model, which
  `sentencepiece_loader` reads with the package `sentencepiece`.

*The trap.* Of the pre-tokenizer a GGUF file keeps nothing but a name (``tokenizer.ggml.pre``); what the name means
stands in the source of llama.cpp. For SmolLM2 the name is ``smollm``, which means: first each digit is cut off by
itself, then GPT-2's regex cuts each part. A converter that knows nothing of the name and takes GPT-2's regex alone
makes almost the same tokenizer. It differs where more than one space stands before a digit: those spaces end their
part, so all of them are one piece, but GPT-2's regex alone keeps the last one for the number, as it does for a word. So
a name that is not in `PRE_TOKENIZERS` is refused; there is no default.

*Kinds of tokens.* Control tokens and the unknown token spell nothing, and their names in a text are plain text.
User-defined tokens spell their text, and are found in a text before anything else. Unused ids are padding. llama.cpp
normalizes no text, so nothing is normalized here either, even where the model's tokenizer.json would (NFC in Qwen 2).

*End tokens* are those that the file names as ends of a text, a turn or a message, and all control tokens with a name in
`huggingface_loader.END_NAMES`, unless ``?end=`` says otherwise.

SmolLM2's vocabulary lacks the bytes 04, 06, 13, 14, 16, 1D, F1 and F2. Its encoder drops them without a word, so
`Tokenizer.encode` refuses texts with these control characters, or with characters from U+40000 to U+BFFFF.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tokdfa.errors import TokenizerError
from tokdfa.vocabulary import sentencepiece_fields as fields
from tokdfa.vocabulary.chat_template import ChatTemplate
from tokdfa.vocabulary.gguf_file import read_metadata
from tokdfa.vocabulary.huggingface_loader import END_NAMES, load_content
from tokdfa.vocabulary.sentencepiece_loader import load_sentencepiece
from tokdfa.vocabulary.vocabulary import MAX_SIZE
from tokdfa.vocabulary.word_patterns import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tokdfa.vocabulary.loading import LoadedTokenizer

#: Kinds of tokens (``tokenizer.ggml.token_type``).
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def _byte_level(use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _split(pattern: str) -> list[dict[str, Any]]:
    """Cut by a regex, then only spell in bytes."""
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return [cut, _byte_level(use_regex=False)]


_DIGITS_THEN_GPT2 = [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)]

#: Name in the file -> (the steps in terms of a tokenizer.json, whether a piece that is a token becomes it at once).
PRE_TOKENIZERS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "smollm": (_DIGITS_THEN_GPT2, False),
    "starcoder": (_DIGITS_THEN_GPT2, False),
    "refact": (_DIGITS_THEN_GPT2, False),
    "gpt-2": ([_byte_level(use_regex=True)], False),
    "llama-bpe": (_split(PATTERNS["llama3"]), True),
    "qwen2": (_split(PATTERNS["qwen2"]), False),
}

_PREFIX = "tokenizer.ggml."
_LISTS = {"tokens": str, "token_type": int, "merges": str}
#: Lists of a SentencePiece model, and its other keys with the field of `trainer_spec` or `normalizer_spec`.
_PIECE_LISTS = {"tokens": str, "scores": float, "token_type": int}
_SENTENCEPIECE_KINDS = {"llama": fields.BPE, "t5": fields.UNIGRAM}
_IDS = {
    "unknown_token_id": fields.UNKNOWN_ID,
    "bos_token_id": fields.BEGIN_ID,
    "eos_token_id": fields.END_ID,
    "padding_token_id": fields.PADDING_ID,
}
_SPACES = {"add_space_prefix": fields.DUMMY_PREFIX, "remove_extra_whitespaces": fields.REMOVE_EXTRA_WHITESPACES}
_CHARACTER_MAP = "precompiled_charsmap"
#: Ends of a text, a turn and a message.
_END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_KEYS = frozenset(
    _PREFIX + key for key in ("model", "pre", *_LISTS, *_PIECE_LISTS, *_END_KEYS, *_IDS, *_SPACES, _CHARACTER_MAP)
)


def load_gguf(
    path: Path,
    end: Sequence[str] = (),
    size: int | None = None,
    name: str = "gguf",
    special: Sequence[str] | None = None,
) -> LoadedTokenizer:
    """The tokenizer of a GGUF file. `end`: end tokens by id or name; by default as the module says.

    Of SmolLM2's 98 MB the first two are read.

    O(size of the metadata), 0.5 s for 50,000 tokens. Raises TokenizerError (missing, damaged, another kind of
    tokenizer, an unknown pre-tokenizer, lists that do not fit together, no end token), MissingDependency,
    VocabularyError (`size` too small).
    """
    found = {key.removeprefix(_PREFIX): value for key, value in read_metadata(path, _KEYS).items()}
    if "model" not in found:
        raise TokenizerError(f"{path}: this file has no tokenizer: there is no {_PREFIX}model")
    if found["model"] in _SENTENCEPIECE_KINDS:
        data = _sentencepiece_model(path, found)
        kinds, texts = found["token_type"], found["tokens"]
        return load_sentencepiece(path, end or _end_tokens(found, texts, kinds), size, name, special, data)
    if found["model"] != "gpt2":
        raise TokenizerError(
            f"{path}: {_PREFIX}model is {found['model']!r}; only byte-level BPE ('gpt2') and SentencePiece ('llama', "
            "'t5') have exact token bytes here"
        )
    if not isinstance(found.get("pre"), str) or found["pre"] not in PRE_TOKENIZERS:
        shown = repr(found["pre"]) if "pre" in found else "not there"
        raise TokenizerError(
            f"{path}: {_PREFIX}pre, which names the pre-tokenizer, is {shown}; known are {', '.join(PRE_TOKENIZERS)}"
        )
    tokens, kinds, merges = (_list_of(path, found, key, kind) for key, kind in _LISTS.items())
    content = _tokenizer_json(path, tokens, kinds, merges, *PRE_TOKENIZERS[found["pre"]])
    data = json.dumps(content, ensure_ascii=False).encode()
    wanted = end or _end_tokens(found, tokens, kinds)
    return load_content(path, content, data, wanted, len(tokens) if size is None else size, name, special)


def chat_template(path: Path) -> ChatTemplate | None:
    """The chat template in a GGUF file; None if it has none."""
    keys = {"bos_token": "bos_token_id", "eos_token": "eos_token_id", "unk_token": "unknown_token_id"}
    found = read_metadata(path, {"tokenizer.chat_template", *(_PREFIX + key for key in ("tokens", *keys.values()))})
    text = found.get("tokenizer.chat_template")
    if not isinstance(text, str):
        return None
    tokens = found.get(_PREFIX + "tokens", [])
    ids = {name: found.get(_PREFIX + key, -1) for name, key in keys.items()}
    names = tuple((name, tokens[token]) for name, token in ids.items() if 0 <= token < len(tokens))
    return ChatTemplate(text, names, str(path))


def _sentencepiece_model(path: Path, found: Mapping[str, Any]) -> bytes:
    """A serialized SentencePiece model with the same meaning; kinds of pieces have the same numbers there."""
    texts, scores, kinds = (_list_of(path, found, key, kind) for key, kind in _PIECE_LISTS.items())
    if not 0 < len(texts) <= MAX_SIZE or {len(texts)} != {len(scores), len(kinds)}:
        raise TokenizerError(
            f"{path}: {len(texts)} tokens with {len(scores)} scores and {len(kinds)} entries in token_type; there must "
            f"be as many, from 1 to {MAX_SIZE}"
        )
    pieces = [
        fields.field(fields.PIECE_TEXT, text.encode())
        + fields.field(fields.PIECE_SCORE, float(score))
        + fields.field(fields.PIECE_KIND, kind)
        for text, score, kind in zip(texts, scores, kinds, strict=True)
    ]
    trainer = fields.field(fields.MODEL_KIND, _SENTENCEPIECE_KINDS[found["model"]])
    trainer += fields.field(fields.BYTE_FALLBACK, int(BYTE in kinds))
    ids = {key: found.get(key, -1) for key in _IDS}
    ids["unknown_token_id"] = kinds.index(UNKNOWN) if UNKNOWN in kinds else ids["unknown_token_id"]
    trainer += b"".join(fields.field(_IDS[key], token) for key, token in ids.items())
    normalizer = b"".join(
        fields.field(place, int(found.get(key, key == "add_space_prefix"))) for key, place in _SPACES.items()
    )
    if isinstance(found.get(_CHARACTER_MAP), list):
        normalizer += fields.field(fields.CHARACTER_MAP, bytes(byte & 255 for byte in found[_CHARACTER_MAP]))
    return b"".join(
        [
            *(fields.field(fields.PIECES, piece) for piece in pieces),
            fields.field(fields.TRAINER_SPEC, trainer),
            fields.field(fields.NORMALIZER_SPEC, normalizer),
        ]
    )


def _list_of(path: Path, found: Mapping[str, Any], key: str, kind: type) -> list[Any]:
    value = found.get(key)
    if not isinstance(value, list) or not all(type(entry) is kind for entry in value):
        wanted = "texts" if kind is str else "numbers"
        raise TokenizerError(f"{path}: {_PREFIX}{key} must be a list of {wanted}")
    return value


def _tokenizer_json(
    path: Path,
    tokens: Sequence[str],
    kinds: Sequence[int],
    merges: Sequence[str],
    steps: Sequence[dict[str, Any]],
    ignore_merges: bool,
) -> dict[str, Any]:
    """What a tokenizer.json with the same meaning holds."""
    if not 0 < len(tokens) <= MAX_SIZE or len(kinds) != len(tokens):
        raise TokenizerError(
            f"{path}: {len(tokens)} tokens with {len(kinds)} entries in token_type; there must be as many, "
            f"from 1 to {MAX_SIZE}"
        )
    vocab: dict[str, int] = {}
    added: list[dict[str, Any]] = []
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    for token, (text, kind) in enumerate(zip(tokens, kinds, strict=True)):
        if kind == UNUSED:
            continue
        if kind not in (NORMAL, UNKNOWN, CONTROL, USER_DEFINED):
            raise TokenizerError(f"{path}: token {token} is of kind {kind}, which a byte-level BPE does not have")
        if vocab.setdefault(text, token) != token:
            raise TokenizerError(f"{path}: tokens {vocab[text]} and {token} are both {text!r}")
        if kind != NORMAL:
            added.append({"id": token, "content": text, "special": kind != USER_DEFINED, **flags})
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)},
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {"type": "BPE", "vocab": vocab, "merges": list(merges), "ignore_merges": ignore_merges},
    }


def _end_tokens(found: Mapping[str, Any], tokens: Sequence[str], kinds: Sequence[int]) -> list[str]:
    """The ids that the file calls ends, and those of control tokens with the name of an end."""
    ids = [found[key] for key in _END_KEYS if key in found]
    ids += [token for token, text in enumerate(tokens) if kinds[token] == CONTROL and text in END_NAMES]
    return [str(token) for token in dict.fromkeys(ids)]
