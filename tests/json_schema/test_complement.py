"""Complements of clauses and shapes: each value is in one of the two, never in both."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.json_schema.schemas import expand
from tests.naive.schema_values import holds
from tokdfa.errors import UnsupportedConstraint
from tokdfa.json_schema.clauses import (
    EVERYTHING,
    Demand,
    ObjectClause,
    Scope,
    Shape,
    TooManyClauses,
    intersect,
)
from tokdfa.json_schema.complement import (
    NotOneState,
    complement,
    complement_object,
)
from tokdfa.json_schema.string_set import StringSet


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
