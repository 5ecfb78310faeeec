"""Lowering: from a JSON schema to the intermediate program of `tokdfa.backends.pushdown_trie`.

Each state (`tokdfa.json_schema`) that has arrays or objects is a frame; scalars are read where they stand. Texts are
known by keys that say their language, so all schemas of a vocabulary share the automata of numbers, strings, formats
and punctuation, and equal patterns are one automaton.

Blanks belong to the punctuation before them: ``,`` and ``, `` lead to the same row.

`tokdfa.json_schema.lower_value` reads scalars and calls frames, `lower_array` and `lower_object` write what is in them.

Cost: about 10 µs a property; automata are built only if no constraint of the vocabulary had them, and those of most
patterns and numbers when a text reaches them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import SPELLING, JsonSchema
from tokdfa.core.budget import spend
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported
from tokdfa.json_schema.clauses import EVERYTHING, State, intersect_states
from tokdfa.json_schema.document import NESTED, Document, Dropped, Node
from tokdfa.json_schema.keyword_names import DEMANDING, PLAIN_INTEGER_SHAPE, PLAIN_SHAPES
from tokdfa.json_schema.lazy_frames import survey_states
from tokdfa.json_schema.lower_array import lower_array
from tokdfa.json_schema.lower_object import ObjectLowering
from tokdfa.json_schema.lower_value import ValueWriter
from tokdfa.json_schema.shape_builder import ShapeBuilder
from tokdfa.json_schema.unique_items import find_locations
from tokdfa.program.program import RETURN_PLACE

if TYPE_CHECKING:
    from tokdfa.json_schema.unique_items import Location
    from tokdfa.program.program import Program

#: Work and memory (`tokdfa.core.budget`) of writing a frame beside its members.
FRAME_WORK, FRAME_BYTES = 10_000, 1_000
#: Characters from which on a schema is large; instructions of a large one that are written at once.
LARGE, AT_ONCE = 4_000, 1_500
#: Keywords that are dropped one after another at most, if `lenient`.
MAX_DROPPED = 1_000


def lower_schema(constraint: JsonSchema) -> tuple[Program, tuple[Dropped, ...]]:
    """`lower_and_remember` for whoever remembers nothing."""
    program, dropped, _ = lower_and_remember(constraint, remembers=False)
    return program, dropped


def lower_and_remember(
    constraint: JsonSchema, remembers: bool = True
) -> tuple[Program, tuple[Dropped, ...], list[Location] | None]:
    """The program of a schema, the keywords that it does not enforce (none unless `lenient`), and where a matcher must
    remember items that must differ; such arrays are refused unless it `remembers`.

    Raises SchemaError for a broken schema, SchemaUnsupported for what cannot be enforced exactly, and
    EmptyLanguageError if no value is valid.
    """
    dropped: list[Dropped] = []
    left_out: frozenset[tuple[str, str]] = frozenset()
    while True:
        document = Document(constraint.text, constraint.registry, constraint.asserts)
        try:
            prelude = _prelude(constraint.spelling)
            lowering = SchemaLowering(constraint, document, left_out, prelude, remembers)
            program = lowering.lower()
            return program, (*dropped, *lowering.repeatable), lowering.locations
        except RecursionError:
            raise SchemaUnsupported("the schema is nested too deep", "", "properties") from None
        except SchemaUnsupported as error:
            place = (error.pointer, error.keyword)
            while place in left_out and place[0]:
                place = _enclosing(place[0])  # what was dropped does not help: the keyword around it goes, too
            if not constraint.lenient or place in left_out or len(dropped) >= MAX_DROPPED:
                raise
            dropped.append(Dropped(*place, error.reason))
            left_out |= {place}


def remembered_locations(constraint: JsonSchema) -> list[Location] | None:
    """Where a matcher has to remember items that must differ; None: nowhere. Raises what `lower_and_remember` does."""
    is_needed = Document(constraint.text, constraint.registry).may_have("uniqueItems")
    return lower_and_remember(constraint)[2] if is_needed else None


def _enclosing(pointer: str) -> tuple[str, str]:
    """The innermost keyword of a JSON pointer, and the pointer of the schema that has it."""
    outer, _, last = pointer.rpartition("/")
    while outer and last not in DEMANDING:
        outer, _, last = outer.rpartition("/")
    return outer, last


class SchemaLowering:
    """One run of `lower_schema`. `writer` holds what is written so far, and `prelude` what it begins with."""

    def __init__(
        self,
        constraint: JsonSchema,
        document: Document,
        dropped: frozenset[tuple[str, str]],
        prelude: ValueWriter | None,
        remembers: bool = False,
    ) -> None:
        self.constraint = constraint
        self.shape_builder = ShapeBuilder(document, dropped, constraint.duplicates == "refused", remembers)
        #: Where items must be remembered.
        self.locations: list[Location] | None = None
        self.writer = ValueWriter(constraint, self.shape_builder.oracle, self._frame, prelude)
        self._objects = ObjectLowering(self.writer, constraint.order == "any")
        #: Where names may be repeated although none should be, if `lenient`.
        self.repeatable: list[Dropped] = []

    def lower(self) -> Program:
        """The whole program."""
        document, shape_builder, writer = self.shape_builder.schemas.document, self.shape_builder, self.writer
        root = shape_builder.schemas.state(document.root)
        if self.constraint.max_nesting is not None:
            root = intersect_states(
                root, shape_builder.schemas.state(_nested(shape_builder, self.constraint.max_nesting))
            )
        if not shape_builder.inhabited.state(root):
            raise EmptyLanguageError("no value is valid under the schema; nothing could be generated")
        if shape_builder.oracle.distinct:
            from tokdfa.json_schema.distinct import find_repeatable

            self.repeatable = find_repeatable(shape_builder, root, self.constraint.lenient)
        if shape_builder.oracle.remembers and document.may_have("uniqueItems"):
            self.locations = find_locations(shape_builder, root, self.constraint)
        uncertain: list[State] = []
        if len(document.text) > LARGE:
            writer.may_wait, uncertain = survey_states(shape_builder.oracle, root)
        start = writer.value(root, RETURN_PLACE)
        writer.write_waiting(AT_ONCE)
        for state in uncertain:  # whatever there is to refuse is refused now; what no value has is never lowered
            if shape_builder.inhabited.state(state):
                writer.value(state, RETURN_PLACE)
                writer.write_waiting(AT_ONCE)
        return writer.builder.build(start)

    def _frame(self, state: State) -> int:
        """The place at which the frame of a state begins."""
        spend(FRAME_WORK, FRAME_BYTES)
        shape = self.shape_builder.shape(state)
        has_scalars = shape.constants or shape.numbers or shape.strings
        places = self.writer.scalars(state, shape, RETURN_PLACE) if has_scalars else []
        is_sure = not places and len(shape.arrays) + len(shape.objects) == 1  # as the state is inhabited
        for clause in shape.arrays:
            if is_sure or self.shape_builder.inhabited.array(clause):
                places.append(lower_array(self.writer, clause))
        for members in shape.objects:
            if is_sure or self.shape_builder.inhabited.object(members):
                places.append(self._objects.lower(members))
        return self.writer.builder.any_of(places)


@lru_cache(32)
def _prelude(spelling: tuple[Any, ...]) -> ValueWriter:
    """What all schemas that are spelled in this way need: the texts of punctuation and of plain types, and the code of
    any value. It is written once, and copied.
    """
    constraint = JsonSchema(True, **dict(zip(SPELLING, spelling, strict=True)))
    writer = SchemaLowering(constraint, Document("true"), frozenset(), None).writer
    for sign in ("{", "}", "[", "]", ",", ":", "bare}", "bare]"):
        writer.punctuation(sign)
    writer.value(EVERYTHING, RETURN_PLACE)
    writer.write_waiting()
    for shape in (*PLAIN_SHAPES.values(), PLAIN_INTEGER_SHAPE):
        if not shape.arrays and not shape.objects:
            writer.learn_plain(shape)
    return writer


def _nested(shape_builder: ShapeBuilder, depth: int) -> Node:
    """The node of a schema for values of so many arrays and objects inside each other."""
    schema: dict[str, Any] = {"type": ["null", "boolean", "number", "string"]}
    for _ in range(depth):
        schema = {"items": schema, "additionalProperties": schema}
    return shape_builder.schemas.synthesize(shape_builder.schemas.document.root, NESTED, schema)
