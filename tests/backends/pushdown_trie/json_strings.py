"""JSON strings for the tests of this package: spellings, and an oracle for what is one."""

from __future__ import annotations

import json

from hypothesis import strategies as st

SHORT = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
#: Letters that have spellings of every kind: one to four bytes, shared first bytes, must be escaped, may be.
LETTERS = 'ab"\\/\n\x00\x1f\x7féêߘ߿ࠀ퟿\ue000�𐀀😀😁\U0010ffff'


def spellings(character: str, needed: bool = False) -> list[str]:
    """All ways to write a character within a JSON string, with digits in lower case or upper case."""
    units = character.encode("utf-16-be")
    escape = "".join(f"\\u{units[k]:02x}{units[k + 1]:02x}" for k in range(0, len(units), 2))
    must = character in '"\\' or character < " "
    found = [] if must else [character]
    if must or not needed:
        found += [escape, "".join(c.upper() if c != "u" else c for c in escape)]
        if character in SHORT:
            found.append("\\" + SHORT[character])
    return list(dict.fromkeys(found))


def spelled(text: str, choose, needed: bool = False) -> bytes:
    """A JSON string that means `text`; `choose` takes one of the spellings of each character."""
    return ('"' + "".join(choose(spellings(character, needed)) for character in text) + '"').encode()


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
