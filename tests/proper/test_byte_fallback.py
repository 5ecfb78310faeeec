"""Byte fallback: the automaton against all characters, and sequences with byte tokens against the libraries."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.proper.judge import is_proper_piece, reference_says
from tests.proper.small_tokenizers import real, trained_metaspace
from tokdfa.proper.byte_fallback import ByteFallback, build_byte_fallback
from tokdfa.proper.rules_cache import HIDDEN_SPACE, build_canonicity
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path


def scalars() -> list[bytes]:
    return [chr(code).encode() for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def spelled_by(fallback: ByteFallback) -> set[bytes]:
    """Every character that the automaton spells, from between two characters to between two characters."""
    found = set()
    open_ends = [(b"", 0)]
    while open_ends:
        prefix, state = open_ends.pop()
        for byte in np.flatnonzero(fallback.table[state] >= 0).tolist():
            after = int(fallback.table[state, byte])
            if after == 0:
                found.add(prefix + bytes([byte]))
            else:
                open_ends.append((prefix + bytes([byte]), after))
    return found


def test_it_spells_exactly_the_characters_that_are_no_tokens() -> None:
    fallback = real("mistral-v1").fallback
    assert fallback is not None
    known = set(real("mistral-v1").letter_tokens) | {HIDDEN_SPACE}  # read as a space, so no encoding gives it back
    assert spelled_by(fallback) == set(scalars()) - known
    # No dead ends: each state can reach 0.
    assert (fallback.table[1:] >= 0).any(axis=1).all()
    used = {byte for character in set(scalars()) - known for byte in character}
    assert set(fallback.byte_of[fallback.used_tokens()].tolist()) == used


def test_a_prefix_with_all_characters_known_is_refused() -> None:
    """All 64 characters E4 B8 xx, and one of two in C2."""
    known = [bytes([0xE4, 0xB8, last]) for last in range(0x80, 0xC0)] + [b"\xc2\x80", b"a"]
    fallback = build_byte_fallback(np.arange(256, dtype=np.int32), known, 300)
    after = int(fallback.table[0, 0xE4])
    assert fallback.table[after, 0xB8] == -1
    assert fallback.table[after, 0xB9] > 0
    assert fallback.table[0, ord("a")] == -1
    assert fallback.table[0, ord("b")] == 0
    assert spelled_by(fallback) == set(scalars()) - set(known)


def test_characters_without_all_byte_tokens_are_not_spelled() -> None:
    tokens = np.arange(256, dtype=np.int32)
    tokens[0xA9] = -1
    fallback = build_byte_fallback(tokens, [], 256)
    assert spelled_by(fallback) == {character for character in scalars() if 0xA9 not in character}
    assert fallback.byte_of[0xA9] == -1


def test_short_sequences_of_byte_tokens() -> None:
    """All pairs of byte tokens of Mistral v1, and with a piece before and after."""
    canonicity = real("mistral-v1")
    assert canonicity.fallback is not None
    byte_tokens = canonicity.fallback.tokens.tolist()
    for pair in itertools.product(byte_tokens, byte_tokens[::7]):
        assert is_proper_piece(canonicity, pair) == reference_says(canonicity, list(pair)), pair
    piece = canonicity.source.encode_piece(b"a")
    for token in byte_tokens:
        for tokens in ([*piece, token], [token, *piece]):
            assert is_proper_piece(canonicity, tokens) == reference_says(canonicity, tokens), tokens


@given(text=st.text(max_size=6), data=st.data())
def test_texts_spelled_by_bytes_in_part(text: str, data: st.DataObject) -> None:
    """The reference's encoding is proper; with one character spelled by bytes, it is what the reference says."""
    canonicity = real("mistral-v1")
    assert canonicity.fallback is not None
    tokens = canonicity.source.encode_piece(text.encode())
    assert is_proper_piece(canonicity, tokens) or "\u2581" in text
    place = data.draw(st.integers(0, len(text)))
    mixed = [
        *canonicity.source.encode_piece(text[:place].encode()),
        *canonicity.fallback.tokens[list(text[place : place + 1].encode())].tolist(),
        *canonicity.source.encode_piece(text[place + 1 :].encode()),
    ]
    assert is_proper_piece(canonicity, mixed) == reference_says(canonicity, mixed)


def test_byte_tokens_of_the_package_tokenizers(tmp_path: Path) -> None:
    canonicity = build_canonicity(load_tokenizer(trained_metaspace(tmp_path / "t.json")))
    assert canonicity.fallback is not None
    known = canonicity.letter_tokens
    random = np.random.default_rng(0)
    mixed = [*[letter.decode() for letter in known], *map(chr, random.integers(0x80, 0x3000, 400))]
    for _ in range(1500):
        text = "".join(random.choice(mixed, 3))
        tokens = canonicity.source.encode_piece(text.encode())
        if canonicity.vocabulary.spell(tokens) == text.encode():
            assert is_proper_piece(canonicity, tokens)
        spelled = canonicity.fallback.tokens[list(text.encode())].tolist()
        assert is_proper_piece(canonicity, spelled) == reference_says(canonicity, spelled)
