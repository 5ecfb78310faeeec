"""Documents: drafts, where references lead, and what is refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.json_schema.schemas import SCHEMA_URI as URI
from tests.json_schema.schemas import agreed, expand, held, library_validator
from tests.naive.schema_values import holds
from tokdfa.constraint import JsonSchema
from tokdfa.errors import SchemaError, SchemaUnsupported
from tokdfa.json_schema.read.document import (
    DRAFT_4,
    DRAFT_6,
    DRAFT_7,
    DRAFT_2019,
    DRAFT_2020,
    DRAFTS,
    Document,
    Node,
)
from tokdfa.json_schema.solve.shape_builder import ShapeBuilder
from tokdfa.json_schema.write.lower import lower_schema


def _target(schema: Any, keyword: str = "$ref") -> Node:
    """What the reference in the root's property ``it`` leads to."""
    document = Document(json.dumps(schema))
    node = document.child(document.root, document.root.schema["properties"]["it"], "/properties/it")
    return document.target(node, keyword, node.schema[keyword])


def _refer(reference: str, **others: Any) -> dict[str, Any]:
    return {**others, "properties": {"it": {"$ref": reference}}}


def test_the_draft_is_the_newest_if_none_is_known() -> None:
    for schema in ({}, True, False, {"$schema": "http://example.org/mine"}, {"$schema": 4}):
        assert Document(json.dumps(schema)).draft == DRAFT_2020


def test_draft_3_is_refused() -> None:
    text = '{"$schema": "http://json-schema.org/draft-03/schema#"}'
    with pytest.raises(SchemaUnsupported, match="draft 3") as caught:
        Document(text)
    assert (caught.value.pointer, caught.value.keyword) == ("", "$schema")
    shape_builder, root, _ = expand(f'{{"properties": {{"a": {text}}}}}')
    with pytest.raises(SchemaUnsupported) as caught:
        shape_builder.shape_of(root)
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/a", "$schema")


def test_a_schema_inside_may_be_of_another_draft() -> None:
    inner = {"$schema": URI[DRAFT_4], "minimum": 1, "exclusiveMinimum": True, "items": [{"type": "integer"}]}
    schema = {"$schema": URI[DRAFT_2020], "properties": {"a": inner, "b": {"$ref": "#/$defs/inner/items/0"}}}
    schema["$defs"] = {"inner": dict(inner), "other": {"$schema": "http://example.org/mine", "prefixItems": [False]}}
    schema["properties"]["c"] = {"$ref": "#/$defs/other"}
    shape_builder, root, _ = expand(schema)
    # (the library fails at the reference that passes a schema of another draft)
    library = library_validator({**schema, "properties": {name: schema["properties"][name] for name in "ac"}})
    for value in ({"a": 2}, {"a": 1}, {"a": ["a"]}, {"a": [2]}, {"c": []}, {"c": [1]}):
        assert holds(shape_builder, root, value) == library.is_valid(value), value
    assert holds(shape_builder, root, {"b": 2})
    assert not holds(shape_builder, root, {"b": Decimal("2.0")})


@pytest.mark.parametrize("text", ["1", "null", '"a"', "[]"])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(SchemaError, match="object or a boolean"):
        Document(text)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_words_that_are_no_json_are_refused(word: str) -> None:
    with pytest.raises(SchemaError, match=word):
        Document(f'{{"enum": [1, {word}]}}')


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#/$defs/a", 1),
        ("#/$defs/x~1y", 2),
        ("#/$defs/x~0y", 3),
        ("#/$defs/~01", 4),
        ("#/$defs/a%20b", 5),
        ("#/$defs/a%25b", 6),
        ("#/$defs/%C3%A9", 7),
        ("#/$defs/", 8),
        ("#/anyOf/1", 9),
        ("#/$defs/n/0", 10),
        ("#anchored", 11),
        ("#/$defs/100%25", 12),
    ],
)
def test_pointers(reference: str, found: int) -> None:
    definitions = {"a": 1, "x/y": 2, "x~y": 3, "~1": 4, "a b": 5, "a%b": 6, "é": 7, "": 8, "100%": 12}
    schema = _refer(
        reference,
        anyOf=[{}, {"const": 9}],
        **{"$defs": {
            **{name: {"const": value} for name, value in definitions.items()},
            "n": {"0": {"const": 10}},
            "anchor": {"$anchor": "anchored", "const": 11},
        }},
    )  # fmt: skip
    assert _target(schema).schema.get("const") == found
    assert agreed(schema, ({"it": found}, {"it": 0})) == [{"it": found}]


NOWHERE = ("#/$defs/b", "#/$defs/a/b", "#/anyOf/2", "#/anyOf/-", "#/anyOf/²", "#/anyOf/" + "1" * 5_000, "#nowhere")
OTHER_DOCUMENTS = ("http://example.org/other.json", "other.json#/$defs/a", "urn:uuid:1", "file:///x")


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        *((reference, SchemaError) for reference in (*NOWHERE, 1, None, ["#"])),
        *((reference, SchemaUnsupported) for reference in OTHER_DOCUMENTS),
    ],
)
def test_references_that_cannot_be_followed(reference: Any, error: type[SchemaError]) -> None:
    with pytest.raises(error) as caught:
        _target(_refer(reference, anyOf=[{}, {}], **{"$defs": {"a": {}}}))
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/it", "$ref")


def _of_draft(draft: int, keyword: str) -> dict[str, Any]:
    definitions = {"a": {keyword: "#a", "type": "integer"}, "b": {keyword: "http://b.org/b", "type": "null"}}
    properties = {"a": {"$ref": "#a"}, "b": {"$ref": "http://b.org/b"}}
    return {"$schema": URI[draft], "definitions": definitions, "properties": properties}


INNER = {"$id": "inner", "$dynamicAnchor": "it", "type": "string", "$defs": {"use": {"$ref": "#it"}}}
LISTS = {"$schema": URI[DRAFT_2019], "type": "array", "items": {"$recursiveRef": "#"}}
#: What references lead to -> (schema, valid values, invalid values).
REFERENCES: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "ids of draft 4": (_of_draft(DRAFT_4, "id"), [{"a": 1, "b": None}], [{"a": None}, {"b": 1}]),
    "ids of draft 7": (_of_draft(DRAFT_7, "$id"), [{"a": 1, "b": None}], [{"a": None}, {"b": 1}]),
    "the property $id is no id": (
        {"properties": {"$id": {"type": "string"}, "it": {"$ref": "#/properties/$id"}}},
        [{"it": "a", "$id": "b"}],
        [{"it": 1}],
    ),
    "one dynamic anchor": (
        {
            "$id": "http://example.org/tree",
            "$dynamicAnchor": "node",
            "items": {"$dynamicRef": "#node"},
            "type": "array",
        },
        [[[], [[]]]],
        [[1]],
    ),
    "a plain reference to a dynamic anchor": (
        {
            "$id": "http://example.org/outer",
            "$dynamicAnchor": "it",
            "$defs": {"inner": INNER},
            "properties": {"a": {"$ref": "inner#/$defs/use"}},
        },
        [{"a": "x"}],
        [{"a": {}}],
    ),
    "recursive": (LISTS, [[[], [[]]]], [[[1]]]),
    "recursive with an anchor": ({**LISTS, "$recursiveAnchor": True}, [[[], [[]]]], [[[1]]]),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references(name: str) -> None:
    schema, right, wrong = REFERENCES[name]
    assert held(schema, right + wrong) == right  # the library takes a plain reference to a dynamic anchor for dynamic


EMBEDDED = {
    "$id": "http://example.org/root.json",
    "$defs": {
        "leaf": {"const": "outer leaf"},
        "item": {
            "$id": "item.json",
            "$defs": {"leaf": {"const": "inner leaf"}, "named": {"$anchor": "named", "const": "named"}},
            "properties": {"leaf": {"$ref": "#/$defs/leaf"}, "root": {"$ref": "root.json#/$defs/leaf"}},
        },
    },
}


@pytest.mark.parametrize(
    ("reference", "valid"),
    [
        ("item.json", {"leaf": "inner leaf", "root": "outer leaf"}),
        ("#/$defs/item", {"leaf": "inner leaf", "root": "outer leaf"}),
        ("http://example.org/item.json", {"leaf": "inner leaf"}),
        ("item.json#/$defs/leaf", "inner leaf"),
        ("item.json#named", "named"),
        ("root.json#/$defs/leaf", "outer leaf"),
        ("#/$defs/item/$defs/leaf", "inner leaf"),
        ("#/$defs/item/properties/leaf", "inner leaf"),
        ("http://example.org/root.json", {"it": {}}),
    ],
)
def test_embedded_resources(reference: str, valid: Any) -> None:
    schema = {**EMBEDDED, "properties": {"it": {"$ref": reference}}}
    values = valid, {"leaf": "outer leaf"}, {"root": "inner leaf"}, "outer leaf", "inner leaf", {"it": 1}
    assert {"it": valid} in agreed(schema, [{"it": value} for value in values])


def test_neighbours_of_a_reference_count_from_2019_09_on() -> None:
    for draft in DRAFTS.values():
        schema = {"$schema": URI[draft], "properties": {"it": {"$ref": "#/definitions/a", "maximum": 2}}}
        schema["definitions"] = {"a": {"type": "integer"}}
        assert agreed(schema, ({"it": 3}, {"it": "a"})) == [{"it": 3}] * (draft <= DRAFT_7)


@pytest.mark.parametrize("draft", [DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020])
@pytest.mark.parametrize("own", [DRAFT_4, DRAFT_2020])
def test_metaschemas_are_known_and_read_by_their_own_draft(draft: int, own: int) -> None:
    schema = {"$schema": URI[own], "properties": {"it": {"$ref": URI[draft] + ("#" if draft <= DRAFT_7 else "")}}}
    definitions = "definitions" if draft <= DRAFT_7 else "$defs"
    examples = [
        {"type": "string", "properties": {"a": {"minLength": 1}}},
        {"properties": {"a": {"type": 5}}},
        {definitions: {"a": {"items": {"minLength": -1}}}},
        {"anyOf": [{"not": {"required": "a"}}]},
        {"exclusiveMaximum": True},
        {"required": []},
        True,
    ]
    found = agreed(schema, [{"it": value} for value in examples])
    assert [{"it": value} in found for value in examples[:4]] == [True, False, False, False]


TREE = {
    "$id": "tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"value": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT = {"$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False}


def test_a_dynamic_anchor_outside_replaces_the_one_inside() -> None:
    strict = {"$id": "http://example.org/strict", **STRICT, "$defs": {"tree": TREE}}
    loose = {"$id": "http://example.org/loose", "$ref": "tree", "$defs": {"tree": TREE}}
    plain = json.loads(json.dumps(strict).replace('"$dynamicRef": "#node"', '"$ref": "tree"'))
    good, wrong = {"value": 1, "children": [{"value": 2}]}, {"children": [{"valeu": 2}]}
    for schema, allows_wrong in ((strict, False), (loose, True), (plain, True)):
        assert agreed(schema, (good, wrong)) == [good, *[wrong] * allows_wrong]


def test_a_place_is_two_nodes_in_two_scopes() -> None:
    def lists(kind: str) -> dict[str, Any]:
        own = {"$dynamicAnchor": "item", "type": kind}
        return {"$id": f"{kind}s", "$defs": {"item": own}, "$ref": "list"}

    generic = {"$id": "list", "items": {"$dynamicRef": "#item"}, "$defs": {"any": {"$dynamicAnchor": "item"}}}
    schema = {
        "$id": "http://example.org/root",
        "properties": {"n": {"$ref": "numbers"}, "s": {"$ref": "strings"}, "l": {"$ref": "list"}},
        "$defs": {"a": lists("number"), "b": lists("string"), "c": generic},
    }
    every = [{name: [item]} for name in "nsl" for item in (1, "a", None)]
    assert agreed(schema, every) == [{"n": [1]}, {"s": ["a"]}, {"l": [1]}, {"l": ["a"]}, {"l": [None]}]


@pytest.mark.parametrize("anchor", [True, False])
@pytest.mark.parametrize("outer_anchor", [True, False])
def test_a_recursive_anchor_outside_replaces_the_one_inside(anchor: bool, outer_anchor: bool) -> None:
    tree = {"$id": "tree", "$recursiveAnchor": anchor, "items": {"$recursiveRef": "#"}}
    schema = {"$schema": URI[DRAFT_2019], "$id": "http://example.org/s", "$recursiveAnchor": outer_anchor}
    schema |= {"$ref": "tree", "type": "array", "$defs": {"tree": tree}}
    assert held(schema, ([[[]]], [[1]], 1)) == [[[[]]], *[[[1]]] * (not (anchor and outer_anchor))]


def test_a_reference_that_the_library_fails_at_is_refused() -> None:
    inner = {"$id": "inner.json", "items": [{"type": "integer"}]}  # a list is no schema in 2020-12
    with pytest.raises(SchemaUnsupported, match="cannot be followed") as caught:
        _target(_refer("inner.json#/items/0", **{"$defs": {"inner": inner}}))
    assert (caught.value.pointer, caught.value.keyword) == ("/properties/it", "$ref")


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$defs": {"": {"$dynamicAnchor": []}}}, "/$defs/"),
        ({"properties": {"a/b": {"$dynamicAnchor": {}}}}, "/properties/a~1b"),
        ({"items": "", "$recursiveAnchor": False}, ""),
        ({"dependentSchemas": {"": {"$id": ""}}}, ""),
        ({"allOf": [{"$id": ""}]}, ""),
    ],
)
def test_ids_and_anchors_that_the_library_stumbles_over(schema, place):
    with pytest.raises(SchemaError) as caught:
        lower_schema(JsonSchema(json.dumps(schema)))
    assert caught.value.pointer == place


def _node_of(document: Document, name: str) -> Node:
    schema = document.root.schema["properties"][name]
    return document.child(document.root, schema, ("properties", name))


def test_equal_schemas_are_one_node_if_asked_for() -> None:
    one = {"type": "object", "properties": {"x": {"enum": [1, True]}, "y": {}}}
    other = {"type": "object", "properties": {"y": {}, "x": {"enum": [1, True]}}}
    values = {"type": "object", "properties": {"x": {"enum": [1, 1]}, "y": {}}}
    text = json.dumps({"properties": {"a": one, "b": one, "c": other, "d": values}})
    document = Document(text, shares=True)
    first, second, *others = (_node_of(document, name) for name in "abcd")
    assert first is second
    assert first.pointer == "/properties/a"
    assert len({first.number, *(node.number for node in others)}) == 3
    assert document.has_shared
    assert len({_node_of(Document(text), name).pointer for name in "ab"}) == 2


def test_equal_schemas_with_other_bases_are_not_one() -> None:
    inner = {"properties": {"x": {"$ref": "#/$defs/n"}}}
    schema = {
        "properties": {
            "a": {"$id": "http://a.example/", "$defs": {"n": {"type": "integer"}}, "allOf": [inner]},
            "b": {"$id": "http://b.example/", "$defs": {"n": {"type": "null"}}, "allOf": [inner]},
        }
    }
    right = {"a": {"x": 1}, "b": {"x": None}}
    assert agreed(schema, (right, {"a": {"x": None}}, {"b": {"x": 1}})) == [right]


def test_what_is_refused_at_equal_places_is_told_as_if_they_were_not() -> None:
    part = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(a)\\1"}}, "required": ["x"]}
    schema = {"type": "object", "properties": {"a": {"items": part}, "b": part, "c": part}, "required": ["c"]}
    with pytest.raises(SchemaUnsupported) as shared:
        lower_schema(JsonSchema(schema))
    shape_builder = ShapeBuilder(Document(json.dumps(schema)))
    with pytest.raises(SchemaUnsupported) as apart:
        shape_builder.has_value(shape_builder.state(shape_builder.document.root))
    assert (shared.value.pointer, str(shared.value)) == (apart.value.pointer, str(apart.value))
    assert shared.value.pointer == "/properties/c/properties/x"


def test_ids_without_references_do_not_need_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Document, "_registry_resolver", None)
    inner = {"$id": "http://b.example/", "type": "integer"}
    lower_schema(JsonSchema({"$id": "http://a.example/", "properties": {"a": inner}}))


def test_equal_schemas_that_nobody_keeps_are_not_mistaken_for_others() -> None:
    """A node is found by the identity of its schema, which another one may have once the first is gone."""
    document = Document('{"properties": {"a": {"enum": [0]}}}' + 99 * " " * 99, shares=True)
    for number in range(300):
        for _ in range(2):
            schema = json.loads(json.dumps({"enum": [number % 7]}))
            assert document.child(document.root, schema, ("values", str(number))).schema == schema
            del schema
