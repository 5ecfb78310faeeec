"""Lowering: from a JSON schema to the intermediate form of `tokdfa.pushdown`.

Each state (`tokdfa.json_schema`) that has arrays or objects is a frame; scalars are read where they stand. Texts are
known by keys that say their language, so all schemas of a vocabulary share the automata of numbers, strings, formats
and punctuation, and equal patterns are one automaton.

Blanks belong to the punctuation before them: ``,`` and ``, `` lead to the same row.

Cost: about 10 µs a property; automata are built only if no constraint of the vocabulary had them.
"""

from __future__ import annotations

import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tokdfa.budget import hold, is_spent, spend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.clauses import ANY_STRING, EVERYTHING, FALSE, NULL, TRUE, Shape, State, both
from tokdfa.json_schema.document import NESTED, Document, Dropped, Node
from tokdfa.json_schema.expand import DEMANDING, Expander
from tokdfa.json_schema.keywords import PLAIN_INTEGER_SHAPE, PLAIN_SHAPES
from tokdfa.json_schema.lower_array import ArrayLowering
from tokdfa.json_schema.lower_object import NAME_BYTES, NAME_WORK, ObjectLowering
from tokdfa.json_schema.number_dfa import SHIFT, numbers_dfa
from tokdfa.json_schema.string_set import strings_automaton
from tokdfa.json_schema.survey import survey_states
from tokdfa.pushdown.form import RETURN_PLACE, TEXT, Text
from tokdfa.pushdown.form_builder import FormBuilder
from tokdfa.pushdown.json_text import string_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokdfa.automata.dfa import Dfa
    from tokdfa.json_schema.number_set import NumberSet
    from tokdfa.json_schema.string_set import StringSet
    from tokdfa.pushdown.form import Escapes, Form

#: More sets of numbers than this in one place are spelled without exponents.
MANY_NUMBERS = 8
#: Work and memory (`tokdfa.budget`) of writing a frame beside its members.
FRAME_WORK, FRAME_BYTES = 10_000, 1_000
#: Characters from which on a schema is large; instructions of a large one that are written at once.
LARGE, AT_ONCE = 4_000, 1_500
#: Keywords that are dropped one after another at most, if `lenient`.
MAX_DROPPED = 1_000


def lower_schema(constraint: JsonSchema) -> tuple[Form, tuple[Dropped, ...]]:
    """The form of a schema, and the keywords that it does not enforce (none unless `lenient`).

    Raises SchemaError for a broken schema, SchemaUnsupported for what cannot be enforced exactly, and
    EmptyLanguageError if no value is valid.
    """
    dropped: list[Dropped] = []
    while True:
        document = Document(constraint.text)
        left_out = frozenset((drop.pointer, drop.keyword) for drop in dropped)
        try:
            lowering = SchemaLowering(constraint, document, left_out)
            return lowering.lower(), (*dropped, *lowering.repeatable)
        except RecursionError:
            raise SchemaUnsupported("the schema is nested too deep", "", "properties") from None
        except SchemaUnsupported as error:
            place = (error.pointer, error.keyword)
            while place in left_out and place[0]:
                place = _enclosing(place[0])  # what was dropped does not help: the keyword around it goes, too
            if not constraint.lenient or place in left_out or len(dropped) >= MAX_DROPPED:
                raise
            dropped.append(Dropped(*place, error.reason))


def _enclosing(pointer: str) -> tuple[str, str]:
    """The innermost keyword of a JSON pointer, and the pointer of the schema that has it."""
    outer, _, last = pointer.rpartition("/")
    while outer and last not in DEMANDING:
        outer, _, last = outer.rpartition("/")
    return outer, last


class SchemaLowering:
    """One run of `lower_schema`. `builder` holds what is written so far.

    What all schemas need, the texts of punctuation and of plain types and the code of any value, is written once for
    each way to spell JSON, and copied (`_prelude`); that of `dropped` None is the one that writes it.
    """

    def __init__(self, constraint: JsonSchema, document: Document, dropped: frozenset[tuple[str, str]] | None) -> None:
        self.constraint = constraint
        self.escapes: Escapes = "needed" if constraint.escapes == "needed" else "all"
        self.expander = Expander(document, dropped or frozenset(), constraint.duplicates == "refused")
        self.any_order = constraint.order == "any"
        #: Where names may be repeated although none should be, if `lenient`.
        self.repeatable: list[Dropped] = []
        self._frames: dict[State, int] = {}
        self._signs: dict[str, int] = {}
        #: States of scalars that are texts and nothing else -> the numbers of the texts.
        self._texts: dict[State, list[int]] = {}
        #: The same of shapes that many states have, by identity.
        self._plain: dict[int, list[int]] = {}
        if dropped is None:
            self.builder = FormBuilder(escapes=self.escapes)
        else:
            prelude = _prelude(
                constraint.whitespace,
                constraint.whitespace_pattern,
                constraint.item_separator,
                constraint.key_separator,
                self.escapes,
            )
            self.builder, self._signs, self._plain = prelude.builder.copy(), prelude._signs, prelude._plain
            self._frames[EVERYTHING] = prelude._frames[EVERYTHING]
        #: States whose code may be written when it is reached (`tokdfa.json_schema.survey`).
        self._may_wait: set[State] = set()
        #: The number of the node that is being lowered, for messages.
        self._at = 0
        self._waiting: list[tuple[int, State]] = []
        blanks = constraint.whitespace_pattern or ("[ \t\n\r]*" if constraint.whitespace == "flexible" else "")
        self._blanks = f"(?:{blanks})" if blanks else ""
        self._objects, self._arrays = ObjectLowering(self), ArrayLowering(self)
        self.string = self.builder.text(string_text(self.escapes))

    def lower(self) -> Form:
        """The whole form."""
        document, expander = self.expander.document, self.expander
        root = expander.state(document.root)
        if self.constraint.max_nesting is not None:
            root = both(root, expander.state(_nested(expander, self.constraint.max_nesting)))
        if not expander.inhabited.state(root):
            raise EmptyLanguageError("no value is valid under the schema; nothing could be generated")
        if expander.distinct:
            from tokdfa.json_schema.distinct import find_repeatable

            self.repeatable = find_repeatable(expander, root, self.constraint.lenient)
        uncertain: list[State] = []
        if len(document.text) > LARGE:
            self._may_wait, uncertain = survey_states(expander, root)
        start = self.value(root, RETURN_PLACE)
        self.write_waiting(AT_ONCE)
        for state in uncertain:  # whatever there is to refuse is refused now; what no value has is never lowered
            if expander.inhabited.state(state):
                self.value(state, RETURN_PLACE)
                self.write_waiting(AT_ONCE)
        return self.builder.build(start)

    def write_waiting(self, at_once: int = 0) -> None:
        """Write the frames that are called and not written yet.

        In a large schema those of which nothing can be refused any more are left to be written when they are reached,
        after the first `at_once` instructions.
        """
        builder = self.builder
        while self._waiting:
            at = len(self._waiting) - 1
            frame, state = self._waiting[at]
            if state in self._may_wait and len(builder.code) >= 3 * at_once:
                builder.enter(frame, builder.later(self._writer(state)))
            else:
                builder.enter(frame, self._body(state))
            del self._waiting[at]  # not before: an error leaves it to whoever writes next

    def _writer(self, state: State) -> Callable[[], int]:
        def write() -> int:
            place = self._body(state)
            self.write_waiting()
            return place

        return write

    def punctuation(self, sign: str) -> int:
        """The number of the text of a sign, with the blanks that belong to it.

        ``{`` and ``[`` have blanks after them, ``}`` and ``]`` before, ``,`` and ``:`` around; ``bare}`` has none.
        """
        found = self._signs.get(sign)
        if found is not None:
            return found
        constraint = self.constraint
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
        text = Text(sign, b"json " + pattern.encode(), lambda: _compile(pattern))
        found = self._signs[sign] = self.builder.text(text)
        return found

    def value(self, state: State, following: int) -> int:
        """The place at which a value of a state is read, before `following`."""
        texts = self._texts.get(state)
        if texts is not None:
            if len(texts) == 1:
                return self.builder.read(texts[0], following)
            return self.builder.any_of([self.builder.read(text, following) for text in texts])
        shape = self.expander.shape(state)
        if (texts := self._plain.get(id(shape))) is not None:
            self._texts[state] = texts
            return self.value(state, following)
        self._at = min(state, default=0) >> 1
        if not shape.arrays and not shape.objects:
            places = self._scalars(shape, following)
            code = self.builder.code
            if all(code[3 * place] == TEXT for place in places):
                self._texts[state] = [code[3 * place + 1] for place in places]
            return self.builder.any_of(places)
        return self.builder.call(self._frame_of(state), following)

    def _frame_of(self, state: State) -> int:
        """The frame of a state that has arrays or objects."""
        frame = self._frames.get(state)
        if frame is None:
            frame = self._frames[state] = self.builder.frame(partial(_name, self.expander.document.nodes, state))
            self._waiting.append((frame, state))
        return frame

    def reader(self, state: State) -> int | Callable[[int], int]:
        """What reads a state before a place; if that is one text its number, and if it is a frame ~its number."""
        texts = self._texts.get(state)
        if texts is None:
            shape = self.expander.shape(state)
            texts = self._plain.get(id(shape))
            if texts is not None:
                self._texts[state] = texts
            elif shape.arrays or shape.objects:
                return ~self._frame_of(state)
        if texts is not None and len(texts) == 1:
            return texts[0]
        return lambda following: self.value(state, following)

    def _body(self, state: State) -> int:
        spend(FRAME_WORK)
        hold(FRAME_BYTES)
        self._at = min(state, default=0) >> 1
        shape = self.expander.shape(state)
        places = self._scalars(shape, RETURN_PLACE)
        is_sure = not places and len(shape.arrays) + len(shape.objects) == 1  # as the state is inhabited
        for clause in shape.arrays:
            if is_sure or self.expander.inhabited.array(clause):
                places.append(self._arrays.lower(clause))
        for members in shape.objects:
            if is_sure or self.expander.inhabited.object(members):
                places.append(self._objects.lower(members))
        return self.builder.any_of(places)

    def _scalars(self, shape: Shape, following: int) -> list[int]:
        """The places at which the scalars of a shape are read."""
        builder = self.builder
        places = []
        if shape.constants:
            words = [word for bit, word in ((NULL, "null"), (TRUE, "true"), (FALSE, "false")) if shape.constants & bit]
            pattern = "|".join(words)
            text = Text(" | ".join(words), b"json " + pattern.encode(), lambda: _compile(pattern))
            places.append(builder.read(builder.text(text), following))
        numbers = tuple(numbers for numbers in shape.numbers if not numbers.is_empty())
        if numbers:
            places.append(builder.read(builder.text(self._number_text(numbers)), following))
        for strings in shape.strings:
            if not self.expander.is_empty(strings):
                places.append(self.read_string(strings, following))
        return places

    def read_string(self, strings: StringSet, following: int) -> int:
        """The place at which one of a set of strings is read; the set is not empty."""
        builder = self.builder
        if strings is ANY_STRING or strings == ANY_STRING:
            return builder.read(self.string, following)
        strings = strings.spelled_out
        if strings.values is not None:
            spend(NAME_WORK * len(strings.values))
            hold(NAME_BYTES * len(strings.values))
            values = tuple(sorted(text for text in strings.values if strings.holds(text)))
            table = builder.name_table(values, self.escapes)
            return builder.names(table, 0, len(values) - 1, (following,) * len(values), -1)
        if strings.simple:
            return builder.counted(strings.min_length, strings.max_length, following)
        return builder.read(builder.text(self._string_text(strings)), following)

    def _number_text(self, numbers: tuple[NumberSet, ...]) -> Text:
        if any(each.multiples or each.not_multiples for each in numbers):
            try:
                _numbers_automaton(numbers)  # the only ones that may be refused
            except LimitExceeded as error:
                if is_spent(error):
                    raise
                pointer = self.expander.document.nodes[self._at].pointer
                raise SchemaUnsupported(str(error), pointer, "multipleOf") from None
        key = b"json number " + b" | ".join([each.key for each in numbers])
        return Text("number", key, lambda: _numbers_automaton(numbers))

    def _string_text(self, strings: StringSet) -> Text:
        label = (
            " & ".join([*strings.patterns, *strings.formats, *(f"not {p}" for p in strings.not_patterns)]) or "string"
        )
        key = b"json string " + self.escapes.encode() + strings.key
        return Text(label, key, lambda: strings_automaton((strings,), self.escapes))


@lru_cache(32)
def _prelude(whitespace: str, pattern: str, item_separator: str, key_separator: str, escapes: str) -> SchemaLowering:
    """What is written before any schema that is spelled in this way."""
    constraint = JsonSchema(
        True, whitespace=whitespace, whitespace_pattern=pattern, item_separator=item_separator,
        key_separator=key_separator, escapes=escapes,
    )  # fmt: skip
    lowering = SchemaLowering(constraint, Document("true"), None)
    for sign in ("{", "}", "[", "]", ",", ":", "bare}", "bare]"):
        lowering.punctuation(sign)
    lowering.value(EVERYTHING, RETURN_PLACE)
    lowering.write_waiting()
    code = lowering.builder.code
    for shape in (*PLAIN_SHAPES.values(), PLAIN_INTEGER_SHAPE):
        if not shape.arrays and not shape.objects:
            lowering._plain[id(shape)] = [code[3 * place + 1] for place in lowering._scalars(shape, RETURN_PLACE)]
    return lowering


def _name(nodes: Sequence[Node], state: State) -> str:
    """The name of a state's frame: the pointers of its schemas."""
    named = [("not " if literal & 1 else "") + "#" + nodes[literal >> 1].pointer for literal in sorted(state)]
    return " & ".join(named) or "any value"


def _nested(expander: Expander, depth: int) -> Node:
    """The node of a schema for values of so many arrays and objects inside each other."""
    schema: dict[str, Any] = {"type": ["null", "boolean", "number", "string"]}
    for _ in range(depth):
        schema = {"items": schema, "additionalProperties": schema}
    return expander.synthesize(expander.document.root, NESTED, schema)


@lru_cache(64)
def _numbers_automaton(numbers: tuple[NumberSet, ...]) -> Dfa:
    """The automaton of any of some sets; of many without exponents, which each would need states for."""
    return numbers_dfa(numbers, SHIFT if len(numbers) <= MANY_NUMBERS else -1)


def _compile(pattern: str) -> Dfa:
    """The automaton of the pattern of some punctuation."""
    from tokdfa.constraint import Regex
    from tokdfa.regex.compile import compile_dfa

    return compile_dfa(Regex(pattern))
