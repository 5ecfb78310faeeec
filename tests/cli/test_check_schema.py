"""``tokdfa check-schema``, run as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def found(tokdfa: Any, folder: Path, schema: Any, *options: str) -> tuple[int, str]:
    """(exit status, what is printed, blanks folded)."""
    file = folder / "schema.json"
    file.write_text(json.dumps(schema))
    return tokdfa("check-schema", str(file), *options)


@pytest.mark.parametrize(
    ("schema", "status", "expected"),
    [
        ({"type": "strng", "properties": {"a": {"minimum": "1"}}}, 1,
         ["wrong # type", "wrong #/properties/a minimum"]),
        ({"type": "string", "minLength": 3, "maxLength": 2}, 1, ["impossible # no value is valid"]),
        ({"type": "object", "properties": {"a": {"pattern": "(?<=a)b(?<!c)\\1"}, "b": {"typ": 1}}}, 1,
         ["refused #/properties/a pattern", "suspicious #/properties/b typ"]),
        ({"format": "emial", "x-a": 1}, 0, ["suspicious # format", "ignored # x-a"]),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "string",
          "definitions": {"a": True}}, 0, ["ignored # type"]),
    ],
)  # fmt: skip
def test_findings(tokdfa: Any, tmp_path: Path, schema: Any, status: int, expected: list[str]) -> None:
    code, text = found(tokdfa, tmp_path, schema)
    assert code == status
    places = [text.index(line) for line in expected]
    assert places == sorted(places)
    verdicts = sum(
        text.count(f"{verdict} #") for verdict in ("wrong", "impossible", "refused", "suspicious", "ignored")
    )
    assert verdicts == len(expected)


def test_a_schema_that_is_enforced_whole(tokdfa: Any, tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "title": "a"}
    assert found(tokdfa, tmp_path, schema) == (0, "every keyword is enforced")


def test_options_count(tokdfa: Any, tmp_path: Path) -> None:
    schema = {"dependencies": {"a": ["b"]}}
    assert "suspicious # dependencies" in found(tokdfa, tmp_path, schema)[1]
    assert "suspicious" not in found(tokdfa, tmp_path, schema, "--schema-option", "asserts=all")[1]


def test_a_file_that_is_not_json(tokdfa: Any, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text("{")
    status, text = tokdfa("check-schema", str(file))
    assert status == 1
    assert "is not JSON" in text
