"""Code that is written when it is reached: equal masks, and nothing is refused when it is too late."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.json_schema.test_lower import CASES
from tests.walks import walk_along
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.errors import SchemaError, SchemaUnsupported
from tokdfa.json_schema.write import lower
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.program.program import LAZY
from tokdfa.vocabulary.vocabulary import Vocabulary


@pytest.fixture(autouse=True)
def _little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "AT_ONCE", 100)


def large(deep: Any) -> dict[str, Any]:
    """A schema of many objects, with another one far inside."""
    properties: dict[str, Any] = {}
    for k in range(30):
        inner = {f"member {k} {n}": {"type": "string", "description": "x" * 20} for n in range(5)}
        properties[f"part {k}"] = {"type": "object", "properties": inner, "required": [f"member {k} 0"]}
    properties["part 7"]["properties"]["deep"] = {"type": "object", "properties": {"deeper": deep}}
    return {"type": "object", "properties": properties}


def lazy_places(schema: Any) -> int:
    """How many parts of the code wait."""
    program, _ = lower_schema(JsonSchema(schema))
    return int((program.code[:, 0] == LAZY).sum())


def test_most_of_a_large_schema_waits_beside_what_is_uncertain() -> None:
    plain = lazy_places(large({"type": "integer"}))
    assert plain > 10
    for uncertain in (
        {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True},
        {"type": "integer", "multipleOf": 3},
        {"type": "object", "propertyNames": {"maxLength": 3}},
        {"type": "object", "maxProperties": 3},
    ):
        assert lazy_places(large(uncertain)) >= plain - 3


@pytest.mark.parametrize(("deep", "keyword"), [
    ({"type": "array", "uniqueItems": True, "items": {"type": "string"}, "minItems": 2}, "uniqueItems"),
    ({"type": "integer", "multipleOf": 10**9 + 7}, "multipleOf"),
    ({"type": "string", "pattern": "(?<=a)b"}, "pattern"),
    ({"$ref": "https://other.example/schema"}, "$ref"),
])  # fmt: skip
def test_what_cannot_be_enforced_is_refused_at_once(deep: Any, keyword: str) -> None:
    with pytest.raises(SchemaUnsupported) as small:
        lower_schema(JsonSchema(deep))
    with pytest.raises(SchemaUnsupported) as caught:
        lower_schema(JsonSchema(large(deep)))
    assert caught.value.keyword == small.value.keyword == keyword
    assert caught.value.pointer.startswith("/properties/part 7/properties/deep/properties/deeper")


@pytest.mark.parametrize("deep", [
    {"type": "object", "maxProperties": 1, "required": ["a", "b"]},
    {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}, "minItems": 3},
    {"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 3},
])  # fmt: skip
def test_what_no_value_has_is_left_out_though_it_is_uncertain(deep: Any) -> None:
    assert lazy_places(large(deep)) > 10


def test_what_is_broken_is_refused_at_once() -> None:
    with pytest.raises(SchemaError, match="leads nowhere"):
        lower_schema(JsonSchema(large({"$ref": "#/$defs/none"})))


@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: case.name)
def test_masks_are_equal_whenever_the_code_is_written(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    vocab = Vocabulary([*(bytes([byte]) for byte in range(256)), b'":', b'",', b'{"', b"}]", b""], end_tokens=[260])
    backend = PushdownTrie(vocab)
    matchers, refusals = [], []
    for large_from in (1 << 30, 0):
        monkeypatch.setattr(lower, "LARGE", large_from)
        monkeypatch.setattr(lower, "AT_ONCE", 0)
        try:
            matchers.append(backend.compile(JsonSchema(case.schema_text)))
        except SchemaUnsupported as error:
            refusals.append((error.pointer, error.keyword))
    if refusals:
        assert len(refusals) == 2
        assert refusals[0][1] == refusals[1][1]
        return
    for test in case.tests:
        text = test.text.encode()
        walk_along([compiled.start() for compiled in matchers], vocab, text, len(text), random.Random(0))
