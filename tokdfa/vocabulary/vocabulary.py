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
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokdfa.errors import VocabularyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tokdfa.vocabulary.tokenizers import Tokenizer
    from tokdfa.vocabulary.trie import TokenTrie

#: The packed trie keeps a token id in 21 bits (see `tokdfa.vocabulary.trie`).
MAX_SIZE = (1 << 21) - 2
#: ... and a depth in 12 bits.
MAX_TOKEN_BYTES = (1 << 12) - 1


class Vocabulary:
    """Immutable: id -> bytes, end tokens, special tokens.

    `tokens`: the bytes of each id, b"" for an id that spells nothing; `end_tokens`: ids that end the text (at least
    one, spelling nothing); `special_tokens`: id -> printed name, spelling nothing; `size`: the logit width if it is
    larger than the number of tokens (the rest is padding). Raises VocabularyError for anything inconsistent.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        end_tokens: Iterable[int],
        special_tokens: Mapping[int, str] | None = None,
        size: int | None = None,
        name: str = "",
    ) -> None:
        self.size = len(tokens) if size is None else size
        self.name = name
        #: The tokenizer that this vocabulary belongs to, None if it was made by itself.
        self.tokenizer: Tokenizer | None = None
        self.end_tokens = tuple(sorted(set(end_tokens)))
        self.end_token_set = frozenset(self.end_tokens)
        self.special_tokens = {**dict.fromkeys(self.end_tokens, "<end>"), **(special_tokens or {})}
        self._check(tokens)
        lengths = np.zeros(self.size + 1, dtype=np.int64)
        lengths[1 : len(tokens) + 1] = [len(token) for token in tokens]
        #: int64, shape (size + 1,): token i is ``byte_data[offsets[i]:offsets[i + 1]]``.
        self.offsets: npt.NDArray[np.int64] = np.cumsum(lengths)
        #: uint8, all token bytes in id order.
        self.byte_data: npt.NDArray[np.uint8] = np.frombuffer(b"".join(tokens), dtype=np.uint8)
        self._bytes = b"".join(tokens)
        self.offsets.flags.writeable = False

    def _check(self, tokens: Sequence[bytes]) -> None:
        if not 0 < self.size <= MAX_SIZE:
            raise VocabularyError(f"a vocabulary has 1 to {MAX_SIZE} tokens, not {self.size}")
        if len(tokens) > self.size:
            raise VocabularyError(f"{len(tokens)} tokens do not fit a logit width of {self.size}")
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
                raise VocabularyError(f"token {index} is a {type(token_bytes).__name__}; tokens are bytes")
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
        """From ``{text: id or [ids]}`` or ``{id: text}``, text being bytes or a str (UTF-8); other ids are padding."""
        ends = [end_tokens] if isinstance(end_tokens, int) else list(end_tokens)
        by_id: dict[int, bytes] = {}
        for key, value in tokens.items():
            text, ids = (value, [key]) if isinstance(key, int) else (key, [value] if isinstance(value, int) else value)
            if not isinstance(text, str | bytes):
                raise VocabularyError(f"token {text!r} is neither text nor bytes")
            for token in ids:
                if not isinstance(token, int) or token < 0:
                    raise VocabularyError(f"token id {token!r} of {text!r} is not a number from 0 up")
                spelled = text.encode() if isinstance(text, str) else text
                if by_id.setdefault(token, spelled) != spelled:
                    raise VocabularyError(f"id {token} has two texts: {by_id[token]!r} and {spelled!r}")
        highest = max([*by_id, *ends, *(special_tokens or {})], default=-1)
        if highest >= MAX_SIZE:
            raise VocabularyError(f"token id {highest} is too large; at most {MAX_SIZE - 1}")
        return cls([by_id.get(token, b"") for token in range(highest + 1)], ends, special_tokens, size, name)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"Vocabulary({self.name or 'unnamed'}, size={self.size}, end_tokens={list(self.end_tokens)})"

    def token_bytes(self, token: int) -> bytes:
        """What `token` spells; b"" for special tokens and padding."""
        if not 0 <= token < self.size:
            raise VocabularyError(f"token {token} is outside 0..{self.size - 1}")
        return self._bytes[self.offsets[token] : self.offsets[token + 1]]

    def spell(self, tokens: Iterable[int]) -> bytes:
        """The concatenated bytes of a token sequence."""
        return b"".join(map(self.token_bytes, tokens))

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

    @cached_property
    def trie(self) -> TokenTrie:
        """The flat token trie over all tokens that spell something; built at first use, in milliseconds."""
        from tokdfa.vocabulary.trie import build_trie

        return build_trie(self)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything a mask depends on: bytes, end tokens, special tokens, size. 32 hex digits."""
        digest = hashlib.sha256()
        for part in (self.offsets.tobytes(), self._bytes, repr((self.size, self.end_tokens)).encode()):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(repr(sorted(self.special_tokens.items())).encode())
        return digest.hexdigest()[:32]
