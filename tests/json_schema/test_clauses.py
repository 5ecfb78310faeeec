"""Clauses: equal demands are joined once, and too many clauses are noticed in time.

That intersections and unions hold what they should is what `test_shape_builder` asks of allOf and anyOf.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.json_schema.schemas import expand
from tokdfa.core.budget import Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.solve.clauses import (
    ObjectClause,
    Shape,
    TooManyClauses,
    intersect,
)


@given(st.integers(1, 40), st.integers(1, 5))
def test_nested_references_to_one_schema_demand_it_once(levels: int, fan_out: int) -> None:
    steps = {f"l{k}": {"allOf": [{"$ref": f"#/$defs/l{k - 1}"}] * fan_out} for k in range(1, levels + 1)}
    wanted = {"properties": {"a": {"type": "string"}}, "items": {"minItems": 2}, "contains": {"maxItems": 3}}
    shape_builder, root, _ = expand({"$defs": {"l0": wanted, **steps}, "$ref": f"#/$defs/l{levels}"})
    shape = shape_builder.shape_of(root)
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
