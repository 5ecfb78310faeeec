"""Lowering: from a JSON schema to the intermediate program of `tokdfa.backends.pushdown_trie`.

Each state (`tokdfa.json_schema`) that has arrays or objects is a frame; scalars are read where they stand. Texts are
known by keys that say their language, so all schemas of a vocabulary share the automata of numbers, strings, formats
and punctuation, and equal patterns are one automaton.

Blanks belong to the punctuation before them: ``,`` and ``, `` lead to the same row.

`tokdfa.json_schema.write.lower_value` reads scalars and calls frames, `lower_array` and `lower_object` write what is in
them.

Cost: about 10 µs a property; automata are built only if no constraint of the vocabulary had them, and those of most
patterns and numbers when a text reaches them.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from tokdfa.constraint import SPELLING, JsonSchema
from tokdfa.core import notices
from tokdfa.core.budget import spend
from tokdfa.errors import EmptyLanguageError, SchemaError, SchemaUnsupported
from tokdfa.json_schema.read.document import NESTED, OBJECTS, Document, Dropped, Node
from tokdfa.json_schema.read.keyword_names import DEMANDING
from tokdfa.json_schema.read.metaschema import check_document, take_nullable
from tokdfa.json_schema.read.suspects import find_suspects
from tokdfa.json_schema.solve.clauses import EVERYTHING, State, intersect_states
from tokdfa.json_schema.solve.plain_types import PLAIN_NODES
from tokdfa.json_schema.solve.shape_builder import ShapeBuilder
from tokdfa.json_schema.solve.unique_items import find_locations
from tokdfa.json_schema.write.lazy_frames import survey_states
from tokdfa.json_schema.write.lower_array import lower_array
from tokdfa.json_schema.write.lower_object import ObjectWriter
from tokdfa.program.program import RETURN_PLACE

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.unique_items import Location
    from tokdfa.program.builder import Program

#: Work and memory (`tokdfa.core.budget`) of writing a frame beside its members.
FRAME_WORK, FRAME_BYTES = 10_000, 1_000
#: Characters from which on a schema is large; instructions of a large one that are written at once.
LARGE, AT_ONCE = 4_000, 1_500
#: Keywords that are dropped one after another at most, if `lenient`.
MAX_DROPPED = 1_000


def lower_schema(constraint: JsonSchema) -> tuple[Program, tuple[Dropped, ...]]:
    """`lower_and_remember` for whoever remembers nothing."""
    program, dropped, _ = lower_and_remember(constraint, items=False, names=False)
    return program, dropped


def lower_and_remember(
    constraint: JsonSchema, items: bool = True, names: bool = True
) -> tuple[Program, tuple[Dropped, ...], list[Location] | None]:
    """The program of a schema, the keywords that it does not enforce (none unless `lenient`), and where a matcher must
    remember items that must differ.

    Such arrays are refused unless the matcher remembers `items`, and objects in which a name could come twice though
    none may unless it remembers `names`, which the program then says (`GrowingCode.open_names`).

    Raises SchemaError for a broken schema, SchemaUnsupported for what cannot be enforced exactly, and
    EmptyLanguageError if no value is valid.
    """
    dropped: list[Dropped] = []
    left_out: frozenset[tuple[str, str]] = frozenset()
    shares = not constraint.lenient
    while True:
        document = Document(constraint.text, constraint.registry, constraint.asserts, shares)
        try:
            if not left_out:
                for suspect in find_suspects(document, check_document(document)):
                    notices.note(suspect)
            take_nullable(document)
            oracle = ShapeBuilder(document, left_out, constraint.duplicates == "refused", items)
            lowering = _prelude(constraint.spelling).of_schema(oracle)
            program = lowering.lower(constraint, names)
            document.forget_contents()
            return program, (*dropped, *lowering.repeatable), lowering.locations
        except (SchemaError, SchemaUnsupported, EmptyLanguageError) as error:
            if document.has_shared:  # once more, to name the place
                shares = False
                continue
            if not isinstance(error, SchemaUnsupported):
                raise
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


class SchemaLowering(ObjectWriter):
    """Writes the program of one schema. `locations`: where items must be remembered; `repeatable`: where names may be
    repeated although none should be, if `lenient`.
    """

    oracle: ShapeBuilder
    locations: list[Location] | None = None
    repeatable: tuple[Dropped, ...] = ()

    def lower(self, constraint: JsonSchema, names: bool) -> Program:
        """The whole program; `names`: as `lower_and_remember` has it."""
        oracle, self.any_order = self.oracle, constraint.order == "any"
        root = oracle.state(oracle.document.root)
        if constraint.max_nesting is not None:
            root = intersect_states(root, oracle.state(_nested(oracle, constraint.max_nesting)))
        if not oracle.has_value(root):
            from tokdfa.json_schema.solve.impossible import find_impossible

            place = find_impossible(oracle)
            raise EmptyLanguageError(
                f"no value is valid under the schema, as none is at #{place}; nothing could be generated"
            )
        if oracle.distinct and not names:
            from tokdfa.json_schema.solve.distinct import find_repeatable

            self.repeatable = tuple(find_repeatable(oracle, root, constraint.lenient))
        if oracle.remembers and oracle.compares:
            self.locations = find_locations(oracle, root, constraint, partial(self._object_program, constraint))
        uncertain: list[State] = []
        if len(oracle.document.text) > LARGE:
            self.may_wait, uncertain = survey_states(oracle, root)
        start = self.value(root, RETURN_PLACE)
        self.write_waiting(AT_ONCE)
        for state in uncertain:  # whatever there is to refuse is refused now; what no value has is never lowered
            if oracle.has_value(state):
                self.value(state, RETURN_PLACE)
                self.write_waiting(AT_ONCE)
        self.note_open_names()
        return self.build(start)

    def _object_program(self, constraint: JsonSchema, state: State) -> Program:
        """The program of the objects of a state by themselves."""
        oracle = self.oracle
        objects = oracle.state(oracle.synthesize(oracle.document.root, OBJECTS, {"type": "object"}))
        writer = _prelude(constraint.spelling).of_schema(oracle)
        writer.any_order = self.any_order
        start = writer.value(intersect_states(state, objects), RETURN_PLACE)
        writer.write_waiting()
        return writer.build(start)

    def write_frame(self, state: State) -> int:
        """Write the code of a state's frame: the place at which it begins."""
        spend(FRAME_WORK, FRAME_BYTES)
        oracle = self.oracle
        shape = oracle.shape_of(state)
        has_scalars = shape.constants or shape.numbers or shape.strings
        places = self.scalars(state, shape, RETURN_PLACE) if has_scalars else []
        is_sure = not places and len(shape.arrays) + len(shape.objects) == 1  # as the state is inhabited
        for array in shape.arrays:
            if is_sure or oracle.array_has_value(array):
                places.append(lower_array(self, array))
        for members in shape.objects:
            if is_sure or oracle.object_has_value(members):
                places.append(self.write_object(members))
        return self.any_of(places)


@lru_cache(32)
def _prelude(spelling: tuple[Any, ...]) -> SchemaLowering:
    """What all schemas that are spelled in this way need: the texts of punctuation and of plain types, and the code of
    any value. It is written once, and copied.
    """
    constraint = JsonSchema(True, **dict(zip(SPELLING, spelling, strict=True)))
    oracle = ShapeBuilder(Document("true"))
    writer = SchemaLowering(constraint, oracle)
    writer.learn(EVERYTHING, "any value")
    for number, (name, _) in PLAIN_NODES.items():
        writer.learn(frozenset([2 * number]), f"any {name}")
    return writer


def _nested(shape_builder: ShapeBuilder, depth: int) -> Node:
    """The node of a schema for values of so many arrays and objects inside each other."""
    schema: dict[str, Any] = {"type": ["null", "boolean", "number", "string"]}
    for _ in range(depth):
        schema = {"items": schema, "additionalProperties": schema}
    return shape_builder.synthesize(shape_builder.document.root, NESTED, schema)
