"""The door for tokenizers: `load_tokenizer` makes one of whatever people have one in, `as_vocabulary` its vocabulary.

A `Vocabulary` knows what each token spells; a `Tokenizer` also turns text into the tokens a model would see. Encoding
is the business of sentencepiece, tiktoken or tokenizers, imported when a tokenizer of theirs is loaded; tokdfa
adds the exact bytes of every token and these laws, for every tokenizer:

- `encode` adds no begin token, end token, chat template or dummy prefix, and text that looks like a special token is
  plain text, unless ``special=True`` says otherwise;
- ``spell(encode(text)) == text.encode()`` unless the tokenizer itself changes the text (a normaliser, an unknown
  character, a token that ends texts; each loader's page says what); a text with a byte that no token has, which the
  reference library would drop, is refused;
- `decode` is the reference's decoding, in which tokens that spell nothing are left out: for valid UTF-8 it equals
  ``spell(tokens).decode()``.

What is taken: names (`tokdfa.vocabulary.tokenizer_names`), a path by itself, a folder, a model's name in the local
cache of the Hugging Face hub (`tokdfa.vocabulary.locate`); objects of other libraries
(`tokdfa.vocabulary.given_tokenizer`); models of transformers, which say where they came from, and of tokdfa; tokenizers
and vocabularies of tokdfa. A plain dict needs no tokenizer: `Vocabulary.from_dict` makes a vocabulary of it, which is
all a backend asks for.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from tokdfa.core.arguments import as_integer, as_sequence, as_text, as_token
from tokdfa.core.locks import new_lock
from tokdfa.errors import ArgumentError, ModelError, TokenizerError, VocabularyError
from tokdfa.vocabulary.chat_template import template_beside
from tokdfa.vocabulary.given_tokenizer import (
    REMEDY,
    Content,
    is_network,
    logit_width,
    network_ends,
    read_object,
)
from tokdfa.vocabulary.loading import package_file
from tokdfa.vocabulary.tokenizer import Tokenizer, encode_exactly
from tokdfa.vocabulary.tokenizer_names import SOURCES, TokenizerInfo, full_name, parse_name, tokenizer_names
from tokdfa.vocabulary.vocabulary import Vocabulary
from tokdfa.vocabulary.vocabulary_file import load_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tokdfa.vocabulary.chat_template import ChatTemplate
    from tokdfa.vocabulary.loading import LoadedTokenizer

__all__ = [
    "Tokenizer",
    "TokenizerInfo",
    "as_vocabulary",
    "encode_exactly",
    "end_ids",
    "load_tokenizer",
    "tokenizer_from_content",
    "tokenizer_names",
]

#: How many tokenizers `load_tokenizer` keeps; one of 131,072 tokens holds about 50 MB, most of it the encoder's.
CACHED_TOKENIZERS = 8
#: What is an end token, or are several.
Ends = int | str


def load_tokenizer(
    given: Any,
    size: int | None = None,
    *,
    end_tokens: Ends | Iterable[Ends] = (),
    special_tokens: Iterable[Ends] | Mapping[str, int] | None = None,
    pattern: str | None = None,
) -> Tokenizer:
    """The tokenizer that `given` is, names, leads to or belongs to: see the module for what is taken.

    `size`: the logit width, where it is not the number of tokens; what is missing is padding, and special tokens past
    it are left out. `end_tokens`: ids, names or texts of the tokens that end a text, in place of those that `given`
    names; any token may be one, and spells nothing then. `special_tokens`: which added tokens spell nothing besides
    those that are flagged as special, by id or name; by default those with the form of a marker
    (`tokdfa.vocabulary.markers`), which `Tokenizer.markers` lists. Of a rank file, name -> id of its special tokens.
    `pattern`: its word pattern, by name or as a regex.

    Costs 0.1 s for 32,000 tokens, 0.4 s for 131,072; where `tokdfa.vocabulary.vocabulary_file` has the vocabulary some
    ms, and the rest with the first text to encode or decode. The last CACHED_TOKENIZERS are kept: the same name or the
    same content and size give the same object, unless the file has changed. Raises ArgumentError for what is no
    tokenizer, UnknownNameError, MissingDependency, TokenizerError (a broken file, no exact token bytes, no end token),
    OptionError (an option that this kind does not take), VocabularyError (`size` cuts off text).
    """
    size = None if size is None else as_integer(size, "size", 1)
    options = _options(end_tokens, special_tokens, pattern)
    if is_network(given):
        given, size, options = _of_network(given, size, options)
    if isinstance(given, str | Path):
        return _named(full_name(str(given), options), size)
    found = getattr(given, "vocabulary", given)  # of a Tokenizer, or of a language model
    if isinstance(found, Vocabulary):
        if not isinstance(found.tokenizer, Tokenizer) or found.tokenizer.vocabulary is not found:
            raise ArgumentError(
                f"{found!r} has no tokenizer: it says what tokens spell, not how texts become tokens; {REMEDY}"
            )
        return _changed(found.tokenizer, size, options)
    content = read_object(given)
    wanted = max(size or 0, content.least) or None
    return tokenizer_from_content(content.with_options(options), size if size is not None else wanted)


def as_vocabulary(
    given: Any,
    end_tokens: Ends | Iterable[Ends] = (),
    size: int | None = None,
    special_tokens: Iterable[Ends] | Mapping[str, int] | None = None,
) -> Vocabulary:
    """The vocabulary of anything that `load_tokenizer` takes, or a `Vocabulary`; the rest is as there.

    A vocabulary that has the wanted end tokens among others stays as it is: what is kept for it is shared.
    """
    found = given if isinstance(given, Vocabulary) else getattr(given, "vocabulary", None)
    if not isinstance(found, Vocabulary):
        return load_tokenizer(given, size, end_tokens=end_tokens, special_tokens=special_tokens).vocabulary
    if end_tokens == () and size is None and special_tokens is None:  # as a rule
        return found
    if isinstance(found.tokenizer, Tokenizer) and found.tokenizer.vocabulary is found:
        size = None if size is None else as_integer(size, "size", 1)
        return _changed(found.tokenizer, size, _options(end_tokens, special_tokens, None)).vocabulary
    if special_tokens is not None:
        raise ArgumentError("special_tokens: of a Vocabulary they are given when it is made")
    size = found.size if size is None else as_integer(size, "size", 1)
    ends = _end_names(end_tokens)
    if size == found.size and not _lacking(found, ends):
        return found
    return found.changed([_token_of(found, end) for end in ends], size)


def end_ids(vocabulary: Vocabulary, end_tokens: Ends | Iterable[Ends]) -> tuple[int, ...]:
    """The ids that `end_tokens` names among the end tokens of a vocabulary; all for none. Raises ArgumentError."""
    wanted = _end_names(end_tokens)
    lacking = _lacking(vocabulary, wanted)
    if lacking and len(lacking) < len(wanted):  # past the logits, where no model can choose them
        lacking = [end for end in lacking if not (end.isdecimal() and int(end) >= vocabulary.size)]
    if lacking:
        raise ArgumentError(
            f"end_tokens: {lacking[0]} does not end texts of {vocabulary.name or 'this vocabulary'}, whose end tokens "
            f"are {list(vocabulary.end_tokens)}; name it when the vocabulary is made"
        )
    return tuple(sorted({_known_ends(vocabulary)[end] for end in wanted if end in _known_ends(vocabulary)})) or (
        vocabulary.end_tokens
    )


def _known_ends(vocabulary: Vocabulary) -> dict[str, int]:
    """The end tokens by id in decimal, and by name."""
    by_name = {vocabulary.special_tokens[token]: token for token in vocabulary.end_tokens}
    return by_name | {str(token): token for token in vocabulary.end_tokens}


def _lacking(vocabulary: Vocabulary, ends: Iterable[str]) -> list[str]:
    known = _known_ends(vocabulary)
    return [end for end in ends if end not in known]


def _token_of(vocabulary: Vocabulary, end: str) -> int:
    """The token that an id in decimal or a name means; ArgumentError."""
    named = {name: token for token, name in vocabulary.special_tokens.items()}
    token = named.get(end, int(end) if end.isdecimal() and len(end) < 12 else -1)
    if not 0 <= token < vocabulary.size:
        raise ArgumentError(f"end_tokens: {end!r} is no id and no name of a token of {vocabulary!r}")
    return token


def _end_names(end_tokens: Ends | Iterable[Ends]) -> tuple[str, ...]:
    """Ids and names as names."""
    ends = [end_tokens] if isinstance(end_tokens, Ends) else as_sequence(end_tokens, "end_tokens", "ids or names")
    return tuple(end if isinstance(end, str) else str(as_token(end, "end_tokens")) for end in ends)


def _options(end_tokens: Any, special_tokens: Any, pattern: Any) -> dict[str, Any]:
    """The arguments of `load_tokenizer` as options of a name."""
    options: dict[str, Any] = {}
    if ends := _end_names(end_tokens):
        options["end"] = ends
    if isinstance(special_tokens, Mapping):
        options["special"] = tuple(
            f"{name}={as_token(token, 'special_tokens')}" for name, token in special_tokens.items()
        )
    elif special_tokens is not None:
        given = [special_tokens] if isinstance(special_tokens, str) else special_tokens
        named = as_sequence(given, "special_tokens", "ids or names")
        options["special"] = tuple(one if isinstance(one, str) else str(as_token(one)) for one in named)
    if pattern is not None:
        options["pattern"] = as_text(pattern, "pattern")
    return options


def _of_network(network: Any, size: int | None, options: dict[str, Any]) -> tuple[str, int, dict[str, Any]]:
    """Where a model of transformers came from, its logit width and its end tokens."""
    name = getattr(network, "name_or_path", "")
    if not name:
        raise ModelError(
            f"this {type(network).__name__} does not say where its tokenizer is; pass the tokenizer, and the model "
            "beside it where both are taken"
        )
    ends = tuple(map(str, network_ends(network)))
    return name, logit_width(network) if size is None else size, ({"end": ends} if ends else {}) | options


def _changed(tokenizer: Tokenizer, size: int | None, options: dict[str, Any]) -> Tokenizer:
    """A tokenizer of ours as it is, or with another width or other end tokens."""
    others = sorted(set(options) - {"end"})
    if others:
        raise ArgumentError(f"{others[0]}: {tokenizer.name} is loaded already; give it when it is loaded")
    ends = options.get("end", ())
    size = tokenizer.vocabulary.size if size is None else size
    if size == tokenizer.vocabulary.size and not _lacking(tokenizer.vocabulary, ends):
        return tokenizer
    return tokenizer.source.load(size, ends if _lacking(tokenizer.vocabulary, ends) else ())


@dataclass(frozen=True)
class _Named:
    """A tokenizer's full name."""

    name: str

    def load(self, size: int | None, end: tuple[str, ...] = ()) -> Tokenizer:
        return _named(full_name(self.name, {"end": end} if end else {}), size)

    def pickled(self, tokenizer: Tokenizer) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        sent = self.name, tokenizer.size, tokenizer.fingerprint
        with _cache_lock:
            _sent.setdefault(sent, tokenizer)
        return _reload, sent

    def chat_template(self) -> ChatTemplate | None:
        source, path, _ = parse_name(self.name)
        if source.file is not None:
            path = package_file(*source.file, f"the tokenizer {self.name}")
        if path is None:
            return None
        if source.module.endswith("gguf_loader"):
            return importlib.import_module(source.module).chat_template(path)
        return template_beside(path) if source.file is None else None


@dataclass(frozen=True)
class _OfObject:
    """The content of an object."""

    content: Content

    def load(self, size: int | None, end: tuple[str, ...] = ()) -> Tokenizer:
        return tokenizer_from_content(self.content.with_options({"end": end} if end else {}), size)

    def pickled(self, tokenizer: Tokenizer) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        return tokenizer_from_content, (self.content, tokenizer.size)

    def chat_template(self) -> ChatTemplate | None:
        return self.content.chat


def tokenizer_from_content(content: Content, size: int | None = None) -> Tokenizer:
    """The tokenizer of an object's `content`; `size` as in `load_tokenizer`. The last CACHED_TOKENIZERS are kept."""
    with _cache_lock:
        return _from_content(content, size)


_cache_lock = new_lock()
#: (name, size, fingerprint) -> a tokenizer that was pickled or loaded from a pickle in this process.
_sent: WeakValueDictionary[tuple[str, int | None, str], Tokenizer] = WeakValueDictionary()


def _named(name: str, size: int | None) -> Tokenizer:
    _, path, _ = parse_name(name)
    with _cache_lock:
        return _load(name, size, _stamp(path) if path else None)


@lru_cache(maxsize=CACHED_TOKENIZERS)
def _load(name: str, size: int | None, _file_stamp: tuple[int, ...] | None) -> Tokenizer:
    source, path, options = parse_name(name)
    if source.file is not None:
        path = package_file(*source.file, f"the tokenizer {name}")

    def load() -> LoadedTokenizer:
        arguments = {**options, "size": size} | ({"path": path, "name": name} if path else {})
        return _call(source.module, source.function, path or name, arguments)

    if path is None or not source.installed:
        return Tokenizer(name, load(), size, _Named(name))
    return Tokenizer(name, load_kept(path, (name, size), load), size, _Named(name))


#: What reads the content of objects that are no file of a family.
_NUMBERED = TokenizerInfo("tokdfa.vocabulary.byte_loader", "load_numbered", "", (), options=("end",))


@lru_cache(maxsize=CACHED_TOKENIZERS)
def _from_content(content: Content, size: int | None) -> Tokenizer:
    source = SOURCES.get(content.family, _NUMBERED)
    lacking = next((option for option, _ in content.options if option not in source.options), None)
    if lacking is not None:
        raise ArgumentError(f"{lacking}: {content.name} does not take it: it says that itself")

    def load() -> LoadedTokenizer:
        arguments = {**dict(content.options), "size": size, "path": Path(content.name), "data": content.data}
        return _call(source.module, source.function, content.name, {**arguments, "name": content.name})

    made_of = content.data, (content.family, content.name, content.options, size)
    return Tokenizer(content.name, load_kept(*made_of, load), size, _OfObject(content))


def _call(module: str, function: str, place: object, arguments: dict[str, Any]) -> LoadedTokenizer:
    loader = getattr(importlib.import_module(module), function)
    try:
        loaded: LoadedTokenizer = loader(**arguments)
    except VocabularyError as error:
        raise VocabularyError(f"{place}: {error}") from None
    return loaded


def _reload(name: str, size: int | None, fingerprint: str) -> Tokenizer:
    """What a pickled tokenizer becomes in the receiving process."""
    with _cache_lock:
        tokenizer = _sent.get((name, size, fingerprint))
        if tokenizer is None:
            tokenizer = _named(name, size)
            if tokenizer.fingerprint != fingerprint:
                raise TokenizerError(f"the tokenizer {name} has changed since it was pickled")
            _sent[name, size, fingerprint] = tokenizer
        return tokenizer


def _stamp(path: Path) -> tuple[int, ...] | None:
    """Changes when the file at `path` does; None if there is none, which the loader reports."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
