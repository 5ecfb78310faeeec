"""Marked automata on disk, so that the searches through all characters are done once on a machine.

A file is named by a hash of its *description*: the steps, the versions of the libraries that were asked, and the
content of the modules that build the automaton, so an edit or an update builds anew. The folder is ``$XDG_CACHE_HOME``
or ``~/.cache``, and in it ``tokdfa/pretokenizers``. A damaged file is built anew and overwritten; a folder that cannot
be written to costs the time of building, nothing else.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokdfa.bpe.pretokenizer_dfa import MarkedDfa
from tokdfa.core.packages import installed_version
from tokdfa.errors import TokenizerError
from tokdfa.stored_file import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

#: The modules of `tokdfa.regex` that read the patterns.
_PARSER = ("atoms.py", "dialects.py", "library_parser.py", "parse.py", "parser.py", "syntax_tree.py")


def automata_folder() -> Path:
    """Where marked automata are kept unless the caller names a folder: in the user's cache folder."""
    return cache_folder("pretokenizers")


def describe(steps: Sequence[Mapping[str, Any]], libraries: Iterable[str]) -> str:
    """All that an automaton depends on, as a string: equal descriptions, equal automata."""
    # building says so if a library is missing, so no automaton is kept without its version
    versions = {name: installed_version(name) or "" for name in sorted(libraries)}
    return json.dumps({"steps": [dict(step) for step in steps], "versions": versions, "code": _code_stamp()})


def load_or_build(description: str, build: Callable[[], MarkedDfa], folder: Path) -> MarkedDfa:
    """The automaton of `description` from `folder`, or else from `build`, and then kept there. Loading costs ms."""
    path = folder / f"{hashlib.sha256(description.encode()).hexdigest()[:32]}.npz"
    with suppress(TokenizerError):  # not there, or damaged
        return MarkedDfa.load(path, description)
    built = build()
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        built.save(path, description)
    return built


@cache
def _code_stamp() -> str:
    """A hash of the modules that build marked automata."""
    folder = Path(__file__).parent
    sources = sorted([*folder.glob("pretokenizer*.py"), *(folder.parent / "regex" / name for name in _PARSER)])
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
