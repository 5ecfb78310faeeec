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
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    EVERYTHING,
    IMPOSSIBLE,
    NOTHING,
    ArrayClause,
    Count,
    ObjectClause,
    Scope,
    Shape,
    TooManyClauses,
    both,
    intersect,
    lone_scope,
    unite,
)
from tokdfa.json_schema.number_set import NumberSet
from tokdfa.json_schema.string_set import StringSet


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(documents(depth=2, drafts=(4,)), documents(depth=2, drafts=(4,)), st.lists(values, max_size=10))
def test_intersection_and_union_value_by_value(first: dict[str, Any], second: dict[str, Any], drawn: list[Any]) -> None:
    schema = {"$defs": {**first.pop("$defs"), "first": first, "second": second}}
    second.pop("$defs")
    expander, _, _ = expand(schema)
    document = expander.schemas.document
    try:
        shapes = [
            expander.shape(expander.schemas.state(document.target(document.root, "$ref", f"#/$defs/{name}")))
            for name in ("first", "second")
        ]
        intersection, union = intersect(*shapes), unite(shapes)
        for value in map(exact, (*COMMON_VALUES, *drawn)):
            one, other = (shape_holds(expander, shape, value) for shape in shapes)
            assert shape_holds(expander, intersection, value) == (one and other), value
            assert shape_holds(expander, union, value) == (one or other), value
    except SchemaUnsupported:
        assume(False)


def test_both_states() -> None:
    assert both(EVERYTHING, NOTHING) is NOTHING
    assert both(EVERYTHING, frozenset([2])) == both(frozenset([2]), EVERYTHING) == frozenset([2])
    assert both(frozenset([2]), frozenset([5])) == frozenset([2, 5])
    assert both(frozenset([2]), NOTHING) == NOTHING


def test_arrays_of_different_prefixes() -> None:
    one, two, three = frozenset([2]), frozenset([4]), frozenset([6])
    joined = ArrayClause((one,), two, least=1).intersect(ArrayClause((three, three), EVERYTHING, most=4, unique=True))
    assert joined == ArrayClause((one | three, two | three), two, 1, 4, (), True)
    assert [joined.at(k) for k in (0, 1, 2, 9)] == [one | three, two | three, two, two]


def test_demands_and_counts_are_kept_once() -> None:
    count = Count(0, frozenset([2]), 1, None)
    array = ArrayClause(counts=(count,))
    assert array.intersect(array).counts == (count,)
    assert ANY_ARRAY.intersect(array) is array
    clause = ObjectClause(required=("a", "b"), least=2)
    joined = clause.intersect(ObjectClause(required=("b", "c"), most=3))
    assert (joined.required, joined.least, joined.most) == (("a", "b", "c"), 2, 3)
    assert ANY_OBJECT.intersect(clause) is clause


def test_clauses_are_told_apart_by_what_their_scopes_say() -> None:
    absent = tuple(ObjectClause(scopes=(lone_scope(name, NOTHING),)) for name in "abc")
    joined = intersect(Shape(objects=absent), Shape(objects=absent))
    assert {
        tuple(sorted(name for scope in clause.scopes for name in scope.properties)) for clause in joined.objects
    } == {tuple(sorted({one, other})) for one in "abc" for other in "abc"}


def test_a_scope_that_comes_again_is_one_scope() -> None:
    first, second = (ObjectClause(scopes=(Scope({"a": frozenset([2])}, (), NOTHING),)) for _ in range(2))
    assert first.intersect(second) == first


@given(st.integers(1, 40), st.integers(1, 5))
def test_nested_references_to_one_schema_demand_it_once(levels: int, fan_out: int) -> None:
    steps = {f"l{k}": {"allOf": [{"$ref": f"#/$defs/l{k - 1}"}] * fan_out} for k in range(1, levels + 1)}
    wanted = {"properties": {"a": {"type": "string"}}, "items": {"minItems": 2}, "contains": {"maxItems": 3}}
    expander, root, _ = expand({"$defs": {"l0": wanted, **steps}, "$ref": f"#/$defs/l{levels}"})
    shape = expander.shape(root)
    assert [len(clause.scopes) for clause in shape.objects] == [1]
    assert [len(clause.counts) for clause in shape.arrays] == [1]


def test_too_many_clauses_are_noticed_while_they_are_made() -> None:
    joined = []

    class Noted(ObjectClause):
        def intersect(self, other: ObjectClause) -> ObjectClause:
            joined.append(self)
            return super().intersect(other)

    first = Shape(objects=tuple(Noted(required=(f"a{k}",)) for k in range(1_000)))
    second = Shape(objects=tuple(ObjectClause(required=(f"b{k}",)) for k in range(1_000)))
    with pytest.raises(TooManyClauses):
        intersect(first, second, 2_500)
    assert len(joined) == 3_000
    with pytest.raises(LimitExceeded, match="compile_seconds"), spending(Budget(0.01, 512), "the product"):
        intersect(first, second)


def test_numbers_that_exclude_each_other_leave_no_clause() -> None:
    low, high = Shape(numbers=(NumberSet(high=1),)), Shape(numbers=(NumberSet(low=2), NumberSet(low=0)))
    assert intersect(low, high).numbers == (NumberSet(low=0, high=1),)


def test_union_with_the_unrestricted_clause_is_that_alone() -> None:
    some = Shape(strings=(StringSet(min_length=1),))
    assert unite([some, Shape(strings=(StringSet(),))]).strings == (StringSet(),)
    assert unite([some, IMPOSSIBLE]) is some
    assert unite([]) is IMPOSSIBLE
    assert unite([some, some]).strings == some.strings
    assert intersect(ANYTHING, some) is some
    assert (some.size, ANYTHING.size, IMPOSSIBLE.is_nothing, some.is_nothing) == (1, 4, True, False)
