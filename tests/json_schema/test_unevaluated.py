"""unevaluatedProperties and unevaluatedItems: equal to the library, on random schemas and where branches decide."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, held, library_validator, values
from tests.naive.schema_values import holds
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_2020

DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}


def test_states_hold_what_the_library_says() -> None:
    # of 2019-09 the library takes the keywords of additionalProperties for names of properties
    count: Counter[str] = Counter()

    @settings(max_examples=120, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(drafts=(DRAFT_2020,), unevaluated=True), st.lists(values, max_size=8))
    def check(schema: dict[str, Any], drawn: list[Any]) -> None:
        shape_builder, root, _ = expand(schema)
        library = library_validator(schema)
        count["all"] += 1
        try:
            for value in (*COMMON_VALUES, *drawn):
                assert holds(shape_builder, root, exact(value)) == library.is_valid(value), value
        except SchemaUnsupported:
            count["refused"] += 1

    check()
    assert count["all"] - count["refused"] >= 55


A_AND_B = {"properties": {"a": {}}, "allOf": [{"properties": {"b": {"type": "string"}}}]}
NAMED = {"$defs": {"named": {"properties": {"name": {}}, "patternProperties": {"^x": {}}}}, "$ref": "#/$defs/named"}


@pytest.mark.parametrize("draft", [DRAFT_2019, {}], ids=["2019-09", "2020-12"])
@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({**A_AND_B, "unevaluatedProperties": False}, {"a": 1, "b": "b"}, {"a": 1, "c": 1}),
        ({**A_AND_B, "unevaluatedProperties": {"type": "null"}}, {"a": 1, "c": None}, {"c": 1}),
        ({**A_AND_B, "unevaluatedProperties": True}, {"c": 1}, {"b": 1}),
        ({**NAMED, "unevaluatedProperties": False}, {"name": 1, "x1": 1}, {"y": 1}),
        ({"properties": {"a": {}}, "anyOf": [{"properties": {"a": {"type": "null"}}}, {"required": ["b"]}],
          "unevaluatedProperties": {"const": 1}}, {"a": 2, "b": 1}, {"a": None, "b": 2}),
        ({"allOf": [{"additionalProperties": {"const": 1}}], "unevaluatedProperties": False}, {"c": 1}, {"c": 2}),
        ({"allOf": [{"unevaluatedProperties": {"const": 1}}], "unevaluatedProperties": False}, {"c": 1}, {"c": 2}),
        ({"not": {"properties": {"a": {}}, "required": ["z"]}, "unevaluatedProperties": False}, {}, {"a": 1}),
        ({"allOf": [{"items": {"type": "string"}}], "unevaluatedItems": False}, ["a"], [1]),
        ({"unevaluatedItems": {"type": "string"}}, ["a"], [1]),
        ({"allOf": [{"unevaluatedItems": {"type": "string"}}], "unevaluatedItems": False}, ["a"], [1]),
    ],
)  # fmt: skip
def test_both_drafts(draft: dict[str, Any], schema: Any, valid: Any, invalid: Any) -> None:
    assert held({**draft, **schema}, (valid, invalid)) == [valid]


def test_first_items_are_looked_at_by_the_keyword_of_the_draft() -> None:
    for schema in (
        {**DRAFT_2019, "allOf": [{"items": [{}, {}]}], "items": [{}], "unevaluatedItems": False},
        {"allOf": [{"prefixItems": [{}, {}]}], "prefixItems": [{}], "unevaluatedItems": False},
    ):
        assert held(schema, ([1, 2], [1, 2, 3])) == [[1, 2]]
    # additionalItems looks at the rest only beside a list of items
    rest = {**DRAFT_2019, "additionalItems": True, "unevaluatedItems": False}
    assert held(rest, ([1], [1, 2])) == []
    assert held({**rest, "items": [{}]}, ([1], [1, 2])) == [[1], [1, 2]]


def test_contains_looks_at_items_from_2020_12_on() -> None:
    schema = {"contains": {"const": 1}, "unevaluatedItems": False}
    assert held({**DRAFT_2019, **schema}, ([1],)) == []
    assert held(schema, ([1], [1, 1], [1, 2], [])) == [[1], [1, 1]]
    # of several, and beside a schema for the rest, an item has to be in one of them
    two = {"allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}]}
    assert held({**two, "unevaluatedItems": False}, ([1, 2, 1], [2, 1, 3])) == [[1, 2, 1]]
    threes = {**two, "unevaluatedItems": {"const": 3}}
    assert held(threes, ([3, 2, 1], [3, 2, 1, 4], [3, 2])) == [[3, 2, 1]]


CHOICES: list[dict[str, Any]] = [
    {"anyOf": [{"properties": {"b": {"type": "integer"}}}, {}]},
    {"anyOf": [{"required": ["b"], "properties": {"b": {}}}, {"required": ["c"], "patternProperties": {"^c": {}}}]},
    {"oneOf": [{"patternProperties": {"b": {"const": 1}}, "required": ["b"]}, {"maxProperties": 1}]},
    {"oneOf": [{"$ref": "#/$defs/x"}, {"properties": {"c": {"const": 1}}, "required": ["c"]}]},
    {"if": {"properties": {"b": {"const": 1}}}},
    {"if": {"required": ["b"]}, "then": {"properties": {"b": {}}}, "else": {"properties": {"c": {}}}},
    {"if": {"required": ["a"]}, "else": {"additionalProperties": {"type": "string"}}},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"anyOf": [{"properties": {"b": {}}}, {}]}},
    {"dependentSchemas": {"a": {"properties": {"b": {"type": "integer"}}}}},
    {"allOf": [{"anyOf": [{"properties": {"b": {"type": "null"}}}, {}]}]},
    {"not": {"anyOf": [{"properties": {"b": {"const": 1}}, "required": ["b"]}]}},
    {
        "anyOf": [
            {"anyOf": [{"properties": {"b": {"const": 1}}}, {"properties": {"c": {"const": 1}}}]},
            {"minProperties": 2},
        ]
    },
    {"oneOf": [{"unevaluatedProperties": {"type": "integer"}, "required": ["b"]}, {"required": ["c"]}]},
    {"$dynamicRef": "#/$defs/x"},
]


@pytest.mark.parametrize("rest", [False, {"type": "string"}], ids=["none", "strings"])
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_what_is_left_over_depends_on_branches(choice: dict[str, Any], rest: Any) -> None:
    schema = {"properties": {"a": {}}, "$defs": {"x": {"properties": {"b": {}}, "required": ["b"]}}, **choice}
    schema["unevaluatedProperties"] = rest
    shape_builder, root, _ = expand(schema)
    library, found = library_validator(schema), Counter[bool]()
    for names in ("", "a", "b", "c", "ab", "ac", "bc", "abc", ("ab",), ("a", "ab"), ("b", "ab")):
        for values_of in itertools.product((1, None, "s"), repeat=len(names)):
            value = dict(zip(names, values_of, strict=True))
            expected = library.is_valid(value)
            assert holds(shape_builder, root, value) == expected, value
            found[expected] += 1
    assert found[True] >= 3
    assert found[False] >= 3


def test_items_left_over_depend_on_branches() -> None:
    first = {"prefixItems": [{"const": 1}, {}]}
    for choice in (
        {"anyOf": [first, {"prefixItems": [{}]}]},
        {"if": {"prefixItems": [{"const": 1}]}, "then": {"prefixItems": [{}, {}, {}]}, "else": first},
        {"if": {"contains": {"const": 2}}, "then": {"if": {"contains": {"const": 3}}}},
        {"oneOf": [{**first, "minItems": 2}, {"items": {"const": 2}, "minItems": 1}]},
    ):
        schema = {**choice, "unevaluatedItems": False}
        shape_builder, root, _ = expand(schema)
        library = library_validator(schema)
        for length in range(4):
            for value in itertools.product((1, 2, 3), repeat=length):
                assert holds(shape_builder, root, list(value)) == library.is_valid(list(value)), (choice, value)


def test_too_many_combinations_are_refused() -> None:
    parts = [{"properties": {f"a{k}": {"const": 1}}, "patternProperties": {f"^{k}": {}}} for k in range(9)]
    shape_builder, root, _ = expand({"anyOf": parts, "unevaluatedProperties": False})
    with pytest.raises(SchemaUnsupported, match="more than 8 branches") as caught:
        shape_builder.shape_of(root)
    assert caught.value.keyword == "unevaluatedProperties"


def test_older_drafts_do_not_know_the_keywords() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "unevaluatedProperties": False}
    assert held(schema, [{"a": 1}])
