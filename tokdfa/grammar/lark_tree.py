"""What a grammar's text says, as a tree: statements made of parts, each with its place. Nothing is resolved yet.

`tokdfa.grammar.lark_syntax` makes the tree, `tokdfa.grammar.lark_reader` and `tokdfa.grammar.lark_terminals` read it.
Nesting is bounded (`lark_syntax.MAX_NESTING`), so readers may recurse.

Nobody changes a tree. Its classes are not frozen all the same: a tenth of reading a grammar is making their objects,
and frozen ones take three times as long to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(slots=True)
class Part:
    """Base of what a definition is made of. `line`, `column`: where it begins in the grammar's text, from 1."""

    line: int
    column: int


@dataclass(slots=True)
class Word(Part):
    """A rule, a terminal or a template's parameter by `name`."""

    name: str


@dataclass(slots=True)
class Text(Part):
    """A string as it is `written`, with quotes, escapes and suffix."""

    written: str


@dataclass(slots=True)
class Pattern(Part):
    """A regex as it is `written`, with slashes and flags."""

    written: str


@dataclass(slots=True)
class Range(Part):
    """The characters from one to another, both written as strings."""

    low: Text
    high: Text


@dataclass(slots=True)
class Special(Part):
    """Special tokens as they are `written`, with angle brackets."""

    written: str


@dataclass(slots=True)
class Structured(Part):
    """``%json`` or ``%regex`` (`directive`) with JSON, which stands at characters `begin` to `end` of the text."""

    directive: str
    begin: int
    end: int


@dataclass(slots=True)
class Use(Part):
    """A template with arguments."""

    name: str
    arguments: tuple[Part, ...]


@dataclass(slots=True)
class Repetition(Part):
    """`body` from `low` to `high` (None: any number of) times. The place is that of the body."""

    body: Part
    low: int
    high: int | None


@dataclass(slots=True)
class Complement(Part):
    """What `body` does not match."""

    body: Part


Sequence: TypeAlias = tuple[Part, ...]


@dataclass(slots=True)
class Option:
    """One alternative: the sequences that ``&`` joins, most often one. `joined`, `alias`: where ``& ->`` stand."""

    sequences: tuple[Sequence, ...]
    joined: Part | None
    alias: Part | None


@dataclass(slots=True)
class Group(Part):
    """One of `options`."""

    options: tuple[Option, ...]


@dataclass(slots=True)
class Attribute(Part):
    """What stands in brackets behind a rule's name. `value` as it is written, None if there is none."""

    name: str
    value: str | None


@dataclass(slots=True)
class Definition(Part):
    """A rule or a terminal. `leaves`: all in `body` that is made of no other parts, and each `Use` before its
    arguments, in order.
    """

    name: str
    parameters: tuple[Word, ...]
    attributes: tuple[Attribute, ...]
    body: Group
    leaves: list[Part]
    #: What it does to a definition of that name that is there: "" (there must be none), "override" or "extend".
    change: str = ""

    @property
    def is_terminal(self) -> bool:
        """Whether the name is in upper case."""
        return is_terminal_name(self.name)


@dataclass(slots=True)
class Ignore(Part):
    """``%ignore``. `leaves`: as those of a definition."""

    body: Group
    leaves: list[Part]


@dataclass(slots=True)
class Import(Part):
    """``%import``. `path`: the names before the last; `names`: (what is imported, what it is called here)."""

    path: tuple[str, ...]
    names: tuple[tuple[Word, Word], ...]


Statement: TypeAlias = Definition | Ignore | Import


def is_terminal_name(name: str) -> bool:
    """Whether `name`, a valid one, is that of a terminal."""
    return name[name[0] == "_"].isupper()
