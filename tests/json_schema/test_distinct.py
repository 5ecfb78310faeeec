"""``duplicates="refused"``: texts without two equal names in an object, and the schemas for which that cannot be."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import NAMES, documents, library_validator, small_values
from tests.json_schema.spellings import spellings
from tests.json_schema.test_lower import accepts, machine_of, random_text
from tests.json_schema.test_program_grammar import accepts as grammar_accepts
from tests.json_schema.test_program_grammar import grammar_machine
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, OptionError, SchemaUnsupported, TokdfaError
from tokdfa.json_schema.solve.object_plan import MAX_REMEMBERED
from tokdfa.json_schema.write.lower import lower_schema

NULL: dict[str, Any] = {"type": "null"}
SCALAR = {"type": ["null", "boolean", "integer", "string"]}
CLOSED = {"type": "object", "additionalProperties": False}


class Repeated(Exception):
    """An object of a text has two equal names."""


def read(text: str) -> Any:
    """The value of a text. Raises Repeated."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise Repeated
        return dict(pairs)

    return json.loads(text, object_pairs_hook=members)


def is_right(schema: Any, text: str) -> bool:
    """Whether a text is valid and has no name twice, by `json` and the library."""
    try:
        return bool(library_validator(schema).is_valid(read(text)))
    except Repeated:
        return False


def written(members: list[tuple[str, Any]], rng: random.Random) -> str:
    """The text of an object with these members in this order, names in spellings drawn at random."""
    parts = []
    for name, value in members:
        spelled = "".join(rng.choice(spellings(character)) for character in name)
        parts.append(f'"{spelled}":{value if isinstance(value, str) else json.dumps(value)}')
    return "{" + ",".join(parts) + "}"


def refused_at(schema: Any, **options: Any) -> tuple[str, str]:
    with pytest.raises(SchemaUnsupported) as caught:
        lower_schema(JsonSchema(schema, duplicates="refused", **options))
    return caught.value.pointer, caught.value.keyword


# Objects that are decided exactly.

NAMED = {**CLOSED, "patternProperties": {"^[ab]$": NULL, "^[bc]$": SCALAR}}
EXACT: dict[str, Any] = {
    "closed": {**CLOSED, "properties": {"a": NULL, "b": NULL}, "required": ["b"]},
    "patterns": NAMED,
    "declared and patterns": {**NAMED, "properties": {"c": NULL, "d": NULL}, "required": ["d"]},
    "names of an enum": {"type": "object", "propertyNames": {"enum": ["a", "ab", ""]}, "additionalProperties": NULL},
    "names of any of two": {
        "type": "object",
        "propertyNames": {"anyOf": [{"enum": ["a", "b"]}, {"pattern": "^[bc]$"}]},
        "additionalProperties": NULL,
    },
    "at least": {**NAMED, "minProperties": 2},
    "between": {**NAMED, "properties": {"a": NULL, "d": NULL}, "minProperties": 2, "maxProperties": 3},
    "one other": {"type": "object", "maxProperties": 1, "additionalProperties": NULL},
    "one other beside": {"properties": {"a": NULL}, "required": ["a"], "maxProperties": 2,
                         "type": "object", "additionalProperties": NULL},
    "excluded": {**NAMED, "properties": {"a": False, "d": NULL}},
    "some member": {**NAMED, "not": {"additionalProperties": NULL, "patternProperties": {"^a$": True}}},
    "some name": {**NAMED, "not": {"propertyNames": {"const": "a"}}},
    "all of": {"allOf": [{"properties": {"a": NULL}}, NAMED], "type": "object"},
    "any of": {"anyOf": [{**CLOSED, "properties": {"a": NULL}, "required": ["a"]}, NAMED]},
    "one of": {"oneOf": [{**NAMED, "maxProperties": 1}, {**NAMED, "required": ["c"]}]},
    "if": {**NAMED, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    "dependent": {**NAMED, "dependentRequired": {"a": ["c"]}},
    "unevaluated": {"type": "object", "properties": {"a": NULL}, "anyOf": [{"patternProperties": {"^b$": NULL}}, True],
                    "unevaluatedProperties": False},
    "constant": {"enum": [{"a": None, "b": None}, {"a": {"b": 1}}, {}]},
    "reference": {"$ref": "#/$defs/x", "$defs": {"x": NAMED}},
}  # fmt: skip


def object_texts() -> list[list[tuple[str, Any]]]:
    """The members of all objects of up to three, with a null or, in the last, a 1."""
    found: list[list[tuple[str, Any]]] = []
    for length in range(4):
        for names in itertools.product(("a", "b", "c", "d", "ab", ""), repeat=length):
            found.append([(name, None) for name in names])
            if names:
                found.append([*found[-1][:-1], (names[-1], 1)])
    return found


@pytest.mark.parametrize("name", EXACT)
def test_every_short_object_is_judged_right(name: str) -> None:
    schema = EXACT[name]
    rng = random.Random(name)
    plain, by_schema = machine_of(schema), machine_of(schema, duplicates="refused")
    by_any = machine_of(schema, duplicates="refused", order="any")
    grammar = grammar_machine(schema, duplicates="refused")
    count: Counter[str] = Counter()
    for members in object_texts():
        text = written(members, rng)
        expected = is_right(schema, text)
        count[f"right {expected}"] += 1
        assert accepts(by_any, text) == expected, text
        in_order = accepts(plain, text) and len({name for name, _ in members}) == len(members)
        assert expected or not in_order
        assert accepts(by_schema, text) == in_order, text
        assert grammar_accepts(grammar, text) == in_order, text
        count["repeated"] += accepts(plain, text) and not in_order
    assert count["right True"] > 0
    assert count["right False"] > 100
    if name not in {"closed", "one other", "one other beside", "unevaluated", "constant"}:
        assert count["repeated"] > 0, "the default takes texts that are refused here"


def test_nested_objects_are_remembered_each_for_itself() -> None:
    tree = {**CLOSED, "patternProperties": {"^[ab]$": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}
    machine = machine_of(tree, duplicates="refused")
    assert accepts(machine, '{"a":{"a":{"b":null,"a":null}},"b":{"a":null}}')
    assert not accepts(machine, '{"a":{"a":{"b":null,"b":null}}}')
    assert not accepts(machine, '{"a":{"a":null},"b":null,"a":null}')


def test_a_name_that_would_be_needed_twice_is_no_value() -> None:
    many = {**CLOSED, "patternProperties": {"^[ab]$": NULL}, "minProperties": 3}
    lower_schema(JsonSchema(many))
    with pytest.raises(EmptyLanguageError):
        lower_schema(JsonSchema(many, duplicates="refused"))
    for order in ("schema", "any"):
        outer = {**CLOSED, "properties": {"x": many, "y": NULL}}
        machine = machine_of(outer, duplicates="refused", order=order)
        assert accepts(machine, '{"y":null}')
        assert not accepts(machine, '{"x":{"a":null,"b":null,"a":null}}')
    both = [{"not": {"patternProperties": {"^[a]$": {"const": value}}}} for value in (1, 2)]
    one_each = {**CLOSED, "patternProperties": {"^a$": {"enum": [1, 2]}}, "allOf": both}
    lower_schema(JsonSchema(one_each))
    with pytest.raises(EmptyLanguageError):
        lower_schema(JsonSchema(one_each, duplicates="refused"))


def test_many_names_are_written_as_they_are_reached() -> None:
    names = [f"n{k}" for k in range(MAX_REMEMBERED)]
    pattern = {**CLOSED, "patternProperties": {"^n([0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])$": NULL}}
    listed = {"type": "object", "propertyNames": {"enum": names}, "additionalProperties": NULL, "minProperties": 200}
    for schema, least in ((pattern, 0), (listed, 200)):
        machine = machine_of(schema, duplicates="refused")
        order = random.Random(1).sample(names, len(names))
        whole = [(name, None) for name in order]
        assert accepts(machine, written(whole[:200], random.Random(2)))
        assert accepts(machine, written(whole[:3], random.Random(2))) is (least == 0)
        assert not accepts(machine, written([*whole[:200], whole[7]], random.Random(2)))
    one_more = {**listed, "propertyNames": {"enum": [*names, "n256"]}}
    assert refused_at(one_more) == ("", "additionalProperties")


def test_demands_beside_what_is_remembered() -> None:
    """Listed names with declared ones, counts and an order: the search for an end sees numbers of names, not sets."""
    declared = {f"d{k}": NULL for k in range(20)}
    schema = {**CLOSED, "properties": declared, "patternProperties": {"^o[0-9a-j]$": NULL}, "minProperties": 39}
    machine = machine_of(schema, duplicates="refused")
    whole = [(f"d{k}", None) for k in range(20)] + [(f"o{letter}", None) for letter in "0123456789abcdefghij"]
    for left_out, expected in ((0, True), (1, True), (2, False)):
        assert accepts(machine, written(whole[left_out:], random.Random(3))) is expected
    assert not accepts(machine, '{"d2":'), "a second name that is left out leads nowhere"
    assert machine.run_text(b'{"d1":') >= 0
    assert machine.run_text(b'{"d2":') < 0


# Objects that are refused.


@pytest.mark.parametrize(
    ("schema", "pointer", "keyword"),
    [
        (True, "", "additionalProperties"),
        ({}, "", "additionalProperties"),
        ({"type": "object"}, "", "additionalProperties"),
        ({"properties": {"a": NULL}}, "", "additionalProperties"),
        ({**CLOSED, "properties": {"a": {}}}, "/properties/a", "additionalProperties"),
        ({**CLOSED, "properties": {"a/b": {"items": [NULL, True]}}, "$schema": "http://json-schema.org/draft-07/schema"},
         "/properties/a~1b", "additionalProperties"),
        ({**CLOSED, "properties": {"a": {"type": "object", "additionalProperties": NULL}}}, "/properties/a",
         "additionalProperties"),
        ({**CLOSED, "patternProperties": {"^x": NULL}}, "", "patternProperties"),
        ({**CLOSED, "patternProperties": {"^[ab]$": True}}, "/patternProperties/^[ab]$", "additionalProperties"),
        ({"type": "object", "properties": {"a": NULL}, "unevaluatedProperties": NULL}, "", "unevaluatedProperties"),
        ({"type": "object", "patternProperties": {"^a": NULL}, "unevaluatedProperties": False}, "",
         "patternProperties"),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}, "/$defs/x", "additionalProperties"),
        ({"anyOf": [CLOSED, {"type": "object", "properties": {"a": NULL}}]}, "/anyOf/1", "additionalProperties"),
        ({"if": {"required": ["a"]}, "then": CLOSED, "else": {"properties": {"b": NULL}}}, "/else",
         "additionalProperties"),
        ({"type": "array"}, "", "items"),
        ({"type": "array", "items": {}}, "/items", "additionalProperties"),
        ({"type": "array", "prefixItems": [NULL, True], "items": False}, "/prefixItems/1", "additionalProperties"),
        ({"$schema": "http://json-schema.org/draft-07/schema", "type": "array", "items": [NULL]}, "",
         "additionalItems"),
        ({"type": "array", "items": NULL, "contains": {}}, None, None),
        ({"type": ["array", "null"], "contains": {"type": "object"}, "items": SCALAR, "minContains": 0}, None, None),
        ({"type": "array", "items": {"type": ["object", "null"]}, "contains": {"type": "object"}, "minContains": 0,
          "maxContains": 0}, None, None),
        ({"type": "array", "maxItems": 0}, None, None),
        ({"type": "object", "maxProperties": 0}, None, None),
        ({"type": "object", "required": ["a"], "maxProperties": 1, "properties": {"a": NULL, "b": {}}}, None, None),
        ({"not": {"type": ["object", "array"]}}, None, None),
        ({"type": "object", "not": {"required": ["a"]}}, "", "additionalProperties"),
        ({**CLOSED, "properties": {"a": {"not": {"type": "array"}}}}, "/properties/a", "additionalProperties"),
        ({"type": "object", "propertyNames": {"maxLength": 1}}, "", "additionalProperties"),
        ({"type": "object", "propertyNames": {"maxLength": 0}, "additionalProperties": NULL}, None, None),
        ({"type": "object", "propertyNames": {"pattern": "^(aa)*$"}}, "", "additionalProperties"),
        ({"type": "object", "propertyNames": {"format": "ipv4"}}, "", "additionalProperties"),
        ({"type": "object", "additionalProperties": {"not": {}}}, None, None),
        ({"type": "object", "maxProperties": 2, "additionalProperties": NULL}, "", "additionalProperties"),
    ],
)  # fmt: skip
def test_what_is_refused_and_where(schema: Any, pointer: str | None, keyword: str | None) -> None:
    if pointer is None:
        lower_schema(JsonSchema(schema, duplicates="refused"))
        return
    assert refused_at(schema) == (pointer, keyword)
    assert refused_at(schema, order="any") == (pointer, keyword)
    lower_schema(JsonSchema(schema))
    _, dropped = lower_schema(JsonSchema(schema, duplicates="refused", lenient=True))
    assert (pointer, keyword) in [(drop.pointer, drop.keyword) for drop in dropped]


def test_nesting_that_leaves_no_room_for_an_object_closes_it() -> None:
    assert accepts(machine_of(True, duplicates="refused", max_nesting=0), "1")
    assert refused_at(True, max_nesting=1) == ("", "additionalProperties")
    schema = {**CLOSED, "patternProperties": {"^[ab]$": {}}}
    assert refused_at(schema, max_nesting=2) == ("/patternProperties/^[ab]$", "additionalProperties")
    machine = machine_of(schema, duplicates="refused", max_nesting=1)
    assert accepts(machine, '{"b":1,"a":null}')
    assert not accepts(machine, '{"b":1,"b":null}')


def test_lenient_remembers_what_it_can_and_lists_the_rest() -> None:
    schema = {
        **CLOSED,
        "properties": {"open": {"additionalProperties": {"type": "integer"}, "type": "object"}},
        "patternProperties": {"^[ab]$": NULL},
    }
    _, dropped = lower_schema(JsonSchema(schema, duplicates="refused", lenient=True))
    assert [(drop.pointer, drop.keyword) for drop in dropped] == [("/properties/open", "additionalProperties")]
    assert "come twice" in dropped[0].reason
    program, _ = lower_schema(JsonSchema(schema, duplicates="refused", lenient=True))
    machine = machine_of(CLOSED)
    machine = type(machine)(program, machine.pool)
    assert accepts(machine, '{"open":{"x":1,"x":2},"a":null}')
    assert not accepts(machine, '{"open":{"x":1,"x":null},"a":null}'), "the keyword itself holds"
    assert not accepts(machine, '{"open":{},"a":null,"a":null}')


def test_the_option_is_checked() -> None:
    with pytest.raises(OptionError, match="declared, refused"):
        JsonSchema(True, duplicates="no")
    assert JsonSchema(True) != JsonSchema(True, duplicates="refused")


# Random schemas.


@st.composite
def closed_objects(draw: st.DrawFn) -> dict[str, Any]:
    """Schemas of objects whose names are finitely many, with keywords that count and choose among them."""
    part = st.sampled_from((NULL, SCALAR, {"type": "integer"}, {"const": 1}, False))
    patterns = st.sampled_from(("^[ab]$", "^b", "^.$", "^$", "^(a|ab|ba)$", "(?!a)^.b?$"))
    names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True)
    optional: dict[str, Any] = {
        "properties": st.dictionaries(st.sampled_from(NAMES), part, min_size=1, max_size=2),
        "patternProperties": st.dictionaries(patterns, part, min_size=1, max_size=2),
        "required": names,
        "minProperties": st.integers(0, 3),
        "maxProperties": st.integers(0, 4),
        "dependentRequired": st.dictionaries(st.sampled_from(NAMES), names, max_size=1),
        "not": st.fixed_dictionaries({"required": names})
        | st.fixed_dictionaries({"additionalProperties": part})
        | st.fixed_dictionaries({"patternProperties": st.dictionaries(patterns, part, min_size=1, max_size=1)})
        | st.fixed_dictionaries({"propertyNames": st.fixed_dictionaries({"pattern": patterns})}),
        "anyOf": st.lists(st.fixed_dictionaries({"required": names}), min_size=1, max_size=2),
        "oneOf": st.lists(st.fixed_dictionaries({"required": names}), min_size=1, max_size=2),
    }
    schema = {key: draw(optional[key]) for key in draw(st.lists(st.sampled_from(sorted(optional)), unique=True))}
    closing: Any = draw(st.sampled_from(("additionalProperties", "unevaluatedProperties", "propertyNames")))
    schema[closing] = {"enum": ["a", "b", "ab", "c"]} if closing == "propertyNames" else False
    if closing == "propertyNames":
        schema.setdefault("additionalProperties", SCALAR)
    return {"type": "object", **schema}


def test_random_closed_objects_against_the_library() -> None:
    count: Counter[str] = Counter()
    members = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from((None, 1, "s"))), max_size=4)

    @settings(max_examples=60, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
    @given(closed_objects(), st.lists(members, min_size=20, max_size=40), st.randoms(use_true_random=False))
    @example({**NAMED, "minProperties": 2}, [[("b", None), ("b", None)]], random.Random(0))
    def check(schema: dict[str, Any], drawn: list[list[tuple[str, Any]]], rng: random.Random) -> None:
        try:
            by_any = machine_of(schema, duplicates="refused", order="any")
            by_schema = machine_of(schema, duplicates="refused")
        except EmptyLanguageError:
            by_any = by_schema = None
        except SchemaUnsupported as error:
            count[f"refused {error.keyword}"] += 1
            return
        for pairs in [*drawn, *([*chosen, chosen[0]] for chosen in drawn if chosen)]:
            text = written([(name, json.dumps(value)) for name, value in pairs], rng)
            expected = is_right(schema, text)
            count[f"right {expected}"] += 1
            if by_any is None or by_schema is None:
                assert not expected, text
                continue
            assert accepts(by_any, text) == expected, (schema, text)
            in_order = accepts(machine_of(schema), text) and len(dict(pairs)) == len(pairs)
            assert accepts(by_schema, text) == in_order, (schema, text)
            assert expected or not in_order

    check()
    assert count["right True"] > 50
    assert count["right False"] > 500
    assert sum(number for what, number in count.items() if what.startswith("refused")) <= 30, count


def test_texts_of_random_schemas_never_repeat_a_name() -> None:
    """Whatever is not refused: values of the library in both orders, and random walks through the machine."""
    count: Counter[str] = Counter()

    @settings(max_examples=100, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(depth=2), st.lists(small_values, max_size=10), st.integers(0, 1000))
    def check(schema: dict[str, Any], drawn: list[Any], seed: int) -> None:
        rng = random.Random(seed)
        try:
            machine = machine_of(schema, duplicates="refused", order="any", max_nesting=rng.choice((None, None, 1, 2)))
        except TokdfaError:
            count["refused"] += 1
            return
        count["taken"] += 1
        plain = machine_of(schema, order="any")
        for value in drawn:
            text = json.dumps(value)
            if accepts(machine, text):
                assert accepts(plain, text)
        for _ in range(3):
            text = random_text(machine, rng).decode()
            if text:
                read(text)
                assert accepts(plain, text)
                count["walks"] += 1

    check()
    assert count["taken"] > 15
    assert count["walks"] > 20
