"""Inputs that nest deep: all of them within the limits are taken, from however deep a call, and others say where."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.backends.registry import create_backend
from tokdfa.constraint import Grammar, JsonSchema, Regex
from tokdfa.core.nesting import MAX_JSON_DEPTH, ROOM, check_depth, read_json, with_room, write_json
from tokdfa.errors import LimitExceeded, SchemaUnsupported, TokdfaError
from tokdfa.serving.requests import read_request
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

VOCAB = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], end_tokens=[256])
#: A schema around another one, "@".
AROUND: dict[str, Any] = {
    "properties": {"type": "object", "properties": {"a": "@"}},
    "required": {"type": "object", "properties": {"a": "@"}, "required": ["a"]},
    "items": {"type": "array", "items": "@"},
    "prefixItems": {"prefixItems": ["@"]},
    "contains": {"type": "array", "contains": "@"},
    "additionalProperties": {"type": "object", "additionalProperties": "@"},
    "unevaluatedProperties": {"properties": {"a": "@"}, "unevaluatedProperties": False},
}
#: The same where all schemas apply to one value, of which there are fewer.
IN_PLACE: dict[str, Any] = {
    "allOf": {"allOf": ["@", {"type": "object"}]},
    "anyOf": {"anyOf": ["@", {"type": "null"}]},
    "oneOf": {"oneOf": ["@", {"type": "null"}]},
    "if": {"if": {"type": "object"}, "then": "@"},
    "not": {"not": "@"},
}


def nested(around: Any, levels: int) -> str:
    before, after = json.dumps(around).split('"@"')
    return before * levels + '{"type": "object"}' + after * levels


def at_depth(depth: int, do: Callable[[], Any]) -> Any:
    """What `do` returns with so many more frames around it."""
    return do() if not depth else at_depth(depth - 1, do)


#: From where calls are tried: as the test is, and with few frames left.
DEPTHS = (0, sys.getrecursionlimit() - 250)


def outcome(constraint: Callable[[], Any], engine: str) -> str:
    try:
        create_backend(engine, VOCAB).compile(constraint())
    except TokdfaError as error:
        return f"{type(error).__name__}: {error}"
    return "compiled"


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie"])
@pytest.mark.parametrize("name", AROUND)
def test_four_hundred_levels_compile(name: str, engine: str) -> None:
    for levels in (200, 400):
        for depth in DEPTHS:
            schema = nested(AROUND[name], levels)
            assert at_depth(depth, lambda schema=schema: outcome(lambda: JsonSchema(schema), engine)) == "compiled"


@pytest.mark.parametrize("name", AROUND)
def test_what_is_too_deep_says_so_and_where(name: str) -> None:
    around = AROUND[name]
    text = nested(around, 1_100)
    for depth in DEPTHS:
        with pytest.raises(LimitExceeded, match=f"nested too deep.* more than {MAX_JSON_DEPTH}") as caught:
            at_depth(depth, lambda: JsonSchema(text))
        pointer = str(caught.value).rpartition(" at ")[2]
        # a pointer to what has as many values around it as are allowed
        assert len(pointer.split("/")) - 1 == MAX_JSON_DEPTH
        assert pointer.startswith("/" + name.replace("required", "properties").replace("unevaluatedP", "p"))
    with pytest.raises(LimitExceeded, match="nested too deep"):
        JsonSchema(_value_of(around, 1_100))


def _value_of(around: Any, levels: int) -> Any:
    value: Any = {"type": "object"}
    for _ in range(levels):
        value = _replace(around, value)
    return value


def _replace(around: Any, value: Any) -> Any:
    if around == "@":
        return value
    if isinstance(around, dict):
        return {name: _replace(part, value) for name, part in around.items()}
    return [_replace(part, value) for part in around] if isinstance(around, list) else around


@pytest.mark.parametrize("engine", ["pushdown_trie", "earley_trie"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_schemas_in_place_are_refused_alike_from_everywhere(name: str, engine: str) -> None:
    for levels, expected in ((60, "compiled"), (200, "SchemaUnsupported"), (400, "SchemaUnsupported")):
        schema = nested(IN_PLACE[name], levels)
        found = {at_depth(depth, lambda: outcome(lambda: JsonSchema(schema), engine)) for depth in DEPTHS}  # noqa: B023
        assert len(found) == 1
        (said,) = found
        assert said.startswith(expected)
        assert levels == 60 or "nested too deep: more than 150 schemas apply to one value" in said


def test_values_that_decide_each_other() -> None:
    def chain(count: int) -> dict[str, Any]:
        parts = {f"d{k}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{k + 1}"}}, "required": ["a"]}
                 for k in range(count)}  # fmt: skip
        return {"$defs": {**parts, f"d{count}": {"type": "null"}}, "$ref": "#/$defs/d0"}

    for depth in DEPTHS:
        assert at_depth(depth, lambda: outcome(lambda: JsonSchema(chain(450)), "pushdown_trie")) == "compiled"
        said = at_depth(depth, lambda: outcome(lambda: JsonSchema(chain(2_000)), "pushdown_trie"))
        assert "nested too deep" in said
        assert "more than 500 schemas inside each other" in said
        assert "/$defs/d500" in said


@pytest.mark.parametrize("engine", ["token_index", "pushdown_trie", "earley_trie"])
def test_regexes_and_grammars(engine: str) -> None:
    def groups(count: int) -> Regex:
        return Regex("(?:a" * count + "b)*" * count)

    def rules(count: int) -> Grammar:
        return Grammar("start: " + '("a" ' * count + '"b"' + ")*" * count)

    for depth in DEPTHS:
        assert at_depth(depth, lambda: outcome(lambda: groups(200), engine)) == "compiled"
        for count in (201, 100_000):
            said = at_depth(depth, lambda: outcome(lambda: groups(count), engine))  # noqa: B023
            assert "nested too deep, deeper than 200, at position 800" in said
        if engine != "token_index":
            assert at_depth(depth, lambda: outcome(lambda: rules(100), engine)) == "compiled"
            said = at_depth(depth, lambda: outcome(lambda: rules(100_000), engine))
            assert "nested too deep, deeper than 100, at line 1" in said


def test_json_in_grammars_requests_and_registries() -> None:
    deep, fits = nested(AROUND["items"], 1_100), nested(AROUND["items"], 900)
    for depth in DEPTHS:
        found = at_depth(depth, lambda: outcome(lambda: Grammar(f"start: %json {fits}"), "pushdown_trie"))
        assert found == "compiled"
        said = at_depth(depth, lambda: outcome(lambda: Grammar(f"start: %json {deep}"), "pushdown_trie"))
        assert said.startswith("LimitExceeded: the JSON at line 1, column 8 of the grammar is nested too deep")
        with pytest.raises(LimitExceeded, match="choice is nested too deep"):
            at_depth(depth, lambda: read_request("choice", "[" * 5_000 + "]" * 5_000))
        with pytest.raises(LimitExceeded, match=r"the document http://e\.org/x is nested too deep"):
            at_depth(depth, lambda: JsonSchema(True, registry={"http://e.org/x": _value_of(AROUND["items"], 1_100)}))
    assert isinstance(JsonSchema(True, registry={"http://e.org/x": json.loads(fits)}), JsonSchema)


def test_depth_is_counted_outside_of_texts() -> None:
    assert read_json(json.dumps(["[" * 5_000]), "this") == ["[" * 5_000]
    flat = "[" + ",".join(["[]"] * 5_000) + "]"
    assert len(read_json(flat, "this")) == 5_000
    most = "[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH
    check_depth(most, "this")
    assert write_json(read_json(most, "this"), "this") == most
    with pytest.raises(LimitExceeded, match=r"at /1/a~1b/0") as caught:
        check_depth('[{"x": "{\\"", "z": [[]]}, {"a/b": ' + most + "}]", "this")
    assert caught.value.value == MAX_JSON_DEPTH
    with pytest.raises(ValueError, match="Expecting"):
        read_json("[" * 500, "this")


def test_the_limit_of_python_is_put_back() -> None:
    before = sys.getrecursionlimit()

    def down(levels: int) -> int:
        return 0 if not levels else 1 + down(levels - 1)

    assert with_room(lambda: down(ROOM // 2)) == ROOM // 2
    assert sys.getrecursionlimit() == before
    with pytest.raises(RecursionError):
        with_room(lambda: down(10 * ROOM))
    assert sys.getrecursionlimit() == before


def test_a_lenient_schema_drops_what_is_too_deep() -> None:
    schema = JsonSchema(nested(IN_PLACE["anyOf"], 200), lenient=True)
    compiled = create_backend("pushdown_trie", VOCAB).compile(schema)
    assert any("nested too deep" in one.reason for one in compiled.dropped)
    with pytest.raises(SchemaUnsupported, match="nested too deep"):
        create_backend("pushdown_trie", VOCAB).compile(JsonSchema(schema.text))


def depth_of(text: str) -> int:
    """How many arrays and objects are inside each other in a text, counted sign by sign."""
    depth = deepest = 0
    for sign in re.sub(r'"(?:[^"\\\\]|\\\\.)*"', "", text, flags=re.DOTALL):
        depth += (sign in "[{") - (sign in "]}")
        deepest = max(deepest, depth)
    return deepest


@given(st.integers(MAX_JSON_DEPTH - 60, MAX_JSON_DEPTH + 60), st.integers(0, 70), st.text('"\\\\[]{}a', max_size=8))
def test_depth_is_that_of_the_signs_outside_of_strings(deep: int, shallow: int, word: str) -> None:
    beside = json.dumps([word, {word: [[[]]] * 300}])
    for levels in (deep, shallow):
        text = "[" * levels + f"{beside}, " * 3 + beside + "]" * levels
        if depth_of(text) > MAX_JSON_DEPTH:
            with pytest.raises(LimitExceeded):
                check_depth(text, "it")
        else:
            check_depth(text, "it")
