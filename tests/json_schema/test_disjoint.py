"""Which branches of oneOf are compared: never too few of them, and few if they are tagged."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import NAMES, exact, expand, scalars, values
from tests.naive.schema_values import shape_holds
from tokdfa.errors import SchemaError, SchemaUnsupported
from tokdfa.json_schema.solve.disjoint import candidates

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.clauses import Shape
    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder


def branches(parts: list[Any], **others: Any) -> tuple[ShapeBuilder, list[Shape]]:
    shape_builder, _, _ = expand({"oneOf": parts, **others})
    root = shape_builder.document.root
    states = [shape_builder.part(root, part, "oneOf", place) for place, part in enumerate(root.schema["oneOf"])]
    return shape_builder, [shape_builder.shape_of(state) for state in states]


def compared(parts: list[Any], **others: Any) -> list[tuple[int, int]]:
    shape_builder, shapes = branches(parts, **others)
    return candidates(shape_builder.listed, shapes)


listed = st.one_of(
    scalars.map(lambda value: {"const": value}),
    st.lists(scalars, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    st.sampled_from([{"type": "string"}, {"enum": [[], 1]}, {"enum": ["a", "b"], "minLength": 1}, True]),
)
tagged = st.builds(
    lambda properties, required: {"type": "object", "properties": properties, "required": required},
    st.dictionaries(st.sampled_from(NAMES[:3]), listed, max_size=3),
    st.lists(st.sampled_from(NAMES[:3]), max_size=2, unique=True),
)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    st.lists(tagged | listed.filter(lambda each: each is not True), min_size=2, max_size=5),
    st.lists(st.dictionaries(st.sampled_from(NAMES[:3]), scalars, max_size=3) | scalars, min_size=10, max_size=30),
)
def test_branches_that_are_not_compared_have_no_value_in_common(parts: list[Any], drawn: list[Any]) -> None:
    shape_builder, shapes = branches(parts)
    compared = candidates(shape_builder.listed, shapes)
    assert compared == sorted(set(compared))
    held = [
        {k for k, shape in enumerate(shapes) if shape_holds(shape_builder, shape, value)} for value in map(exact, drawn)
    ]
    for first, second in set(combinations(range(len(parts)), 2)) - set(compared):
        assert not any({first, second} <= holders for holders in held)


def test_tagged_branches_are_not_compared() -> None:
    tags = [{"properties": {"k": {"const": f"a{k}"}}, "required": ["k"], "type": "object"} for k in range(50)]
    assert compared(tags) == []
    assert compared([*tags, {"type": ["string", "null"]}]) == []
    twice = {"properties": {"k": {"enum": ["b", "a7"]}, "n": {"const": 1}}, "required": ["k", "n"], "type": "object"}
    other = {"properties": {"n": {"const": True}}, "required": ["n"], "type": "object"}
    assert compared([*tags, twice]) == [(7, 50)]
    assert compared([twice, other]) == []


def test_tags_behind_a_reference_beside_which_nothing_counts() -> None:
    parts = [
        {"type": "object", "required": ["k"], "properties": {"k": {"$ref": "#/definitions/any", "const": const}}}
        for const in ("a", "b")
    ]
    draft_7 = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"any": {"type": "string"}}}
    assert compared(parts, **draft_7) == [(0, 1)]


def test_types_are_told_apart_one_by_one() -> None:
    """All branches hold what is no object; as objects, they are disjoint by their tags."""
    parts = [{"properties": {"t": {"const": k}, f"x{k}": {"minItems": 1}}, "required": ["t"]} for k in range(3)]
    shape_builder, root, _ = expand({"oneOf": parts})
    shape = shape_builder.shape_of(root)
    assert (shape.constants, shape.numbers, shape.strings, shape.arrays) == (0, (), (), ())
    assert len(shape.objects) == 3
    assert not any(clause.choices for clause in shape.objects)


def _untyped(schema: dict[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword != "type"}


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(
    st.lists(tagged | tagged.map(_untyped) | listed, min_size=2, max_size=3),
    st.lists(values | scalars, min_size=10, max_size=20),
)
def test_one_of_is_exactly_one(parts: list[Any], drawn: list[Any]) -> None:
    shape_builder, root, _ = expand({"oneOf": parts})
    try:
        shape, each = shape_builder.shape_of(root), branches(parts)
    except (SchemaUnsupported, SchemaError):
        assume(False)
    for value in map(exact, drawn):
        count = sum(shape_holds(each[0], one, value) for one in each[1])
        assert shape_holds(shape_builder, shape, value) == (count == 1), value
