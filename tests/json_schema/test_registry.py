"""References to other documents, which a registry holds. Oracle: the library `jsonschema` with the same registry."""

from __future__ import annotations

import json
from typing import Any

import pytest
import referencing
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from referencing.jsonschema import DRAFT4, DRAFT7, DRAFT202012, specification_with

from tests.json_schema.schemas import COMMON_VALUES, definitions_of, documents, held, library_validator, values
from tests.json_schema.schemas import SCHEMA_URI as URI
from tokdfa import JsonSchema
from tokdfa.errors import ArgumentError, OptionError, SchemaError, SchemaUnsupported
from tokdfa.json_schema.read.document import DRAFT_2019, DRAFTS
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.program.program_file import describe_constraint, rebuild_constraint

OTHER = "http://example.org/other/definitions.json"


def _library_registry(mapping: dict[str, Any], dialect: str) -> referencing.Registry[Any]:
    specification = specification_with(dialect)
    resources = {uri: referencing.Resource.from_contents(schema, specification) for uri, schema in mapping.items()}
    return referencing.Registry().with_resources(resources.items())


def _check(schema: dict[str, Any], mapping: dict[str, Any], instances: list[Any]) -> list[Any]:
    """Which instances are valid, to the library as to us."""
    dialect = schema.get("$schema", URI[max(DRAFTS.values())])
    library = library_validator(schema, _library_registry(mapping, dialect))
    found = held(schema, instances, JsonSchema(schema, registry=mapping).registry)
    assert found == list(filter(library.is_valid, instances))
    return found


@seed(27)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(documents(depth=2), st.lists(values, max_size=4))
def test_definitions_may_stand_in_another_document(schema: dict[str, Any], drawn: list[Any]) -> None:
    where = "definitions" if "definitions" in schema else "$defs"
    moved = json.loads(json.dumps(schema).replace(f'"#/{where}/', f'"{OTHER}#/{where}/'))
    mapping = {OTHER: {where: moved.pop(where)}}
    instances = [*COMMON_VALUES, *drawn]
    try:
        alone = held(schema, instances)
    except SchemaUnsupported:
        with pytest.raises(SchemaUnsupported):
            _check(moved, mapping, instances)
        return
    assert _check(moved, mapping, instances) == alone


BASE = "http://localhost:1234/"
#: What is told apart -> (schema, registry, instances of which the library takes some, and others not).
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[Any]]] = {
    "a pointer": (
        {"$ref": "http://e.org/a.json#/$defs/x"},
        {"http://e.org/a.json": {"$defs": {"x": {"type": "string"}}}},
        ["a", 1],
    ),
    "an anchor": (
        {"$ref": "http://e.org/a.json#here"},
        {"http://e.org/a.json": {"$defs": {"x": {"$anchor": "here", "type": "string"}}}},
        ["a", 1],
    ),
    "relative to the root's id": (
        {"$id": BASE + "root.json", "items": {"$ref": "folder/item.json"}},
        {BASE + "folder/item.json": {"$ref": "leaf.json"}, BASE + "folder/leaf.json": {"type": "integer"}},
        [[1], ["a"], 3],
    ),
    "back to the root": (
        {"$id": BASE + "tree", "type": "object", "properties": {"sub": {"$ref": "list"}}},
        {BASE + "list": {"type": "array", "items": {"$ref": "tree"}}},
        [{"sub": [{"sub": []}]}, {"sub": [{"sub": [1]}]}],
    ),
    "a resource inside another document": (
        {"$ref": "http://e.org/inner.json"},
        {
            "http://e.org/a.json": {
                "$defs": {"i": {"$id": "inner.json", "$ref": "#/$defs/n", "$defs": {"n": {"const": 1}}}}
            }
        },
        [1, 2],
    ),
    "a boolean": ({"properties": {"a": {"$ref": "urn:never"}}}, {"urn:never": False}, [{"b": 1}, {"a": 1}]),
    "the draft of the other document": (
        {"$ref": "http://e.org/four.json"},
        {
            "http://e.org/four.json": {
                "$schema": URI[0],
                "minimum": 3,
                "exclusiveMinimum": True,
                "items": [{"type": "null"}],
            }
        },
        [3, 4, [None], [1]],
    ),
    "the draft of the root, if the other declares none": (
        {"$schema": URI[2], "$ref": "http://e.org/seven.json"},
        {
            "http://e.org/seven.json": {
                "items": [{"$ref": "#/definitions/n", "maximum": 0}],
                "definitions": {"n": {"type": "integer"}},
            }
        },
        [[1], ["a"]],
    ),
    "a dynamic anchor": (
        {"$id": BASE + "strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False},
        {BASE + "tree": {"$dynamicAnchor": "node", "type": "object", "properties": {"sub": {"$dynamicRef": "#node"}}}},
        [{"sub": {"sub": {}}}, {"sub": {"bus": {}}}],
    ),
    "a recursive anchor": (
        {"$schema": URI[DRAFT_2019], "$id": BASE + "all", "$recursiveAnchor": True, "$ref": "list", "type": "array"},
        {BASE + "list": {"$schema": URI[DRAFT_2019], "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}},
        [[[]], [1]],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name: str) -> None:
    schema, mapping, instances = CASES[name]
    assert 0 < len(_check(schema, mapping, instances)) < len(instances)


def test_a_library_registry_keeps_the_drafts_of_its_documents() -> None:
    four = {
        "id": "http://e.org/d.json",
        "minimum": 3,
        "exclusiveMinimum": True,
        "definitions": {"a": {"id": "z.json", "type": "null"}},
    }
    seven = {"items": [{"type": "integer"}]}
    registry = (
        referencing.Registry()
        .with_resources(
            [
                ("http://e.org/d.json", DRAFT4.create_resource(four)),
                ("http://e.org/seven.json", DRAFT7.create_resource(seven)),
                ("http://e.org/new.json", DRAFT202012.create_resource({"prefixItems": [{"type": "null"}]})),
            ]
        )
        .crawl()
    )
    schema = {"properties": {name: {"$ref": f"http://e.org/{name}.json"} for name in ("d", "z", "seven", "new")}}
    right = [{"d": 4}, {"z": None}, {"seven": [1]}, {"new": [None, 1]}]
    wrong = [{"d": 3}, {"z": 1}, {"seven": ["a"]}, {"new": [1]}]
    assert held(schema, right + wrong, JsonSchema(schema, registry=registry).registry) == right


def test_a_document_of_another_draft_disturbs_no_other() -> None:
    """Booleans are no schemas of draft 4, and the library fails at them."""
    later = {"properties": {"a": True, "b": {"$ref": "#/properties/c"}, "c": {"type": "null"}}}
    registry = json.dumps({"http://e.org/later.json": later, "http://e.org/z.json": {"id": "sub/y.json", "enum": [1]}})
    for reference, right, wrong in (("sub/y.json", 1, 2), ("later.json#/properties/b", None, 1)):
        schema = {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": f"http://e.org/{reference}"}
        assert held(schema, (right, wrong), registry) == [right]


@pytest.mark.parametrize(
    ("reference", "document", "error", "place", "words"),
    [
        ("http://e.org/b.json", {}, SchemaUnsupported, "/properties/it", "registry has .*a.json"),
        ("http://e.org/a.json#/nope", {}, SchemaError, "/properties/it", "there is no #/nope"),
        (
            "http://e.org/a.json",
            {"items": {"pattern": "(?<=a)b"}},
            SchemaUnsupported,
            "http://e.org/a.json#/items",
            "look-behind",
        ),
        (
            "http://e.org/a.json#/x",
            {"x": {"items": {"type": "no"}}},
            SchemaError,
            "http://e.org/a.json#/x/items",
            "no type",
        ),
        (
            "http://e.org/a.json#n",
            {"$defs": {"x": {"$anchor": "n", "not": 4}}},
            SchemaError,
            "http://e.org/a.json",
            "not",
        ),
        ("http://e.org/a.json", {"$defs": {"k": {"$id": 4}}}, SchemaError, "http://e.org/a.json#/$defs/k", "ids"),
        (
            "http://e.org/a.json",
            {"$schema": "http://json-schema.org/draft-03/schema#"},
            SchemaUnsupported,
            "http://e.org/a.json#",
            "draft 3",
        ),
    ],
)
def test_refusals_name_the_document(
    reference: str, document: dict[str, Any], error: type[SchemaError], place: str, words: str
) -> None:
    schema = {"properties": {"it": {"$ref": reference}}, "required": ["it"]}
    with pytest.raises(error, match=words) as caught:
        lower_schema(JsonSchema(schema, registry={"http://e.org/a.json": document}))
    assert caught.value.pointer.startswith(place)
    assert (place if "#" in place or place.startswith("http") else "#" + place) in str(caught.value)


def test_a_registry_is_part_of_what_a_constraint_is() -> None:
    schema = {"$ref": "http://e.org/a.json"}
    first = JsonSchema(schema, registry={"http://e.org/b.json": True, "http://e.org/a.json": {"type": "null"}})
    same = JsonSchema(schema, registry={"http://e.org/a.json": {"type": "null"}, "http://e.org/b.json": True})
    other = JsonSchema(schema, registry={"http://e.org/a.json": {"type": "string"}})
    assert first == same
    assert hash(first) == hash(same)
    assert first != other
    assert rebuild_constraint(json.loads(json.dumps(describe_constraint(first)))) == first
    assert JsonSchema(schema, registry={}).registry == ""
    exact = '{"urn:x": {"const": 0.1000000000000000055}}'
    assert JsonSchema({"$ref": "urn:x"}, registry=exact).registry == exact


@pytest.mark.parametrize(
    ("registry", "error"),
    [
        ({"": {}}, OptionError),
        ({"#": {}}, OptionError),
        ({1: {}}, OptionError),
        ({"urn:x": [1]}, OptionError),
        ({"urn:x": {"const": float("nan")}}, OptionError),
        ("{", OptionError),
        ("[1]", ArgumentError),
        (3, ArgumentError),
    ],
)
def test_what_is_no_registry_is_refused(registry: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="registry"):
        JsonSchema({}, registry=registry)


def test_what_another_document_demands_of_items_is_remembered() -> None:
    """The keyword is not in the text of the schema: an array of the metaschema has it."""
    from tokdfa.json_schema.write.lower import lower_and_remember

    uri = f"http://json-schema.org/draft-07/schema#/{definitions_of(2)}/stringArray"
    assert lower_and_remember(JsonSchema({"$schema": URI[2], "$ref": uri}))[2] is not None
