"""From a regex, as Python's `re` parses it, to a program of ordered choices over UTF-8 bytes.

Lark matches terminals with `re`, so the pattern is parsed by `re`'s own parser and nothing of its dialect is
reinterpreted. An instruction reads one character of a set and goes on (`Read`), or chooses between two ways, the first
preferred (`Split`, `Loop`), or is `MATCH`. Greedy and lazy repetitions differ in the order of their choices; ``e*`` is
written as ``(e+)?``.

Character sets become small automata over UTF-8 bytes: a node is a row of 256 targets, nodes being shared by content.
Sets that ignore case, and the classes ``\\d \\w \\s``, are asked of `re` itself, character by character.

Refused: look-around, anchors and word boundaries (what a lexeme is must not depend on what is around it),
back-references, and possessive and atomic groups. `EQUIVALENTS` has those patterns of Lark's own library that need a
look-behind and can be written without.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tokdfa.core.budget import spend
from tokdfa.errors import LimitExceeded, RegexSyntaxError, RegexUnsupported
from tokdfa.regex.char_sets import ALL, SURROGATES, Ranges, complement, difference, union
from tokdfa.regex.unicode_tables import runs
from tokdfa.regex.utf8 import END, AutomatonBuilder

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

#: Patterns with a look-behind -> the same matches without.
EQUIVALENTS = {r'".*?(?<!\\)(\\\\)*?"': r'"(?:[^"\\\n]|\\.)*"'}
#: Instructions that one pattern may become.
MAX_INSTRUCTIONS = 50_000
#: What it takes to write an instruction.
NS_PER_INSTRUCTION = 3_000
#: Targets in a node's row: no such byte, and the end of the character.
NONE, DONE = -1, -2
MATCH = 0
_REFUSED = {
    "ASSERT": "look-around",
    "ASSERT_NOT": "look-around",
    "AT": "an anchor or a word boundary",
    "GROUPREF": "a back-reference",
    "GROUPREF_EXISTS": "a choice by group",
    "ATOMIC_GROUP": "an atomic group",
    "POSSESSIVE_REPEAT": "a possessive repetition",
}


class Read(NamedTuple):
    """Read one character of the set whose automaton starts at `node`, and go on at `following`."""

    node: int
    following: int


class Split(NamedTuple):
    """Go on at `first`; if that fails, at `second`."""

    first: int
    second: int


class Loop(NamedTuple):
    """After a round of a greedy repetition: another round at `body`; if that fails, go on at `following`.

    Who comes back here without having read anything has made an empty round, and `re` makes no other after that.
    """

    body: int
    following: int


Instruction = Read | Split | Loop


class MatchProgram:
    """A pattern's instructions. Instruction 0 is `MATCH`; `entry` is the first. Raises RegexSyntaxError,
    RegexUnsupported or LimitExceeded.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.instructions: list[Instruction | None] = [None]
        self.nodes = Nodes()
        self._sets: dict[Ranges, int] = {}
        parser = import_module("re._parser")
        try:
            parsed = parser.parse(EQUIVALENTS.get(pattern, pattern))
        except re.error as error:
            raise RegexSyntaxError(error.msg, pattern, error.pos or 0) from None
        self.entry = self._sequence(parsed, parsed.state.flags, MATCH)

    def _emit(self, instruction: Instruction) -> int:
        if len(self.instructions) >= MAX_INSTRUCTIONS:
            raise LimitExceeded(
                f"a terminal becomes more than {MAX_INSTRUCTIONS} instructions; lower its repeat bounds",
                limit="match instructions",
                value=MAX_INSTRUCTIONS,
            )
        spend(NS_PER_INSTRUCTION)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _sequence(self, items: Iterable[tuple[Any, Any]], flags: int, following: int) -> int:
        """Where to enter so as to match `items` one after another and go on at `following`."""
        for operation, argument in reversed(list(items)):
            following = self._item(str(operation), argument, flags, following)
        return following

    def _item(self, operation: str, argument: Any, flags: int, following: int) -> int:
        match operation:
            case "SUBPATTERN":
                _, added, removed, items = argument
                return self._sequence(items, (flags | added) & ~removed, following)
            case "BRANCH":
                ways = [self._sequence(way, flags, following) for way in argument[1]]
                entry = ways.pop()
                while ways:
                    entry = self._emit(Split(ways.pop(), entry))
                return entry
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(argument, flags, following, lazy=operation == "MIN_REPEAT")
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN" | "RANGE" | "CATEGORY":
                return self._emit(Read(self._set(characters(operation, argument, flags)), following))
        what = _REFUSED.get(operation, operation)
        raise RegexUnsupported(f"{what} in a terminal is not supported", self.pattern, 0)

    def _repeat(self, argument: tuple[int, int, Any], flags: int, following: int, lazy: bool) -> int:
        low, high, items = argument

        def choice(again: int, leave: int) -> Split:
            return Split(leave, again) if lazy else Split(again, leave)

        if high == import_module("re._constants").MAXREPEAT:
            # e+: after each round a choice between another and leaving
            after = self._emit(Split(following, following))
            entry = self._sequence(items, flags, after)
            self.instructions[after] = Split(following, entry) if lazy else Loop(entry, following)
            if low == 0:
                return self._emit(choice(entry, following))
            copies = low - 1
        else:
            entry = following
            for _ in range(high - low):
                entry = self._emit(choice(self._sequence(items, flags, entry), following))
            copies = low
        for _ in range(copies):
            entry = self._sequence(items, flags, entry)
        return entry

    def _set(self, code_points: Ranges) -> int:
        """The node at which the automaton of a set starts."""
        if code_points not in self._sets:
            self._sets[code_points] = self.nodes.node(self.nodes.first_edges(difference(code_points, SURROGATES)))
        return self._sets[code_points]


class Nodes(AutomatonBuilder):
    """Nodes of character sets by number, each a row of targets: int32, shape (256,)."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[npt.NDArray[np.int32]] = []
        self._numbers: dict[bytes, int] = {}

    def node(self, edges: list[tuple[int, int]]) -> int:
        """The node with these edges, equal ones once."""
        row = np.full(256, NONE, dtype=np.int32)
        for members, target in edges:
            bits = np.frombuffer(members.to_bytes(32, "little"), dtype=np.uint8)
            row[np.unpackbits(bits, bitorder="little") == 1] = DONE if target == END else target
        number = self._numbers.setdefault(row.tobytes(), len(self.rows))
        if number == len(self.rows):
            self.rows.append(row)
        return number


def characters(operation: str, argument: Any, flags: int) -> Ranges:
    """The code points that one item of `re`'s syntax tree matches."""
    match operation:
        case "LITERAL":
            return _folded(((argument, argument),), flags)
        case "NOT_LITERAL":
            return complement(_folded(((argument, argument),), flags))
        case "RANGE":
            return _folded((tuple(argument),), flags)
        case "ANY":
            return ALL if flags & re.DOTALL else complement(((10, 10),))
        case "CATEGORY":
            name = str(argument).removeprefix("CATEGORY_")
            found = _category(name.removeprefix("NOT_")[0].lower(), bool(flags & re.ASCII))
            return complement(found) if name.startswith("NOT_") else found
    negated = bool(argument) and str(argument[0][0]) == "NEGATE"
    found = union(*(characters(str(kind), value, flags) for kind, value in argument[negated:]))
    return complement(found) if negated else found


def _folded(ranges: Ranges, flags: int) -> Ranges:
    """`ranges`, and what `re` takes for the same if it ignores case."""
    return _fold(ranges, bool(flags & re.ASCII)) if flags & re.IGNORECASE else ranges


@lru_cache(maxsize=4096)
def _fold(ranges: Ranges, ascii_only: bool) -> Ranges:
    listed = "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)
    pattern = re.compile(f"[{listed}]", re.IGNORECASE | (re.ASCII if ascii_only else re.NOFLAG))
    return union(ranges, tuple((ord(one), ord(one)) for one in pattern.findall(_cased())))


@cache
def _cased() -> str:
    """All characters that have another case."""
    every = map(chr, (*range(0xD800), *range(0xE000, 0x110000)))
    return "".join(one for one in every if one.lower() != one or one.upper() != one)


@cache
def _category(letter: str, ascii_only: bool) -> Ranges:
    r"""What ``\d``, ``\s`` or ``\w`` matches."""
    return runs(re.compile(rf"\{letter}+", re.ASCII if ascii_only else re.NOFLAG))
