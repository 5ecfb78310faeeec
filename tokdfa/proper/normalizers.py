"""Which texts a tokenizer's normalizers leave as they are, decided character by character.

A normalizer changes the text before it is cut and merged, so a text that it changes is the encoding of another text and
has no proper tokens of its own. A character is *stable* for a normalizer if it stands as it is whatever stands around
it:

- NFC, NFD, NFKC, NFKD: it is its own normal form, it is no combining mark (marks are put in order), and for the
  composing forms it is not the second part of a composition, as U+0301 of é is, or a vowel of Hangul. Unassigned
  characters are not stable: the library may know a newer version of Unicode than we do;
- Lowercase: it is its own lower case.

Texts of stable characters are not changed, and what stands before a text cannot change that. Source: Unicode Standard
Annex 15, quick check (an answer "maybe" counts as not stable).
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tokdfa.constraint import Regex
from tokdfa.regex.compile import compile_dfa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Literal

    from tokdfa.automata.dfa import Dfa

    Form = Literal["NFC", "NFD", "NFKC", "NFKD"]

#: Normalizers of a tokenizer.json that are covered.
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
COVERED = (*FORMS, "Lowercase")


def normalized(text: str, normalizers: Iterable[str]) -> str:
    """What `normalizers` make of a text, one after another."""
    for name in normalizers:
        text = text.lower() if name == "Lowercase" else unicodedata.normalize(name, text)  # type: ignore[arg-type]
    return text


@cache
def stable_texts(normalizers: tuple[str, ...]) -> Dfa:
    """The texts of characters that are stable for all `normalizers`, names of `COVERED`. 0.5 s, once a process."""
    return compile_dfa(Regex(stable_pattern(normalizers), label=f"texts that {', '.join(normalizers)} leaves"))


@cache
def stable_pattern(normalizers: tuple[str, ...]) -> str:
    """The same as a regex."""
    tests = [_is_stable(name) for name in normalizers]
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    stable = [point for point in points if all(test(chr(point)) for test in tests)]
    begins = [stable[0], *(after for before, after in pairwise(stable) if after != before + 1)]
    ends = [*(before for before, after in pairwise(stable) if after != before + 1), stable[-1]]
    return "[" + "".join(f"\\U{begin:08x}-\\U{end:08x}" for begin, end in zip(begins, ends, strict=True)) + "]*"


def _is_stable(name: str) -> Callable[[str], bool]:
    if name == "Lowercase":
        return lambda character: character.lower() == character
    form = next(form for form in FORMS if form == name)
    seconds = _second_parts() if form in ("NFC", "NFKC") else frozenset()

    def test(character: str) -> bool:
        return (
            unicodedata.is_normalized(form, character)
            and not unicodedata.combining(character)
            and character not in seconds
            and unicodedata.category(character) != "Cn"
        )

    return test


@cache
def _second_parts() -> frozenset[str]:
    """The characters that a composition may join to one before them: of canonical decompositions, and of Hangul."""
    hangul = (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
    written = (unicodedata.decomposition(chr(point)) for point in range(0x110000))
    pairs = (text.split() for text in written if text and not text.startswith("<"))
    return frozenset(map(chr, hangul)) | {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2}
