r"""Tables of Unicode data, generated from the `regex` package and shipped, so that their first use costs nothing.

``unicode_tables.json`` holds the Unicode readings of ``\d``, ``\w`` and ``\s`` (see `tokdfa.regex.char_sets`), Python's
``\w``, the *settled* word characters, and the general categories, as ranges; and the *case orbits*: the sets of two or
more code points that simple case folding does not tell apart. Ranges are written ``first-last``, orbits
``member+member+...``, both in hexadecimal.

Regenerate with ``python -m tokdfa.regex.unicode_tables`` after an update of Unicode; a test compares the file with what
`generate` makes of the installed `regex` package.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

TABLES_FILE = Path(__file__).with_suffix(".json")

#: Name of a table -> the class that defines it, for the `regex` package.
DEFINITIONS = {
    "digit": r"\p{Nd}",
    "word": r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]",
    "space": r"\p{White_Space}",
    "python_word": r"[\p{L}\p{N}_]",
}
#: General categories with a table each: all but those of characters that are not assigned or have no meaning.
CATEGORIES = frozenset(
    initial + kind
    for initial, kinds in {"L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}.items()
    for kind in ("", *kinds)
)
DEFINITIONS |= {category: rf"\p{{{category}}}" for category in sorted(CATEGORIES)}
_CASED = r"[\p{Changes_When_Casefolded}\p{Changes_When_Casemapped}]"
#: Letters that fold by the Turkic rule (status T) only; the `regex` package pairs them with i and I.
_TURKIC = {0x130, 0x131}


def scan(character_class: str) -> tuple[tuple[int, int], ...]:
    """The code points that `character_class` matches, according to the `regex` package; one pass over all of them.

    Raises ValueError if that package refuses the class.
    """
    import regex

    try:
        return runs(regex.compile(character_class + "+"))
    except regex.error as error:
        raise ValueError(str(error)) from None


def runs(compiled: Any) -> tuple[tuple[int, int], ...]:
    """The runs of code points that a compiled pattern, one or more characters of a class, matches."""
    return tuple((match.start(), match.end() - 1) for match in compiled.finditer(every_character()))


def every_character() -> str:
    """All code points in their order, surrogates included."""
    import numpy as np

    return np.arange(0x110000, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")


def generate() -> dict[str, str]:
    """All tables as they stand in the file, made from the installed `regex` package in about 1 s.

    Settled are the characters beyond ASCII that have been letters or numbers since Unicode 3.2, which every Python has
    beside its own version, and are word characters to Python and to Rust. To libraries with an older Unicode, later
    letters are none. U+017F and U+212A are left out: ECMA-262 counts them with the flags i and u.
    """
    from unicodedata import ucd_3_2_0

    import regex

    tables = {"made_with": f"regex {regex.__version__}"}
    for name, character_class in DEFINITIONS.items():
        tables[name] = " ".join(f"{first:x}-{last:x}" for first, last in scan(character_class))
    to_both = regex.findall(rf"(?V1)[{DEFINITIONS['word']}&&{DEFINITIONS['python_word']}]", every_character())
    settled = {ord(one) for one in to_both if one > "\x7f" and ucd_3_2_0.category(one)[0] in "LN"} - {0x17F, 0x212A}
    firsts = [point for point in sorted(settled) if point - 1 not in settled]
    lasts = [point for point in sorted(settled) if point + 1 not in settled]
    tables["settled_word"] = " ".join(f"{first:x}-{last:x}" for first, last in zip(firsts, lasts, strict=True))
    cased = {point for first, last in scan(_CASED) for point in range(first, last + 1)} - _TURKIC
    text = "".join(map(chr, sorted(cased)))
    orbits: list[str] = []
    done: set[str] = set()
    for character in text:
        if character not in done:
            orbit = regex.findall(regex.escape(character), text, flags=regex.IGNORECASE | regex.VERSION0)
            done.update(orbit)
            if len(orbit) > 1:
                orbits.append("+".join(f"{ord(member):x}" for member in orbit))
    tables["case_orbits"] = " ".join(orbits)
    return tables


@cache
def load_ranges(name: str) -> tuple[tuple[int, int], ...]:
    """The table `name`: a key of `DEFINITIONS`, or "settled_word"."""
    pairs = (entry.split("-") for entry in _load()[name].split())
    return tuple((int(first, 16), int(last, 16)) for first, last in pairs)


@cache
def load_case_orbits() -> tuple[tuple[int, ...], ...]:
    """The case orbits, each sorted; no code point is in two of them."""
    return tuple(tuple(int(member, 16) for member in orbit.split("+")) for orbit in _load()["case_orbits"].split())


@cache
def _load() -> dict[str, str]:
    tables: dict[str, str] = json.loads(TABLES_FILE.read_text(encoding="ascii"))
    return tables


if __name__ == "__main__":
    TABLES_FILE.write_text(json.dumps(generate(), indent=1) + "\n", encoding="ascii")
