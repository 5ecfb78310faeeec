"""Marked automata on disk, so that the searches through all characters are done once on a machine.

A file is named by a hash of its *description*: the steps, the versions of the libraries that were asked, and the
content of the modules that build the automaton, so an edit or an update builds anew.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from tokdfa.core.folders import cache_folder
from tokdfa.core.packages import installed_version
from tokdfa.core.stored_file import code_stamp
from tokdfa.proper.pretokenizer_dfa import FORMAT, MarkedDfa

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

#: The modules on which automata depend: those that build them, and those that read the patterns.
_SOURCES = (
    "proper/pretokenizer*.py",
    *(f"regex/{name}.py" for name in ("atoms", "dialects", "library_parser", "parse", "parser", "syntax_tree")),
)


def automata_folder() -> Path:
    """Where marked automata are kept unless the caller names a folder: ``pretokenizers`` in the user's cache folder."""
    return cache_folder("pretokenizers")


def describe(steps: Sequence[Mapping[str, Any]], libraries: Iterable[str]) -> str:
    """All that an automaton depends on, as a string: equal descriptions, equal automata."""
    # building says so if a library is missing, so no automaton is kept without its version
    versions = {name: installed_version(name) or "" for name in sorted(libraries)}
    return json.dumps({"steps": [dict(step) for step in steps], "versions": versions, "code": code_stamp(*_SOURCES)})


def load_or_build(description: str, build: Callable[[], MarkedDfa], folder: Path) -> MarkedDfa:
    """The automaton of `description` from `folder`, or else from `build`, and then kept there. Loading costs ms."""
    path = folder / f"{hashlib.sha256(description.encode()).hexdigest()[:32]}.npz"
    return FORMAT.keep(path, partial(MarkedDfa.of_parts, description), build, lambda made: made.parts(description))
