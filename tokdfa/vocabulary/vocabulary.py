"""A vocabulary: what bytes each token id spells, which ids end a text, and which spell nothing.

Words. A *token* is an id below `size`, the model's logit width. Its *token bytes* are what it adds to the text.
*Special* tokens (control tokens, tool markers, ...) and *padding* ids (logits without a token) spell nothing: no text
reaches them and no mask over text contains them. *End* tokens are special tokens that say that the text is complete.
Several ids may have equal bytes; all of them are kept.

A vocabulary is flat: all token bytes in one uint8 array, token i at ``offsets[i]:offsets[i+1]``. It knows nothing of
merges or encoding; that is a tokenizer's business (`tokdfa.vocabulary.tokenizers`), to which `Vocabulary.tokenizer`
leads if there is one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from tokdfa.core.arguments import as_integer, as_sequence, as_text, as_token
from tokdfa.core.locks import cached_property, new_lock
from tokdfa.errors import ArgumentError, VocabularyError, a_type
from tokdfa.vocabulary.letters import letters_of
from tokdfa.vocabulary.trie import TokenBytes, build_trie

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tokdfa.vocabulary.letters import Letters
    from tokdfa.vocabulary.trie import TokenTrie

#: The packed trie keeps a token id in 21 bits (see `tokdfa.vocabulary.trie`).
MAX_SIZE = (1 << 21) - 2
#: ... and a depth in 12 bits.
MAX_TOKEN_BYTES = (1 << 12) - 1


class Vocabulary:
    """Immutable: id -> bytes, end tokens, special tokens.

    `tokens`: the bytes of each id, b"" for an id that spells nothing; `end_tokens`: ids that end the text (at least
    one, spelling nothing); `special_tokens`: id -> printed name, spelling nothing; `size`: the logit width if it is
    not the number of tokens: what is missing is padding, and ids past it are left out if they spell nothing (a model
    can never choose them). Raises VocabularyError for anything inconsistent.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        end_tokens: Iterable[int],
        special_tokens: Mapping[int, str] | None = None,
        size: int | None = None,
        name: str = "",
    ) -> None:
        given: Any = tokens
        if not isinstance(given, Sequence) or isinstance(given, str | bytes):
            raise ArgumentError(f"tokens is a list of bytes, one for each id, not {a_type(tokens)}")
        self.size = len(tokens) if size is None else as_integer(size, "size")
        self.name = as_text(name, "name")
        #: The `Tokenizer` that this vocabulary belongs to and that says so here; None if it was made by itself.
        self.tokenizer: Any = None
        ends = as_sequence(end_tokens, "end_tokens", "token ids, as in end_tokens=[2]")
        self.end_tokens = tuple(sorted({as_token(token, "end_tokens") for token in ends}))
        # Gemma 3 has a token for images and, as a model of text, no logit for it
        cut_off: Sequence[int] = range(self.size, len(tokens)) if self.size > 0 else ()
        if any(tokens[token] for token in cut_off) or set(cut_off).issuperset(self.end_tokens):
            cut_off = ()  # `_check` refuses it
        elif cut_off:
            tokens = tokens[: self.size]
            self.end_tokens = tuple(token for token in self.end_tokens if token not in cut_off)
        self.end_token_set = frozenset(self.end_tokens)
        if special_tokens is not None and not hasattr(special_tokens, "items"):
            raise ArgumentError(f"special_tokens is a dict of id and name, not {a_type(special_tokens)}")
        named = {as_token(token, "special_tokens"): name for token, name in (special_tokens or {}).items()}
        named = {token: name for token, name in named.items() if token not in cut_off}
        self.special_tokens = {**dict.fromkeys(self.end_tokens, "<end>"), **named}
        self._check(tokens)
        lengths = np.zeros(self.size + 1, dtype=np.int64)
        lengths[1 : len(tokens) + 1] = list(map(len, tokens))
        self._set_bytes(b"".join(tokens), np.cumsum(lengths))

    @classmethod
    def from_flat(
        cls,
        joined: bytes,
        offsets: npt.NDArray[np.int64],
        end_tokens: Iterable[int],
        special_tokens: dict[int, str],
        name: str,
    ) -> Vocabulary:
        """From what a vocabulary is made of, as it was read from one before; nothing is checked."""
        made = cls.__new__(cls)
        made.size, made.name, made.tokenizer = len(offsets) - 1, name, None
        made.end_tokens = tuple(end_tokens)
        made.end_token_set = frozenset(made.end_tokens)
        made.special_tokens = special_tokens
        made._set_bytes(joined, offsets)
        return made

    def _set_bytes(self, joined: bytes, offsets: npt.NDArray[np.int64]) -> None:
        self._bytes = joined
        #: int64, shape (size + 1,): token i is ``byte_data[offsets[i]:offsets[i + 1]]``.
        self.offsets = offsets
        #: uint8, all token bytes in id order.
        self.byte_data: npt.NDArray[np.uint8] = np.frombuffer(joined, dtype=np.uint8)
        self.offsets.flags.writeable = False
        #: Called with the trie when that has been built.
        self.when_built: Callable[[TokenTrie], None] | None = None

    def _check(self, tokens: Sequence[bytes]) -> None:
        if not 0 < self.size <= MAX_SIZE:
            raise VocabularyError(f"a vocabulary has 1 to {MAX_SIZE} tokens, not {self.size}")
        if len(tokens) > self.size:
            first = next((token for token in range(self.size, len(tokens)) if tokens[token]), None)
            why = "no end token is left" if first is None else f"token {first} spells {tokens[first]!r}"
            raise VocabularyError(f"{len(tokens)} tokens do not fit a logit width of {self.size}: {why}")
        if not self.end_tokens:
            raise VocabularyError("a vocabulary needs at least one end token; pass end_tokens=[id]")
        for token in self.special_tokens:
            if not 0 <= token < self.size:
                raise VocabularyError(f"special token {token} is outside 0..{self.size - 1}")
            if token < len(tokens) and tokens[token]:
                raise VocabularyError(
                    f"token {token} is special but spells {tokens[token]!r}; "
                    "give it empty bytes, so that no text reaches it"
                )
        for index, token_bytes in enumerate(tokens):
            if type(token_bytes) is not bytes:
                raise VocabularyError(f"token {index} is {a_type(token_bytes)}; tokens are bytes")
            if len(token_bytes) > MAX_TOKEN_BYTES:
                raise VocabularyError(f"token {index} has {len(token_bytes)} bytes; at most {MAX_TOKEN_BYTES} fit")

    @classmethod
    def from_dict(
        cls,
        tokens: Mapping[str | bytes, int | Sequence[int]] | Mapping[int, str | bytes],
        end_tokens: int | Iterable[int],
        special_tokens: Mapping[int, str] | None = None,
        size: int | None = None,
        name: str = "dict",
    ) -> Vocabulary:
        """From ``{text: id or [ids]}`` or ``{id: text}``, text being bytes or a str (UTF-8); other ids are padding.

        Texts are what tokens spell, so what ``get_vocab()`` of a byte-level or SentencePiece tokenizer returns is
        refused: there a space is written as another character.
        """
        if not hasattr(tokens, "items"):
            raise ArgumentError(f"tokens is a dict of texts and ids, not {a_type(tokens)}")
        ends = [end_tokens] if isinstance(end_tokens, int) else list(as_sequence(end_tokens, "end_tokens", "token ids"))
        ends = [as_token(token, "end_tokens") for token in ends]
        by_id: dict[int, bytes] = {}
        for key, value in tokens.items():
            text: Any
            ids: Any
            text, ids = (value, [key]) if isinstance(key, int) else (key, value)
            if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
                ids = [ids]
            if not isinstance(text, str | bytes):
                raise VocabularyError(f"token {text!r} is neither text nor bytes")
            for token in ids:
                if not isinstance(token, int) or token < 0:
                    raise VocabularyError(f"token id {token!r} of {text!r} is not a number from 0 up")
                spelled = _utf8(text)
                if by_id.setdefault(token, spelled) != spelled:
                    raise VocabularyError(f"id {token} has two texts: {by_id[token]!r} and {spelled!r}")
        _refuse_tokenizer_alphabet([text for text in (*tokens, *tokens.values()) if isinstance(text, str)])
        highest = max([*by_id, *ends, *(special_tokens or {})], default=-1)
        if highest >= MAX_SIZE:
            raise VocabularyError(f"token id {highest} is too large; at most {MAX_SIZE - 1}")
        return cls([by_id.get(token, b"") for token in range(highest + 1)], ends, special_tokens, size, name)

    def changed(self, end_tokens: Iterable[int] = (), size: int | None = None) -> Vocabulary:
        """This vocabulary with other end tokens or another logit width, without tokenizer.

        What ends a text spells nothing, whatever it spelled before; an end token of before stays special.
        """
        ends = {as_token(token, "end_tokens") for token in end_tokens} or set(self.end_tokens)
        tokens = [b"" if token in ends else self.token_bytes(token) for token in range(self.size)]
        names = {
            token: self.token_bytes(token).decode(errors="replace") or "<end>" for token in ends if token < self.size
        }
        return Vocabulary(tokens, sorted(ends), {**names, **self.special_tokens}, size, self.name)

    def difference(self, other: Vocabulary) -> str:
        """Why masks of one vocabulary do not fit logits of the other, which may be the same in another form; or "".

        They fit if each id spells the same in both, or spells text in one and ends texts in the other, if both have as
        many, and if some end token is the same. Names do not count. O(bytes), nothing for one object.
        """
        if self is other:
            return ""
        if self.size != other.size:
            return f"{self.size} against {other.size} tokens"
        if self._bytes != other._bytes or not np.array_equal(self.offsets, other.offsets):
            ends, other_special = (
                self.end_token_set | other.end_token_set,
                {*self.special_tokens, *other.special_tokens},
            )
            for token in range(self.size):
                if self.token_bytes(token) != other.token_bytes(token) and token not in ends | other_special:
                    return f"token {token} spells {self.token_bytes(token)!r} against {other.token_bytes(token)!r}"
        if self.end_token_set.isdisjoint(other.end_token_set):
            return f"texts end with {list(self.end_tokens)} against {list(other.end_tokens)}"
        return ""

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Vocabulary({self.name or 'unnamed'}, size={self.size}, end_tokens={list(self.end_tokens)})"

    def token_bytes(self, token: int) -> bytes:
        """What `token` spells; b"" for special tokens and padding."""
        if type(token) is not int:
            token = as_token(token)
        if not 0 <= token < self.size:
            raise VocabularyError(f"token {token} is outside 0..{self.size - 1}")
        return self._bytes[self.offsets[token] : self.offsets[token + 1]]

    def spell(self, tokens: Iterable[int]) -> bytes:
        """The concatenated bytes of a token sequence."""
        return b"".join(map(self.token_bytes, as_sequence(tokens, "tokens", "token ids")))

    @cached_property
    def lengths(self) -> npt.NDArray[np.int32]:
        """int32, shape (size,): the number of bytes of each token."""
        return np.diff(self.offsets).astype(np.int32)

    @cached_property
    def single_byte_tokens(self) -> npt.NDArray[np.bool_]:
        """bool, shape (256,): the bytes that are a token by themselves."""
        present = np.zeros(256, dtype=np.bool_)
        present[self.byte_data[self.offsets[:-1][self.lengths == 1]]] = True
        return present

    @cached_property
    def used_bytes(self) -> npt.NDArray[np.bool_]:
        """bool, shape (256,): the bytes that occur in at least one token."""
        present = np.zeros(256, dtype=np.bool_)
        present[self.byte_data] = True
        return present

    @property
    def joined_bytes(self) -> TokenBytes:
        """All token bytes, one after another."""
        return TokenBytes(self._bytes, self.offsets)

    @cached_property
    def trie(self) -> TokenTrie:
        """The flat token trie over all tokens that spell something; built at first use, in milliseconds."""
        trie = build_trie(self.joined_bytes)
        if self.when_built is not None:
            self.when_built(trie)
            self.when_built = None
        return trie

    @cached_property
    def letters(self) -> Letters:
        """The texts by which it is asked whether tokens can end a text; made at first use."""
        return letters_of(self.joined_bytes)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything a mask depends on: bytes, end tokens, special tokens, size. 32 hex digits."""
        digest = hashlib.sha256()
        for part in (self.offsets.tobytes(), self._bytes, repr((self.size, self.end_tokens)).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(repr(sorted(self.special_tokens.items())).encode())
        return digest.hexdigest()[:32]

    def __copy__(self) -> Vocabulary:
        return self

    def __deepcopy__(self, memo: object) -> Vocabulary:
        return self

    def __reduce__(self) -> tuple[Callable[..., Vocabulary], tuple[Any, ...]]:
        """Of a tokenizer's vocabulary a pickle holds the tokenizer's name, of any other the token bytes.

        What is loaded where an equal vocabulary lives is that one: what is kept for a vocabulary is then shared.
        """
        if self.tokenizer is not None and self.tokenizer.vocabulary is self:
            return _vocabulary_of, (self.tokenizer,)
        with _living_lock:
            _living.setdefault((self.fingerprint, self.name), self)
        parts = self._bytes, self.offsets.tobytes(), self.end_tokens, self.special_tokens, self.name
        return _restore, (self.fingerprint, *parts)


#: Character that tokenizers write for a space -> how such vocabularies are called.
_SPACES = {"\u0120": "byte-level", "\u2581": "SentencePiece"}


def _utf8(text: str | bytes) -> bytes:
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise VocabularyError(f"token {text!r} has no UTF-8 form; give its bytes") from None


def _refuse_tokenizer_alphabet(texts: Iterable[str]) -> None:
    """Raise VocabularyError if `texts` have one of `_SPACES` in front of tokens, and a space in none."""
    first = {text[0]: text for text in texts if text}
    if any(" " in text for text in texts):
        return
    for character, kind in _SPACES.items():
        if character in first:
            raise VocabularyError(
                f"tokens: {first[character]!r} looks like a token of a {kind} tokenizer, where {character!r} stands "
                f"for a space, and would spell {first[character].encode()!r} here. Pass the tokenizer itself to "
                "tokdfa.constrain, or load it by name (tokdfa.load_tokenizer); if the character is meant, give texts "
                "as bytes"
            )


#: (fingerprint, name) -> a vocabulary without tokenizer that was pickled or loaded in this process.
_living: WeakValueDictionary[tuple[str, str], Vocabulary] = WeakValueDictionary()
_living_lock = new_lock()


def _vocabulary_of(tokenizer: Any) -> Any:
    return tokenizer.vocabulary


def _restore(
    fingerprint: str,
    data: bytes,
    offsets: bytes,
    end_tokens: tuple[int, ...],
    special_tokens: dict[int, str],
    name: str,
) -> Vocabulary:
    with _living_lock:
        found = _living.get((fingerprint, name))
        if found is None:
            places = np.frombuffer(offsets, dtype=np.int64)
            found = _living[fingerprint, name] = Vocabulary.from_flat(data, places, end_tokens, special_tokens, name)
        return found
