"""Keywords and formats that mean nothing: one warning, with the place, and listed by the compiled constraint."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tokdfa
from tokdfa.errors import ConstraintWarning

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def found(constraint: tokdfa.Constraint, **options: Any) -> tuple[list[str], list[str]]:
    """(Python's warnings, those listed)."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = tokdfa.compile(constraint, BYTES, **options)
    assert {each.category for each in caught} <= {ConstraintWarning}
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught], [str(each) for each in compiled.warnings]


@pytest.mark.parametrize(
    ("schema", "place", "meant"),
    [
        ({"type": "object", "properties": {"a": {"typ": "string"}}}, "typ at #/properties/a:", "'type'"),
        ({"min": 3}, "min at #:", "'minimum'"),
        ({"items": {"requred": ["a"]}}, "requred at #/items:", "'required'"),
        ({"additional_properties": False}, "additional_properties at #:", "'additionalProperties'"),
        ({"$defs": {"a": {"minlength": 3}}}, "minlength at #/$defs/a:", "'minLength'"),
        ({"type:": "string"}, "type: at #:", "'type'"),
        ({"ref": "#/$defs/a"}, "ref at #:", "'$ref'"),
        ({"format": "emial"}, "format at #:", "'email'"),
        ({"format": "uuid44"}, "format at #:", "'uuid"),
        ({"format": "semantic version"}, "format at #:", "no known format"),
        ({**DRAFT_7, "prefixItems": [True]}, "prefixItems at #:", "draft 2020-12"),
        ({"dependencies": {"a": ["b"]}}, "dependencies at #:", "draft 7"),
        ({**DRAFT_7, "type": "string", "nullable": True}, "nullable at #:", '"null"'),
    ],
)
def test_suspects_are_told_once(schema: dict[str, Any], place: str, meant: str) -> None:
    for backend in ("pushdown_trie", "earley_trie"):
        said, listed = found(tokdfa.JsonSchema(schema), backend=backend)
        assert len(said) == len(listed) == 1
        assert said[0].startswith(place)
        assert meant in said[0]
        assert listed == said


@pytest.mark.parametrize(
    "schema",
    [
        {"x-note": 1, "_type": 1, "@id": 1, "$$target": 1, "// note": 1},
        {"descrption": "a", "example": 1, "title": "a", "faker": 1, "name": "a", "javaType": "b", "readonly": True},
        {"format": "int32"},
        {"format": "uuid4"},
        {"properties": {"typ": {}, "requred": {}}},
        {"enum": [{"typ": 1}], "default": {"typ": 1}},
        {"nullable": True, "type": "string", "discriminator": {"propertyName": "a"}},
        {"$defs": {"a": True}, "definitions": {"b": True}},
        {**DRAFT_7, "$defs": {"a": True}},
    ],
)
def test_what_is_no_suspect(schema: dict[str, Any]) -> None:
    assert found(tokdfa.JsonSchema(schema)) == ([], [])


def test_many_are_one_warning() -> None:
    said, listed = found(tokdfa.JsonSchema({"properties": {name: {"typ": "string"} for name in "abcdef"}}))
    assert len(said) == 1
    assert len(listed) == 6
    assert "3 more" in said[0]


def test_suspects_of_a_schema_inside_a_grammar() -> None:
    said, listed = found(tokdfa.Grammar('start: "<" %json {"typ": "string"} ">"\n'))
    assert len(said) == len(listed) == 1
    assert "typ at #:" in said[0]


def test_formats_that_are_not_asserted_are_no_suspects() -> None:
    assert found(tokdfa.JsonSchema({"format": "emial"}, asserts="required")) == ([], [])
    assert found(tokdfa.JsonSchema({"dependencies": {"a": ["b"]}}, asserts="all")) == ([], [])
    assert found(tokdfa.JsonSchema({**DRAFT_7, "dependencies": {"a": ["b"]}})) == ([], [])
