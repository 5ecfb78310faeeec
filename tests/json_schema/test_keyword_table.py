"""Where each keyword is read, complemented, solved and written: the table below, held against what is really called.

Each keyword has a schema, a value that is valid only because of it or invalid only because of it, and a *void* schema,
which has no value because of it. Compiling the schema must call what reads the keyword and what writes it, compiling
its negation what complements it, and compiling the void schema what finds out that there is no value.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import tokdfa
from tests.json_schema.schemas import SCHEMA_URI
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_7, DRAFT_2019
from tokdfa.json_schema.read.keyword_names import APPLICATORS, TYPED_KEYWORDS
from tokdfa.json_schema.read.metaschema import CHECKS
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tokdfa.backends.base import CompiledConstraint

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], [256])
FOLDER = "/json_schema/"


class Places(NamedTuple):
    """The functions that know about a keyword, below `tokdfa.json_schema`."""

    read: str
    complemented: str
    solved: str
    written: str


NUMBERS = Places(
    "solve.keywords.Keywords.numbers",
    "sets.number_set.NumberSet.complement",
    "sets.number_set.NumberSet.is_empty",
    "write.lower_value.ValueWriter._number_text",
)
STRINGS = Places(
    "solve.keywords.Keywords.strings",
    "sets.string_set.StringSet.complement",
    "solve.oracle.Oracle.is_empty",
    "write.lower_value.ValueWriter.read_string",
)
ARRAYS = Places(
    "solve.keywords.Keywords.arrays",
    "solve.complement.complement_array",
    "solve.emptiness.Emptiness.array_has_value",
    "write.lower_array.lower_array",
)
OBJECTS = Places(
    "solve.keywords.Keywords.objects",
    "solve.complement.complement_object",
    "solve.emptiness.Emptiness.object_has_value",
    "write.lower_object.ObjectWriter.write_object",
)
#: What applies to a value of any type; where it is read stands with the keyword.
SHAPES = Places(
    "",
    "solve.complement.complement",
    "solve.emptiness.Emptiness.shape_has_value",
    "write.lower_value.ValueWriter.value",
)


class Row(NamedTuple):
    """One keyword. `refused`: what a compile of the negation says instead."""

    places: Places
    schema: dict[str, Any]
    valid: Any
    invalid: Any
    void: dict[str, Any]
    draft: int = 0
    refused: str = ""


def shape(read: str, *row: Any, **rest: Any) -> Row:
    return Row(SHAPES._replace(read=f"solve.{read}"), *row, **rest)


def number(keyword: str, value: Any, valid: Any, invalid: Any, **void: Any) -> Row:
    return Row(NUMBERS, {keyword: value}, valid, invalid, {"type": "number", keyword: value, **void})


def text(keyword: str, value: Any, valid: Any, invalid: Any, **void: Any) -> Row:
    return Row(STRINGS, {keyword: value}, valid, invalid, {"type": "string", keyword: value, **void})


def array(schema: dict[str, Any], valid: Any, invalid: Any, void: dict[str, Any], **rest: Any) -> Row:
    return Row(ARRAYS, schema, valid, invalid, {"type": "array", **schema, **void}, **rest)


def object_(schema: dict[str, Any], valid: Any, invalid: Any, void: dict[str, Any]) -> Row:
    return Row(OBJECTS, schema, valid, invalid, {"type": "object", **schema, **void})


NULL = {"type": "null"}
BOTH = {"required": ["a", "b"]}
LARGE = {"type": "number", "minimum": 5}
ROWS = {
    "minimum": number("minimum", 17, 17, 16, maximum=16),
    "maximum": number("maximum", 17, 17, 18, minimum=18),
    "exclusiveMinimum": number("exclusiveMinimum", 17, 18, 17, maximum=17),
    "exclusiveMaximum": number("exclusiveMaximum", 17, 16, 17, minimum=17),
    "multipleOf": number("multipleOf", 7, 14, 15, minimum=8, maximum=13),
    "minLength": text("minLength", 3, "abc", "ab", maxLength=2),
    "maxLength": text("maxLength", 3, "abc", "abcd", minLength=4),
    "pattern": text("pattern", "^x+$", "xx", "xy", maxLength=0),
    "format": text("format", "date", "2024-02-29", "2023-02-29", maxLength=9),
    "contentEncoding": Row(
        STRINGS,
        {"contentEncoding": "base64"},
        "YWI=",
        "Y!",
        {"type": "string", "contentEncoding": "base64", "pattern": "^.$"},
        draft=DRAFT_7,
    ),
    "contentMediaType": Row(
        STRINGS,
        {"contentMediaType": "application/json"},
        "[1]",
        "[1",
        {"type": "string", "contentMediaType": "application/json", "maxLength": 0},
        draft=DRAFT_7,
        refused="the negation of format 'application/json' is not supported",
    ),
    "minItems": array({"minItems": 2}, [1, 2], [1], {"maxItems": 1}),
    "maxItems": array({"maxItems": 1}, [1], [1, 2], {"minItems": 2}),
    "items": array({"items": NULL}, [None], [1], {"minItems": 1, "contains": {"type": "string"}}),
    "prefixItems": array({"prefixItems": [NULL]}, [None, 1], [1], {"minItems": 1, "items": NULL, "contains": LARGE}),
    "additionalItems": array(
        {"items": [NULL], "additionalItems": False}, [None], [None, 1], {"minItems": 2}, draft=DRAFT_7
    ),
    "contains": array({"contains": NULL}, [1, None], [1], {"maxItems": 0}),
    "minContains": array({"contains": NULL, "minContains": 2}, [None, None], [None], {"maxItems": 1}),
    "maxContains": array({"contains": NULL, "maxContains": 1}, [None], [None, None], {"items": NULL, "minItems": 2}),
    "uniqueItems": array(
        {"uniqueItems": True},
        [1, 2],
        [1, 1],
        {"items": {"enum": [1, 2]}, "minItems": 3},
        refused="that two items are equal cannot be demanded",
    ),
    "properties": object_({"properties": {"a": NULL}}, {"a": None}, {"a": 1}, {"properties": {"a": False}, **BOTH}),
    "patternProperties": object_(
        {"patternProperties": {"^a": NULL}}, {"ab": None}, {"ab": 1}, {"patternProperties": {"^a": False}, **BOTH}
    ),
    "additionalProperties": object_({"additionalProperties": False}, {}, {"a": 1}, {"minProperties": 1}),
    "propertyNames": object_({"propertyNames": {"maxLength": 1}}, {"a": 1}, {"ab": 1}, {"required": ["ab"]}),
    "required": object_(BOTH, {"a": 1, "b": 1}, {"a": 1}, {"maxProperties": 1}),
    "minProperties": object_({"minProperties": 2}, {"a": 1, "b": 1}, {"a": 1}, {"maxProperties": 1}),
    "maxProperties": object_({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 1}, {"minProperties": 2}),
    "type": shape("keywords.local_shape", {"type": ["null", "string"]}, None, 1, {"type": "string", "enum": [1]}),
    "enum": shape("values.shape_of_values", {"enum": [[1], "a"]}, [1], [2], {"enum": [1], "type": "string"}),
    "const": shape("values.shape_of_values", {"const": {"a": 1}}, {"a": 1}, {"a": 2}, {"const": 1, "type": "string"}),
    "allOf": shape(
        "shape_builder.ShapeBuilder._applied", {"allOf": [LARGE, {"maximum": 9}]}, 7, 10, {"allOf": [LARGE, NULL]}
    ),
    "anyOf": shape("shape_builder.ShapeBuilder._any_of", {"anyOf": [LARGE, NULL]}, None, 4, {"anyOf": [False, False]}),
    "oneOf": shape(
        "shape_builder.ShapeBuilder._one_of", {"oneOf": [LARGE, {"multipleOf": 3}]}, 3, 6, {"oneOf": [LARGE, LARGE]}
    ),
    "not": shape("shape_builder.ShapeBuilder.negated", {"not": LARGE}, 4, 5, {**LARGE, "not": {"minimum": 4}}),
    "if": shape(
        "shape_builder.ShapeBuilder._conditional",
        {"if": LARGE, "then": {"maximum": 9}, "else": NULL},
        9,
        10,
        {**LARGE, "if": {"minimum": 4}, "then": False},
    ),
    "$ref": shape("shape_builder.ShapeBuilder._reference", {"$ref": "#/$defs/large"}, 5, 4, {"$ref": "#/$defs/never"}),
    "$dynamicRef": shape(
        "shape_builder.ShapeBuilder._reference",
        {"$dynamicRef": "#/$defs/large"},
        5,
        4,
        {"$dynamicRef": "#/$defs/never"},
    ),
    "$recursiveRef": shape(
        "shape_builder.ShapeBuilder._reference",
        {"$id": "https://example.org/lists", "type": "array", "items": {"$recursiveRef": "#"}},
        [[]],
        [1],
        {"type": "array", "minItems": 1, "items": {"$recursiveRef": "#"}},
        draft=DRAFT_2019,
    ),
    "dependencies": shape(
        "shape_builder.ShapeBuilder._dependencies",
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {"a": 1, "b": 1},
        {"c": 1},
        {"type": "object", "required": ["a"], "maxProperties": 1, "dependencies": {"a": ["b"]}},
        draft=DRAFT_7,
    ),
    "dependentRequired": shape(
        "shape_builder.ShapeBuilder._dependencies",
        {"dependentRequired": {"a": ["b"]}},
        {"a": 1, "b": 1},
        {"a": 1},
        {"type": "object", "required": ["a"], "maxProperties": 1, "dependentRequired": {"a": ["b"]}},
    ),
    "dependentSchemas": shape(
        "shape_builder.ShapeBuilder._dependencies",
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"a": 1, "b": 1},
        {"a": 1},
        {"type": "object", "required": ["a"], "dependentSchemas": {"a": False}},
    ),
    "unevaluatedProperties": shape(
        "unevaluated.unevaluated_shape",
        {"anyOf": [{"properties": {"a": NULL}}], "unevaluatedProperties": False},
        {"a": None},
        {"b": None},
        {"type": "object", "required": ["a"], "unevaluatedProperties": False},
    ),
    "unevaluatedItems": shape(
        "unevaluated.unevaluated_shape",
        {"anyOf": [{"prefixItems": [NULL]}], "unevaluatedItems": False},
        [None],
        [None, 1],
        {"type": "array", "minItems": 1, "unevaluatedItems": False},
    ),
}
#: Read beside another keyword of the table.
BESIDE = {"then": "if", "else": "if"}
#: What names or describes schemas, and says nothing of a value.
SILENT = {
    *("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"),
    *("title", "description", "default", "examples", "readOnly", "writeOnly", "deprecated", "$comment"),
    "contentSchema",
}
DEFINITIONS = {"large": LARGE, "never": False}


def constraint(schema: dict[str, Any], draft: int) -> tokdfa.JsonSchema:
    declared = {"$schema": SCHEMA_URI[draft]} if draft else {}
    known = {} if draft else {"$defs": DEFINITIONS}
    return tokdfa.JsonSchema({**declared, **known, **schema}, asserts="all")


def called(do: Callable[[], Any]) -> set[str]:
    """The functions of `tokdfa.json_schema` in Python that are called meanwhile: room, module, name."""
    found = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and FOLDER in code.co_filename:
            module = code.co_filename.partition(FOLDER)[2].removesuffix(".py").replace("/", ".")
            found.add(f"{module}.{code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        do()
    finally:
        sys.setprofile(before)
    return found


def compiled(schema: dict[str, Any], draft: int) -> tuple[CompiledConstraint, set[str]]:
    made = []
    names = called(lambda: made.append(tokdfa.compile(constraint(schema, draft), BYTES, backend="pushdown_trie")))
    return made[0], names


def takes(made: CompiledConstraint, value: Any) -> bool:
    matcher = made.start()
    for byte in json.dumps(value).encode():
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return matcher.can_end()


@pytest.mark.parametrize("keyword", ROWS)
def test_is_read_and_written(keyword: str) -> None:
    row = ROWS[keyword]
    made, names = compiled(row.schema, row.draft)
    assert (takes(made, row.valid), takes(made, row.invalid)) == (True, False)
    assert {row.places.read, row.places.written} <= names


@pytest.mark.parametrize("keyword", ROWS)
def test_is_complemented_or_refused(keyword: str) -> None:
    row = ROWS[keyword]
    if row.refused:
        with pytest.raises(SchemaUnsupported, match=row.refused):
            compiled({"not": row.schema}, row.draft)
        return
    made, names = compiled({"not": row.schema}, row.draft)
    assert (takes(made, row.valid), takes(made, row.invalid)) == (False, True)
    assert row.places.complemented in names


@pytest.mark.parametrize("keyword", ROWS)
def test_is_solved(keyword: str) -> None:
    row = ROWS[keyword]

    def refuse() -> None:
        with pytest.raises(EmptyLanguageError):
            tokdfa.compile(constraint(row.void, row.draft), BYTES, backend="pushdown_trie")

    assert row.places.solved in called(refuse)


def test_the_table_has_every_keyword() -> None:
    known = {keyword for checks in CHECKS.values() for keyword in checks}
    assert known == ROWS.keys() | BESIDE.keys() | SILENT
    assert TYPED_KEYWORDS | APPLICATORS | {"type"} == ROWS.keys()
