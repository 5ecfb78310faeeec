"""The experiment about parts on a few cases: its rows, and what must hold between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.kinds.vegas import KEYS, VARIANTS, check_settings, complete_settings, object_members, run_item

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: dict[str, Any] = {
    "members": [1, 8],
    "kinds": ["boolean", "date"],
    "forms": ["yaml"],
    "regexes": [
        {"label": "words", "choice": ["one", "two"]},
        {"label": "large", "regex": "[a-z]{9}"},
        {"label": "not asked", "regex": "a"},
    ],
    "only": ["large", "words"],
    "library": ["boolean", "e-mail"],
    "repeats": 1,
    "max_transitions": 2000,
}

#: The texts of the schema of two units.
UNIT = {"label": "unit", "choice": ['"km"', '"mile"']}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return run_item({"tokenizer": "mistral-v1", **SETTINGS}, 0)


def of(rows: list[dict[str, Any]], case: str) -> dict[str, dict[str, Any]]:
    return {row["variant"]: row for row in rows if row["case"] == case and "variant" in row}


def test_every_case_in_every_way(rows: list[dict[str, Any]]) -> None:
    cases = list(dict.fromkeys(row["case"] for row in rows if row["family"] != "library"))
    assert cases == ["yaml 1", "yaml 8", "words", "large"]
    for case in cases:
        assert list(of(rows, case)) == list(VARIANTS)
    assert {row["tokenizer"] for row in rows} == {"mistral-v1"}


def test_the_automata_are_equal_and_parts_are_known(rows: list[dict[str, Any]]) -> None:
    for case in ("yaml 1", "yaml 8", "words"):
        found = of(rows, case)
        for row in found.values():
            assert (row["status"], row["equal"], row["repeats"]) == ("ok", True, 1)
            assert 0 < row["merge_seconds"] < row["seconds"]
        assert len({(row["states"], row["transitions"]) for row in found.values()}) == 1
        parts, library, seen = found["parts"], found["library"], found["seen"]
        assert "known" not in found["whole"]
        assert parts["known"] == 0
        assert seen["known"] == seen["distinct"] <= seen["parts"]
        assert 0 <= library["known"] < library["distinct"]
    assert of(rows, "yaml 8")["library"]["known"] > 0
    assert of(rows, "yaml 8")["parts"]["distinct"] < of(rows, "yaml 8")["parts"]["parts"]


def test_what_is_too_large_says_so(rows: list[dict[str, Any]]) -> None:
    for row in of(rows, "large").values():
        assert row["status"] == "memory"
        assert "max_transitions" in row["message"]
        assert "seconds" not in row
        assert row["equal"] is None


def test_the_library_is_described(rows: list[dict[str, Any]]) -> None:
    boolean, e_mail, read = (row for row in rows if row["family"] == "library")
    assert (boolean["case"], boolean["status"]) == ("boolean", "ok")
    assert boolean["parts"] > 0
    assert (e_mail["case"], e_mail["status"], e_mail["parts"]) == ("e-mail", "memory", 0)
    assert (read["case"], read["parts"]) == ("read", 0)  # these are too small for a file


def test_members_take_turns() -> None:
    assert len(set(KEYS)) == 32
    assert object_members(3, ["null", "date"]) == [(KEYS[0], "null"), (KEYS[1], "date"), (KEYS[2], "null")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"members": [33]}, r"settings\.members\.0"),
        ({"kinds": ["int"]}, r"settings\.kinds: there is no 'int'; there are string, integer"),
        ({"forms": ["toml"]}, r"settings\.forms: there is no 'toml'"),
        ({"library": ["text"]}, r"settings\.library: there is no 'text'"),
        ({"only": ["a"], "regexes": []}, r"settings\.only: there is no 'a'"),
        ({"regexes": [{"label": "a"}]}, r"settings\.regexes: each has a label"),
        ({"regexes": [{"label": "a", "grammar": 'start: "a"'}]}, r"settings\.regexes: each has a label"),
        ({"regexes": [{"label": "a", "json_schema": True, "order": "no"}]}, r"regexes: a: order: input should be"),
        ({"regexes": [{"label": "a", "json_schema": "{"}]}, r"settings\.regexes: a: the schema is not JSON"),
        ({"schema_names": ["a"]}, r"settings\.schemas: schema_names"),
        ({"schemas": "x", "schema_names": "a"}, r"schema_names a list"),
        ({"speed": 1}, r"settings\.speed"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_settings({**SETTINGS, "only": [], **wrong})


def test_schemas_of_a_folder_are_cases(tmp_path: Path) -> None:
    for name, schema in {"unit": {"enum": ["km", "mile"]}, "other": True}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"schema": schema, "tests": []}))
    options = {"whitespace": "compact", "escapes": "needed"}
    given = {**SETTINGS, "members": [], "schemas": str(tmp_path), "schema_names": ["unit"], "json_schema": options}
    settings = complete_settings(given)
    assert complete_settings(settings) == settings
    assert settings["only"] == ["large", "words", "unit"]
    assert settings["regexes"][-1] == {"label": "unit", "json_schema": '{"enum":["km","mile"]}', **options}
    found = of(run_item({"tokenizer": "mistral-v1", **settings, "only": ["unit"]}, 0), "unit")
    assert {(row["family"], row["status"], row["equal"]) for row in found.values()} == {("json_schema", "ok", True)}
    words = run_item({"tokenizer": "mistral-v1", **settings, "regexes": [UNIT], "only": []}, 0)
    assert found["whole"]["states"] == of(words, "unit")["whole"]["states"]


def test_constraints_belong_into_the_settings() -> None:
    with pytest.raises(OptionError, match="takes tokenizers"):
        run_item({"tokenizer": "bytes", "label": "a", "regex": "a"}, 0)
