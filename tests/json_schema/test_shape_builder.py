"""Shapes of states against the library `jsonschema`, value by value, and the loops in place that it cannot follow."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, held, library_validator, values
from tests.naive.schema_values import holds
from tokdfa.errors import SchemaError, SchemaUnsupported
from tokdfa.json_schema.read.document import Document
from tokdfa.json_schema.solve.shape_builder import ShapeBuilder

DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def test_states_and_negated_states_hold_what_the_library_says() -> None:
    count: Counter[str] = Counter()

    @settings(max_examples=100, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(), st.lists(values, max_size=8))
    def check(schema: dict[str, Any], drawn: list[Any]) -> None:
        shape_builder, root, negated = expand(schema)
        library = library_validator(schema)
        for state, wanted in ((root, True), (negated, False)):
            count["all"] += 1
            try:
                shape_builder.shape_of(state)
                for value in (*COMMON_VALUES, *drawn):
                    is_valid = library.is_valid(value)
                    count["valid" if is_valid else "invalid"] += 1
                    assert holds(shape_builder, state, exact(value)) == (is_valid == wanted), (value, wanted)
            except SchemaUnsupported:
                count["refused"] += 1

    check()
    assert count["refused"] <= 0.04 * count["all"]
    assert min(count["valid"], count["invalid"]) > 1_500


OPEN = {"type": "object", "properties": {"kind": {"const": "open"}, "at": {"type": "string"}}, "required": ["kind"]}
SHUT = {"type": "object", "properties": {"kind": {"const": "shut"}, "by": {"type": "string"}}, "required": ["kind"]}
#: Schemas of common forms, a valid value, an invalid one.
COMMON: list[tuple[Any, Any, Any]] = [
    ({"oneOf": [OPEN, SHUT]}, {"kind": "shut", "at": 1}, {"kind": "open", "at": 1}),
    ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"b": 1}, {"a": 1, "b": 1}),
    ({"oneOf": [{"type": "number"}, {"multipleOf": 2}]}, 3, 2),
    ({"not": {"required": ["a", "b"]}}, {"a": 1}, {"a": 1, "b": 1}),
    ({"not": {"enum": [1, "a", None]}}, True, 1.0),
    ({"properties": {"a": {"type": "string"}}, "patternProperties": {"^x-": {}}, "additionalProperties": False},
     {"x-1": 1}, {"y": 1}),
    ({"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "$ref": "#/$defs/tree"},
     [[], [[]]], [[1]]),
    ({"dependentSchemas": {"a": {"properties": {"b": {"type": "null"}}}}}, {"b": 1}, {"a": 1, "b": 1}),
    ({"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3}, [1, "a", 2], [1, "a"]),
    ({"allOf": [{"minimum": 1}, {"maximum": 3}, {"multipleOf": 0.5}]}, 2.5, 2.25),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
    ({"allOf": [{"items": {"type": "string"}}, {"prefixItems": [{}], "items": {"maxLength": 1}}]},
     ["ab", "a"], ["a", 1]),
    ({"allOf": [{"items": {"maxLength": 1}}, {"prefixItems": [{}, {}], "items": {"type": "string"}}]},
     ["a", 1, "a"], ["a", 1, 1]),
    ({"const": {"a": [1, {"b": None}]}}, {"a": [1.0, {"b": None}]}, {"a": [True, {"b": None}]}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "valid", "invalid"), COMMON, ids=[str(k) for k in range(len(COMMON))])
def test_common_forms_are_not_refused(schema: Any, valid: Any, invalid: Any) -> None:
    shape_builder, root, negated = expand(schema)
    assert library_validator(schema).is_valid(valid)
    assert not library_validator(schema).is_valid(invalid)
    for value, wanted in ((valid, True), (invalid, False)):
        assert holds(shape_builder, root, exact(value)) == wanted
        assert holds(shape_builder, negated, exact(value)) != wanted
    assert shape_builder.has_value(root)
    assert shape_builder.has_value(negated)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"$ref": "#"}, [1, "a", {}], []),
        ({"allOf": [{"$ref": "#"}, {"type": "string"}]}, ["a"], [1]),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a", "minimum": 2}}},
         [2], [1]),
        ({**DRAFT_7, "$ref": "#/definitions/a", "definitions": {"a": {"allOf": [{"$ref": "#"}]}}}, [1], []),
    ],
)  # fmt: skip
def test_a_loop_in_place_adds_nothing(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    shape_builder, root, _ = expand(schema)
    assert shape_builder.has_value(root)
    assert held(schema, valid + invalid) == valid


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"$ref": "#"}},
        {"oneOf": [{"type": "string"}, {"$ref": "#"}]},
        {"if": {"type": "string"}, "then": {"$ref": "#"}},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
    ],
)
def test_a_loop_in_place_under_a_choice_is_refused(schema: Any) -> None:
    shape_builder, root, _ = expand(schema)
    with pytest.raises(SchemaUnsupported, match="in place, under a choice"):
        shape_builder.shape_of(root)


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"anyOf": [{"$ref": "#"}, {"type": "string"}]}, ["a"], [1, None]),
        ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, ["a"], [1, None]),
        ({"anyOf": [{"type": "string"}, {"allOf": [{"$ref": "#"}, {"maxLength": 1}]}]}, ["ab"], [1]),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
          "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, {"const": 1}]},
                    "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"const": 2}]}}}, [1, 2], [3]),
        ({"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#"}}, {"$ref": "#"}]},
         ["a", [], [["a"]]], [1, [1]]),
        ({"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}}},
         [1], ["a"]),
    ],
)  # fmt: skip
def test_a_loop_under_anyof_adds_no_value(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    shape_builder, root, _ = expand(schema)
    assert shape_builder.has_value(root)
    assert held(schema, valid + invalid) == valid


def test_a_loop_that_no_value_leaves_is_empty() -> None:
    shape_builder, root, _ = expand({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]})
    assert not shape_builder.has_value(root)


@pytest.mark.parametrize("seed", range(300))
def test_loops_under_anyof_are_least_solutions(seed: int) -> None:
    """Against Kleene's iteration over sets of values: definitions refer to each other by anyOf and allOf."""
    draw = random.Random(seed)
    values = [None, 1, "a", True]
    names = ["a", "b", "c"][: draw.randint(1, 3)]

    def part(depth: int) -> Any:
        if depth == 0 or draw.random() < 0.4:
            is_reference = draw.random() < 0.5
            return {"$ref": f"#/$defs/{draw.choice(names)}"} if is_reference else {"enum": draw.sample(values, 2)}
        return {draw.choice(("anyOf", "anyOf", "allOf")): [part(depth - 1) for _ in range(draw.randint(1, 3))]}

    definitions = {name: {"anyOf": [part(2), part(1)]} for name in names}  # so every loop has an anyOf on it
    found: dict[str, list[Any]] = {name: [] for name in names}

    def meaning(schema: Any) -> list[Any]:
        if "enum" in schema:
            return [value for value in values if any(value is each for each in schema["enum"])]
        if "$ref" in schema:
            return found[schema["$ref"].rsplit("/", 1)[1]]
        ((keyword, parts),) = schema.items()
        chosen = [meaning(each) for each in parts]
        quantifier = any if keyword == "anyOf" else all
        return [value for value in values if quantifier(any(value is each for each in one) for one in chosen)]

    for _ in range(4 * len(names) + 1):
        found = {name: meaning(schema) for name, schema in definitions.items()}
    shape_builder, root, _ = expand({"$ref": "#/$defs/a", "$defs": definitions})
    expected = found["a"]
    assert [value for value in values if holds(shape_builder, root, value)] == expected
    assert shape_builder.has_value(root) == bool(expected)


def test_a_loop_in_place_is_not_kept_by_those_inside_of_it() -> None:
    # d1 is first met inside of d0's loop, where d0's demand is still open
    definitions = {
        "d0": {"allOf": [{"$ref": "#/$defs/d1"}, {"type": "string"}]},
        "d1": {"allOf": [{"$ref": "#/$defs/d0"}], "minLength": 2},
    }
    schema = {"prefixItems": [{"$ref": "#/$defs/d0"}, {"$ref": "#/$defs/d1"}], "$defs": definitions}
    assert held(schema, (["ab", "ab"], ["ab", 1], ["ab", "a"])) == [["ab", "ab"]]


def test_many_loops_in_place_are_refused_soon() -> None:
    names = [f"d{k}" for k in range(12)]
    definitions = {name: {"allOf": [{"$ref": f"#/$defs/{other}"} for other in names]} for name in names}
    shape_builder, root, _ = expand({"$ref": "#/$defs/d0", "$defs": definitions})
    with pytest.raises(SchemaUnsupported, match="in too many ways"):
        shape_builder.shape_of(root)


def test_too_many_alternatives_are_refused() -> None:
    shape_builder, root, _ = expand(
        {"not": {"anyOf": [{"contains": {"const": k}, "minItems": k} for k in range(1, 14)]}}
    )
    with pytest.raises(SchemaUnsupported, match="alternatives"):
        shape_builder.shape_of(root)


def test_none_of_many_tags_is_few_alternatives() -> None:
    branches = [{"type": "object", "required": ["k"], "properties": {"k": {"const": k}}} for k in range(100)]
    schema = {"not": {"anyOf": branches}}
    shape_builder, root, _ = expand(schema)
    assert len(shape_builder.shape_of(root).objects) == 2
    assert held(schema, ({}, {"k": 7}, {"k": 100}, 7)) == [{}, {"k": 100}, 7]


def test_schemas_nested_in_place_too_deep_are_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"allOf": [schema]}
    shape_builder, root, _ = expand(schema)
    with pytest.raises(SchemaUnsupported, match="more than 150 schemas"):
        shape_builder.shape_of(root)


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        ({"type": "text"}, "", "type"),
        ({"properties": {"a/b": {"minimum": "1"}}}, "/properties/a~1b", "minimum"),
        ({"items": {"minLength": -1}}, "/items", "minLength"),
        ({"items": {"minLength": 1.5}}, "/items", "minLength"),
        ({"maxItems": True}, "", "maxItems"),
        ({"pattern": "("}, "", "pattern"),
        ({"pattern": 1}, "", "pattern"),
        ({"patternProperties": {"[": {}}}, "", "patternProperties"),
        ({"multipleOf": 0}, "", "multipleOf"),
        ({"required": "a"}, "", "required"),
        ({"required": [1]}, "", "required"),
        ({"properties": []}, "", "properties"),
        ({"enum": 1}, "", "enum"),
        ({"allOf": []}, "", "allOf"),
        ({"anyOf": {"a": 1}}, "", "anyOf"),
        ({"dependentRequired": {"a": {}}}, "", "dependentRequired"),
        ({"dependentRequired": []}, "", "dependentRequired"),
        ({"uniqueItems": 1}, "", "uniqueItems"),
        ({"prefixItems": {}}, "", "prefixItems"),
        ({"minimum": None}, "", "minimum"),
        ({"not": 1}, "/not", "schema"),
        ({"properties": {"a": []}}, "/properties/a", "schema"),
        ({"anyOf": [{}, 7]}, "/anyOf/1", "schema"),
    ],
)
def test_broken_keywords_are_errors_with_place_and_keyword(schema: Any, pointer: str, keyword: str) -> None:
    shape_builder, root, _ = expand({"$ref": "#/$defs/it", "$defs": {"it": schema}})
    with pytest.raises(SchemaError) as caught:
        _look_everywhere(shape_builder, root)
    assert (caught.value.pointer, caught.value.keyword) == ("/$defs/it" + pointer, keyword)


def _look_everywhere(shape_builder: ShapeBuilder, root: frozenset[int]) -> None:
    """Make the shapes of all schemas that are met."""
    shape_builder.shape_of(root)
    met = 0
    while met < len(shape_builder.document.nodes):
        shape_builder.shape_of(shape_builder.state(shape_builder.document.nodes[met]))
        met += 1


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ('{"maxLength": 1e999999999}', "maxLength"),
        ('{"minItems": 1e100}', "minItems"),
        ('{"const": 1e999999999}', "const"),
        ('{"enum": [1, [1e-99999]]}', "enum"),
        ('{"minimum": 1e999999999}', "minimum"),
        ('{"not": {"format": "regex"}}', "not"),
        ('{"oneOf": [{"format": "regex"}, {"minLength": 2}]}', "oneOf"),
        ('{"pattern": "(a)\\\\1"}', "pattern"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_keyword(text: str, keyword: str) -> None:
    shape_builder, root, _ = expand(text)
    with pytest.raises(SchemaUnsupported) as caught:
        _look_everywhere(shape_builder, root)
    assert caught.value.keyword == keyword


def test_dropped_keywords_demand_nothing() -> None:
    document = Document(json.dumps({"properties": {"a": {"type": "string", "minLength": 2, "not": {"const": "abc"}}}}))
    place = "/properties/a"
    for dropped, wanted in ((("minLength",), ["a"]), (("not",), ["abc"]), (("type", "minLength", "not"), [1, "a"])):
        shape_builder = ShapeBuilder(document, frozenset((place, keyword) for keyword in dropped))
        root = shape_builder.state(document.root)
        assert all(holds(shape_builder, root, {"a": value}) for value in wanted)
        assert holds(shape_builder, root, {"a": "abcd"})
    kept = ShapeBuilder(document)
    assert not any(holds(kept, kept.state(document.root), {"a": value}) for value in ("a", "abc", 1))


@pytest.mark.parametrize("demand", [["a"], ["a", "a"]])
def test_a_name_that_requires_itself_is_one_name(demand: list[str]) -> None:
    shape_builder, root, _ = expand({"type": "object", "dependentRequired": {"a": demand}, "maxProperties": 1})
    assert shape_builder.has_value(root)
    assert len(shape_builder.shape_of(root).objects) == 2
    schema = {"type": "object", "dependentRequired": {"a": demand}, "maxProperties": 1, "required": ["a"]}
    shape_builder, root, _ = expand(schema)
    assert shape_builder.has_value(root)
