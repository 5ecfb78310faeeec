"""Lowering of values: scalars are read where they stand, each state with arrays or objects by a frame.

`ValueWriter` knows what scalars look like, and which states have frames. The code of a frame is written by a function
that is given to it (`tokdfa.json_schema.lower`), not when the frame is first called but when its turn comes, so nested
schemas nest no calls here.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from tokdfa.core.budget import is_spent, spend
from tokdfa.errors import LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.blanks import FEW_BLANKS, FEW_STATES, limit_blanks
from tokdfa.json_schema.clauses import ANY_STRING, FALSE, NULL, TRUE, Shape, State
from tokdfa.json_schema.number_dfa import SHIFT
from tokdfa.json_schema.number_texts import number_texts
from tokdfa.json_schema.string_set import EXPLICIT_STATES, string_automaton
from tokdfa.program.builder import ProgramBuilder
from tokdfa.program.json_text import read_characters
from tokdfa.program.program import RETURN_PLACE, TERMINAL, Terminal
from tokdfa.regex.lazy_dfa import LazyDfa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.constraint import JsonSchema
    from tokdfa.json_schema.document import Node
    from tokdfa.json_schema.number_set import NumberSet
    from tokdfa.json_schema.oracle import Oracle
    from tokdfa.json_schema.string_set import StringSet
    from tokdfa.program.json_text import Characters
    from tokdfa.program.program import Escapes

#: More sets of numbers than this in one place are spelled without exponents.
MANY_NUMBERS = 8
#: An automaton of more states is not counted beside, and makes a product with the length instead.
COUNTED_STATES = 1_500
#: Work and memory (`tokdfa.core.budget`) of writing a name in a table, or a member of an object.
NAME_WORK, NAME_BYTES = 5_000, 300


class ValueWriter:
    """Writes the code of values to `builder`. `write_frame`: writes that of a state's frame, and returns its place.

    `written_before`: a writer whose code and texts this one begins with; it is not changed.
    """

    def __init__(
        self,
        constraint: JsonSchema,
        oracle: Oracle,
        write_frame: Callable[[State], int],
        written_before: ValueWriter | None = None,
    ) -> None:
        self.oracle, self._constraint, self._write_frame = oracle, constraint, write_frame
        self.escapes: Escapes = "needed" if constraint.escapes == "needed" else "all"
        self._few_blanks = constraint.blanks == "few"
        self._natural, self._digits = constraint.numbers == "natural", constraint.number_digits
        self._frames: dict[State, int] = {}
        self._signs: dict[str, int] = {}
        #: States of scalars that are texts and nothing else -> the numbers of the texts.
        self._texts: dict[State, list[int]] = {}
        #: The same of shapes that many states have, by identity.
        self._plain: dict[int, list[int]] = {}
        #: Strings whose lengths are counted, and the place after them -> the place at which they are read.
        self._counted: dict[tuple[StringSet, int], int] = {}
        if written_before is None:
            self.builder = ProgramBuilder(escapes=self.escapes)
        else:
            self.builder = written_before.builder.copy()
            self._signs, self._plain = written_before._signs, written_before._plain
            self._frames.update(written_before._frames)
        #: States whose code may be written when it is reached (`tokdfa.json_schema.lazy_frames`).
        self.may_wait: set[State] = set()
        self._waiting: list[tuple[int, State]] = []
        blanks = constraint.whitespace_pattern or ("[ \t\n\r]*" if constraint.whitespace == "flexible" else "")
        self._blanks = f"(?:{blanks})" if blanks else ""

    def write_waiting(self, at_once: int = 0) -> None:
        """Write the frames that are called and not written yet.

        Those of states that `may_wait` are left to be written when they are reached, after the first `at_once`
        instructions.
        """
        builder = self.builder
        while self._waiting:
            at = len(self._waiting) - 1
            frame, state = self._waiting[at]
            if state in self.may_wait and len(builder.code) >= 3 * at_once:
                builder.enter(frame, self.lazy(partial(self._write_frame, state)))
            else:
                builder.enter(frame, self._write_frame(state))
            del self._waiting[at]  # not before: an error leaves it to whoever writes next

    def lazy(self, write: Callable[[], int]) -> int:
        """The place of code that `write` writes when it is first reached, and the frames that it calls with it."""

        def write_all() -> int:
            place = write()
            self.write_waiting()
            return place

        return self.builder.lazy(write_all)

    def punctuation(self, sign: str) -> int:
        """The number of the text of a sign, with the blanks that belong to it.

        ``{`` and ``[`` have blanks after them, ``}`` and ``]`` before, ``,`` and ``:`` around; ``bare}`` has none.
        """
        found = self._signs.get(sign)
        if found is not None:
            return found
        constraint = self._constraint
        blanks = self._blanks
        if sign in "{[":
            pattern = re.escape(sign) + blanks
        elif sign in "}]":
            pattern = blanks + re.escape(sign)
        elif sign in ",:":
            separator = constraint.item_separator if sign == "," else constraint.key_separator
            pattern = blanks + re.escape(separator) + blanks
        else:
            pattern = re.escape(sign[-1])
        text = Terminal(sign, b"json " + pattern.encode(), lambda: _compile(pattern))
        found = self._signs[sign] = self.builder.terminal(text)
        return found

    def value(self, state: State, following: int) -> int:
        """The place at which a value of a state is read, before `following`."""
        texts = self._texts.get(state)
        if texts is not None:
            if len(texts) == 1:
                return self.builder.read(texts[0], following)
            return self.builder.any_of([self.builder.read(text, following) for text in texts])
        shape = self.oracle.shape_of(state)
        if (texts := self._plain.get(id(shape))) is not None:
            self._texts[state] = texts
            return self.value(state, following)
        if not shape.arrays and not shape.objects:
            places = self.scalars(state, shape, following)
            code = self.builder.code
            if all(code[3 * place] == TERMINAL for place in places):
                self._texts[state] = [code[3 * place + 1] for place in places]
            return self.builder.any_of(places)
        return self.builder.call(self._frame_of(state), following)

    def _frame_of(self, state: State) -> int:
        """The frame of a state that has arrays or objects."""
        frame = self._frames.get(state)
        if frame is None:
            frame = self._frames[state] = self.builder.frame(partial(_name, self.oracle.schemas.document.nodes, state))
            self._waiting.append((frame, state))
        return frame

    def reader(self, state: State) -> int | Callable[[int], int]:
        """What reads a state before a place; if that is one text its number, and if it is a frame ~its number."""
        texts = self._texts.get(state)
        if texts is None:
            shape = self.oracle.shape_of(state)
            texts = self._plain.get(id(shape))
            if texts is not None:
                self._texts[state] = texts
            elif shape.arrays or shape.objects:
                return ~self._frame_of(state)
        if texts is not None and len(texts) == 1:
            return texts[0]
        return lambda following: self.value(state, following)

    def scalars(self, state: State, shape: Shape, following: int) -> list[int]:
        """The places at which the scalars of a state, whose shape is given, are read."""
        builder = self.builder
        places = []
        if shape.constants:
            words = [word for bit, word in ((NULL, "null"), (TRUE, "true"), (FALSE, "false")) if shape.constants & bit]
            pattern = "|".join(words)
            text = Terminal(" | ".join(words), b"json " + pattern.encode(), lambda: _compile(pattern))
            places.append(builder.read(builder.terminal(text), following))
        numbers = tuple(numbers for numbers in shape.numbers if not numbers.is_empty())
        if numbers:
            places.append(builder.read(builder.terminal(self._number_text(state, numbers)), following))
        for strings in shape.strings:
            if not self.oracle.is_empty(strings):
                places.append(self.read_string(limit_blanks(strings) if self._few_blanks else strings, following))
        return places

    def read_string(self, strings: StringSet, following: int) -> int:
        """The place at which one of a set of strings is read; the set is not empty."""
        builder = self.builder
        if strings is ANY_STRING or strings == ANY_STRING:
            return builder.read(builder.string_terminal, following)
        strings = strings.spelled_out
        if strings.values is not None:
            spend(NAME_WORK * len(strings.values), NAME_BYTES * len(strings.values))
            values = tuple(sorted(text for text in strings.values if strings.holds(text)))
            table = builder.name_table(values, self.escapes)
            return builder.names(table, 0, len(values) - 1, (following,) * len(values), -1)
        if strings.simple:
            return builder.counted(strings.min_length, strings.max_length, following)
        plain, low, high = strings.apart
        if not low and high is None:
            return builder.read(builder.terminal(self._string_text(plain)), following)
        key = strings, following
        if key not in self._counted:
            write = partial(self._count_string, strings, following)
            self._counted[key] = self.lazy(write) if strings.is_easy else write()
        return self._counted[key]

    def _count_string(self, strings: StringSet, following: int) -> int:
        """The place at which one of a set of strings is read whose lengths the rest of it does not imply."""
        builder, (plain, low, high) = self.builder, strings.apart
        found = _counted_automaton(plain, self.escapes)
        if found is None or (low and not found[1].has_all):
            return builder.read(builder.terminal(self._string_text(strings)), following)

        def bounded(low: int, high: int | None) -> Terminal:
            return self._string_text(plain._replace(min_length=low, max_length=high))

        text = self._string_text(plain)
        counted = Terminal(text.label, text.key + b" counted", lambda: found[0], bounded=bounded)
        return builder.counted(low, high, following, builder.terminal(counted), found[0].state_count)

    def _number_text(self, state: State, numbers: tuple[NumberSet, ...]) -> Terminal:
        normal = [each.normal for each in numbers if each.normal is not None]
        may_be_refused = any(each.multiples not in ((), (1,)) or each.not_multiples for each in normal)
        if may_be_refused:
            try:
                _numbers_automaton(numbers, self._natural, self._digits)
            except LimitExceeded as error:
                if is_spent(error):
                    raise
                pointer = self.oracle.schemas.document.nodes[min(state, default=0) >> 1].pointer
                raise SchemaUnsupported(str(error), pointer, "multipleOf") from None
        written = f"natural {self._digits} " if self._natural else f"{self._digits} " if self._digits else ""
        key = b"json number " + written.encode() + b" | ".join([each.key for each in numbers])
        make = partial(_numbers_automaton, numbers, self._natural, self._digits)
        return Terminal("number", key, make, may_wait=not may_be_refused and len(numbers) == 1 and not written)

    def learn_plain(self, shape: Shape) -> None:
        """Write the scalars of a shape that many states share, so that its texts are known from now on."""
        code = self.builder.code
        self._plain[id(shape)] = [code[3 * place + 1] for place in self.scalars(frozenset(), shape, RETURN_PLACE)]

    def _string_text(self, strings: StringSet) -> Terminal:
        said = [pattern for pattern in strings.patterns if pattern != FEW_BLANKS]
        label = " & ".join([*said, *strings.formats, *(f"not {p}" for p in strings.not_patterns)]) or "string"
        key = b"json string " + self.escapes.encode() + strings.key
        most = EXPLICIT_STATES if len(said) == len(strings.patterns) else FEW_STATES
        make = partial(string_automaton, strings, self.escapes, most)
        return Terminal(label, key, make, may_wait=strings.is_easy)


def _name(nodes: Sequence[Node], state: State) -> str:
    """The name of a state's frame: the pointers of its schemas."""
    named = [("not " if literal & 1 else "") + "#" + nodes[literal >> 1].pointer for literal in sorted(state)]
    return " & ".join(named) or "any value"


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
