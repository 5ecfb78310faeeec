"""What `lenient` leaves out loosens the schema, wherever it stands: no valid value is refused."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import COMMON_VALUES, documents, library_validator, values
from tests.json_schema.test_lower import accepts, pool
from tokdfa.backends.pushdown_trie.machine import Machine
from tokdfa.constraint import JsonSchema
from tokdfa.errors import EmptyLanguageError, SchemaUnsupported
from tokdfa.json_schema.write.lower import lower_schema

#: Patterns of the drawn schemas -> what they become: no regular language, so each has to be left out.
BACK_REFERENCES = {"^a": r"^a(b?)\1", "a$": r"^(.?)\1a$", "^.$": r"^(a?)(b?)\1$", "^[ab]*$": r"^([ab]*)\1$"}
TWICE = r"^(a|b)\1$"


def refused_values(schema: Any, candidates: list[Any]) -> tuple[list[Any], int]:
    """Values that are not accepted although the library says that they are valid; the number of keywords left out."""
    library = library_validator(schema)
    valid = [value for value in candidates if library.is_valid(value)]
    try:
        program, dropped = lower_schema(JsonSchema(schema, lenient=True, order="any"))
    except EmptyLanguageError:
        return valid, 0
    machine = Machine(program, pool())
    return [value for value in valid if not accepts(machine, json.dumps(value))], len(dropped)


def test_no_valid_value_is_refused() -> None:
    count: Counter[str] = Counter()

    def spoil(here: Any) -> Any:
        """A schema with back-references for patterns, and some where a schema is negated."""
        if isinstance(here, dict):
            spoiled = {BACK_REFERENCES.get(key, key): spoil(part) for key, part in here.items()}
            for keyword in ("not", "if"):
                if isinstance(spoiled.get(keyword), dict):
                    spoiled[keyword].setdefault("pattern", TWICE)
            return spoiled
        if isinstance(here, list):
            return [spoil(part) for part in here]
        return BACK_REFERENCES.get(here, here) if isinstance(here, str) else here

    @settings(max_examples=120, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(documents(unevaluated=False) | documents((4,), unevaluated=True), st.lists(values, max_size=6))
    def check(drawn: dict[str, Any], more: list[Any]) -> None:
        schema = spoil(drawn)
        try:
            refused, dropped = refused_values(schema, [*COMMON_VALUES, *more, "aa", "bb", {"bb": 1}, {"aa": "ab"}])
        except SchemaUnsupported:
            count["refused"] += 1
            return
        count["loosened" if dropped else "exact"] += 1
        assert not refused, (schema, refused)

    check()
    assert count["loosened"] > 7
    assert count["refused"] < 0.1 * count.total()


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"pattern": TWICE, "type": "string"}},
        {"not": {"not": {"pattern": TWICE, "type": "string"}}},
        {"not": {"properties": {"a": {"pattern": TWICE}}, "required": ["a"]}},
        {"not": {"anyOf": [{"type": "string", "pattern": TWICE}, {"type": "number"}]}},
        {"oneOf": [{"type": "string", "pattern": TWICE}, {"type": "string"}]},
        {"oneOf": [{"type": "object", "propertyNames": {"pattern": TWICE}}, {"type": "object"}]},
        {"if": {"pattern": TWICE}, "then": {"const": "aa"}, "else": {"type": "string"}},
        {"patternProperties": {TWICE: {"type": "string"}}, "additionalProperties": False},
        {"patternProperties": {TWICE: {}}, "unevaluatedProperties": False},
        {"not": {"contains": {"pattern": TWICE, "type": "string"}}},
        {"contains": {"pattern": TWICE, "type": "string"}, "maxContains": 1},
        {"$defs": {"a": {"pattern": TWICE, "type": "string"}}, "not": {"$ref": "#/$defs/a"}},
    ],
)
def test_what_negates_a_loosened_schema_is_loosened(schema: Any) -> None:
    strings = ["", "a", "aa", "ab", "bb"]
    members = [{name: value} for name in strings for value in (1, "a", "aa")]
    arrays = [[], *([one, other] for one in strings for other in strings)]
    refused, dropped = refused_values(schema, [*COMMON_VALUES, *strings, *members, *arrays])
    assert not refused
    assert dropped
