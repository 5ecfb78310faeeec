"""Compiles of schemas within a budget: what is too much is refused, and nothing remembers that it was."""

from __future__ import annotations

from typing import Any

import pytest

from tokdfa.constraint import JsonSchema
from tokdfa.core.budget import COMPILE, Budget, spending
from tokdfa.errors import LimitExceeded
from tokdfa.json_schema.write.lower import lower_schema

#: Schemas of which the work grows with a number: each is too much for half a second.
GROWING: dict[str, Any] = {
    "branches that overlap": {"oneOf": [{"required": [f"a{k}"]} for k in range(1_500)]},
    "patterns of names": {"type": "object", "patternProperties": {f"^p{k}-.*x{k}": {} for k in range(1_000)}},
    "names": {"type": "object", "required": [f"r{k}" for k in range(1_000_000)]},
    "names in kinds": {
        "type": "object",
        "properties": {f"a{k}b": {"type": "integer"} for k in range(8_000)},
        "patternProperties": {f"^a.*{k}": {"minimum": k} for k in range(6)},
    },
    "items": {"not": {"prefixItems": [{"enum": [k]} for k in range(30_000)]}},
}
#: Schemas of many kinds of work.
SMALL: list[Any] = [
    {"properties": {f"p{k}": {"type": "object", "properties": {"x": {"type": "string"}}} for k in range(30)}},
    {"oneOf": [{"required": [f"a{k}"]} for k in range(5)]},
    {"patternProperties": {"^a.*b": {"type": "integer"}, "^b": {"type": "null"}}, "properties": {"ab": {"minimum": 1}}},
    {"contains": {"enum": [1, 2]}, "maxContains": 3, "items": {"multipleOf": 0.5}},
    {"not": {"properties": {"a": {"pattern": "^x.*y"}}, "required": ["a", "b"]}},
    {"type": "object", "properties": {f"p{k}": True for k in range(8)}, "maxProperties": 3},
    {"allOf": [{"anyOf": [{"required": [f"{c}{k}"]} for k in range(4)]} for c in "abc"]},
]  # fmt: skip


@pytest.mark.parametrize("name", GROWING)
def test_what_grows_too_much_is_refused(name: str) -> None:
    constraint = JsonSchema(GROWING[name])
    with pytest.raises(LimitExceeded, match="compile_") as caught, spending(Budget(0.5, 512), "the schema"):
        lower_schema(constraint)
    assert caught.value.limit in ("compile_seconds", "compile_mb")


def code_of(schema: Any) -> tuple[list[int], ...]:
    program, _ = lower_schema(JsonSchema(schema, lenient=True))
    return program.code.tolist(), program.arguments.tolist(), program.alternatives.tolist(), program.entries.tolist()


@pytest.mark.parametrize("schema", SMALL)
def test_a_spent_budget_is_passed_on_and_leaves_no_trace(schema: Any) -> None:
    with spending(COMPILE, "all of it") as account:
        code_of(schema)
    work = account.work_done
    wanted = code_of(schema)
    limits = []
    for part in range(20):
        try:
            with spending(Budget(work * part / 20 / 1e9, 512), "a part of it"):
                code_of(schema)
        except LimitExceeded as error:
            limits.append(error.limit)
        assert code_of(schema) == wanted
    assert limits
    assert set(limits) == {"compile_seconds"}
