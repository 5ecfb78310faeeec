"""Forbidden values of keywords, wherever they stand: the meta-schemas of the drafts, by jsonschema, are the judge."""

from __future__ import annotations

import copy
import json
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator

import tokdfa
from tests.walks import accepts
from tokdfa.errors import SchemaError
from tokdfa.json_schema.read.document import DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019, DRAFT_2020, DRAFTS, Document
from tokdfa.json_schema.read.metaschema import CHECKS, check_schema, find_errors, find_keywords
from tokdfa.lab.measure.schema_corpus import read_cases

BYTES = tokdfa.load_tokenizer("bytes").vocabulary
VALIDATORS = {
    DRAFT_4: Draft4Validator,
    DRAFT_6: Draft6Validator,
    DRAFT_7: Draft7Validator,
    DRAFT_2019: Draft201909Validator,
    DRAFT_2020: Draft202012Validator,
}
CASES = read_cases(Path(__file__).parents[2] / "experiments" / "inputs" / "schemas")
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2.5, 3.0, "a", "", "integer", [], ["a"], ["a", "a"], ["a", 1], ["integer", "null"]),
    *([{}], [{"type": "strng"}], [True], {}, {"a": {}}, {"a": 5}, {"a": ["b"]}, {"a": True}, {"a": {"minLength": -1}}),
    *([1, 1.0], [{"a": 1}, {"a": 1}], [1, True], {"type": ["string", "string"]}),
]


def is_allowed(schema: Any, draft: int) -> bool:
    """What our reader says."""
    try:
        check_schema(json.loads(json.dumps(schema), parse_float=Decimal), draft)
    except SchemaError:
        return False
    return True


@pytest.mark.parametrize("draft", VALIDATORS)
def test_every_keyword_with_every_value(draft: int) -> None:
    metaschema = VALIDATORS[draft](VALIDATORS[draft].META_SCHEMA)
    for keyword in CHECKS[draft]:
        for value in VALUES:
            if draft == DRAFT_4 and (value == 3.0 or keyword == "$ref"):
                continue  # its meta-schema has no $ref; whether 3.0 is an integer is not certain there
            schema = {keyword: copy.deepcopy(value)}
            assert is_allowed(schema, draft) == metaschema.is_valid(schema), schema


@pytest.mark.parametrize("draft", VALIDATORS)
def test_the_tables_have_the_keywords_of_the_metaschemas(draft: int) -> None:
    """A value that no keyword takes is refused for exactly those that a draft's meta-schema speaks of."""
    metaschema = VALIDATORS[draft](VALIDATORS[draft].META_SCHEMA)
    every = sorted({keyword for table in CHECKS.values() for keyword in table})
    for keyword in every:
        values = (None, 5, {"a": 7}, [0])
        is_spoken_of = any(not metaschema.is_valid({keyword: value}) for value in values) or keyword == "$ref"
        assert any(not is_allowed({keyword: value}, draft) for value in values) == is_spoken_of, keyword


@pytest.mark.parametrize("seed", range(150))
def test_changed_schemas_are_refused_as_by_their_metaschema(seed: int) -> None:
    draw = random.Random(seed)
    schema = json.loads(draw.choice(CASES).schema_text)
    draft = Document(json.dumps(schema)).draft
    places: list[tuple[Any, Any]] = []
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        inside = list(here.items() if isinstance(here, dict) else enumerate(here))
        places += [(here, key) for key, _ in inside if key != "$schema"]
        waiting += [value for _, value in inside if isinstance(value, dict | list)]
    for _ in range(draw.randint(0, 2)):
        holder, key = draw.choice(places)
        if key not in ("pattern", "$ref", "$id", "id"):
            holder[key] = draw.choice([value for value in VALUES if value != 3.0])
    metaschema = VALIDATORS[draft](VALIDATORS[draft].META_SCHEMA)
    assert is_allowed(schema, draft) == metaschema.is_valid(schema)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "string", "required": True}, "required at #:"),
        ({"type": "integer", "pattern": "["}, "pattern at #:"),
        ({"type": "string", "format": 5}, "format at #:"),
        ({"$defs": {"x": {"type": "strng"}}, "type": "null"}, "type at #/$defs/x:"),
        ({"properties": {"a": {"allOf": [{}, {"not": 5}]}}}, "schema at #/properties/a/allOf/1/not:"),
        ({"items": [{"type": "string"}]}, "items at #:"),
        ({"patternProperties": {"a/~": {"minItems": "1"}}}, "minItems at #/patternProperties/a~1~0:"),
        ({"dependentRequired": {"a": ["b", "b"]}}, "dependentRequired at #:"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": True}, "exclusiveMinimum at #:"),
        ({"$defs": {"a": {"$schema": "http://json-schema.org/draft-04/schema#", "$id": "http://a", "enum": []}}},
         "enum at #/$defs/a:"),
    ],
)  # fmt: skip
def test_the_place_is_named(schema: Any, place: str) -> None:
    for lenient in (False, True):
        with pytest.raises(SchemaError, match=re.escape(place)):
            tokdfa.compile(tokdfa.JsonSchema(schema, lenient=lenient), BYTES)


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [
        ({"items": [{}]}, "prefixItems"),
        ({"minimum": 0, "exclusiveMinimum": True}, "draft-04"),
        ({"properties": {"a": {"required": True}}}, "list the names"),
    ],
)
def test_forms_of_other_drafts_are_told_their_remedy(schema: Any, remedy: str) -> None:
    with pytest.raises(SchemaError, match=remedy):
        tokdfa.compile(tokdfa.JsonSchema(schema), BYTES)


def test_data_is_no_schema() -> None:
    schema = {"const": {"type": "strng"}, "enum": [{"required": 1}], "default": {"$ref": 5}, "examples": [{"not": 1}]}
    assert is_allowed(schema, DRAFT_2020)


def test_keywords_have_places() -> None:
    schema = {"properties": {"typ": {"typ": "string"}}, "$defs": {"a": {"format": "emial", "x-note": 1}}, "items": True}
    found = [(each.pointer, each.keyword) for each in find_keywords(schema, DRAFT_2020)]
    inside = [("/properties/typ", "typ"), ("/$defs/a", "format"), ("/$defs/a", "x-note")]
    assert found == [("", "properties"), ("", "$defs"), ("", "items"), *inside]
    assert check_schema(schema, DRAFT_2020) == {"typ", "x-note"}
    assert not check_schema({"properties": {"typ": {"type": "string"}}}, DRAFT_2020)


def test_all_errors_are_found() -> None:
    schema = {"type": "strng", "properties": {"a": 5, "b": {"minimum": "1", "pattern": "["}}, "required": "a"}
    found = [(error.pointer, error.keyword) for error in find_errors(schema, DRAFT_2020)]
    inside = [("/properties/b", "minimum"), ("/properties/b", "pattern")]
    assert found == [("", "type"), ("", "required"), ("/properties/a", "schema"), *inside]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("end", ["", "#"])
@pytest.mark.parametrize("draft", range(5))
def test_drafts_are_known_by_either_scheme(scheme: str, end: str, draft: int) -> None:
    name = next(uri for uri, each in DRAFTS.items() if each == draft).partition("://")[2]
    assert Document(json.dumps({"$schema": f"{scheme}://{name}{end}"})).draft == draft


@pytest.mark.parametrize(
    ("schema", "takes_null"),
    [
        ({"type": "string", "nullable": True}, True),
        ({"type": ["string", "integer"], "nullable": True}, True),
        ({"type": ["string", "null"], "nullable": True}, True),
        ({"type": "string", "nullable": False}, False),
        ({"type": "string", "nullable": True, "$schema": "http://json-schema.org/draft-07/schema#"}, False),
        ({"type": "string", "enum": ["a"], "nullable": True}, False),  # OpenAPI 3.0.3: null is then among the values
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer", "nullable": True}}}, True),
        ({"const": {"type": "string", "nullable": True}}, False),
        ({"properties": {"a": {"type": "null", "nullable": True}}, "type": "object", "discriminator": {}}, False),
    ],
)
@pytest.mark.filterwarnings("ignore:nullable at")
def test_nullable_of_openapi(schema: Any, takes_null: bool) -> None:
    assert accepts(tokdfa.compile(tokdfa.JsonSchema(schema), BYTES).start(), "null") == takes_null
