"""A token mask as a table: the allowed tokens by the byte that they begin with.

A mask is an array of bits (`tokdfa.mask`), so it cannot say what it allows; with its vocabulary it can. A row of the
table is a first byte: how many tokens that begin with it are allowed, of how many, and some of them, the shortest.
Where all allowed tokens begin with the same bytes, the byte after those tells the rows apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokdfa import mask as masks
from tokdfa.core.arguments import as_integer
from tokdfa.display.view import View, bar, chip, escape, label_of, table
from tokdfa.errors import TokdfaError

if TYPE_CHECKING:
    from tokdfa.vocabulary.vocabulary import Vocabulary

#: Tokens that a row gives as examples.
EXAMPLES = 8


class MaskGroup(NamedTuple):
    """The allowed tokens that begin with `prefix`: ids by length and number; `of`: tokens that begin with it at all."""

    prefix: bytes
    tokens: npt.NDArray[np.int64]
    of: int


class MaskView(View):
    """A mask over `vocab`, or booleans of shape (V,). `limit`: rows of the table, those with the most tokens.

    It is a copy: a buffer that is filled again later does not change it. Raises TokdfaError for an array that is no
    mask over the vocabulary. O(V).
    """

    def __init__(self, mask: npt.NDArray[Any], vocab: Vocabulary, limit: int = 16) -> None:
        if mask.dtype == np.bool_ and mask.shape == (vocab.size,):
            bits = mask.copy()
        elif mask.dtype == np.int32 and mask.shape == (masks.mask_words(vocab.size),):
            bits = masks.mask_to_bool(mask)
        else:
            words = masks.mask_words(vocab.size)
            raise TokdfaError(
                f"a mask over {vocab.size} tokens is int32 of shape ({words},), or bool of shape ({vocab.size},), not "
                f"{mask.dtype} {mask.shape}; was it made for another vocabulary?"
            )
        self.vocab, self.limit = vocab, as_integer(limit, "limit", 0)
        self._past = int(bits[vocab.size :].sum())
        self.allowed: npt.NDArray[np.int64] = np.flatnonzero(bits[: vocab.size])
        is_end = np.isin(self.allowed, vocab.end_tokens)
        self.ends: list[int] = self.allowed[is_end].tolist()
        spells = vocab.lengths[self.allowed] > 0
        self._texts = self.allowed[spells]
        self._mute = self.allowed[~spells & ~is_end]

    @property
    def may_end(self) -> bool:
        """Whether an end token is allowed."""
        return bool(self.ends)

    def groups(self) -> list[MaskGroup]:
        """The rows of the whole table, those with the most tokens first, then in the order of their bytes."""
        vocab = self.vocab
        if not len(self._texts):
            return []
        shared = self._shared_prefix()
        place = len(shared)
        whole = self._texts[vocab.lengths[self._texts] == place]  # the shared bytes themselves are a token
        longer = self._texts[vocab.lengths[self._texts] > place]
        allowed_bytes = vocab.byte_data[vocab.offsets[longer] + place]
        alike = self._beginning_with(shared)
        all_bytes = np.bincount(
            vocab.byte_data[vocab.offsets[alike[vocab.lengths[alike] > place]] + place], minlength=256
        )
        found = [MaskGroup(shared, whole, int((vocab.lengths[alike] == place).sum()))] if len(whole) else []
        for byte in np.unique(allowed_bytes).tolist():
            tokens = longer[allowed_bytes == byte]
            ranked = tokens[np.lexsort((tokens, vocab.lengths[tokens]))]
            found.append(MaskGroup(shared + bytes([byte]), ranked, int(all_bytes[byte])))
        return sorted(found, key=lambda group: (-len(group.tokens), group.prefix))

    def _shared_prefix(self) -> bytes:
        """What all allowed tokens begin with; of a single one all but its last byte."""
        vocab, prefix = self.vocab, b""
        longest = int(vocab.lengths[self._texts].min()) - (len(self._texts) == 1)
        while len(prefix) < longest:
            column = vocab.byte_data[vocab.offsets[self._texts] + len(prefix)]
            if (column != column[0]).any():
                break
            prefix += bytes([int(column[0])])
        return prefix

    def _beginning_with(self, prefix: bytes) -> npt.NDArray[np.int64]:
        """All tokens of the vocabulary with text that begin with `prefix`."""
        vocab = self.vocab
        found = np.flatnonzero(vocab.lengths >= max(len(prefix), 1))
        for place, byte in enumerate(prefix):
            found = found[vocab.byte_data[vocab.offsets[found] + place] == byte]
        return found

    def __repr__(self) -> str:
        some = [
            label_of(self.vocab.token_bytes(token)) for group in self.groups() for token in group.tokens.tolist()[:1]
        ]
        listed = "  ".join(some[:EXAMPLES]) + (" …" if len(some) > EXAMPLES else "")
        return f"MaskView({self._headline()}{': ' + listed if listed else ''})"

    def _headline(self) -> str:
        count, size = len(self.allowed), self.vocab.size
        said = f"{count:,} of {size:,} tokens"
        return f"{said}, the text may end" if self.may_end else said

    def _body(self) -> str:
        parts = [f"<b>{escape(self._headline())}</b> {bar(len(self.allowed) / self.vocab.size)}"]
        groups = self.groups()
        if groups:
            rows = [self._row(group) for group in groups[: self.limit]]
            rest = groups[self.limit :]
            if rest:
                tokens, of = sum(len(group.tokens) for group in rest), sum(group.of for group in rest)
                rows.append((f"{len(rest):,} more", f"{tokens:,}", f"{of:,}", ""))
            parts.append(table(("begins with", "allowed", "of", "such as"), rows, numbers=(1, 2)))
        if self.ends:
            names = ", ".join(f"{token} {self.vocab.special_tokens[token]}" for token in self.ends)
            parts.append(f"<div>end tokens: {escape(names)}</div>")
        if len(self._mute) or self._past:
            parts.append(
                f"<div><b>wrong:</b> {len(self._mute):,} tokens that spell nothing, and {self._past:,} bits past the "
                "vocabulary</div>"
            )
        return "".join(parts)

    def _row(self, group: MaskGroup) -> tuple[str, str, str, str]:
        examples: dict[bytes, str] = {}  # several tokens may spell the same
        for token in group.tokens.tolist():
            spelled = self.vocab.token_bytes(token)
            examples.setdefault(spelled, chip(spelled, f"token {token}"))
            if len(examples) > EXAMPLES:
                break
        listed = " ".join([*examples.values()][:EXAMPLES]) + (" …" if len(examples) > EXAMPLES else "")
        return chip(group.prefix), f"{len(group.tokens):,}", f"{group.of:,}", listed
