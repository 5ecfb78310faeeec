"""Schemas of many alternatives, which multiplied out would be exponentially many, against the library `jsonschema`."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.json_schema.schemas import library_validator
from tests.json_schema.test_lower import accepts, machine_of, random_text
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported
from tokdfa.json_schema.solve import clauses, shape_builder
from tokdfa.json_schema.write.lower import lower_schema

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def _pairs(count: int) -> dict[str, Any]:
    """Properties a0, .. and then b0, .. ."""
    return {**{f"a{k}": STRING for k in range(count)}, **{f"b{k}": INTEGER for k in range(count)}}


def _tagged(count: int) -> dict[str, Any]:
    parts = [{"if": {"properties": {"t": {"const": f"v{k}"}}}, "then": {"required": [f"x{k}"]}} for k in range(count)]
    names = {f"x{k}": INTEGER for k in range(count)}
    return {"type": "object", "properties": {"t": STRING, **names}, "required": ["t"], "allOf": parts}


def _tagged_by_numbers(count: int) -> dict[str, Any]:
    """The tag is optional, and the branches say which values a member has."""
    parts = [
        {
            "if": {"properties": {"t": {"enum": [k, k + 1000]}}, "required": ["t"]},
            "then": {"properties": {"x": {"const": k}}, "required": ["x"]},
            "else": {"properties": {f"not{k}": False}},
        }
        for k in range(count)
    ]
    return {"type": "object", "properties": {"t": {}, "x": {}}, "allOf": parts}


def _independent(count: int) -> dict[str, Any]:
    parts = [
        {"if": {"properties": {f"a{k}": {"const": "v"}}, "required": [f"a{k}"]}, "then": {"required": [f"b{k}"]}}
        for k in range(count)
    ]
    return {"type": "object", "properties": _pairs(count), "allOf": parts}


def _dependent(count: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": _pairs(count),
        "dependentRequired": {f"a{k}": [f"b{k}"] for k in range(count)},
    }


def _open_one_of(count: int) -> dict[str, Any]:
    branches = [{"properties": {f"b{k}": INTEGER}, "required": [f"b{k}"]} for k in range(count)]
    return {"type": "object", "properties": {f"b{k}": {} for k in range(count)}, "oneOf": branches}


def _closed_one_of(count: int) -> dict[str, Any]:
    """Branches without a tag, of which all but one are closed."""
    branches = [
        {"properties": {f"a{k}": STRING, f"b{k}": INTEGER}, "additionalProperties": k == 0} for k in range(count)
    ]
    return {"type": "object", "properties": {name: {} for name in _pairs(count)}, "oneOf": branches}


def _tagged_one_of(count: int) -> dict[str, Any]:
    """The tag is required outside of the branches, which overlap by themselves."""
    branches = [{"properties": {"t": {"const": f"v{k}"}, f"x{k}": INTEGER}} for k in range(count)]
    names = {"t": {}, **{f"x{k}": {} for k in range(count)}}
    return {"type": "object", "required": ["t"], "properties": names, "oneOf": branches}


def _not_tagged(count: int) -> dict[str, Any]:
    branches = [
        {"properties": {"t": {"const": f"v{k}"}, f"x{k}": INTEGER}, "required": ["t"], "additionalProperties": False}
        for k in range(count)
    ]
    return {
        "type": "object",
        "properties": {"t": {}, **{f"x{k}": {} for k in range(count)}},
        "not": {"anyOf": branches},
    }


def _unevaluated(count: int) -> dict[str, Any]:
    branches = [{"properties": {f"b{k}": INTEGER}, "required": [f"b{k}"]} for k in range(count)]
    return {"type": "object", "anyOf": branches, "unevaluatedProperties": False}


def _members(draw: random.Random, schema: dict[str, Any], count: int) -> dict[str, Any]:
    """Members that a schema speaks of, mostly, in the order in which it does."""
    text = json.dumps(schema)
    place = draw.randrange(count)
    tag = draw.choice([f"v{place}", place, place + 1000, "other"])
    drawn: dict[str, Any] = {"t": tag} if draw.random() < 0.6 else {}
    if draw.random() < 0.4:
        drawn["x"] = place
    for kind, values in (("x", (1,)), ("not", (1,)), ("a", ("v", "w")), ("b", (1, 1, "no"))):
        for k in {place, draw.randrange(count)}:
            if f'"{kind}{k}"' in text and draw.random() < 0.5:
                drawn[f"{kind}{k}"] = draw.choice(values)
    known = {name: value for name, value in drawn.items() if f'"{name}"' in text}
    found = dict(sorted(known.items(), key=lambda member: text.index(f'"{member[0]}"')))
    return found if draw.random() < 0.9 else {**found, "z": 0}


SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    shape.__name__[1:]: shape
    for shape in (
        *(_tagged, _tagged_by_numbers, _independent, _dependent),
        *(_open_one_of, _closed_one_of, _tagged_one_of, _not_tagged, _unevaluated),
    )
}


@pytest.mark.parametrize(("name", "count"), [(name, count) for name in SHAPES for count in (10, 100)])
def test_many_alternatives(name: str, count: int) -> None:
    schema = SHAPES[name](count)
    machine, library, draw = machine_of(schema), library_validator(schema), random.Random(f"{name} {count}")
    found = Counter[bool]()
    for _ in range(80):
        value = _members(draw, schema, count)
        expected = library.is_valid(value)
        assert accepts(machine, json.dumps(value)) == expected, value
        found[expected] += 1
    assert min(found[True], found[False]) >= 3
    finished = 0
    for _ in range(6 if count < 100 else 2):
        text = random_text(machine, draw)
        finished += bool(text)
        assert not text or library.is_valid(json.loads(text)), text
    assert finished


@pytest.mark.parametrize("name", SHAPES)
def test_many_alternatives_in_any_order(name: str) -> None:
    schema = SHAPES[name](20)
    machine, library, draw = machine_of(schema, order="any"), library_validator(schema), random.Random(name)
    for _ in range(80):
        members = list(_members(draw, schema, 20).items())
        draw.shuffle(members)
        assert accepts(machine, json.dumps(dict(members))) == library.is_valid(dict(members)), members
    text = random_text(machine, draw)
    assert not text or library.is_valid(json.loads(text)), text


def test_the_program_grows_as_the_schema_does() -> None:
    for name in ("tagged", "independent", "dependent", "open_one_of", "unevaluated"):
        sizes = [len(lower_schema(JsonSchema(SHAPES[name](count)))[0].code) for count in (50, 100, 200)]
        assert sizes[2] - sizes[1] < 2.2 * (sizes[1] - sizes[0]), name


@pytest.mark.parametrize("order", ["schema", "any"])
def test_one_of_many_branches_of_which_some_overlap(order: Literal["schema", "any"]) -> None:
    draw, found = random.Random(order), Counter[bool]()
    parts = [INTEGER, STRING, {"const": 1}, {"enum": [1, 2, "v"]}, {"type": ["integer", "null"]}]
    for _ in range(6 if order == "schema" else 2):
        branches = [{"properties": {f"z{k}": INTEGER}, "required": [f"z{k}"]} for k in range(36)]
        for _ in range(4):
            names = draw.sample("abc", draw.choice([1, 2]))
            required = draw.sample(names, draw.randrange(len(names) + 1))
            branches.append({"properties": {name: draw.choice(parts) for name in names}, "required": required})
        names = [*"abc", *(f"z{k}" for k in range(36))]
        schema = {"type": "object", "properties": dict.fromkeys(names, True), "oneOf": branches}
        machine, library = machine_of(schema, order=order), library_validator(schema)
        for _ in range(60):
            chosen = [name for name in ("a", "b", "c", "z3", "z7") if draw.random() < 0.4]
            if order == "any":
                draw.shuffle(chosen)
            value = {name: draw.choice([1, 2, "v", None]) for name in chosen}
            expected = library.is_valid(value)
            assert accepts(machine, json.dumps(value)) == expected, (schema, value)
            found[expected] += 1
        text = random_text(machine, draw)
        assert not text or library.is_valid(json.loads(text)), (schema, text)
    assert min(found[True], found[False]) >= 20, found


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("multiplied", [0, shape_builder.FEW_BRANCHES])
def test_closed_branches(order: Literal["schema", "any"], multiplied: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All objects of five names and two values, where nothing is multiplied out, and where few branches are."""
    monkeypatch.setattr(shape_builder, "FEW_BRANCHES", multiplied)
    monkeypatch.setattr(shape_builder, "MULTIPLIED", 0 if multiplied else clauses.MULTIPLIED)
    monkeypatch.setattr(clauses, "MULTIPLIED", multiplied)
    draw, found = random.Random(f"{order} {multiplied}"), Counter[tuple[str, bool]]()
    objects = [
        {name: value for name, value in zip("abcyz", values, strict=True) if value is not None}
        for values in product((None, 1, "v"), repeat=5)
    ]
    for _ in range(40):
        branches = []
        for _ in range(draw.randint(2, 5)):
            names = draw.sample("abc", draw.randrange(4))
            branch = {
                "properties": {name: draw.choice([STRING, {}, {}]) for name in names},
                "required": draw.sample(names, draw.randrange(len(names) + 1) // 2),
                "additionalProperties": draw.choice([False, False, False, True]),
            }
            branches.append(branch if draw.random() < 0.8 else {"not": branch})
        keyword = draw.choice(["oneOf", "oneOf", "allOf"])
        rule = {keyword: branches if keyword == "oneOf" else [{"not": branch} for branch in branches]}
        more = draw.choice([{}, {"additionalProperties": False}, {"minProperties": 2}, {"maxProperties": 2}])
        declared = "abc" if order == "schema" else draw.sample("abc", draw.randrange(3))
        schema = {"type": "object", "properties": {name: {} for name in declared}, **more, **rule}
        library = library_validator(schema)
        try:
            machine = machine_of(schema, order=order)
        except EmptyLanguageError:
            assert not any(map(library.is_valid, objects)), schema
            continue
        for value in draw.sample(objects, 60):
            members = list(value.items())
            if order == "any":
                draw.shuffle(members)
            expected = library.is_valid(value)
            assert accepts(machine, json.dumps(dict(members))) == expected, (schema, members)
            found[keyword, expected] += 1
        text = random_text(machine, draw)
        assert not text or library.is_valid(json.loads(text)), (schema, text)
    assert len(found) == 4, found


def test_guesses_about_one_member_are_bounded() -> None:
    choices = [
        {"if": {"properties": {"t": {"pattern": f"^.{{{k}}}x"}}}, "then": {"required": [f"x{k}"]}} for k in range(30)
    ]
    with pytest.raises(SchemaUnsupported, match="values of one member"):
        lower_schema(JsonSchema({"type": "object", "allOf": choices}))


@pytest.mark.parametrize("step", [1, 7])
def test_enums_of_many_integers(step: int) -> None:
    values = list(range(0, 10_000 * step, step))
    for schema in ({"enum": values}, {"type": "integer", "enum": values}):
        machine = machine_of(schema)
        for value in (0, step, values[-1], values[5_000]):
            assert accepts(machine, str(value))
        for text in ("-1", str(values[-1] + step), "0.5"):
            assert not accepts(machine, text)
