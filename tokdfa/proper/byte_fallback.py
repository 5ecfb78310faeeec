"""Byte fallback: which byte tokens may stand side by side.

Where a vocabulary of characters lacks one, the text's character becomes the tokens of its UTF-8 bytes. These never
merge. So between two characters any token may follow (pairs decide), but once a byte token has begun a character, only
byte tokens may follow until it is complete, and it must not be a character that the vocabulary has: ``é`` is a token of
Mistral v1, so the bytes C3 A9 are improper, though C3 may be followed by other bytes. That is a condition on up to four
tokens. It is a small automaton over bytes that runs beside the pairs; it has no dead ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tokdfa.core.locks import cached_property

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tokdfa.proper.merge_rules import Int32


@dataclass(frozen=True, eq=False)
class ByteFallback:
    """`tokens`: int32, shape (256,), the token of each byte, -1 if there is none. `byte_of`: int16, shape (V,), the
    byte of each byte token, -1 for all other tokens. `table`: int32, shape (states, 256): the state after a byte token,
    -1 where it is refused. State 0 is between two characters, where other tokens may stand and a text may end; in any
    other state only byte tokens may follow.
    """

    tokens: Int32
    byte_of: npt.NDArray[np.int16]
    table: Int32

    @cached_property
    def byte_kinds(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """(the bytes that some state reads, ascending; the kind of each: equal columns of `table`, equal kinds)."""
        spoken = np.flatnonzero((self.table >= 0).any(axis=0))
        return spoken, np.unique(self.table[:, spoken], axis=1, return_inverse=True)[1].ravel()

    def used_tokens(self) -> Int32:
        """The byte tokens that occur in some proper sequence, int32, ascending."""
        used = self.tokens[(self.table >= 0).any(axis=0)]
        return np.sort(used)


def build_byte_fallback(byte_tokens: Int32, known: Iterable[bytes], size: int) -> ByteFallback:
    """The automaton for a vocabulary of `size` ids whose characters are `known`, each as UTF-8. O(known x 256)."""
    characters = set(known)
    prefixes = {character[:length] for character in characters for length in range(1, len(character))}
    present = {byte for byte in range(256) if byte_tokens[byte] >= 0}
    rows: list[Int32] = [np.full(256, -1, dtype=np.int32)]
    states: dict[object, int] = {}

    def state_after(prefix: bytes) -> int:
        """The state inside a character after `prefix`, or -1 if every way to go on is a known character."""
        # Prefixes of no known character differ only in the bytes that UTF-8 allows next.
        key: object = prefix if prefix in prefixes else (tuple(_next_bytes(prefix)), _length(prefix) - len(prefix))
        if key not in states:
            row = np.full(256, -1, dtype=np.int32)
            fill(prefix, row)
            states[key] = len(rows) if row.max() >= 0 else -1
            if row.max() >= 0:
                rows.append(row)
        return states[key]

    def fill(prefix: bytes, row: Int32) -> None:
        for byte in _next_bytes(prefix):
            longer = prefix + bytes([byte])
            if byte not in present or longer in characters:
                continue
            row[byte] = 0 if _length(longer) == len(longer) else state_after(longer)

    fill(b"", rows[0])
    byte_of = np.full(size, -1, dtype=np.int16)
    byte_of[byte_tokens[sorted(present)]] = sorted(present)
    return ByteFallback(byte_tokens, byte_of, np.array(rows))


def _length(prefix: bytes) -> int:
    """The number of bytes of the UTF-8 character that begins with `prefix`."""
    first = prefix[0]
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _next_bytes(prefix: bytes) -> range | list[int]:
    """The bytes that may follow `prefix` inside a UTF-8 character (The Unicode Standard, table 3-7)."""
    if not prefix:
        return [*range(0x80), *range(0xC2, 0xF5)]
    if len(prefix) == 1:
        low = {0xE0: 0xA0, 0xF0: 0x90}.get(prefix[0], 0x80)
        high = {0xED: 0x9F, 0xF4: 0x8F}.get(prefix[0], 0xBF)
        return range(low, high + 1)
    return range(0x80, 0xC0)
