"""Every keyword: a schema, a value that is valid only because of it or invalid only because of it, and a *void* schema,
which has no value because of it. The values change places under the negation.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import tokdfa
from tests.json_schema.schemas import SCHEMA_URI
from tests.walks import accepts
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_7, DRAFT_2019
from tokdfa.json_schema.read.keyword_names import APPLICATORS, TYPED_KEYWORDS
from tokdfa.json_schema.read.metaschema import CHECKS

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint

BYTES = tokdfa.load_tokenizer("bytes").vocabulary


class Row(NamedTuple):
    """One keyword. `refused`: what a compile of the negation says instead."""

    schema: dict[str, Any]
    valid: Any
    invalid: Any
    void: dict[str, Any]
    draft: int = 0
    refused: str = ""


def single(kind: str, keyword: str, value: Any, valid: Any, invalid: Any, void: dict[str, Any], **rest: Any) -> Row:
    """A row of a keyword that is about one type; `void`: what stands beside it."""
    return Row({keyword: value}, valid, invalid, {"type": kind, keyword: value, **void}, **rest)


NULL = {"type": "null"}
LARGE = {"type": "number", "minimum": 5}
ARRAY = {"type": "array"}
#: Objects with a member.
A = {"type": "object", "required": ["a"]}
TWO_OF_ONE = {"type": "object", "minProperties": 2, "maxProperties": 1}
NUMBER, STRING = partial(single, "number"), partial(single, "string")
BASE64, JSON = "base64", "application/json"
ROWS = {
    "minimum": NUMBER("minimum", 17, 17, 16, {"maximum": 16}),
    "maximum": NUMBER("maximum", 17, 17, 18, {"minimum": 18}),
    "exclusiveMinimum": NUMBER("exclusiveMinimum", 17, 18, 17, {"maximum": 17}),
    "exclusiveMaximum": NUMBER("exclusiveMaximum", 17, 16, 17, {"minimum": 17}),
    "multipleOf": NUMBER("multipleOf", 7, 14, 15, {"minimum": 8, "maximum": 13}),
    "minLength": STRING("minLength", 3, "abc", "ab", {"maxLength": 2}),
    "maxLength": STRING("maxLength", 3, "abc", "abcd", {"minLength": 4}),
    "pattern": STRING("pattern", "^x+$", "xx", "xy", {"maxLength": 0}),
    "format": STRING("format", "date", "2024-02-29", "2023-02-29", {"maxLength": 9}),
    "contentEncoding": STRING("contentEncoding", BASE64, "YWI=", "Y!", {"pattern": "^.$"}, draft=DRAFT_7),
    "contentMediaType": STRING(
        "contentMediaType", JSON, "[1]", "[1", {"maxLength": 0}, draft=DRAFT_7,
        refused="the negation of format 'application/json' is not supported",
    ),
    "minItems": Row({"minItems": 2}, [1, 2], [1], {**ARRAY, "minItems": 2, "maxItems": 1}),
    "maxItems": Row({"maxItems": 1}, [1], [1, 2], {**ARRAY, "maxItems": 1, "minItems": 2}),
    "items": Row({"items": NULL}, [None], [1], {**ARRAY, "items": NULL, "minItems": 1, "contains": LARGE}),
    "prefixItems": Row(
        {"prefixItems": [NULL]}, [None, 1], [1],
        {**ARRAY, "prefixItems": [NULL], "minItems": 1, "items": NULL, "contains": LARGE},
    ),
    "additionalItems": Row(
        {"items": [NULL], "additionalItems": False}, [None], [None, 1],
        {**ARRAY, "items": [NULL], "additionalItems": False, "minItems": 2}, draft=DRAFT_7,
    ),
    "contains": Row({"contains": NULL}, [1, None], [1], {**ARRAY, "contains": NULL, "maxItems": 0}),
    "minContains": Row(
        {"contains": NULL, "minContains": 2}, [None, None], [None],
        {**ARRAY, "contains": NULL, "minContains": 2, "maxItems": 1},
    ),
    "maxContains": Row(
        {"contains": NULL, "maxContains": 1}, [None], [None, None],
        {**ARRAY, "contains": NULL, "maxContains": 1, "items": NULL, "minItems": 2},
    ),
    "uniqueItems": Row(
        {"uniqueItems": True}, [1, 2], [1, 1],
        {**ARRAY, "uniqueItems": True, "items": {"enum": [1, 2]}, "minItems": 3},
        refused="that two items are equal cannot be demanded",
    ),
    "properties": Row({"properties": {"a": NULL}}, {"a": None}, {"a": 1}, {**A, "properties": {"a": False}}),
    "patternProperties": Row(
        {"patternProperties": {"^a": NULL}}, {"ab": None}, {"ab": 1}, {**A, "patternProperties": {"^a": False}}
    ),
    "additionalProperties": Row({"additionalProperties": False}, {}, {"a": 1}, {**A, "additionalProperties": False}),
    "propertyNames": Row({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}, {**A, "propertyNames": False}),
    "required": Row({"required": ["a", "b"]}, {"a": 1, "b": 1}, {"a": 1}, {**A, "maxProperties": 0}),
    "minProperties": Row({"minProperties": 2}, {"a": 1, "b": 1}, {"a": 1}, TWO_OF_ONE),
    "maxProperties": Row({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}, TWO_OF_ONE),
    "type": Row({"type": ["null", "string"]}, None, 1, {"type": "string", "enum": [1]}),
    "enum": Row({"enum": [[1], "a"]}, [1], [2], {"enum": [1], "type": "string"}),
    "const": Row({"const": {"a": 1}}, {"a": 1}, {"a": 2}, {"const": 1, "type": "string"}),
    "allOf": Row({"allOf": [LARGE, {"maximum": 9}]}, 7, 10, {"allOf": [LARGE, NULL]}),
    "anyOf": Row({"anyOf": [LARGE, NULL]}, None, 4, {"anyOf": [False, False]}),
    "oneOf": Row({"oneOf": [LARGE, {"multipleOf": 3}]}, 3, 6, {"oneOf": [LARGE, LARGE]}),
    "not": Row({"not": LARGE}, 4, 5, {**LARGE, "not": {"minimum": 4}}),
    "if": Row(
        {"if": LARGE, "then": {"maximum": 9}, "else": NULL}, 9, 10, {**LARGE, "if": {"minimum": 4}, "then": False}
    ),
    "$ref": Row({"$ref": "#/$defs/large"}, 5, 4, {"$ref": "#/$defs/never"}),
    "$dynamicRef": Row({"$dynamicRef": "#/$defs/large"}, 5, 4, {"$dynamicRef": "#/$defs/never"}),
    "$recursiveRef": Row(
        {"$id": "https://example.org/lists", **ARRAY, "items": {"$recursiveRef": "#"}}, [[]], [1],
        {**ARRAY, "minItems": 1, "items": {"$recursiveRef": "#"}}, draft=DRAFT_2019,
    ),
    "dependencies": Row(
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1, "b": 1}, {"c": 1},
        {**A, "maxProperties": 1, "dependencies": {"a": ["b"]}}, draft=DRAFT_7,
    ),
    "dependentRequired": Row(
        {"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1},
        {**A, "maxProperties": 1, "dependentRequired": {"a": ["b"]}},
    ),
    "dependentSchemas": Row(
        {"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": 1, "b": 1}, {"a": 1},
        {**A, "dependentSchemas": {"a": False}},
    ),
    "unevaluatedProperties": Row(
        {"anyOf": [{"properties": {"a": NULL}}], "unevaluatedProperties": False}, {"a": None}, {"b": None},
        {**A, "unevaluatedProperties": False},
    ),
    "unevaluatedItems": Row(
        {"anyOf": [{"prefixItems": [NULL]}], "unevaluatedItems": False}, [None], [None, 1],
        {**ARRAY, "minItems": 1, "unevaluatedItems": False},
    ),
}  # fmt: skip
#: Read beside another keyword of the table.
BESIDE = {"then": "if", "else": "if"}
#: What names or describes schemas, and says nothing of a value.
SILENT = {
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"),
    *("title", "description", "default", "examples", "readOnly", "writeOnly", "deprecated", "$comment"),
    "contentSchema",
}
DEFINITIONS = {"large": LARGE, "never": False}


def compiled(schema: dict[str, Any], draft: int) -> CompiledConstraint:
    declared = {"$schema": SCHEMA_URI[draft]} if draft else {"$defs": DEFINITIONS}
    return tokdfa.compile(tokdfa.JsonSchema({**declared, **schema}, asserts="all"), BYTES, backend="pushdown_trie")


def taken(made: CompiledConstraint, *values: Any) -> list[bool]:
    return [accepts(made.start(), json.dumps(value)) for value in values]


@pytest.mark.parametrize("keyword", ROWS)
def test_it_is_enforced(keyword: str) -> None:
    row = ROWS[keyword]
    assert taken(compiled(row.schema, row.draft), row.valid, row.invalid) == [True, False]


@pytest.mark.parametrize("keyword", ROWS)
def test_it_is_complemented_or_refused(keyword: str) -> None:
    row = ROWS[keyword]
    if row.refused:
        with pytest.raises(SchemaUnsupported, match=row.refused):
            compiled({"not": row.schema}, row.draft)
        return
    assert taken(compiled({"not": row.schema}, row.draft), row.valid, row.invalid) == [False, True]


@pytest.mark.parametrize("keyword", ROWS)
def test_that_there_is_no_value_is_seen(keyword: str) -> None:
    with pytest.raises(EmptyLanguageError):
        compiled(ROWS[keyword].void, ROWS[keyword].draft)


def test_the_table_has_every_keyword() -> None:
    known = {keyword for checks in CHECKS.values() for keyword in checks}
    assert known == ROWS.keys() | BESIDE.keys() | SILENT
    assert TYPED_KEYWORDS | APPLICATORS | {"type"} == ROWS.keys()
