"""Complements of clauses and shapes: each value is in one of the two, never in both."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, values
from tests.naive.schema_values import array_holds, holds, object_holds
from tokdfa.errors import SchemaUnsupported, UnsupportedConstraint
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve.clauses import (
    EVERYTHING,
    Demand,
    ObjectClause,
    Scope,
    Shape,
    TooManyClauses,
    intersect,
)
from tokdfa.json_schema.solve.complement import (
    NotOneState,
    complement,
    complement_array,
    complement_object,
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(documents(depth=2), st.lists(values, max_size=10))
def test_clauses_and_their_complements_share_the_values_out(schema: dict[str, Any], drawn: list[Any]) -> None:
    shape_builder, root, _ = expand(schema)
    try:
        shape = shape_builder.shape_of(root)
        shape_builder.shape_of(frozenset(literal ^ 1 for literal in root))
    except SchemaUnsupported:
        assume(False)
    complements = [list(complement_object(clause)) for clause in shape.objects[:10]]
    of_arrays = [list(complement_array(clause)) for clause in shape.arrays[:10]]
    for value in map(exact, (*COMMON_VALUES, *drawn)):
        if isinstance(value, dict):
            for members, parts in zip(shape.objects, complements, strict=False):
                is_outside = any(object_holds(shape_builder, part, value) for part in parts)
                assert is_outside != object_holds(shape_builder, members, value), (members, value)
        elif isinstance(value, list):
            for items, others in zip(shape.arrays, of_arrays, strict=False):
                is_outside = any(array_holds(shape_builder, other, value) for other in others)
                assert is_outside != array_holds(shape_builder, items, value), (items, value)


def test_many_numbers_leave_the_gaps_between_them() -> None:
    shape_builder, root, negated = expand({"enum": [*range(1_000), 2.5, 7.0]})
    shape = shape_builder.shape_of(negated)
    assert len(shape.numbers) == 1_002
    for value in (-1, 0, 999, 1_000, Decimal("2.5"), Decimal("2.25"), Decimal("7.0"), Decimal("1e3"), "7"):
        assert holds(shape_builder, root, value) != holds(shape_builder, negated, value)


def test_that_no_member_is_in_two_states_at_once_is_not_one_state() -> None:
    both = frozenset([0, 2])
    for demand in (Demand("a", EVERYTHING, None, both), Demand(None, EVERYTHING, Scope({}, (), EVERYTHING), both)):
        with pytest.raises(NotOneState):
            list(complement_object(ObjectClause(demands=(demand,))))


def test_a_format_that_is_not_regular_cannot_be_negated() -> None:
    listed = expand({})[0].listed
    with pytest.raises(UnsupportedConstraint, match="regex"):
        complement(Shape(strings=(StringSet(formats=("regex",)),)), intersect, listed)


def test_a_complement_that_grows_may_be_refused() -> None:
    shape_builder, root, _ = expand({"type": "object", "required": list("abcdef")})
    with pytest.raises(TooManyClauses):
        complement(shape_builder.shape_of(root), lambda one, other: intersect(one, other, 6), shape_builder.listed)
