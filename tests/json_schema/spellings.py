"""Spellings of JSON strings, made without the package, and random texts of its automata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from tokdfa.automata.dfa import Dfa
    from tokdfa.regex.lazy_dfa import LazyDfa

_SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def spellings(character: str) -> list[str]:
    """Every kind of spelling of one character inside a JSON string, hexadecimal digits in lower and in upper case."""
    units = character.encode("utf-16-be").hex()
    escaped = ["".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))]
    escaped.append(escaped[0].upper().replace("\\U", "\\u"))
    if character in _SHORT:
        escaped.append("\\" + _SHORT[character])
    return escaped if character < " " or character in '"\\' else [character, *escaped]


def respell(text: str, rng: random.Random) -> bytes:
    """A JSON text of `text`, each character in a spelling drawn at random, checked by `json`."""
    spelled = '"' + "".join(rng.choice(spellings(character)) for character in text) + '"'
    assert json.loads(spelled) == text
    return spelled.encode()


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
