"""The automaton of a program, against the pushdown engine's rows; counted strings, against their expressions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.json_schema.schemas import documents
from tests.json_schema.test_lower import CASES, machine_of
from tokdfa.automata.algebra import same_language, trim
from tokdfa.automata.dfa import Dfa
from tokdfa.constraint import JsonSchema
from tokdfa.errors import LimitExceeded, TokdfaError
from tokdfa.json_schema.write.lexemes import StringExpressions
from tokdfa.json_schema.write.lower import lower_schema
from tokdfa.json_schema.write.program_automaton import counted, program_dfa
from tokdfa.program.json_text import string_dfa

if TYPE_CHECKING:
    from tokdfa.program.program import Escapes

MOST = 3_000


def rows_of(schema: Any, **options: Any) -> Dfa | None:
    """All rows of the engine's machine, stepped by every byte; None if there are more than MOST."""
    machine, table = machine_of(schema, **options), list[Any]()
    while len(table) < machine.row_count <= MOST:
        table.append(machine.following_rows(len(table)))
    if machine.row_count > MOST:
        return None
    accepting = np.array([machine.can_end(row) for row in range(machine.row_count)], dtype=np.bool_)
    return trim(Dfa.from_table(np.array(table, dtype=np.int32), accepting, 0))


def check(schema: Any, **options: Any) -> bool:
    """Whether there were few enough rows to compare."""
    expected = rows_of(schema, **options)
    if expected is None:
        return False
    found = program_dfa(lower_schema(JsonSchema(schema, **options))[0], "a schema", 2 * MOST)
    assert same_language(found, expected)
    return True


OPTIONS: dict[str, dict[str, Any]] = {
    "flat": {"max_nesting": 1},
    "nested": {"max_nesting": 2, "whitespace": "compact"},
    "any order": {"max_nesting": 1, "order": "any", "whitespace": "compact"},
    "few escapes": {"max_nesting": 1, "escapes": "needed"},
}


@settings(deadline=None)
@given(documents(depth=2), st.sampled_from(sorted(OPTIONS)))
def test_random_schemas(schema: dict[str, Any], options: str) -> None:
    try:
        lower_schema(JsonSchema(schema, **OPTIONS[options]))
    except TokdfaError:
        return
    check(schema, **OPTIONS[options])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 2, "maxLength": 5},
        {"type": "string", "minLength": 3},
        {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
        {"type": "string", "pattern": "^a+b?$", "maxLength": 7},
        {"type": "object", "properties": {"a": True, "ab": {"type": "null"}, "é": {"const": 1}}, "maxProperties": 3},
        {"type": "object", "properties": {"a": True, "b": False}, "additionalProperties": {"type": "boolean"}},
        {"type": "object", "required": ["b"], "properties": {"a": {"enum": [1, "x"]}, "b": {"type": "integer"}}},
    ],
)
@pytest.mark.parametrize("escapes", ["all", "needed"])
def test_names_and_lengths(schema: dict[str, Any], escapes: Escapes) -> None:
    assert check(schema, max_nesting=1, escapes=escapes, whitespace="compact")


@pytest.mark.parametrize("escapes", ["all", "needed"])
@given(st.integers(-1, 4), st.none() | st.integers(0, 4))
def test_counted_strings_are_their_expressions(escapes: Escapes, least: int, more: int | None) -> None:
    most = None if more is None else max(least, 0) + more
    strings = StringExpressions(escapes)
    number = strings.counted(max(least, 0), most)
    lazy, start = strings.automaton(number)
    expected = lazy.to_dfa()
    expected = Dfa(expected.transitions, expected.byte_class, expected.accepting, start)
    assert same_language(counted(string_dfa(escapes), least, most, 1_000), expected)


def test_what_has_too_many_states_is_refused() -> None:
    for schema, most in (({"type": "array"}, 2_000), ({"type": "string", "maxLength": 1_000}, 900), (True, 2_000)):
        with pytest.raises(LimitExceeded, match=r"more than .* states: bound the nesting") as raised:
            program_dfa(lower_schema(JsonSchema(schema))[0], "a schema", most)
        assert (raised.value.limit, raised.value.value) == ("max_states", most)


def test_schemas_of_experiments() -> None:
    options = {"max_nesting": 2, "whitespace": "compact"}
    taken = [json.loads(case.schema_text) for case in CASES if is_taken(case.schema_text, options)]
    assert sum(check(schema, **options) for schema in taken) > 5


def is_taken(schema: str, options: dict[str, Any]) -> bool:
    try:
        lower_schema(JsonSchema(schema, **options))
    except TokdfaError:
        return False
    return True
