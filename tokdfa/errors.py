"""Every error a user of tokdfa can meet, each with what went wrong, where, and what to do about it.

One class per kind of trouble, all below `TokdfaError`, so that a caller can catch precisely or broadly.
A message names the place (file, position in a pattern, key of a YAML file, token id) and the remedy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class TokdfaError(Exception):
    """Base of all errors that tokdfa raises on purpose."""


class RegexSyntaxError(TokdfaError):
    """A pattern cannot be parsed. `position` is the offset of the fault in characters of `pattern`."""

    def __init__(self, message: str, pattern: str, position: int) -> None:
        self.reason, self.pattern, self.position = message, pattern, position
        super().__init__(f"{message} at position {position} of the pattern\n{_point_at(pattern, position)}")


class RegexUnsupported(RegexSyntaxError):
    """A pattern is well formed, but uses something that no regular language can express or that tokdfa refuses."""


class GrammarSyntaxError(TokdfaError):
    """A grammar cannot be read. `line` and `column` (from 1) are the place of the fault in `text`.

    `source`: the name by which the text was imported, "" for the grammar itself.
    """

    def __init__(self, message: str, text: str, line: int, column: int, source: str = "") -> None:
        self.reason, self.text, self.line, self.column, self.source = message, text, line, column, source
        lines = text.split("\n")
        shown = lines[line - 1] if 0 < line <= len(lines) else ""
        which = f"the grammar {source!r}" if source else "the grammar"
        super().__init__(f"{message} at line {line}, column {column} of {which}\n{_point_at(shown, column - 1)}")


class GrammarUnsupported(GrammarSyntaxError):
    """A grammar is well formed, but uses something that tokdfa refuses; the message says why, and what to write."""


class EmptyLanguageError(TokdfaError):
    """A constraint accepts no text at all, so there is nothing to generate."""


class LimitExceeded(TokdfaError):
    """A compilation or a walk would need more states, memory or time than its limit allows."""

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        self.limit, self.value = limit, value
        super().__init__(message)


class VocabularyError(TokdfaError):
    """A vocabulary is inconsistent: two tokens for one id, an id out of range, no end token, and the like."""


class VocabularyCannotSpell(VocabularyError):
    """No sequence of the vocabulary's tokens spells any text of the constraint. `missing` holds bytes to add."""

    def __init__(self, message: str, missing: bytes = b"") -> None:
        self.missing = missing
        super().__init__(message)


class TokenizerError(TokdfaError):
    """A tokenizer file cannot be read or is not what it claims to be."""


#: What to do about an answer that may be a beginning, and about one that is none.
CUT_OFF = "If it was cut off, raise max_new_tokens"
DECODED_BADLY = "Decode only what was generated after the prompt, with skip_special_tokens=True"


class ParseError(TokdfaError, ValueError):
    """A generated text is not one of the constraint; mostly it was cut off by a limit of tokens. `text`: all of it."""

    def __init__(self, message: str, text: str, remedy: str = CUT_OFF) -> None:
        self.text = text
        shown = repr(text) if len(text) <= 80 else f"{text[:40]!r} ... {text[-40:]!r}"
        super().__init__("\n".join(filter(None, (message, f"  {shown}", remedy))))


class ModelError(TokdfaError):
    """A language model cannot be loaded, does not fit its tokenizer, or returned what is no distribution."""


class EmptyMask(TokdfaError):
    """No token is allowed, although the text is not finished: a dead end, or all was masked by another processor."""


class NothingDrawn(TokdfaError):
    """A distribution was asked of draws that hold no sequence, or none with a weight above 0."""


class UnknownNameError(TokdfaError, LookupError):
    """A tokenizer, backend, option, measure or key that does not exist; names the nearest that do.

    `remedy`: what to say in their place.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], remedy: str = "") -> None:
        self.kind, self.name, self.known, self.remedy = kind, name, sorted(known), remedy
        super().__init__(f"there is no {kind} {name!r}; {remedy or nearest(name, self.known)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """For the end of a message: the names most like `name`, or else all that are known (the first 20)."""
    from difflib import get_close_matches

    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"known: {', '.join(names[:20]) or 'none'}{', ...' if len(names) > 20 else ''}"


class OptionError(TokdfaError):
    """An option exists but was given a value outside its range or of the wrong type."""


class ArgumentError(OptionError, TypeError):
    """A public function was given an argument of the wrong type, or of a value that it cannot take."""


class ConstraintWarning(UserWarning):
    """Parts of a constraint that mean nothing, such as a misspelled keyword of a JSON schema."""


class UnsupportedConstraint(TokdfaError):
    """A backend cannot compile this constraint; the message says which part and which backend can."""


class SchemaError(TokdfaError):
    """A JSON schema is broken: a keyword has a value that the draft does not allow, or a $ref leads nowhere.

    `pointer` is the JSON pointer of the place in the schema, with the URI and ``#`` before it where the place is in
    another document; `keyword` the keyword at fault.
    """

    def __init__(self, message: str, pointer: str, keyword: str) -> None:
        self.reason, self.pointer, self.keyword = message, pointer, keyword
        super().__init__(f"{keyword} at {_schema_place(pointer)}: {message}")


class SchemaUnsupported(UnsupportedConstraint):
    """A JSON schema demands what cannot be enforced exactly; `pointer` and `keyword` name the demand."""

    def __init__(self, message: str, pointer: str, keyword: str) -> None:
        self.reason, self.pointer, self.keyword = message, pointer, keyword
        super().__init__(f"{keyword} at {_schema_place(pointer)}: {message}")


def _schema_place(pointer: str) -> str:
    """A place in a schema as messages write it."""
    return pointer if "#" in pointer.partition("/properties/")[0] else f"#{pointer}"


class MissingDependency(TokdfaError, ImportError):
    """An optional package is not installed. The message holds the commands that install it."""

    def __init__(self, package: str, purpose: str, commands: Iterable[str]) -> None:
        self.package = package
        super().__init__(f"{purpose} needs the package {package}: {' && '.join(commands)}")


class TokenRefused(TokdfaError):
    """`Matcher.advance` was given a token whose mask bit is not set; the matcher has not moved."""

    def __init__(self, token: int, reason: str = "its mask bit is not set here") -> None:
        self.token, self.reason = token, reason
        super().__init__(f"token {token} is not allowed: {reason}")


class ConfigError(TokdfaError):
    """An experiment file is wrong. `path` is the file, `where` the key inside it, as in `grid.backends[2]`."""

    def __init__(self, message: str, path: str = "", where: str = "") -> None:
        self.path, self.where = path, where
        place = ": ".join(part for part in (path, where) if part)
        super().__init__(f"{place}: {message}" if place else message)


class StoreError(TokdfaError):
    """A stored file or run folder cannot be used or written: damaged, of another configuration, or open to others."""


class ClusterError(TokdfaError):
    """A cluster cannot be reached, has no fitting workers, or was lost while it measured; what is finished is kept."""


class SavedIndexError(TokdfaError):
    """A saved index cannot be used: damaged, of another format, or compiled for another vocabulary."""


class LawBroken(TokdfaError, AssertionError):
    """A backend broke a law of the mask interface. `law` is its name; the message holds the smallest example found."""

    def __init__(self, law: str, message: str) -> None:
        self.law = law
        super().__init__(f"law {law!r} is broken: {message}")


class AutomatonError(TokdfaError):
    """The parts of an automaton do not fit together: a wrong shape, a target out of range, an unknown node."""


def counted(count: int, noun: str) -> str:
    """For messages: "1 token", "2 tokens"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Iterable[str]) -> str:
    """For messages: "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def a_noun(noun: str) -> str:
    """For messages: "a list", "an int"."""
    return f"{'an' if noun[:1].lower() in tuple('aeio') else 'a'} {noun}"


def a_type(value: object) -> str:
    """For messages: the type of a value, as in "an int"."""
    return a_noun(type(value).__name__)


def _point_at(text: str, position: int, width: int = 70) -> str:
    """Two lines: an excerpt of `text` around `position`, and a caret below it."""
    start = max(0, min(position - width // 2, len(text) - width))
    excerpt = text[start : start + width]
    printable = "".join(character if character.isprintable() else "·" for character in excerpt)
    return f"  {printable}\n  {' ' * (position - start)}^"
