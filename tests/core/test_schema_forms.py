"""Schemas in the wrappers of requests: taken as what is in them, and nothing else is unwrapped."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tokdfa
from tokdfa.core.schema_forms import unwrapped, unwrapped_text

SCHEMA = {"type": "object", "properties": {"a": {"const": 1}}}
WRAPPERS: list[dict[str, Any]] = [
    {"type": "json_schema", "json_schema": {"name": "f", "schema": SCHEMA, "strict": True}},
    {"type": "json_schema", "name": "f", "strict": True, "schema": SCHEMA},
    {"name": "f", "schema": SCHEMA},
    {"strict": True, "schema": SCHEMA, "name": "f", "description": "does it"},
    {"type": "function", "function": {"name": "f", "description": "does it", "parameters": SCHEMA}},
    {"type": "function", "name": "f", "parameters": SCHEMA},
    {"name": "f", "parameters": SCHEMA},
    {"name": "f", "description": "does it", "input_schema": SCHEMA},
    {"name": "f", "title": "F", "inputSchema": SCHEMA, "outputSchema": {"type": "string"}},
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("indent", [None, 2])
def test_wrappers_are_their_schemas(wrapper: dict[str, Any], indent: int | None) -> None:
    expected = tokdfa.JsonSchema(SCHEMA)
    assert tokdfa.JsonSchema(wrapper) == expected
    assert json.loads(tokdfa.JsonSchema(json.dumps(wrapper, indent=indent)).text) == SCHEMA


@pytest.mark.parametrize(
    "wrapper",
    [
        {"name": "f", "parameters": None},
        {"type": "json_object"},
        {"type": "function", "function": {"name": "f", "parameters": None}},
    ],
)
def test_without_parameters_any_object_is_meant(wrapper: dict[str, Any]) -> None:
    assert tokdfa.JsonSchema(wrapper) == tokdfa.JsonSchema({"type": "object"})
    assert tokdfa.JsonSchema(json.dumps(wrapper)) == tokdfa.JsonSchema({"type": "object"})


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        SCHEMA,
        {"type": "object", "properties": {"name": {}, "schema": {}}},
        {"name": "f", "schema": SCHEMA, "properties": {}},
        {"name": {"type": "string"}, "parameters": SCHEMA},
        {"schema": SCHEMA},
        {"name": "f", "schema": 5},
        {"name": "f", "schema": SCHEMA, "parameters": SCHEMA},
        {"type": "string", "name": "f", "schema": SCHEMA},
        {"type": "json_object", "minProperties": 1},
    ],
)
def test_other_schemas_stay_as_they_are(schema: Any) -> None:
    assert unwrapped(schema) is schema
    assert unwrapped_text(json.dumps(schema), schema) == json.dumps(schema)


def test_numbers_keep_their_spelling() -> None:
    inside = '{"const": 0.1000000000000000055, "maximum": 1e400}'
    text = '{ "name" : "f" , "description": "}\\"schema\\"", "schema" : ' + inside + ' , "strict": true }'
    assert tokdfa.JsonSchema(text).text == inside
