"""The error for a schema without a value names the part that is impossible."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tokdfa
from tokdfa.errors import EmptyLanguageError

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
NO_NUMBER = {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 1}


def needs(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": [*members]}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (False, "#;"),
        (NO_NUMBER, "#;"),
        (needs(b={"type": "string"}, cfg=needs(a=NO_NUMBER)), "#/properties/cfg/properties/a;"),
        ({"type": "array", "minItems": 1, "items": NO_NUMBER}, "#/items;"),
        ({"type": "array", "minItems": 2, "prefixItems": [True, NO_NUMBER]}, "#/prefixItems/1;"),
        ({"allOf": [{"type": "string"}, needs(a=False)]}, "#/allOf/1/properties/a;"),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, "#;"),
        ({"type": "string", "anyOf": [{"minLength": 3, "maxLength": 2}, False]}, "#;"),
        ({"anyOf": [NO_NUMBER, False]}, "#/anyOf/0;"),
        ({"$ref": "#/$defs/a", "$defs": {"a": needs(x={"$ref": "#/$defs/b"}), "b": NO_NUMBER}}, "#/$defs/b;"),
        (needs(a={"$ref": "#"}), "#"),
        ({"type": "array", "contains": {"enum": []}}, "#/contains;"),
    ],
)
def test_the_impossible_part_is_named(schema: Any, place: str) -> None:
    for backend in ("pushdown_trie", "earley_trie"):
        with pytest.raises(EmptyLanguageError, match=re.escape(f"none is at {place}")):
            tokdfa.compile(tokdfa.JsonSchema(schema), BYTES, backend=backend)
