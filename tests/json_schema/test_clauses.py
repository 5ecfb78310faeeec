"""Clauses and shapes: intersections hold what both hold, unions what one holds."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, values
from tests.naive.schema_values import shape_holds
from tokdfa.errors import SchemaUnsupported
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
    document = expander.document
    try:
        shapes = [
            expander.shape(expander.state(document.target(document.root, "$ref", f"#/$defs/{name}")))
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


def test_clauses_of_equal_scopes_in_two_places_are_not_mixed_up() -> None:
    # scopes are told apart by identity: those of one name by their content
    assert lone_scope("a", NOTHING).properties == {"a": NOTHING}
    absent = tuple(ObjectClause(scopes=(Scope({name: NOTHING}, (), EVERYTHING),)) for name in "abc")
    joined = intersect(Shape(objects=absent), Shape(objects=absent))
    assert {
        tuple(sorted(name for scope in clause.scopes for name in scope.properties)) for clause in joined.objects
    } == {tuple(sorted(one + other)) for one in "abc" for other in "abc"}


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
