"""Lowering of values: scalars are read where they stand, each state with arrays or objects by a frame.

`ValueWriter` is a builder that knows what scalars look like, and which states have frames. The code of a frame is
written (`tokdfa.json_schema.write.lower`) not when the frame is first called but when its turn comes, so nested schemas
nest no calls here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import lru_cache, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Self
from weakref import proxy

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.sets.blanks import FEW_BLANKS, FEW_STATES, check_blanks, limit_blanks
from tokdfa.json_schema.sets.number_dfa import SHIFT, is_surely_small
from tokdfa.json_schema.sets.number_texts import number_texts
from tokdfa.json_schema.sets.string_set import EXPLICIT_STATES, string_automaton
from tokdfa.json_schema.solve.clauses import ANY_STRING, FALSE, NULL, TRUE, Shape, State
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.json_text import SPELLED_BY, read_characters
from tokdfa.program.program import RETURN_PLACE, TERMINAL, Terminal
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import JsonSchema
    from tokdfa.json_schema.read.document import Document
    from tokdfa.json_schema.sets.number_set import NumberSet
    from tokdfa.json_schema.sets.string_set import StringSet
    from tokdfa.json_schema.solve.oracle import Oracle
    from tokdfa.program.json_text import Characters
    from tokdfa.program.program import Escapes

#: More sets of numbers than this in one place are spelled without exponents.
MANY_NUMBERS = 8
#: An automaton of more states is not counted beside, and makes a product with the length instead.
COUNTED_STATES = 1_500
#: Work and memory (`tokdfa.core.budget`) of writing a name in a table, or a member of an object.
NAME_WORK, NAME_BYTES = 5_000, 300


class ValueWriter(ProgramBuilder, ABC):
    """Writes the code of values. `oracle`: of the schema that they are of."""

    def __init__(self, constraint: JsonSchema, oracle: Oracle) -> None:
        super().__init__("needed" if constraint.escapes == "needed" else "all")
        self.oracle = oracle
        self._few_blanks = constraint.blanks == "few"
        self._natural, self._digits = constraint.numbers == "natural", constraint.number_digits
        blanks = constraint.whitespace_pattern or ("[ \t\n\r]*" if constraint.whitespace == "flexible" else "")
        if constraint.whitespace_pattern:
            check_blanks(constraint.whitespace_pattern)
        around = f"(?:{blanks})" if blanks else ""
        #: Terminals of punctuation, with the blanks that belong to it: those inside of brackets, if there is something.
        self.comma, self.colon = (
            self._sign(sign, around + re.escape(separator) + around)
            for sign, separator in ((",", constraint.item_separator), (":", constraint.key_separator))
        )
        self.spelled_by = SPELLED_BY if self.escapes == "all" else None
        self.brace, self.bracket = (self._sign(sign, re.escape(sign) + around) for sign in "{[")
        #: Places at which an object and an array end, and at which they do if they are empty.
        self.close_object, self.close_array = (
            self.read(self._sign(sign, around + re.escape(sign)), RETURN_PLACE) for sign in "}]"
        )
        self.no_member, self.no_item = (
            self.read(self._sign("bare" + sign, re.escape(sign)), RETURN_PLACE) for sign in "}]"
        )
        #: State -> what reads its values, wherever they stand: numbers of terminals, or ~number of a frame.
        self.readers_of: dict[State, list[int]] = {}
        #: The same of shapes that many states have, by identity.
        self._plain: dict[int, list[int]] = {}
        #: Strings whose lengths are counted, and the place after them -> the place at which they are read.
        self._counted: dict[tuple[StringSet, int], int] = {}
        #: Frames of values of any kind, whose objects may have any names; instructions that were looked at for calls of
        #: these.
        self._any_frames, self._noted = 0, 0
        #: States whose code may be written when it is reached (`tokdfa.json_schema.write.lazy_frames`).
        self.may_wait: set[State] = set()
        self._waiting: list[tuple[int, State]] = []

    def of_schema(self, oracle: Oracle) -> Self:
        """A writer of the same spelling for another schema, that begins with what this one has written."""
        made = self.copy()
        made.oracle, made.may_wait, made._waiting = oracle, set(), []
        made.readers_of, made._counted = self.readers_of.copy(), {}
        made._any_frames, made._noted, made.open_names = len(made.entries), len(made.code) // 3, "none"
        return made

    def learn(self, state: State, name: str) -> None:
        """Write what reads a state, so that it is known from now on of all states of the same shape.

        `name`: of its frame, if it has one.
        """
        self.value(state, RETURN_PLACE)
        self.write_waiting()
        readers = self._plain[id(self.oracle.shape_of(state))] = self.readers_of[state]
        if readers[0] < 0:
            self.frame_names[~readers[0]] = name

    @abstractmethod
    def write_frame(self, state: State) -> int:
        """Write the code of a state's frame: the place at which it begins."""

    def write_waiting(self, at_once: int = 0) -> None:
        """Write the frames that are called and not written yet.

        Those of states that `may_wait` are left to be written when they are reached, after the first `at_once`
        instructions.
        """
        waiting = self._waiting
        while waiting:
            frame, state = waiting[-1]
            at = len(waiting) - 1
            if state in self.may_wait and len(self.code) >= 3 * at_once:
                self.entries[frame] = self.lazy(partial(methodcaller("write_frame", state), proxy(self)))
            else:
                self.entries[frame] = self.write_frame(state)
            del waiting[at]  # not before: an error leaves it to whoever writes next

    def lazy(self, make: Callable[[], int]) -> int:
        """As that of a builder; the frames that the code calls are written with it."""
        return super().lazy(partial(_make_all, proxy(self), make))

    def note_open_names(self) -> None:
        """Note whether the code written since this was asked calls for values of any kind, if no name may come twice.

        O(instructions). What a plan leaves open is noted where its object is written.
        """
        if self.oracle.distinct and self.open_names == "none":
            if self.calls_below(self._noted, self._any_frames):
                self.open_names = "endless"
            self._noted = len(self.code) // 3

    def _sign(self, label: str, pattern: str) -> int:
        """The terminal of some punctuation."""
        return self.terminal(Terminal(label, b"json " + pattern.encode(), lambda: _compile(pattern)))

    def value(self, state: State, following: int) -> int:
        """The place at which a value of a state is read, before `following`."""
        readers = self.readers_of.get(state) or self.readers(state)
        if readers is None:
            return self.scalar(state, following)
        if len(readers) == 1:  # as most have
            return self.read(readers[0], following) if readers[0] >= 0 else self.call(~readers[0], following)
        return self.any_of(
            [self.read(each, following) if each >= 0 else self.call(~each, following) for each in readers]
        )

    def scalar(self, state: State, following: int) -> int:
        """`value` of a state that has scalars alone, and of which `readers` knows nothing. It does from now on, if
        these are texts and nothing else.
        """
        places, code, texts = self.scalars(state, self.oracle.shape_of(state), following), self.code, []
        for place in places:
            if code[3 * place] != TERMINAL:
                break
            texts.append(code[3 * place + 1])
        else:
            self.readers_of[state] = texts
        return self.any_of(places)

    def readers(self, state: State) -> list[int] | None:
        """What reads values of a state wherever they stand; None if that has to be written for each place, or was not
        written yet.
        """
        found = self.readers_of.get(state)
        if found is None:
            shape = self.oracle.shape_of(state)
            found = self._plain.get(id(shape))
            if found is None:
                if not shape.arrays and not shape.objects:
                    return None
                frame = self.frame(partial(_name, self.oracle.document, state))
                self._waiting.append((frame, state))
                found = [~frame]
            self.readers_of[state] = found
        return found

    def scalars(self, state: State, shape: Shape, following: int) -> list[int]:
        """The places at which the scalars of a state, whose shape is given, are read."""
        places = []
        if shape.constants:
            words = [word for bit, word in ((NULL, "null"), (TRUE, "true"), (FALSE, "false")) if shape.constants & bit]
            pattern = "|".join(words)
            key = b"json " + pattern.encode()
            text = Terminal(" | ".join(words), key, lambda: _compile(pattern), spelled_by=SPELLED_BY)
            places.append(self.read(self.terminal(text), following))
        numbers = tuple(numbers for numbers in shape.numbers if not numbers.is_empty())
        if numbers:
            places.append(self.read(self.terminal(self._number_text(state, numbers)), following))
        for strings in shape.strings:
            if not self.oracle.is_empty(strings):
                places.append(self.read_string(limit_blanks(strings) if self._few_blanks else strings, following))
        return places

    def read_string(self, strings: StringSet, following: int) -> int:
        """The place at which one of a set of strings is read; the set is not empty."""
        if strings is ANY_STRING or strings == ANY_STRING:
            return self.read(self.string_terminal, following)
        strings = strings.spelled_out
        if strings.values is not None:
            spend(NAME_WORK * len(strings.values), NAME_BYTES * len(strings.values))
            values = tuple(sorted(text for text in strings.values if strings.holds(text)))
            places = []
            for table, _ in self.name_tables_of(values, self.escapes):
                count = len(self.name_tables[table].names)
                places.append(self.names(table, 0, count - 1, (following,) * count))
            return self.any_of(places)
        if strings.simple:
            return self.counted(strings.min_length, strings.max_length, following)
        plain, low, high = strings.apart
        if not low and high is None:
            return self.read(self.terminal(_string_text(plain, self.escapes, self.spelled_by)), following)
        key = strings, following
        if key not in self._counted:
            write = partial(methodcaller("_count_string", strings, following), proxy(self))
            self._counted[key] = self.lazy(write) if strings.is_easy else write()
        return self._counted[key]

    def _count_string(self, strings: StringSet, following: int) -> int:
        """The place at which one of a set of strings is read whose lengths the rest of it does not imply."""
        plain, low, high = strings.apart
        found = _counted_automaton(plain, self.escapes)
        if found is None or (low and not found[1].has_all):
            return self.read(self.terminal(_string_text(strings, self.escapes, self.spelled_by)), following)

        escapes, spelled_by = self.escapes, self.spelled_by  # and not the writer: vocabularies keep terminals

        def bounded(low: int, high: int | None) -> Terminal:
            return _string_text(plain._replace(min_length=low, max_length=high), escapes, spelled_by)

        key = _string_key(plain, escapes) + b" counted"
        counted = Terminal(_string_label(plain), key, lambda: found[0], bounded=bounded, spelled_by=spelled_by)
        return self.counted(low, high, following, self.terminal(counted), found[0].state_count)

    def _number_text(self, state: State, numbers: tuple[NumberSet, ...]) -> Terminal:
        normal = [each.normal for each in numbers if each.normal is not None]
        may_be_refused = any(each.multiples not in ((), (1,)) or each.not_multiples for each in normal)
        if may_be_refused:
            try:
                _numbers_automaton(numbers, self._natural, self._digits)
            except LimitExceeded as error:
                if is_spent(error):
                    raise
                pointer = self.oracle.document.nodes[min((each for each in state if each >= 0), default=0) >> 1].pointer
                raise SchemaUnsupported(str(error), pointer, "multipleOf") from None
        written = f"natural {self._digits} " if self._natural else f"{self._digits} " if self._digits else ""
        key = b"json number " + written.encode() + b" | ".join([each.key for each in numbers])
        make = partial(_numbers_automaton, numbers, self._natural, self._digits)
        shift = SHIFT if len(numbers) <= MANY_NUMBERS else -1
        may_wait = not (may_be_refused or written) and (len(numbers) == 1 or is_surely_small(normal, shift))
        return Terminal("number", key, make, may_wait=may_wait, spelled_by=SPELLED_BY)


def _string_text(strings: StringSet, escapes: Escapes, spelled_by: bytes | None) -> Terminal:
    most = FEW_STATES if FEW_BLANKS in strings.patterns else EXPLICIT_STATES
    make = partial(string_automaton, strings, escapes, most)
    key = _string_key(strings, escapes)
    return Terminal(_string_label(strings), key, make, may_wait=strings.is_easy, spelled_by=spelled_by)


def _string_label(strings: StringSet) -> str:
    said = [pattern for pattern in strings.patterns if pattern != FEW_BLANKS]
    return " & ".join([*said, *strings.formats, *(f"not {p}" for p in strings.not_patterns)]) or "string"


def _string_key(strings: StringSet, escapes: Escapes) -> bytes:
    return b"json string " + escapes.encode() + strings.key


def _make_all(writer: ValueWriter, make: Callable[[], int]) -> int:
    place = make()
    writer.write_waiting()
    writer.note_open_names()
    return place


def _name(document: Document, state: State) -> str:
    """The name of a state's frame: the pointers of its schemas."""
    return " & ".join(("not " if each & 1 else "") + "#" + document.node(each >> 1).pointer for each in sorted(state))


@lru_cache(64)
def _counted_automaton(strings: StringSet, escapes: Escapes) -> tuple[Dfa, Characters] | None:
    """The automaton of a set that has texts, with their characters; None if it has too many states, or these do not
    say where characters begin.
    """
    automaton = string_automaton(strings, escapes, COUNTED_STATES)
    characters = None if isinstance(automaton, LazyDfa) else read_characters(automaton)
    return None if isinstance(automaton, LazyDfa) or characters is None else (automaton, characters)


@lru_cache(64)
def _numbers_automaton(numbers: tuple[NumberSet, ...], natural: bool, digits: int) -> Dfa:
    """The automaton of any of some sets; of many without exponents, which each would need states for."""
    return number_texts(numbers, natural, digits, SHIFT if len(numbers) <= MANY_NUMBERS else -1)


def _compile(pattern: str) -> Dfa:
    """The automaton of the pattern of some punctuation."""
    from tokdfa.constraint import Regex
    from tokdfa.regex.compile import compile_dfa

    return compile_dfa(Regex(pattern))
