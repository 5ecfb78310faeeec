"""Whether states have values: against values that are found by a walk, and judged by the library `jsonschema`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import (
    COMMON_VALUES,
    CONSTANTS,
    NUMBERS,
    STRINGS,
    documents,
    exact,
    expand,
    library_validator,
    values,
)
from tests.naive.schema_values import Witnesses, holds
from tokdfa.errors import SchemaUnsupported

#: Enough to meet every set of scalars that the schemas of `documents` can demand.
SCALARS = tuple(map(exact, (*CONSTANTS, *NUMBERS, *STRINGS, 0.25, 7, 100, -7, "bbb", "ccc", "0.0.0.0")))


def test_inhabited_states_have_a_witness_and_empty_ones_no_value() -> None:
    count: Counter[str] = Counter()

    @settings(max_examples=120, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(), st.lists(values, max_size=5))
    def check(schema: dict[str, Any], drawn: list[Any]) -> None:
        shape_builder, root, negated = expand(schema)
        library = library_validator(schema)
        for state, wanted in ((root, True), (negated, False)):
            count["all"] += 1
            try:
                is_inhabited = shape_builder.has_value(state)
                witnesses = Witnesses(shape_builder, SCALARS)
                found = next(filter(None, (witnesses.of(state, depth) for depth in range(6))), ())
            except SchemaUnsupported:
                count["refused"] += 1
                continue
            count["inhabited" if is_inhabited else "empty"] += 1
            assert bool(found) == is_inhabited, (schema, wanted)
            if found:
                assert library.is_valid(json.loads(json.dumps(found[0], default=float))) == wanted, (schema, found)
            else:
                assert not any(library.is_valid(value) == wanted for value in (*COMMON_VALUES, *drawn)), schema

    check()
    assert count["refused"] <= 0.08 * count["all"]
    assert min(count["inhabited"], count["empty"]) >= 15


def _definitions(count: int, following: dict[int, list[int]]) -> dict[str, Any]:
    """Definitions of objects with a required member that is of one of the following definitions."""
    return {
        f"d{k}": {
            "type": "object",
            "required": ["a"],
            "properties": {"a": {"anyOf": [{"$ref": f"#/$defs/d{j}"} for j in following[k]]}},
        }
        for k in range(count)
    }


ENDLESS = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}}
TWO_NAMES = {"type": "object", "propertyNames": {"enum": ["a", "b"]}}


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": []},
        {"type": "string", "const": 1},
        {"type": "integer", "minimum": 1.5, "maximum": 1.75},
        {"type": "string", "pattern": "^a", "allOf": [{"pattern": "^b"}]},
        {"type": "string", "maxLength": 3, "pattern": "^a{4}"},
        ENDLESS,
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
        {"type": "object", "required": ["a"], "propertyNames": {"pattern": "^b"}},
        {"type": "object", "minProperties": 1, "additionalProperties": False},
        {"type": "object", "minProperties": 2, "additionalProperties": False, "properties": {"a": {}, "b": False}},
        {"type": "object", "minProperties": 1, "propertyNames": False},
        {**TWO_NAMES, "minProperties": 3},
        {"type": "array", "contains": {"const": 1}, "items": {"const": 2}},
        {"type": "array", "contains": {"const": 1}, "minContains": 2, "maxContains": 1},
        {"type": "array", "uniqueItems": True, "items": {"enum": [1, 1.0, "a"]}, "minItems": 3},
        {"type": "array", "minItems": 2, "prefixItems": [{}], "items": False},
        {"not": {}},
        {"oneOf": [{"type": "string"}, True, True]},
    ],
)
def test_empty(schema: Any) -> None:
    shape_builder, root, negated = expand(schema)
    assert not shape_builder.has_value(root)
    assert shape_builder.has_value(negated)


def test_definitions_that_all_need_each_other_are_empty_and_soon_seen_to_be() -> None:
    count = 14
    definitions = _definitions(count, {k: list(range(count)) for k in range(count)})
    shape_builder, root, _ = expand({"$ref": "#/$defs/d0", "$defs": definitions})
    assert not shape_builder.has_value(root)


@given(st.integers(2, 6).flatmap(lambda n: st.tuples(
    st.just(n),
    st.fixed_dictionaries({k: st.lists(st.integers(0, n - 1), min_size=1, max_size=3) for k in range(n)}),
    st.sets(st.integers(0, n - 1), max_size=2),
    st.permutations(range(n)),
)))  # fmt: skip
def test_the_order_of_questions_does_not_matter(drawn: tuple[int, dict[int, list[int]], set[int], list[int]]) -> None:
    count, following, ends, order = drawn
    definitions = _definitions(count, following)
    for end in ends:
        definitions[f"d{end}"]["required"] = []
    # the least fixed point, step by step
    inhabited = set(ends)
    for _ in range(count):
        inhabited |= {k for k in range(count) if inhabited & set(following[k])}
    shape_builder, _, _ = expand(
        {"prefixItems": [{"$ref": f"#/$defs/d{k}"} for k in range(count)], "$defs": definitions}
    )
    document = shape_builder.document
    for k in order:
        node = document.target(document.root, "$ref", f"#/$defs/d{k}")
        assert shape_builder.has_value(shape_builder.state(node)) == (k in inhabited)


def test_overlaps_are_told_while_shapes_are_made() -> None:
    # whether the branches overlap depends on the shape that is being made: they may then only be taken to overlap
    branch = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}}
    shape_builder, root, _ = expand({"oneOf": [{"type": "null"}, branch, {**branch, "required": ["next", "other"]}]})
    assert shape_builder.has_value(root)
    assert holds(shape_builder, root, {"next": None})
    assert not holds(shape_builder, root, {"next": None, "other": 1})
    assert not holds(shape_builder, root, {"next": 1})
