"""Which texts the letters of a tokenizer can spell at all.

Byte-pair encoding begins with letters, so a text with a letter that is no token has no proper sequence: SmolLM2 lacks
eight of the 256 bytes (its encoder drops them), SentencePiece models without byte fallback have no other characters
than those they were made with, and no encoding gives U+2581 back, which SentencePiece writes for a space. Taking such
texts out of a constraint first keeps a promise that liveness relies on (`tokdfa.backends.proper_merge.proper_table`):
every text that is left has an encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tokdfa.automata.algebra import intersection, minimize
from tokdfa.automata.dfa import Dfa
from tokdfa.automata.explore import explore
from tokdfa.constraint import Regex
from tokdfa.proper.rules_cache import HIDDEN_SPACE
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from tokdfa.proper.canonical import Canonicity
    from tokdfa.vocabulary.tokenizers import Tokenizer

#: All bytes that occur in UTF-8.
_TEXT_BYTES = [*range(0x80), *range(0x80, 0xC0), *range(0xC2, 0xF5)]


def spellable_part(dfa: Dfa, tokenizer: Tokenizer, canonicity: Canonicity, limit: int) -> Dfa:
    """The texts of `dfa` whose letters are all tokens; the empty automaton if there are none.

    `dfa` itself where the tokenizer spells every text. LimitExceeded past `limit` states.
    """
    texts = tokenizer.keep("spellable_texts", lambda: spellable_texts(canonicity))
    return dfa if texts is None else intersection(dfa, texts, limit)


def spells_all_characters(canonicity: Canonicity) -> bool:
    """Whether the letters spell every text, but for U+2581 where it stands for a space."""
    if canonicity.source.unit == "byte":
        return all(bytes([byte]) in canonicity.letter_tokens for byte in _TEXT_BYTES)
    return canonicity.fallback is not None and bool((canonicity.fallback.tokens[_TEXT_BYTES] >= 0).all())


def spellable_texts(canonicity: Canonicity) -> Dfa | None:
    """The texts whose letters are all tokens, None if all are. Up to 0.2 s for thousands of characters."""
    letters, source, fallback = canonicity.letter_tokens, canonicity.source, canonicity.fallback
    hidden = source.unit == "character" and source.rule == "pieces"
    if spells_all_characters(canonicity):
        return compile_dfa(Regex("[^\u2581]*")) if hidden else None
    if source.unit == "byte":
        table = np.full((1, 256), -1, dtype=np.int32)
        table[0, [letter[0] for letter in letters if len(letter) == 1]] = 0
        return Dfa.from_table(table, np.ones(1, dtype=np.bool_), 0)
    known = frozenset(letters) - ({HIDDEN_SPACE} if hidden else set())
    return _character_texts(known, [[-1] * 256] if fallback is None else fallback.table.tolist())


def _character_texts(known: frozenset[bytes], fallback: list[list[int]]) -> Dfa:
    """The texts of known characters and of those that byte tokens spell, `fallback` being the table of these.

    A state is what has been read of a character: its bytes, as long as they begin a known one (else None), and the
    state of the fallback (-1: it cannot spell the character).
    """
    beginnings = {character[:size] for character in known for size in range(1, len(character))}
    between: tuple[bytes | None, int] = (b"", 0)

    def after(state: tuple[bytes | None, int], byte: int) -> tuple[bytes | None, int] | None:
        read, inside = state
        following = fallback[inside][byte] if inside >= 0 else -1
        longer = None if read is None else read + bytes([byte])
        if longer in known or following == 0:
            return between
        if longer not in beginnings:
            longer = None
        return None if longer is None and following < 0 else (longer, following)

    return minimize(
        explore(
            between,
            lambda state: [after(state, byte) for byte in range(256)],
            lambda state: state == between,
            np.arange(256, dtype=np.uint8),
        )
    )
