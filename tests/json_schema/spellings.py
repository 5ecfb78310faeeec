"""Spellings of JSON strings and what is one, made without the package; random texts of the package's automata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import strategies as st

if TYPE_CHECKING:
    import random

    from tokdfa.automata.dfa import Dfa
    from tokdfa.regex.lazy_dfa import LazyDfa

_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
#: Letters that have spellings of every kind: one to four bytes, shared first bytes, must be escaped, may be.
LETTERS = 'ab"\\/\n\x00\x1f\x7féêߘ߿ࠀ퟿\ue000�𐀀😀😁\U0010ffff'


def spellings(character: str, needed: bool = False) -> list[str]:
    """Every kind of spelling of one character inside a JSON string, hexadecimal digits in lower and in upper case;
    if `needed`, escapes only of what must be escaped.
    """
    units = character.encode("utf-16-be").hex()
    escape = "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))
    escapes = [
        escape,
        escape.upper().replace("\\U", "\\u"),
        *(["\\" + _SHORT[character]] if character in _SHORT else []),
    ]
    if character < " " or character in '"\\':
        return escapes
    return [character] if needed else [character, *escapes]


def spelled(text: str, choose, needed: bool = False) -> bytes:
    """A JSON string that means `text`; `choose` takes one of the spellings of each character."""
    return ('"' + "".join(choose(spellings(character, needed)) for character in text) + '"').encode()


def respell(text: str, rng: random.Random) -> bytes:
    """A JSON text of `text`, each character in a spelling drawn at random, checked by `json`."""
    found = spelled(text, rng.choice)
    assert json.loads(found) == text
    return found


def meaning(data: bytes) -> str | None:
    """What a JSON string means, None if it is none: by Python's json, and without a surrogate alone."""
    try:
        value = json.loads(data.decode())
        value.encode()
    except (ValueError, AttributeError):
        return None
    return value if data.startswith(b'"') and data.endswith(b'"') else None


def words(most: int = 4, letters: str = LETTERS) -> st.SearchStrategy[str]:
    """Short texts of the letters."""
    return st.text(letters, max_size=most)


def plain(text: str) -> bytes:
    """The JSON text of `text` with only the escapes that must be, in short form where there is one."""
    return json.dumps(text, ensure_ascii=False).encode()


def random_text(automaton: Dfa | LazyDfa, rng: random.Random, longest: int = 400) -> bytes | None:
    """A random accepted text; None if it grew past `longest` bytes. Every transition taken must be live."""
    state, text = 0, bytearray()
    while len(text) <= longest:
        targets = [(byte, automaton.step(state, byte)) for byte in range(256)]
        moves = [(byte, target) for byte, target in targets if target >= 0]
        if automaton.accepting[state] and (not moves or rng.random() < 0.15):
            return bytes(text)
        assert moves, f"a dead end after {bytes(text)!r}"
        # few bytes lead to most places, so a place is drawn first
        target = rng.choice(sorted({target for _, target in moves}))
        text.append(rng.choice([byte for byte, reached in moves if reached == target]))
        state = target
    return None
