"""JSON schemas with the peers: what they get wrong, as their modules declare it, their options, and their refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.backends.peers.test_peers import BYTES
from tests.packages import backend, needs
from tests.walks import accepts
from tests.walks import mask_of as allowed
from tokdfa.backends.peers.glrmask_peer import refuse_crashes
from tokdfa.backends.registry import create_backend
from tokdfa.constraint import JsonSchema
from tokdfa.errors import LimitExceeded, UnsupportedConstraint

if TYPE_CHECKING:
    from tokdfa.backends.base import CompiledConstraint

NAMES = ("llguidance", "outlines_core", "glrmask", "xgrammar", "lm_format_enforcer", "grid", "maskforge")
PEERS = [backend(name) for name in NAMES]
CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER

TWO = '{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}'
#: What each module declares: a schema, and a text about which the peer is wrong.
DEVIATIONS: dict[str, list[tuple[str, str]]] = {
    "llguidance": [
        (TWO, '{"b":1,"a":1}'),
        (TWO, '{"c":1,"a":1}'),
        (TWO, " {}"),
        ('{"type":"integer"}', "1.0"),
        ('{"const":"a/b"}', r'"a\/b"'),
        ('{"type":"string"}', r'"\u0061"'),
        ('{"type":"object","required":["z"]}', '{"a":1,"z":1}'),
    ],
    "glrmask": [
        (TWO, '{"b": 1, "a": 1}'),
        (TWO, '{"a":1,"b":1}'),
        ('{"type":"integer"}', "1e2"),
        ('{"type":"string"}', r'"\/"'),
        ('{"type":"string","format":"date"}', '"x"'),
        ('{"type":"object","required":["z"]}', '{"a": 1, "z": 1}'),
    ],
    "outlines_core": [
        (TWO, '{"b":1,"a":1}'),
        (TWO, '{"a":1,"c":1}'),
        (TWO, '{\n"a":1}'),
        ('{"type":"number"}', "1e2"),
        ('{"type":"string"}', r'"\u0061"'),
        ('{"type":"string","pattern":"b+"}', '"abc"'),
        ('{"type":"string","format":"date"}', '"2024-02-30"'),
        ('{"oneOf":[{"type":"integer"},{"type":"number"}]}', "1"),
        ('{"type":"integer","not":{"const":1}}', "1"),
        ('{"type":"array","items":{"type":"integer"},"uniqueItems":true}', "[1,1]"),
        ('{"type":"integer","multipleOf":3}', "4"),
        ('{"type":"number","minimum":1.5}', "1"),
        ('{"type":"object","properties":{"a":{"type":"null"}},"minProperties":1}', "{}"),
        ('{"type":"object","properties":{"a":{"type":"null"}},"required":["z"]}', "{}"),
        ('{"properties":{"a":{"type":"integer"}}}', "1"),
    ],
    "xgrammar": [
        (TWO, '{"b":1,"a":1}'),
        (TWO, " {}"),
        ('{"type":"integer"}', "-0"),
        ('{"type":"string","pattern":"b+"}', '"abc"'),
        ('{"type":"string","pattern":"^.$"}', r'"\""'),
        ('{"type":"string","minLength":2,"maxLength":2}', r'"\n\n"'),
        ('{"type":"string","maxLength":3}', '"\x05"'),
        ('{"type":"string","format":"date"}', '"2024-02-30"'),
        ('{"oneOf":[{"type":"integer"},{"type":"number"}]}', "1"),
        ('{"type":"integer","not":{"const":1}}', "1"),
        ('{"type":"array","items":{"type":"integer"},"uniqueItems":true}', "[1,1]"),
        ('{"type":"object","required":["z"]}', "{}"),
        ('{"allOf":[{"type":"object"},{"required":["a"]}]}', "{}"),
        ('{"properties":{"a":{"type":"integer"}}}', "1"),
        ('{"enum":[{"k":[1]}]}', '{"k": [1]}'),
    ],
    "lm_format_enforcer": [
        (TWO, '{"a":1,"c":1}'),
        ('{"type":"integer"}', "1.0"),
        ('{"type":"string"}', '"\t"'),
        ('{"type":"string","pattern":"b+"}', '"abc"'),
        ('{"type":"string","pattern":"^.$"}', r'"\""'),
        ('{"type":"string","format":"date"}', '"x"'),
        ('{"type":"integer","not":{"const":1}}', "1"),
        ('{"type":"array","items":{"type":"integer"},"uniqueItems":true}', "[1,1]"),
        ('{"type":"number","minimum":1.5}', "1"),
        ('{"type":"object","minProperties":2}', '{"a":1}'),
        ('{"type":"object","patternProperties":{"^x":{"type":"integer"}}}', '{"x":"s"}'),
    ],
    "grid": [
        (TWO, r'{"\u0061":"x"}'),
        ('{"type":"object","properties":{"a":true},"additionalProperties":false}', r'{"\u0061":1}'),
        ('{"type":"integer"}', "1e2"),
        ('{"const":1}', "1e0"),
        ('{"const":"a/b"}', r'"a\/b"'),
        ('{"type":"string","format":"date"}', '"2024-02-30"'),
        ('{"oneOf":[{"type":"integer"},{"type":"number"}]}', "1"),
        ('{"type":"integer","not":{"const":1}}', "1"),
        ('{"type":"array","items":{"type":"integer"},"uniqueItems":true}', "[1,1]"),
        ('{"type":"array","contains":{"const":1}}', "[2]"),
        ('{"type":"integer","multipleOf":3}', "4"),
        ('{"type":"number","minimum":1.5}', "1"),
        ('{"type":"object","required":["z"]}', "{}"),
    ],
    "maskforge": [
        ('{"type":"integer"}', "-0"),
        ('{"type":"integer"}', "1.0"),
        ('{"type":"integer"}', "1e2"),
        ('{"const":"a/b"}', r'"a\/b"'),
        ('{"type":"object"}', '{"a":1,"a":2}'),
        ('{"type":"string","format":"date"}', '"x"'),
    ],
}


def compiled(peer: str, schema: Any, options: dict[str, Any] | None = None, **of_schema: Any) -> CompiledConstraint:
    return create_backend(peer, BYTES, **(options or {})).compile(JsonSchema(schema, **of_schema))


def is_valid(schema: str, text: str) -> bool:
    try:
        return bool(
            jsonschema.Draft202012Validator(json.loads(schema), format_checker=CHECKER).is_valid(json.loads(text))
        )
    except ValueError:
        return False


@pytest.mark.parametrize("peer", PEERS)
def test_declared_deviations_are_there(peer: str) -> None:
    """Each is measured against the jsonschema library; one that a new version has mended must leave the list."""
    for schema, text in DEVIATIONS[peer]:
        assert accepts(compiled(peer, schema).start(), text) != is_valid(schema, text), (schema, text)


CLOSED = {
    "type": "object",
    "properties": {"kind": {"enum": ["a", "bc"]}, "sizes": {"type": "array", "items": {"type": "boolean"}}},
    "required": ["kind", "sizes"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("peer", [backend(name) for name in NAMES if name != "grid"])  # it repeats listed keys for ever
def test_finished_walks_are_valid_under_the_schema(peer: str) -> None:
    started = compiled(peer, CLOSED)
    texts = set()
    for seed in range(6):
        matcher, tokens = started.start(), []
        while not matcher.is_finished():
            choices = allowed(matcher)
            tokens.append(choices[(seed * 7 + len(tokens) * 3) % len(choices)] if len(tokens) < 60 else choices[-1])
            matcher.advance(tokens[-1])
            assert len(tokens) < 400
        texts.add(BYTES.spell(tokens).decode())
    assert len(texts) > 2
    for text in texts:
        jsonschema.validate(json.loads(text), CLOSED)


# Options.


@pytest.mark.parametrize("peer", PEERS)
def test_no_peer_promises_that_no_name_comes_twice(peer: str) -> None:
    backend = create_backend(peer, BYTES)
    answer = backend.supports(JsonSchema(CLOSED, duplicates="refused"))
    assert not answer
    assert answer.reason.startswith(f"{peer} ")
    with pytest.raises(UnsupportedConstraint, match="duplicates must be 'declared'"):
        compiled(peer, CLOSED, duplicates="refused")


def test_llguidance_gets_the_options_of_the_constraint() -> None:
    lists = {"type": "array", "items": {"type": "integer"}}
    compact = compiled("llguidance", lists, whitespace="compact")
    assert accepts(compact.start(), "[1,2]")
    assert not accepts(compact.start(), "[1, 2]")
    spaced = compiled("llguidance", lists, whitespace="compact", item_separator=", ")
    assert accepts(spaced.start(), "[1, 2]")
    assert not accepts(spaced.start(), "[1,2]")
    patterned = compiled("llguidance", lists, whitespace_pattern="_")
    assert accepts(patterned.start(), "[_1_,_2_]")
    with pytest.raises(UnsupportedConstraint, match=r'llguidance cannot compile .*Unimplemented keys: \["not"\]'):
        compiled("llguidance", {"type": "null", "not": {}})
    lenient = compiled("llguidance", {"type": "null", "not": {}}, lenient=True)
    assert accepts(lenient.start(), "null")
    assert lenient.warnings == ('Unimplemented keys: ["not"]',)
    assert compact.warnings == ()
    assert accepts(compiled("llguidance", True, whitespace="compact").start(), '{"a":[]}')
    with pytest.raises(UnsupportedConstraint, match="schema is false"):
        compiled("llguidance", False, whitespace="compact")
    own = {"type": "array", "x-guidance": {"item_separator": ";"}}
    assert accepts(compiled("llguidance", own, whitespace="compact").start(), "[1;2]"), "what the schema says is kept"


def test_options_of_outlines_core() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}
    spaced, tight = '{ "a" : null }', '{"a":null}'
    for of_schema, texts in [
        ({}, [spaced, tight]),
        ({"whitespace": "compact"}, [tight]),
        ({"whitespace_pattern": " "}, [spaced]),
    ]:
        taken = compiled("outlines_core", schema, **of_schema)
        assert [text for text in (spaced, tight) if accepts(taken.start(), text)] == texts
    assert list(taken.phases) == ["pattern", "index"]
    chain = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    three = '{"next":{"next":{}}}'
    assert accepts(compiled("outlines_core", chain).start(), three)
    assert not accepts(compiled("outlines_core", chain, {"max_recursion": 0}).start(), three)
    number = {"type": "number"}
    assert accepts(compiled("outlines_core", number).start(), "1.5")
    assert not accepts(compiled("outlines_core", number, {"dialect": "own"}).start(), "1.5")


# Refusals.


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize(
    "schema", ['{"type":"no such type"}', "[]", '{"type":"string","pattern":"("}', '{"$ref":"#/nowhere"}']
)
def test_refusals_are_ours_and_quote_the_peer(peer: str, schema: str) -> None:
    name = create_backend(peer, BYTES).packages[0]
    if peer == "grid" and "pattern" in schema:  # it takes the pattern for none, and says so
        assert compiled(peer, schema).recorded  # type: ignore[attr-defined]
        return
    with pytest.raises(UnsupportedConstraint, match=f"{name} cannot compile '.+': ."):
        compiled(peer, schema)


@pytest.mark.parametrize("peer", PEERS)
def test_a_schema_without_texts(peer: str) -> None:
    if peer in ("glrmask", "maskforge"):  # as their modules declare
        assert allowed(compiled(peer, False).start()) == []
    elif peer == "grid":  # so does its module
        assert accepts(compiled(peer, False).start(), "\0")
    else:
        with pytest.raises(UnsupportedConstraint):
            compiled(peer, False)


@pytest.mark.parametrize("peer", PEERS)
def test_the_stack_and_the_memory_hold(peer: str) -> None:
    """A schema as deep as JSON is read is compiled or refused; it does not end the process."""
    schema: Any = {"type": "null"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    try:
        matcher = compiled(peer, schema).start()
    except (UnsupportedConstraint, LimitExceeded):
        return
    assert 0x5B in allowed(matcher)


@pytest.mark.parametrize(
    "schema",
    [
        '{"$ref":"#","type":"object"}',
        '{"allOf":[{"$ref":"#"},{"type":"object"}]}',
        '{"$defs":{"a/b":{"allOf":[{"$ref":"#/$defs/c"}],"minLength":1},"c":{"$ref":"#/$defs/a~1b"}},"items":{"$ref":"#/$defs/c"}}',
        '{"oneOf":[{"type":"null"},{"$ref":"#/oneOf/1","title":"itself"}]}',
    ],
)
def test_schemas_that_crash_glrmask_do_not_reach_it(schema: str) -> None:
    with pytest.raises(UnsupportedConstraint, match=r"glrmask would crash on .*leads back to it"):
        compiled("glrmask", schema)


def test_counts_that_crash_glrmask_do_not_reach_it() -> None:
    with pytest.raises(LimitExceeded, match=r"glrmask gave up on .* may crash from minItems 50000 up"):
        compiled("glrmask", '{"type":"array","minItems": 50000}')


def test_other_loops_reach_glrmask() -> None:
    assert allowed(compiled("glrmask", {"$ref": "#"}).start()) == [], "a loop that says nothing"
    tree = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
    assert accepts(compiled("glrmask", tree).start(), "[[], [[]]]")
    for harmless in ({"$ref": "#/no/such", "a": 1}, {"$ref": "http://elsewhere", "a": 1}, {"$ref": 5, "a": 1}):
        refuse_crashes(JsonSchema(harmless))


@needs("grid-guardrail", "torch")
def test_grid_names_what_it_does_not_enforce() -> None:
    unique = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert compiled("grid", unique).recorded == {"uniqueItems"}  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedConstraint, match="grid-guardrail cannot compile"):
        compiled("grid", unique, {"strict": True})
    assert not compiled("grid", CLOSED).recorded  # type: ignore[attr-defined]
