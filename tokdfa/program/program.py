"""The program: what `tokdfa.backends.pushdown_trie` runs, over bytes, lowered from a constraint of any kind.

Words. A program is a list of *instructions*; a *place* is the number of one. A *frame* is a part of the program that is
called, as a nonterminal is. Reading begins at `Program.start`; the text is complete when the outermost frame returns.

=========  =====================  ======================================================================
operation  arguments              meaning
=========  =====================  ======================================================================
RETURN                            go on where the current frame was called
ANY        alternatives           go on at any of these places
CALL       frame, next            read what the frame reads, then go on at next
TERMINAL   terminal, next         read one of the texts of an automaton, then go on at next
TOKEN      token set, next        take one of these special tokens, then go on at next
NAMES      arguments              read one of a list of names as a JSON string (`tokdfa.backends.pushdown_trie.names`)
COUNTED    arguments, next        read a string of bounded length (`tokdfa.backends.pushdown_trie.items`)
LAZY       maker, argument       not written yet; becomes ANY of one place when it is first needed
=========  =====================  ======================================================================

A regex or a choice is one TERMINAL; a grammar has a frame for each nonterminal, with a TERMINAL for each lexeme. Equal
instructions are one place, so equal ends of rules are shared, and rows that differ in nothing else are equal.
Instruction 0 is RETURN.

NAMES and COUNTED find their further arguments in a list of numbers, from a given index on; columns `NAMES_TABLE` to
`NAMES_TARGETS` and `COUNTED_TERMINAL` to `COUNTED_BEYOND` say which. They are for programs that read every way to cut
the text, not for the longest match.

The code of a `Program` is a `GrowingCode`, which never changes but where code is to be written yet.
`tokdfa.program.builder` writes it, `tokdfa.program.printing` shows a program.

*Lazy code.* Most of a large schema is never read by one text, so parts of a program are written when
they are first needed: a LAZY instruction names a function that writes its code. Places never change their numbers.
`tokdfa.backends.pushdown_trie.bound_program` follows the growth.

An automaton of a program (`Terminal`) is known by its *key*, which says what language it is; it is built only if no
constraint of the vocabulary had the same before. The program itself knows no vocabulary:
`tokdfa.backends.pushdown_trie.bound_program` binds it.

Source: ours. The idea of running a grammar as a program of few instructions is Thompson's (1968), with calls as in
Knuth's (1971) top-down parsing machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from tokdfa.errors import UnsupportedConstraint

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from tokdfa.automata.dfa import Dfa
    from tokdfa.regex.expression import ExpressionStore
    from tokdfa.regex.lazy_dfa import LazyDfa

#: How the characters of a JSON string may be written: ``all`` takes every escape of every character, ``needed`` only
#: escapes of characters that cannot stand raw (`tokdfa.program.json_text`).
Escapes = Literal["all", "needed"]

#: Operations.
RETURN, ANY, CALL, TERMINAL, TOKEN, NAMES, COUNTED, LAZY = range(8)
#: Columns of an instruction; arguments that an operation does not have are 0.
OPERATION, FIRST, SECOND = range(3)
#: The place of the only RETURN.
RETURN_PLACE = 0
#: Arguments of NAMES: its table; the first and last index of names that are allowed; the place of the TERMINAL of any
#: string that reads other strings, or -1; where in the list of numbers the places after each allowed name begin
#: (instructions that allow other names of one table share them).
NAMES_TABLE, NAMES_LOW, NAMES_HIGH, NAMES_OTHER, NAMES_TARGETS = range(5)
#: Arguments of COUNTED: the place of a TERMINAL that reads JSON strings whose characters can be counted
#: (`tokdfa.program.json_text.read_characters`) and goes on at the same place; characters that are needed at least (if
#: fewer than 1: none; else the terminal has strings of all greater lengths) and may be read at most by this
#: instruction; the place of the COUNTED that reads more characters than that, -1 if none may; how many more: UNBOUNDED,
#: if there is no maximum.
COUNTED_TERMINAL, COUNTED_MINIMUM, COUNTED_CAP, COUNTED_NEXT, COUNTED_BEYOND = range(5)
#: Characters that one COUNTED counts at most, and times the states of its automaton: these must fit an item's 21 bits.
COUNT_LIMIT, COUNT_STATES = 90_000, (1 << 21) - 2
#: Characters that one table of names may have which none of its names shares with the one before: with nine states for
#: each, they must fit an item's 21 bits.
TABLE_CHARACTERS = 200_000
#: More characters than any text has.
UNBOUNDED = (1 << 31) - 1 - COUNT_LIMIT
#: Instructions that may be written before a program is saved.
MAX_WRITTEN = 200_000


class NameWindow(NamedTuple):
    """The arguments of a NAMES, with the places after the names that it allows."""

    table: int
    low: int
    high: int
    other: int
    targets: list[int]

    @classmethod
    def read(cls, arguments: array[int] | npt.NDArray[np.int32], at: int) -> NameWindow:
        """Those that begin at an index."""
        table, low, high, other, begin = arguments[at : at + NAMES_TARGETS + 1].tolist()
        return cls(table, low, high, other, arguments[begin : begin + max(high - low + 1, 0)].tolist())


class CountedString(NamedTuple):
    """The arguments of a COUNTED."""

    terminal: int
    least: int
    cap: int
    following: int
    beyond: int

    @classmethod
    def read(cls, arguments: array[int] | npt.NDArray[np.int32], at: int) -> CountedString:
        """Those that begin at an index."""
        return cls(*arguments[at : at + COUNTED_BEYOND + 1].tolist())

    @property
    def most(self) -> int | None:
        """The most characters, counted by whatever follows as well; None: any number."""
        return None if self.beyond == UNBOUNDED else self.cap + self.beyond


@dataclass(eq=False, slots=True)
class Terminal:
    """An automaton of a program; never changed.

    `label`: for people; `key`: equal keys mean equal languages, all or none of them `shortest`; `make`: builds the
    automaton, minimal or lazy; `shortest`: its texts end at the first match, and win over other terminals that match
    there. `expression`: the store and number of the expression whose texts it reads, if it is one: many automata are
    then made together.
    `may_wait`: making it cannot fail, and it has texts, none of them empty: so it is made when a text first reaches it.
    `bounded`: makes the terminal of those of its texts, strings of JSON, that have so many characters.
    `spelled_by`: bytes that suffice to end its texts, wherever one has come to; None: its automaton has to tell.
    """

    label: str
    key: bytes
    make: Callable[[], Dfa | LazyDfa]
    shortest: bool = False
    expression: tuple[ExpressionStore, int] | None = None
    may_wait: bool = False
    bounded: Callable[[int, int | None], Terminal] | None = None
    spelled_by: bytes | None = None


class NameTable(NamedTuple):
    """Names that a JSON string may spell, in the order in which NAMES counts them.

    `order`: the indices of `names` in ascending order of the names; `escapes`: how characters may be written.
    """

    names: tuple[str, ...]
    escapes: Escapes
    order: tuple[int, ...]

    @classmethod
    def of(cls, names: tuple[str, ...], escapes: Escapes = "all") -> NameTable:
        """A table. Raises UnsupportedConstraint for a surrogate alone, ValueError for no names or equal ones."""
        try:
            "".join(names).encode()
        except UnicodeEncodeError:
            broken = next(name for name in names if any("\ud800" <= character <= "\udfff" for character in name))
            raise UnsupportedConstraint(
                f"the name {broken!r} has a surrogate without its other half, which no JSON text spells"
            ) from None
        if len(set(names)) != len(names) or not names:
            raise ValueError("a table has one name or more, none of them twice")
        return cls(names, escapes, tuple(sorted(range(len(names)), key=names.__getitem__)))
