"""A tokenizer: a vocabulary together with the reference library's own encoder and decoder.

`tokdfa.vocabulary.tokenizers` says what becomes one, and which laws it keeps.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakValueDictionary

import numpy as np

from tokdfa.core.arguments import as_bool, as_text, as_tokens
from tokdfa.core.locks import cached_property, new_lock
from tokdfa.errors import OptionError, TokenizerError, VocabularyCannotSpell
from tokdfa.vocabulary.loading import cut_at_names
from tokdfa.vocabulary.markers import is_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tokdfa.vocabulary.chat_template import ChatTemplate
    from tokdfa.vocabulary.loading import LoadedTokenizer
    from tokdfa.vocabulary.merge_source import MergeSource
    from tokdfa.vocabulary.vocabulary import Vocabulary
    from tokdfa.vocabulary.vocabulary_file import KeptTokenizer

T = TypeVar("T")


class Source(Protocol):
    """Where a tokenizer comes from, as data."""

    def load(self, size: int | None, end: tuple[str, ...] = ()) -> Tokenizer:
        """The tokenizer with another logit width, and with other end tokens if `end` names some."""

    def pickled(self, tokenizer: Tokenizer) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        """What a pickle of a tokenizer of this source holds: a function, and its arguments."""

    def chat_template(self) -> ChatTemplate | None:
        """The template of conversations, if the source has one."""


#: (name, fingerprint) -> a tokenizer without source that was pickled in this process.
_living: WeakValueDictionary[tuple[str, str], Tokenizer] = WeakValueDictionary()


class _MadeHere:
    """Of a tokenizer that was made of its parts: pickles are for this process."""

    def load(self, size: int | None, end: tuple[str, ...] = ()) -> Tokenizer:
        raise TokenizerError("this tokenizer was made of its parts; make another with other end tokens or another size")

    def pickled(self, tokenizer: Tokenizer) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        key = tokenizer.name, tokenizer.fingerprint
        _living[key] = tokenizer
        return _made_here, key

    def chat_template(self) -> ChatTemplate | None:
        return None


def _made_here(name: str, fingerprint: str) -> Tokenizer:
    found = _living.get((name, fingerprint))
    if found is None:
        raise TokenizerError(f"the tokenizer {name} was made of its parts in another process, and pickled there")
    return found


class Tokenizer:
    """A vocabulary with its encoder and decoder; made by `load_tokenizer`. Immutable to its users, shareable.

    Pickling sends the name only: a process that does not have the tokenizer loads it again and checks that it is the
    same. A relative path is then relative to the receiver's working folder. Of a tokenizer that was made of an object
    it sends the object's content.
    """

    def __init__(
        self,
        name: str,
        loaded: LoadedTokenizer | KeptTokenizer,
        size: int | None = None,
        source: Source | None = None,
    ) -> None:
        self.name = name
        #: What makes it again.
        self.source: Source = source or _MadeHere()
        #: The vocabulary: token bytes, special and end tokens, logit width.
        self.vocabulary = loaded.vocabulary
        self.vocabulary.tokenizer = self
        self._loaded = loaded
        self.size = size
        self._kept: dict[str, Any] = {}
        self._keeping = new_lock()

    @cached_property
    def markers(self) -> dict[int, str]:
        """id -> name of the special tokens that have the form of a marker (`tokdfa.vocabulary.markers`).

        None of them is part of a text, and a constraint allows them only where it names them.
        """
        return {token: name for token, name in sorted(self.vocabulary.special_tokens.items()) if is_marker(name)}

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of `text`: what the reference library makes of it as a continuation, all of it plain text.

        `special`: `text` is a prompt, read from its beginning: names of special tokens are these tokens, and a dummy
        prefix is there where the tokenizer has one. No begin token is added; a prompt that has one names it.

        Raises OptionError if `text` is not a str or has no UTF-8 form (lone surrogates), VocabularyCannotSpell if it
        has a byte that is in no token and the reference library would drop it in silence.
        """
        try:
            data = as_text(text, "text").encode()
        except UnicodeEncodeError as error:
            raise OptionError(f"the text is not valid Unicode: {error.reason} at position {error.start}") from None
        if as_bool(special, "special"):
            return self._encode_prompt(text)
        tokens = self._loaded.encode(text)
        lacking = data.translate(None, self._used_bytes)
        if lacking:
            self._refuse_dropped(data, lacking, tokens)
        return tokens

    def _encode_prompt(self, text: str) -> list[int]:
        if self._loaded.encode_prompt is not None:
            return self._loaded.encode_prompt(text)
        cut = cut_at_names(self.vocabulary.special_tokens)(text)
        return [token for part in cut for token in ([part] if isinstance(part, int) else self.encode(part))]

    @cached_property
    def chat_template(self) -> ChatTemplate | None:
        """The template of conversations that belongs to the tokenizer; None if there is none. Read at first use."""
        return self.source.chat_template()

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        **variables: Any,
    ) -> list[int]:
        """The tokens of a conversation, as the tokenizer's chat template writes it: a prompt for `generate`.

        `messages`: each ``{"role": "user", "content": "..."}``; `add_generation_prompt`: whether the beginning of the
        answer is written, too; `tools` and `variables` are the template's own (``enable_thinking=False``). Raises
        TokenizerError if there is no template or it refuses the messages, MissingDependency (jinja2).
        """
        template = self.chat_template
        if template is None:
            raise TokenizerError(
                f"{self.name} has no chat template; write the prompt yourself, and encode(prompt, special=True)"
            )
        return self.encode(
            template.render(messages, {"add_generation_prompt": add_generation_prompt, "tools": tools, **variables}),
            special=True,
        )

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
        """This tokenizer with the logit width `size`: its vocabulary padded, or special tokens past it left out."""
        return self if size == self.vocabulary.size else self.source.load(size)

    def __copy__(self) -> Tokenizer:
        return self

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self

    def __repr__(self) -> str:
        return f"Tokenizer({self.name!r}, size={self.vocabulary.size})"

    def __reduce__(self) -> tuple[Callable[..., Tokenizer], tuple[Any, ...]]:
        return self.source.pickled(self)


def encode_exactly(tokenizer: Tokenizer, vocabulary: Vocabulary, text: str) -> list[int] | None:
    """The tokens of `text` if they spell it, None if the tokenizer changes it or lacks a byte of it."""
    try:
        tokens = tokenizer.encode(text)
    except VocabularyCannotSpell:
        return None
    return tokens if vocabulary.spell(tokens) == text.encode() else None
