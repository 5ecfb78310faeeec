"""The entries by name; modules are imported when they are asked for."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.case import Entry

#: Name -> the module that holds it as `ENTRY`.
ENTRIES = {
    "regex": "tests.fuzz.regexes",
    "grammar": "tests.fuzz.grammars",
    "schema": "tests.fuzz.schemas",
    "experiment": "tests.fuzz.experiments",
    "tokenizer": "tests.fuzz.tokenizer_files",
    "stored": "tests.fuzz.stored_files",
}


def find_entry(name: str) -> Entry:
    """The entry with this name; ``MODULE`` of another package may be named in full, as ``tests.x.y``."""
    return importlib.import_module(ENTRIES.get(name, name)).ENTRY
