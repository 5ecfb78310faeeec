"""The schemas of experiments/inputs/schemas: jsonschema judges every instance, and every rule is there for a reason.

A schema's instances are worth what they can tell apart. So each keyword is taken out of each schema in turn, and at
least one label must change; `WITHOUT_EFFECT` are those where none can. Each invalid instance breaks one rule only, and
each instance has its members in the schema's order, so that nothing else can be the reason when an engine refuses it.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import extend, validator_for

from tokdfa.lab.measure.schema_corpus import read_cases

FOLDER = Path(__file__).parents[1] / "experiments" / "inputs" / "schemas"
CASES = {case.name: case for case in read_cases(FOLDER)}
#: What a schema says: every keyword of the drafts that can refuse an instance, but for $dynamicRef and $recursiveRef.
KEYWORDS = {
    "$ref", "additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains", "dependencies",
    "dependentRequired", "dependentSchemas", "else", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "if",
    "items", "maxContains", "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
    "minProperties", "minimum", "multipleOf", "not", "oneOf", "pattern", "patternProperties", "prefixItems",
    "properties", "propertyNames", "required", "then", "type", "unevaluatedItems", "unevaluatedProperties",
    "uniqueItems",
}  # fmt: skip
#: (schema, keyword) -> why no instance can tell whether the keyword is there.
WITHOUT_EFFECT = {
    ("drafts---draft6_catalogue", "then"): "draft 6 does not know it",
    ("formats---annotations", "format"): "no draft knows these formats, but date, which stands beside an integer",
    ("logic---shouts_once", "type"): "only integers are multiples of 3 or 5, and all else is of both",
    ("patterns---no_tags", "type"): "what is no string matches every pattern",
    ("references---siblings_draft7", "maxLength"): "it stands beside $ref in draft 7",
    ("references---siblings_draft7", "minItems"): "it stands beside $ref in draft 7",
    ("strings---article_numbers", "type"): "all values of the enum are strings",
}

#: Where a keyword holds schemas: as its value, in a list, or under names.
ONE = (
    "not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties", "propertyNames",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
LIST = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


def each(test):
    return pytest.mark.parametrize("name", CASES)(test)


@cache
def schema_of(name):
    return json.loads(CASES[name].schema_text)


@cache
def instances_of(name):
    return [(test.valid, json.loads(test.text)) for test in CASES[name].tests]


def validator(schema, like=None):
    """jsonschema's validator of the declared draft, or of that of the schema `like`, with all formats asserted."""
    kind = validator_for(schema if like is None else like, default=Draft202012Validator)
    return kind(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


def without(schema, keyword):
    """`schema` without `keyword`, wherever that is a keyword and not the name of a property or part of an enum."""
    if not isinstance(schema, dict):
        return schema
    rest = {}
    for name, value in schema.items():
        if name == keyword:
            continue
        if name in LIST and isinstance(value, list):
            value = [without(part, keyword) for part in value]
        elif name in NAMED:
            value = {key: without(part, keyword) for key, part in value.items()}
        elif name in ONE:
            value = without(value, keyword)
        rest[name] = value
    return rest


def used_keywords(name):
    return {keyword for keyword in KEYWORDS if without(schema_of(name), keyword) != schema_of(name)}


@each
def test_labels_are_those_of_jsonschema(name):
    judge = validator(schema_of(name))
    assert [data for valid, data in instances_of(name) if judge.is_valid(data) != valid] == []


@each
def test_an_invalid_instance_breaks_one_rule(name):
    judge = validator(schema_of(name))
    broken = {json.dumps(data): len(list(judge.iter_errors(data))) for valid, data in instances_of(name) if not valid}
    assert {text: count for text, count in broken.items() if count != 1} == {}


def test_every_keyword_matters():
    idle = set()
    for name in CASES:
        known = set(validator_for(schema_of(name), default=Draft202012Validator).VALIDATORS)
        # jsonschema looks at these four beside if and contains
        known |= {"then", "else", "minContains", "maxContains"}
        for keyword in used_keywords(name) & known - {"$ref"}:
            judge = validator(without(schema_of(name), keyword), like=schema_of(name))
            if all(judge.is_valid(data) == valid for valid, data in instances_of(name)):
                idle.add((name, keyword))
    assert idle == set(WITHOUT_EFFECT)


@each
def test_members_stand_in_the_order_of_the_schema(name):
    """Whatever schema looks at an object lists its members in their order; those that none lists come last."""
    listed = {}
    kind = validator_for(schema_of(name), default=Draft202012Validator)
    plain = kind.VALIDATORS["properties"]

    def look(judge, properties, instance, schema):
        if judge.is_type(instance, "object"):
            members = [member for member in instance if member in properties]
            assert members == [member for member in properties if member in instance]
            listed.setdefault(id(instance), (instance, set()))[1].update(members)
        yield from plain(judge, properties, instance, schema)

    judge = extend(kind, {"properties": look})(schema_of(name))
    for _, data in instances_of(name):
        listed.clear()
        list(judge.iter_errors(data))
        for instance, members in listed.values():
            assert set(list(instance)[: len(members)]) == members


def described():
    """Markdown: for each split a heading and a table of its cases, with links to the files beside the page."""
    by_split = {}
    for case in CASES.values():
        by_split.setdefault(case.split, []).append(case)
    lines = []
    for split, members in by_split.items():
        lines += ["", f"## {split} ({len(members)})", "", "| schema | what it is about | valid | invalid |"]
        lines.append("|---|---|--:|--:|")
        for case in members:
            valid = sum(test.valid for test in case.tests)
            short, note = case.name.removeprefix(f"{split}---"), case.note.replace("|", "\\|")
            lines.append(f"| [{short}]({case.name}.json) | {note} | {valid} | {len(case.tests) - valid} |")
    return "\n".join(lines[1:]) + "\n"


def test_the_page_lists_the_schemas():
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    introduction = page.partition("\n## ")[0]
    assert page == introduction + "\n" + described(), "write the tables again"


PROBES = json.loads((FOLDER.parent / "keywords" / "draft2020-12" / "keywords.json").read_text())


def test_every_keyword_has_one_probe():
    named = [probe["description"] for probe in PROBES]
    assert sorted(named) == sorted(KEYWORDS | {"$dynamicRef", "$recursiveRef"})


@pytest.mark.parametrize("probe", PROBES, ids=[probe["description"] for probe in PROBES])
def test_a_probe_is_invalid_by_its_keyword_alone(probe):
    judge, (valid, invalid) = validator(probe["schema"]), probe["tests"]
    assert (valid["valid"], judge.is_valid(valid["data"])) == (True, True)
    assert (invalid["valid"], judge.is_valid(invalid["data"])) == (False, False)
    assert validator(without(probe["schema"], probe["description"]), probe["schema"]).is_valid(invalid["data"])
