"""Writing programs: instruction by instruction, back to front.

Each method of `ProgramBuilder` returns the place of an instruction that goes on at a given place, so what comes last in
a text is written first. Equal instructions are one place.

What is written so far, and how more is written when it is first needed, is a `GrowingCode` (`tokdfa.program.program`).
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter, itemgetter, methodcaller
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Self
from weakref import proxy

from tokdfa.errors import EmptyLanguageError
from tokdfa.program.json_text import escapes_of, string_terminal
from tokdfa.program.program import (
    ANY,
    CALL,
    COUNT_LIMIT,
    COUNT_STATES,
    COUNTED,
    LAZY,
    NAMES,
    NAMES_TARGETS,
    RETURN_PLACE,
    TABLE_CHARACTERS,
    TERMINAL,
    TOKEN,
    UNBOUNDED,
    GrowingCode,
    NameTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.grammar.cfg import SpecialTokens
    from tokdfa.program.program import Escapes, Terminal


#: What grows as code is written: lists and arrays.
GROWING = (
    *("terminals", "token_sets", "name_tables", "code", "alternatives", "arguments", "entries", "frame_names", "makes"),
    "written",
)
_growing, _copy_of = attrgetter(*GROWING), itemgetter(slice(None))


def split_names(names: tuple[str, ...]) -> list[tuple[int, int]]:
    """First and past of each stretch of names that one table takes; most lists are one. O(length of the names)."""
    if sum(map(len, names)) <= TABLE_CHARACTERS // 2:  # characters beyond U+FFFF count twice
        return [(0, len(names))] if names else []
    found, first, size, before = [], 0, 0, ""
    for index, name in enumerate(names):
        own = name[len(commonprefix((before, name))) :]  # noqa: RUF071  strings, no paths
        units = len(own.encode("utf-16-le", "surrogatepass")) // 2
        if index > first and size + units > TABLE_CHARACTERS:
            found.append((first, index))
            first, size, units = index, 0, len(name.encode("utf-16-le", "surrogatepass")) // 2
        size, before = size + units, name
    return [*found, (first, len(names))]


class ProgramBuilder(GrowingCode):
    """Writes a program back to front: each method returns the place of an instruction that goes on at a given place.

    `escapes`: how a string is written that `counted` reads. Not thread-safe; `write`, which is called while texts are
    read, holds `lock`.
    """

    _string_terminal = -1

    def __init__(self, escapes: Escapes = "all") -> None:
        super().__init__()
        self.escapes: Escapes = escapes
        self._places: dict[tuple[Any, ...], int] = {}
        self._terminal_numbers: dict[bytes, int] = {}
        self._table_numbers: dict[tuple[tuple[str, ...], str], int] = {}

    def copy(self) -> Self:
        """A builder that has written the same and goes on by itself, with the same lock. What is equal to instructions
        written so far is written again. Raises ValueError if code is written later.
        """
        if self.makes:
            raise ValueError("code that is written later belongs to one builder")
        made = object.__new__(type(self))
        fields = vars(made)
        fields.update(vars(self))
        fields.update(zip(GROWING, map(_copy_of, _growing(self)), strict=True))
        made._terminal_numbers, made._table_numbers = self._terminal_numbers.copy(), self._table_numbers.copy()
        made._places = {}
        return made

    def terminal(self, terminal: Terminal) -> int:
        """The number of a terminal; terminals of equal language have one number."""
        number = self._terminal_numbers.setdefault(terminal.key, len(self.terminals))
        if number == len(self.terminals):
            self.terminals.append(terminal)
        return number

    @property
    def string_terminal(self) -> int:
        """The number of the terminal of any JSON string."""
        if self._string_terminal < 0:
            self._string_terminal = self.terminal(string_terminal(self.escapes))
        return self._string_terminal

    def name_table(self, names: tuple[str, ...], escapes: Escapes = "all") -> int:
        """The number of a table of names; tables of equal content have one number. O(length of the names).

        `escapes`: ``all``: any character may be escaped; ``needed``: only those that cannot stand raw. Raises
        UnsupportedConstraint for a name with a surrogate alone, ValueError for no names or equal ones.
        """
        key = names, escapes
        number = self._table_numbers.get(key)
        if number is None:
            self.name_tables.append(NameTable.of(names, escapes))
            number = self._table_numbers[key] = len(self.name_tables) - 1
        return number

    def name_tables_of(self, names: tuple[str, ...], escapes: Escapes = "all") -> list[tuple[int, int]]:
        """(number, index of its first name) of tables that have the names in their order: one, unless it were too
        large. O(length of the names). Raises as `name_table`.
        """
        return [(self.name_table(names[first:past], escapes), first) for first, past in split_names(names)]

    def frame(self, name: str | Callable[[], str]) -> int:
        """The number of a new frame; `enter` says later where it begins. `name`: or what makes it, if anybody asks."""
        self.frame_names.append(name)
        self.entries.append(RETURN_PLACE)
        return len(self.frame_names) - 1

    def enter(self, frame: int, place: int) -> None:
        """Let a frame begin at a place."""
        self.entries[frame] = place

    def read(self, terminal: int, following: int) -> int:
        """TERMINAL."""
        instruction = TERMINAL, terminal, following
        found = self._places.get(instruction)
        if found is None:  # as `_put`; most instructions are made here, and a call costs as much as the rest
            code = self.code
            found = self._places[instruction] = len(code) // 3
            code.extend(instruction)
        return found

    def take(self, tokens: SpecialTokens, following: int) -> int:
        """TOKEN."""
        if tokens not in self.token_sets:
            self.token_sets.append(tokens)
        return self._put(TOKEN, self.token_sets.index(tokens), following)

    def call(self, frame: int, following: int) -> int:
        """CALL."""
        instruction = CALL, frame, following
        found = self._places.get(instruction)
        if found is None:
            found = self._places[instruction] = self._append(CALL, frame, following)
        return found

    def any_of(self, places: Sequence[int]) -> int:
        """ANY of places, which reads nothing if there are none; of one it is that place."""
        if len(places) == 1:
            return places[0]
        if len(places) == 2:  # most have two
            first, second = places
            if first == second:
                return first
            distinct: tuple[int, ...] = (first, second) if first < second else (second, first)
        else:
            distinct = tuple(sorted(set(places)))
            if len(distinct) == 1:
                return distinct[0]
        found = self._places.get((ANY, distinct))
        if found is None:
            begin = len(self.alternatives)
            self.alternatives.extend(distinct)
            found = self._places[ANY, distinct] = self._append(ANY, begin, begin + len(distinct))
        return found

    def names(self, table: int, low: int, high: int, targets: Sequence[int], other: int = -1) -> int:
        """NAMES: a JSON string that spells one of the names `low` to `high` (inclusive) of a table, in any spelling.

        It goes on at ``targets[i - low]`` after the closing quote of name i. `other`: the place of a TERMINAL that
        reads every string that is none of the table's names, from its opening quote on; or -1. A name of the table
        outside of the window is refused, with `other`, too; without targets all names are. The terminal must be that of
        any JSON string: it holds the names, and when they are taken away nothing becomes a dead end. Raises ValueError
        if the arguments do not fit.
        """
        key = NAMES, table, low, high, tuple(targets), other
        found = self._places.get(key)
        if found is None:
            size = len(self.name_tables[table].names)
            if not targets and other >= 0:
                low, high = size, -1  # no name is allowed, only others
            elif not 0 <= low <= high < size or len(targets) != high - low + 1:
                raise ValueError(f"names {low} to {high} with {len(targets)} targets do not fit their table")
            begin = len(self.arguments)
            self.arguments.extend(targets)
            found = self._places[key] = self.names_at(table, low, high, begin, other)
        return found

    def reserve_targets(self, count: int) -> int:
        """Where in `arguments` the targets of so many names begin; whoever reserved them fills them in."""
        begin = len(self.arguments)
        self.arguments.frombytes(bytes(self.arguments.itemsize * count))
        return begin

    def names_at(self, table: int, low: int, high: int, targets: int, other: int = -1) -> int:
        """`names`, the targets being in `arguments` from an index on: windows of one list of members share them."""
        self.check_other(other)
        begin = len(self.arguments)
        self.arguments.extend((table, low, high, other, targets))
        return self._append(NAMES, begin, 0)

    def names_instead(self, key: int, table: int, index: int, place: int) -> int:
        """What is read at `key`, NAMES or ANY of such (-1: nothing), but that a name of a table leads to `place`."""
        found, waiting = [], [key] if key >= 0 else []
        while waiting:
            here = waiting.pop()
            operation, first, second = self.code[3 * here : 3 * here + 3]
            if operation == ANY:
                waiting += self.alternatives[first:second]
                continue
            if operation == NAMES:
                _, low, high, other, targets = self.arguments[first : first + NAMES_TARGETS + 1]
                if low <= index <= high:
                    changed = self.arguments[targets : targets + high - low + 1]
                    changed[index - low] = place
                    here, place = self.names(table, low, high, changed, other), -1
            found.append(here)
        return self.any_of(found if place < 0 else [*found, self.names(table, index, index, [place])])

    def check_other(self, other: int) -> None:
        """Raise ValueError if what reads other strings, which may be -1, is no TERMINAL of any string."""
        if other >= 0 and (
            self.code[3 * other] != TERMINAL or not escapes_of(self.terminals[self.code[3 * other + 1]])
        ):
            raise ValueError(f"what reads other strings is a TERMINAL of any string, not instruction {other}")

    def counted(
        self, minimum: int, maximum: int | None, following: int, terminal: int | None = None, states: int = 22
    ) -> int:
        """COUNTED: a JSON string of `minimum` to `maximum` (None: any number of) characters, then `following`.

        A character is a code point, however it is written. `terminal`: of the strings, else any; `states`: how many its
        automaton has. Raises EmptyLanguageError if there is no such number.
        """
        text = self.read(self.string_terminal if terminal is None else terminal, following)
        if minimum <= 0 and maximum is None:
            return text
        if maximum is not None and maximum < max(minimum, 0):
            raise EmptyLanguageError(f"no string has at least {minimum} and at most {maximum} characters")
        minimum = max(minimum, 0)
        key = COUNTED, minimum, maximum, text
        found = self._places.get(key)
        if found is None:
            whole = maximum if maximum is not None else minimum
            cap = min(whole, COUNT_LIMIT, COUNT_STATES // states - 1)
            beyond = min(whole - cap, UNBOUNDED - 1) if maximum is not None else UNBOUNDED
            on = -1
            if whole > cap:
                rest = None if maximum is None else maximum - cap
                # a string so long is rarely read, and its maximum may be so high that nobody could write all its code
                go_on = methodcaller("counted", minimum - cap, rest, following, terminal, states)
                on = self.lazy(partial(go_on, proxy(self)))
            begin = len(self.arguments)
            self.arguments.extend((text, minimum, cap, on, beyond))
            found = self._places[key] = self._append(COUNTED, begin, following)
        return found

    def lazy(self, make: Callable[[], int]) -> int:
        """LAZY: where `make` says, which writes the code with this builder and returns the place to go on at.

        It is called once, when the instruction is first to be read; if it raises, that is raised where the text is
        read, and it is called again when the instruction is needed again. As the builder keeps it, it refers to the
        builder by `weakref.proxy`: otherwise only the garbage collector would free both.
        """
        self.makes.append(make)
        return self._append(LAZY, len(self.makes) - 1, 0)

    def lazy_run(self, makes: Sequence[Callable[[], int]]) -> int:
        """The place of the first of several LAZY, one behind the other."""
        first, number = len(self.code) // 3, len(self.makes)
        self.makes.extend(makes)
        self.code.extend(part for k in range(len(makes)) for part in (LAZY, number + k, 0))
        return first

    def _put(self, operation: int, first: int, second: int) -> int:
        instruction = operation, first, second
        found = self._places.get(instruction)
        if found is None:
            found = self._places[instruction] = self._append(operation, first, second)
        return found

    def _append(self, operation: int, first: int, second: int) -> int:
        self.code.extend((operation, first, second))
        return len(self.code) // 3 - 1
