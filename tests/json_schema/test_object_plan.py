"""Plans, and the automata of members and items, against what their clauses mean value by value."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.json_schema.schemas import expand, library_validator
from tests.naive.schema_values import array_accepted, object_accepted
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.sets.patterns import begin_apart
from tokdfa.json_schema.sets.string_set import StringSet
from tokdfa.json_schema.solve import array_states, object_plan
from tokdfa.json_schema.solve.array_states import ArrayStates
from tokdfa.json_schema.solve.object_plan import plan_object
from tokdfa.json_schema.solve.object_states import ObjectStates

if TYPE_CHECKING:
    from tokdfa.json_schema.solve.clauses import ArrayClause, ObjectClause
    from tokdfa.json_schema.solve.shape_builder import ShapeBuilder


def _clause(schema: dict[str, Any]) -> tuple[ShapeBuilder, ObjectClause]:
    shape_builder, root, _ = expand({"type": "object", **schema})
    (clause,) = shape_builder.shape_of(root).objects
    return shape_builder, clause


def test_too_many_ways_to_match_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_plan, "MAX_KINDS", 7)
    shape_builder, clause = _clause({"patternProperties": {letter: {"minLength": 1} for letter in "abc"}})
    with pytest.raises(SchemaUnsupported, match="more than 7 ways"):
        plan_object(shape_builder, clause)


#: Some are within others, some apart, some overlap; of the last ones readings differ.
_NAME_PATTERNS = [
    *("^a", "^ab", "^b[A-Z]*", "^[ab]{2}", "^c.*", "^[^a]", "b", "^.{0,2}", "^abc|^b", "^[a-c]"),
    *("^(a|b)c", "^a?B*", "^(ab)*$", "^B*$", "^(b|$)", "^(c|$)", "^B", "^é", "c$", "^a$", r"^\w", r"\s"),
]
_NAMES = (
    "",
    *("".join(letters) for n in (1, 2, 3) for letters in itertools.product("abcB-", repeat=n)),
    "é",
    "a\n",
    " ",
)


def test_patterns_that_begin_apart_have_no_name_in_common() -> None:
    found = 0
    for pair in itertools.combinations(_NAME_PATTERNS, 2):
        both = StringSet(patterns=pair)
        if begin_apart(pair):
            found += 1
            assert not any(map(both.holds, _NAMES)), pair
        assert both.is_empty() <= (not any(map(both.holds, _NAMES))), pair
    assert found > 20


@pytest.mark.parametrize("seed", range(60))
def test_kinds_of_names_are_what_they_match(seed: int) -> None:
    """Each name is in one kind, which says what it matches; on which patterns readings differ, in one at most."""
    draw = random.Random(seed)
    chosen = draw.sample(_NAME_PATTERNS, draw.randint(1, 6))
    more = draw.choice([{}, {}, {"propertyNames": {"pattern": "^[a-c]*$", "maxLength": 2}}, {"properties": {"ab": {}}}])
    shape_builder, clause = _clause({"patternProperties": {pattern: {} for pattern in chosen}, **more})
    plan = plan_object(shape_builder, clause)
    assert plan is not None
    named, found = StringSet(patterns=("^[a-c]{0,2}$",)), Counter[int]()
    for name in _NAMES:
        matched = {pattern for pattern in chosen if StringSet(patterns=(pattern,)).holds(name)}
        unmatched = {pattern for pattern in chosen if StringSet(not_patterns=(pattern,)).holds(name)}
        inside = [kind for kind in plan.kinds if kind.names.holds(name)]
        is_known = name not in plan.names and ("propertyNames" not in more or named.holds(name))
        assert [kind.matched for kind in inside] == [matched] * (is_known and matched | unmatched == set(chosen)), name
        found[len(inside)] += 1
    assert found[1]
    assert all(not kind.names.is_empty() for kind in plan.kinds)


@pytest.mark.parametrize("patterns", [("^[é!]", r"^\w"), (r"^\w", "^[é!]")])
def test_names_on_which_readings_differ_are_of_no_kind(patterns: tuple[str, ...]) -> None:
    shape_builder, clause = _clause({"patternProperties": {pattern: {} for pattern in patterns}})
    plan = plan_object(shape_builder, clause)
    assert plan is not None
    assert [sum(kind.names.holds(name) for kind in plan.kinds) for name in ("é", "!", "a", "-")] == [0, 1, 1, 1]


def test_what_is_apart_is_not_said() -> None:
    words = ("ab", "bc", "cd", "dx", "ex")
    shape_builder, clause = _clause({"patternProperties": {f"^{word}[A-Z]*": {} for word in words}})
    plan = plan_object(shape_builder, clause)
    assert plan is not None
    assert sorted(len(kind.names.not_patterns) for kind in plan.kinds) == [0, 0, 0, 0, 0, 5]


def test_too_many_demands_on_members_are_refused() -> None:
    negated = [{"not": {"additionalProperties": {"const": k}}} for k in range(7)]
    shape_builder, clause = _clause({"allOf": negated})
    plan = plan_object(shape_builder, clause)
    assert plan is not None
    with pytest.raises(SchemaUnsupported, match="more than 6 demands"):
        ObjectStates(shape_builder, clause, plan)


def _array_clause(schema: dict[str, Any]) -> tuple[ShapeBuilder, ArrayClause]:
    shape_builder, root, _ = expand({"type": "array", **schema})
    (clause,) = shape_builder.shape_of(root).arrays
    return shape_builder, clause


@pytest.mark.parametrize(
    "items",
    [
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 4},
        {"type": "integer", "exclusiveMinimum": -0.5, "maximum": 3.5, "not": {"const": 2}},
        {"type": ["integer", "boolean"], "minimum": 0, "maximum": 8, "multipleOf": 4},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 1, "maximum": 3},
        {"enum": [1, 2, "1", True]},
    ],
)
def test_integers_between_bounds_are_followed_as_listed_ones(items: dict[str, Any]) -> None:
    schema: dict[str, Any] = {"uniqueItems": True, "items": items, "minItems": 2}
    if "$schema" in items:
        schema["$schema"] = items["$schema"]
    shape_builder, clause = _array_clause(schema)
    library, found = library_validator({"type": "array", **schema}), Counter[bool]()
    for length in range(4):
        for value in itertools.product((0, 1, 2, 3, 4, 8, True, "1"), repeat=length):
            expected = library.is_valid(list(value))
            assert array_accepted(shape_builder, clause, list(value)) == expected, value
            found[expected] += 1
    assert found[True] > 10


@pytest.mark.parametrize(
    "items",
    [
        {}, {"type": "number"}, {"enum": [[1], [2]]}, {"type": "string", "minLength": 1},
        {"type": "integer", "minimum": 0}, {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "integer", "minimum": 0, "maximum": 64},
    ],
)  # fmt: skip
def test_items_that_differ_are_refused_if_there_are_many(items: dict[str, Any]) -> None:
    shape_builder, clause = _array_clause({"uniqueItems": True, "items": items})
    with pytest.raises(SchemaUnsupported) as caught:
        ArrayStates(shape_builder, clause)
    assert caught.value.keyword == "uniqueItems"


def test_equal_items_cannot_be_demanded() -> None:
    shape_builder, clause = _array_clause({"not": {"uniqueItems": True}})
    with pytest.raises(SchemaUnsupported, match="two items are equal"):
        ArrayStates(shape_builder, clause)


def test_counting_too_far_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_states, "MAX_STATES", 1_000)
    shape_builder, clause = _array_clause({"minItems": 2_000, "contains": {"const": 1}})
    states = ArrayStates(shape_builder, clause)
    with pytest.raises(SchemaUnsupported) as caught:
        states.is_inhabited()
    assert caught.value.keyword == "minItems"


@pytest.mark.parametrize(
    ("schema", "inhabited"),
    [
        ({"contains": {"const": 1}, "minContains": 3}, True),
        ({"contains": {"const": 1}, "items": {"const": 2}}, False),
        ({"contains": {"const": 1}, "minContains": 3, "maxContains": 4, "items": {"type": "integer"}}, True),
    ],
)
def test_items_that_are_needed_are_tried_first(
    schema: dict[str, Any], inhabited: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before all the lengths that there may be."""
    monkeypatch.setattr(array_states, "MAX_STATES", 10)
    shape_builder, clause = _array_clause({"maxItems": 1_000, **schema})
    assert ArrayStates(shape_builder, clause).is_inhabited() == inhabited


def test_names_that_match_in_one_reading_only() -> None:
    # é is a letter to Python, and none to ECMA-262
    both = {
        "patternProperties": {r"^\w+$": {"type": ["integer", "null"]}},
        "additionalProperties": {"type": ["string", "null"]},
    }
    for schema in (both, {**both, "required": ["é"]}):
        shape_builder, root, _ = expand(schema)
        (clause,) = shape_builder.shape_of(root).objects
        needed = {"é": None} if "required" in schema else {}
        assert object_accepted(shape_builder, clause, {"a": 1, "-": "s", **needed}, False)
        for value in ({"é": 1}, {"é": "s"}, {"a": "s", **needed}, {"-": 1, **needed}):
            assert not object_accepted(shape_builder, clause, value, False)
        if needed:
            assert plan_object(shape_builder, clause).names == ("é",)  # type: ignore[union-attr]
    no_other = {"not": {"patternProperties": {r"^\w+$": True}, "additionalProperties": {"type": "string"}}}
    shape_builder, root, _ = expand({"type": "object", "required": ["é"], **no_other})
    (clause,) = shape_builder.shape_of(root).objects
    assert object_accepted(shape_builder, clause, {"é": 1, "-": 1}, True)
    assert not object_accepted(shape_builder, clause, {"é": 1}, True)
