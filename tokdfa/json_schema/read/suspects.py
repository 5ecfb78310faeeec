"""Parts of a schema without effect: misspelled keywords, keywords of other drafts, unknown formats.

The drafts let schemas have any further keywords, so these are no errors. They are silently ignored by every validator,
which is seldom meant: such a place is a *suspect*. Keywords that only describe (``descrption``) are none, nor are those
that begin with ``x-``, ``_``, ``@`` or ``$$``, as people name their own.

Cost: nothing for a schema without suspects, else a second walk with pointers.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tokdfa.json_schema.read.document import DRAFT_7
from tokdfa.json_schema.read.keyword_names import DEMANDING
from tokdfa.json_schema.read.metaschema import CHECKS, find_keywords, is_mixed
from tokdfa.json_schema.sets.class_formats import DESCRIBING
from tokdfa.json_schema.sets.formats import ASSERTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokdfa.json_schema.read.document import Document

DRAFT_NAMES = ("draft 4", "draft 6", "draft 7", "draft 2019-09", "draft 2020-12")
#: Keywords that demand something, by how they are written in lower case; those that lead to schemas, too.
_DEMANDING = {
    keyword.lower(): keyword
    for keyword in (*DEMANDING - {"$schema"}, "type", "then", "else", "$defs", "definitions")
    if len(keyword) >= len("enum")
}
#: What people write for a keyword that is spelled otherwise.
ALIASES = {
    "min": "minimum",
    "max": "maximum",
    "ref": "$ref",
    "regex": "pattern",
    "values": "enum",
    "optional": "required",
}
#: Words near a keyword that have a meaning of their own.
_OWN_WORDS = frozenset(["example", "discriminator", "note", "notes", "cost", "name", "names"])
#: Formats that need no warning.
KNOWN_FORMATS = {*ASSERTED, *DESCRIBING}
#: How like a keyword a word is that is taken for it (`difflib`).
LIKENESS, LIKENESS_OF_FORMATS = 0.84, 0.65
_FORMAT = re.compile(r'"format"\s*:\s*"([^"\\]*)"')
_DESCRIPTIVE_PREFIXES = ("x-", "_", "@", "$$", "//")


class Suspect(NamedTuple):
    """A keyword that is ignored, the JSON pointer of its schema, and what may have been meant."""

    pointer: str
    keyword: str
    reason: str

    def __str__(self) -> str:
        return f"{self.keyword} at #{self.pointer}: {self.reason}"


def find_suspects(document: Document, unknown: Iterable[str]) -> Iterator[Suspect]:
    """The suspects of a document without errors. `unknown`: the keywords that are none of their draft."""
    text, asserts_formats = document.text, document.asserts != "required"
    has_dependencies = '"dependencies"' in text and document.asserts != "all"
    has_formats = asserts_formats and '"format"' in text and not set(_FORMAT.findall(text)) <= KNOWN_FORMATS
    root, mixed = document.root.schema, is_mixed(document)
    drafts = range(len(DRAFT_NAMES)) if mixed else (document.draft,)
    is_odd = any(word == "nullable" or _reason(word, draft) for word in unknown for draft in drafts)
    if not (is_odd or has_dependencies or has_formats):
        return
    for pointer, keyword, value, draft in find_keywords(root, document.draft, mixed):
        reason = ""
        if keyword == "nullable":
            is_ignored = value is True and "$schema" in root  # else it is OpenAPI's, and taken
            reason = f'{DRAFT_NAMES[draft]} ignores it; add "null" to type' if is_ignored else ""
        elif keyword not in CHECKS[draft]:
            reason = _reason(keyword, draft)
        elif keyword == "format" and asserts_formats and value not in KNOWN_FORMATS:
            reason = _reason_of_format(value)
        elif keyword == "dependencies" and has_dependencies and draft > DRAFT_7:
            reason = f'{DRAFT_NAMES[draft]} ignores it; declare draft 7 by $schema, or compile with asserts="all"'
        if reason:
            yield Suspect(pointer, keyword, reason)


@lru_cache(4096)
def _reason(keyword: str, draft: int) -> str:
    """Why a keyword that a draft does not have is suspicious; nothing if it is not."""
    having = [DRAFT_NAMES[at] for at, table in CHECKS.items() if keyword in table]
    if having:  # a list of definitions demands nothing by itself
        return f"{DRAFT_NAMES[draft]} ignores it; declare {having[-1]} by $schema" if keyword in DEMANDING else ""
    if keyword.startswith(_DESCRIPTIVE_PREFIXES) or keyword in _OWN_WORDS:
        return ""
    word = keyword.strip(": ").lower()
    near = get_close_matches(word, [each for each in _DEMANDING if _may_be_meant(word, each)], n=1, cutoff=LIKENESS)
    meant = ALIASES.get(word) or "".join(map(_DEMANDING.__getitem__, near))
    return f"no draft has it, so it is ignored; did you mean {meant!r}?" if meant else ""


def _may_be_meant(word: str, keyword: str) -> bool:
    """Whether they have the length and the letters that it takes to be alike, which is quickly told."""
    if abs(len(keyword) - len(word)) > 1:
        return False
    return len({*word}.difference(keyword)) <= len(word) - LIKENESS / 2 * (len(word) + len(keyword))


@lru_cache(4096)
def _reason_of_format(name: str) -> str:
    """What to say of a format that is not known."""
    near = get_close_matches(name, KNOWN_FORMATS, n=1, cutoff=LIKENESS_OF_FORMATS)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{name!r} is no known format, so it is ignored{hint}"
