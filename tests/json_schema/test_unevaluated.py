"""unevaluatedProperties and unevaluatedItems: equal to the library where they reduce, refused where they do not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, exact, expand, library_validator, values
from tests.naive.schema_values import holds
from tokdfa.errors import SchemaUnsupported
from tokdfa.json_schema.document import DRAFT_2020

DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}


def test_states_hold_what_the_library_says() -> None:
    # of 2019-09 the library takes the keywords of additionalProperties for names of properties
    count: Counter[str] = Counter()

    @settings(max_examples=200, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(drafts=(DRAFT_2020,), unevaluated=True), st.lists(values, max_size=8))
    def check(schema: dict[str, Any], drawn: list[Any]) -> None:
        expander, root, _ = expand(schema)
        library = library_validator(schema)
        count["all"] += 1
        try:
            for value in (*COMMON_VALUES, *drawn):
                assert holds(expander, root, exact(value)) == library.is_valid(value), value
        except SchemaUnsupported:
            count["refused"] += 1

    check()
    assert count["all"] - count["refused"] >= 90


A_AND_B = {"properties": {"a": {}}, "allOf": [{"properties": {"b": {"type": "string"}}}]}
NAMED = {"$defs": {"named": {"properties": {"name": {}}, "patternProperties": {"^x": {}}}}, "$ref": "#/$defs/named"}


@pytest.mark.parametrize("draft", [DRAFT_2019, {}], ids=["2019-09", "2020-12"])
@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({**A_AND_B, "unevaluatedProperties": False}, {"a": 1, "b": "b"}, {"a": 1, "c": 1}),
        ({**A_AND_B, "unevaluatedProperties": {"type": "null"}}, {"a": 1, "c": None}, {"c": 1}),
        ({**A_AND_B, "unevaluatedProperties": True}, {"c": 1}, {"b": 1}),
        ({**NAMED, "unevaluatedProperties": False}, {"name": 1, "x1": 1}, {"y": 1}),
        ({"properties": {"a": {}}, "anyOf": [{"properties": {"a": {"type": "null"}}}, {"required": ["b"]}],
          "unevaluatedProperties": {"const": 1}}, {"a": 2, "b": 1}, {"a": None, "b": 2}),
        ({"allOf": [{"additionalProperties": {"const": 1}}], "unevaluatedProperties": False}, {"c": 1}, {"c": 2}),
        ({"allOf": [{"unevaluatedProperties": {"const": 1}}], "unevaluatedProperties": False}, {"c": 1}, {"c": 2}),
        ({"not": {"properties": {"a": {}}, "required": ["z"]}, "unevaluatedProperties": False}, {}, {"a": 1}),
        ({"allOf": [{"items": {"type": "string"}}], "unevaluatedItems": False}, ["a"], [1]),
        ({"unevaluatedItems": {"type": "string"}}, ["a"], [1]),
        ({"allOf": [{"unevaluatedItems": {"type": "string"}}], "unevaluatedItems": False}, ["a"], [1]),
    ],
)  # fmt: skip
def test_both_drafts(draft: dict[str, Any], schema: Any, valid: Any, invalid: Any) -> None:
    expander, root, _ = expand({**draft, **schema})
    assert holds(expander, root, valid)
    assert not holds(expander, root, invalid)


def test_first_items_are_looked_at_by_the_keyword_of_the_draft() -> None:
    for schema in (
        {**DRAFT_2019, "allOf": [{"items": [{}, {}]}], "items": [{}], "unevaluatedItems": False},
        {"allOf": [{"prefixItems": [{}, {}]}], "prefixItems": [{}], "unevaluatedItems": False},
    ):
        expander, root, _ = expand(schema)
        assert holds(expander, root, [1, 2])
        assert not holds(expander, root, [1, 2, 3])
    # additionalItems looks at the rest only beside a list of items
    expander, root, _ = expand({**DRAFT_2019, "additionalItems": True, "unevaluatedItems": False})
    assert not holds(expander, root, [1])
    expander, root, _ = expand({**DRAFT_2019, "items": [{}], "additionalItems": True, "unevaluatedItems": False})
    assert holds(expander, root, [1, 2])


def test_contains_looks_at_items_from_2020_12_on() -> None:
    schema = {"contains": {"const": 1}, "unevaluatedItems": False}
    expander, root, _ = expand({**DRAFT_2019, **schema})
    assert not holds(expander, root, [1])
    expander, root, _ = expand(schema)
    with pytest.raises(SchemaUnsupported) as caught:
        expander.shape(root)
    assert caught.value.keyword == "unevaluatedItems"


@pytest.mark.parametrize(
    "choice",
    [
        {"anyOf": [{"properties": {"b": {}}}, {}]},
        {"oneOf": [{"patternProperties": {"b": {}}}, {"type": "object"}]},
        {"if": {"properties": {"b": {"const": 1}}}},
        {"if": {"required": ["b"]}, "then": {"properties": {"b": {}}}},
        {"if": {"required": ["a"]}, "else": {"additionalProperties": {"type": "string"}}},
        {"dependentSchemas": {"a": {"properties": {"b": {}}}}},
        {"allOf": [{"anyOf": [{"properties": {"b": {}}}, {}]}]},
        {"$dynamicRef": "#/$defs/x", "$defs": {"x": {}}},
    ],
)
def test_what_depends_on_the_value_is_refused(choice: dict[str, Any]) -> None:
    expander, root, _ = expand({"properties": {"a": {}}, **choice, "unevaluatedProperties": False})
    with pytest.raises(SchemaUnsupported) as caught:
        expander.shape(root)
    assert caught.value.keyword == "unevaluatedProperties"


def test_older_drafts_do_not_know_the_keywords() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "unevaluatedProperties": False}
    expander, root, _ = expand(schema)
    assert holds(expander, root, {"a": 1})
