"""What is fuzzed: a case, an entry, and which errors an entry may answer with.

An *entry* is a place where input from outside comes in: a pattern, a file, a schema. A *case* is one input for it. An
entry says how cases are made and what is done with one; whatever comes of that is *right* if nothing is raised, or a
`TokdfaError` that names the place of the fault. Any other exception is a *failure*, and so is the end of the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tokdfa.errors import (
    ConfigError,
    GrammarSyntaxError,
    LimitExceeded,
    RegexSyntaxError,
    SavedIndexError,
    SchemaError,
    SchemaUnsupported,
    TokdfaError,
    TokenizerError,
    VocabularyError,
)

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True)
class Case:
    """One input. `head`: what is done with it; `body`: text, bytes or edits."""

    head: str
    body: str | bytes | tuple[object, ...]


class Entry(Protocol):
    """An entry and its generator. One module of this package holds one, under the name `ENTRY`."""

    name: str

    def prepare(self) -> None:
        """Make what cases need: once in the process that draws them, once in each that runs them."""

    def cases(self) -> SearchStrategy[Case]:
        """Valid inputs, inputs near them, and others."""

    def run(self, case: Case) -> str:
        """Do what users do with such an input. Returns what came of it in a word; raises whatever it raises."""


#: Errors that name their place by attributes, and what must hold of those.
_PLACES = {
    RegexSyntaxError: lambda error: 0 <= error.position <= len(error.pattern),
    GrammarSyntaxError: lambda error: 1 <= error.line <= error.text.count("\n") + 2 and error.column >= 1,
    SchemaError: lambda error: error.pointer[:1] in ("", "/", "("),
    SchemaUnsupported: lambda error: error.pointer[:1] in ("", "/", "("),
    ConfigError: lambda error: bool(error.path),
    LimitExceeded: lambda error: bool(error.limit),
}
#: Errors about a file, which their message must name.
_ABOUT_FILES = (TokenizerError, SavedIndexError, VocabularyError)


def problem_with(error: BaseException, file_name: str = "") -> str:
    """Why an error is a failure; empty if it is right. `file_name`: of the file that was read, if one was."""
    if not isinstance(error, TokdfaError):
        return "no TokdfaError"
    for kind, holds in _PLACES.items():
        if isinstance(error, kind) and not holds(error):
            return "its place is out of range"
    if file_name and isinstance(error, _ABOUT_FILES) and file_name not in str(error):
        return "it does not name the file"
    return "" if str(error).strip() else "it says nothing"


def outcome(entry: Entry, case: Case) -> str:
    """What came of a case in a word: the entry's, or the kind of its error. AssertionError if that is a failure."""
    try:
        return entry.run(case)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        if problem := problem_with(error, getattr(entry, "file_name", "")):
            raise AssertionError(f"{case}: {type(error).__name__}: {problem}") from error
        return type(error).__name__
