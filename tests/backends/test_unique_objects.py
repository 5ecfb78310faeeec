"""Closed objects of finite or countable parts as items that must differ: jsonschema judges; no walk has a dead end."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from itertools import permutations, product
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

import tokdfa
from tests.walks import accepts, mask_of
from tokdfa.errors import SchemaUnsupported

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
LIKELY = frozenset(b'{}[],:"abxytrue01l')
MISTRAL = tokdfa.load_tokenizer("mistral-v1")


def exactly(text: str) -> Decimal:
    """A number, exactly but for exponents past all reason."""
    return Decimal(text) if len(text.lower().partition("e")[2]) < 15 else Decimal("1e99999")


def is_integer(_checker: Any, value: Any) -> bool:
    return isinstance(value, Decimal) and value == value.to_integral_value()


#: The judge, with numbers read exactly.
Judge = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_integer))


def closed(required: int, **members: Any) -> dict[str, Any]:
    names = [*members][:required]
    return {"type": "object", "properties": members, "required": names, "additionalProperties": False}


def unique(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "uniqueItems": True, "items": items, **more}


FINITE = closed(1, a={"type": "boolean"}, b={"enum": ["x", "y"]})
SCHEMAS = {
    "finite": unique(FINITE),
    "one": unique(closed(0)),
    "short strings": unique(closed(0, a={"type": "string", "maxLength": 9}, b={"type": ["string", "null"]})),
    "few members": unique({**closed(0, a={"type": "string"}, b={"type": "integer"}), "maxProperties": 1}),
    "integers": unique(closed(2, a={"type": "integer"}, b={"enum": ["x", 'q"']})),
    "numbers": unique(closed(1, a={"type": "number"}), minItems=2),
    "strings first": unique(closed(2, a={"type": "string"}, b={"type": "null"})),
    "optional last": unique(closed(1, a={"type": "string"}, b={"type": "number"})),
    "nested": unique(closed(1, a=closed(1, b={"type": "integer", "minimum": 0, "maximum": 99}, c={"const": 1}))),
    "scalars beside": unique({"anyOf": [FINITE, {"type": "integer"}, {"type": "null"}]}),
    "bounded": unique(FINITE, maxItems=3),
    "inside": {"type": "object", "properties": {"l": unique(FINITE)}, "required": ["l"]},
}


@pytest.mark.parametrize(
    "options", [{}, {"order": "any"}, {"whitespace": "compact", "escapes": "needed"}, {"profile": "generation"}]
)
@pytest.mark.parametrize("name", SCHEMAS)
def test_walks_end_in_valid_texts(name: str, options: dict[str, Any]) -> None:
    """Walks that prefer what closes, so that objects come again."""
    schema, draw = SCHEMAS[name], random.Random(name)
    compiled = tokdfa.compile(tokdfa.JsonSchema(schema, **options), BYTES, backend="pushdown_trie")
    validator = Judge(schema)
    for _ in range(4):
        matcher, text = compiled.start(), bytearray()
        while len(text) < 160:
            allowed = mask_of(matcher)
            assert allowed, text
            likely = [token for token in allowed if token in LIKELY]
            token = draw.choice(likely if likely and draw.random() < 0.9 else allowed)
            assert matcher.allows(token)
            matcher.advance(token)
            if token == 256:
                assert validator.is_valid(json.loads(text, parse_float=exactly, parse_int=Decimal)), text
                break
            text.append(token)


def test_each_array_of_different_objects_and_no_other() -> None:
    values: list[Any] = [{"a": a} for a in (True, False)] + [
        {"a": a, "b": b} for a, b in product((True, False), ("x", "y"))
    ]
    compiled = tokdfa.compile(tokdfa.JsonSchema(unique(FINITE)), BYTES, backend="pushdown_trie")
    for count in (1, 2, 6):
        for chosen in [*permutations(values, count)][:40]:
            assert accepts(compiled.start(), json.dumps(chosen))
    for chosen in product(values, repeat=2):
        assert accepts(compiled.start(), json.dumps(chosen)) == (chosen[0] != chosen[1])
    matcher = compiled.start()
    for byte in json.dumps(values).encode()[:-1]:
        matcher.advance(byte)
    assert set(mask_of(matcher)) == set(b" \t\n\r]")  # all objects have been


def test_objects_are_equal_by_value() -> None:
    compiled = tokdfa.compile(tokdfa.JsonSchema(SCHEMAS["numbers"]), BYTES)
    assert accepts(compiled.start(), '[{"a":1},{"a":2}]')
    for other in ('{"a": 1}', '{"a":1.0}', '{"\\u0061":1}', "{}"[:0] + '{"a":10e-1}'):
        assert not accepts(compiled.start(), f'[{{"a":1}},{other}]')
    assert accepts(compiled.start(), '[{"a":1},{"a":1.5}]')


def test_masks_of_long_tokens() -> None:
    """On a large vocabulary every bit of a mask is a token that the bytes of it may follow."""
    schema = unique(closed(2, a={"type": "integer"}, b={"type": "boolean"}))
    compiled = tokdfa.compile(tokdfa.JsonSchema(schema, whitespace="compact"), MISTRAL)
    matcher = compiled.start()
    for token in MISTRAL.encode('[{"a":1,"b":true},{"a":1,"b":'):
        matcher.advance(token)
    spelled = {MISTRAL.vocabulary.token_bytes(token) for token in mask_of(matcher)}
    assert b"false" in spelled
    assert b"true" not in spelled
    for token in mask_of(matcher):
        assert matcher.allows(token)


@pytest.mark.parametrize(
    "schema",
    [
        unique(closed(1, a={"type": "boolean"}), minItems=3),  # there are two
        unique(closed(1, a={"type": "array", "maxItems": 2})),
    ],
)
def test_what_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaUnsupported, match="uniqueItems at #"):
        tokdfa.compile(tokdfa.JsonSchema(schema), BYTES)
