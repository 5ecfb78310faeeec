"""Clauses and shapes: intersections hold what both hold, unions what one holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, values
from tests.naive.schema_values import shape_holds
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded, SchemaUnsupported
from tokdfa.json_schema.clauses import (
    ObjectClause,
    Shape,
    TooManyClauses,
    intersect,
    unite,
)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(documents(depth=2, drafts=(4,)), documents(depth=2, drafts=(4,)), st.lists(values, max_size=10))
def test_intersection_and_union_value_by_value(first: dict[str, Any], second: dict[str, Any], drawn: list[Any]) -> None:
    schema = {"$defs": {**first.pop("$defs"), "first": first, "second": second}}
    second.pop("$defs")
    shape_builder, _, _ = expand(schema)
    document = shape_builder.schemas.document
    try:
        shapes = [
            shape_builder.shape(shape_builder.schemas.state(document.target(document.root, "$ref", f"#/$defs/{name}")))
            for name in ("first", "second")
        ]
        intersection, union = intersect(*shapes), unite(shapes)
        for value in map(exact, (*COMMON_VALUES, *drawn)):
            one, other = (shape_holds(shape_builder, shape, value) for shape in shapes)
            assert shape_holds(shape_builder, intersection, value) == (one and other), value
            assert shape_holds(shape_builder, union, value) == (one or other), value
    except SchemaUnsupported:
        assume(False)


@given(st.integers(1, 40), st.integers(1, 5))
def test_nested_references_to_one_schema_demand_it_once(levels: int, fan_out: int) -> None:
    steps = {f"l{k}": {"allOf": [{"$ref": f"#/$defs/l{k - 1}"}] * fan_out} for k in range(1, levels + 1)}
    wanted = {"properties": {"a": {"type": "string"}}, "items": {"minItems": 2}, "contains": {"maxItems": 3}}
    shape_builder, root, _ = expand({"$defs": {"l0": wanted, **steps}, "$ref": f"#/$defs/l{levels}"})
    shape = shape_builder.shape(root)
    assert [len(clause.scopes) for clause in shape.objects] == [1]
    assert [len(clause.counts) for clause in shape.arrays] == [1]


def test_too_many_clauses_are_noticed_while_they_are_made() -> None:
    joined = []

    class Noted(ObjectClause):
        def intersect(self, other: ObjectClause) -> ObjectClause:
            joined.append(self)
            return super().intersect(other)

    first = Shape(objects=tuple(Noted(required=(f"a{k}",), least=k) for k in range(1_000)))
    second = Shape(objects=tuple(ObjectClause(required=(f"b{k}",), least=k) for k in range(1_000)))
    with pytest.raises(TooManyClauses):
        intersect(first, second, 2_500)
    assert len(joined) == 3_000
    with pytest.raises(LimitExceeded, match="compile_seconds"), spending(Budget(0.01, 512), "the product"):
        intersect(first, second)
