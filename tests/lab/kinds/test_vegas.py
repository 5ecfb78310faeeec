"""The experiment about parts: its rows on a few cases, what must hold between them, and what the report says."""

import json

import numpy as np
import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError
from tokdfa.lab.kinds.vegas import KEYS, KIND, VARIANTS, complete, measure, object_members

SETTINGS = {
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


@pytest.fixture(scope="module")
def rows():
    return measure({"tokenizer": "mistral-v1", **SETTINGS}, 0)


def of(rows, case):
    return {row["variant"]: row for row in rows if row["case"] == case and "variant" in row}


def test_every_case_in_every_way(rows):
    cases = list(dict.fromkeys(row["case"] for row in rows if row["family"] != "library"))
    assert cases == ["yaml 1", "yaml 8", "words", "large"]
    assert all(list(of(rows, case)) == list(VARIANTS) for case in cases)
    assert {row["tokenizer"] for row in rows} == {"mistral-v1"}


def test_the_automata_are_equal_and_parts_are_known(rows):
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


def test_what_is_too_large_says_so(rows):
    for row in of(rows, "large").values():
        assert (row["status"], row["equal"]) == ("memory", None)
        assert "max_transitions" in row["message"]
        assert "seconds" not in row


def test_the_library_is_described(rows):
    boolean, e_mail, read = (row for row in rows if row["family"] == "library")
    assert (boolean["case"], boolean["status"]) == ("boolean", "ok")
    assert boolean["parts"] > 0
    assert (e_mail["case"], e_mail["status"], e_mail["parts"]) == ("e-mail", "memory", 0)
    assert (read["case"], read["parts"]) == ("read", 0)  # these are too small for a file


def test_members_take_turns():
    assert len(set(KEYS)) == 32
    assert object_members(3, ["null", "date"]) == [(KEYS[0], "null"), (KEYS[1], "date"), (KEYS[2], "null")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"members": [33]}, r"settings\.members\.0"),
        ({"kinds": ["int"]}, r"settings\.kinds: there is no 'int'; there are string, integer"),
        ({"forms": ["toml"]}, r"settings\.forms: there is no 'toml'"),
        ({"only": ["a"], "regexes": []}, r"settings\.only: there is no 'a'"),
        ({"regexes": [{"label": "a", "grammar": 'start: "a"'}]}, r"settings\.regexes: each has a label"),
        ({"regexes": [{"label": "a", "json_schema": True, "order": "no"}]}, r"regexes\.0\.order: input should be"),
        ({"regexes": [{"label": "a", "json_schema": "{"}]}, r"settings\.regexes: a: the schema is not JSON"),
        ({"regexes": [{"label": "a"}]}, r"settings\.regexes: a: .*has none of regex"),
        ({"label": "a", "regex": "a"}, r"settings\.label"),
    ],
)
def test_faults_name_the_key(wrong, message):
    with pytest.raises(OptionError, match=message):
        measure({"tokenizer": "mistral-v1", **SETTINGS, "only": [], **wrong}, 0)


def test_schemas_of_a_folder_are_cases(tmp_path):
    for name, schema in {"unit": {"enum": ["km", "mile"]}, "other": True}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"schema": schema, "tests": []}))
    options = {"whitespace": "compact", "escapes": "needed"}
    given = {**SETTINGS, "members": [], "schemas": str(tmp_path), "schema_names": ["unit"], "json_schema": options}
    settings = complete(given)
    assert complete(settings) == settings
    assert settings["only"] == ["large", "words", "unit"]
    assert settings["regexes"][-1] == {"label": "unit", "json_schema": '{"enum":["km","mile"]}', **options}
    unit = {"label": "the same", "choice": ['"km"', '"mile"']}
    settings |= {"regexes": [settings["regexes"][-1], unit], "only": []}
    found = measure({"tokenizer": "mistral-v1", **settings}, 0)
    assert {row["family"] for row in of(found, "unit").values()} == {"json_schema"}
    assert of(found, "unit")["whole"]["states"] == of(found, "the same")["whole"]["states"]


def test_what_is_told(rows):
    told = Told(KIND, rows)
    found = {name: of(rows, name) for name in ("yaml 1", "yaml 8", "words")}
    gains = [one["whole"]["seconds"] / one["parts"]["seconds"] for one in found.values()]
    row = told.tables["vegas_gains"].set_index("way of merging").loc["by parts"]
    assert row[["faster, median", "faster, max"]].tolist() == pytest.approx([np.median(gains), max(gains)])
    assert row[["cases", "equal"]].tolist() == [3, 3]
    families = told.tables["vegas_families"].set_index("family")
    assert families["cases"].to_dict() == {"yaml": 2, "regex": 2}
    cases = told.tables["vegas_cases"].set_index("case")
    assert list(cases.index) == ["yaml 8", "words"]  # yaml 1 is not the largest, large is too large
    assert cases["in library"]["yaml 8"] == found["yaml 8"]["library"]["known"]
    assert told.tables["vegas_library"]["case"].tolist() == ["boolean", "e-mail", "read"]
    assert told.sentences[0].startswith("9 of 9 automata")
    assert told.sentences[-1] == "12 of 16 measurements succeeded; the others: 4 memory."
    (points,) = told.panels["vegas"].values()
    assert len(points) == 8


def test_a_library_alone_is_told():
    told = Told(KIND, [{"tokenizer": "small", "family": "library", "case": "date", "seconds": 1.0, "parts": 0}])
    assert list(told.tables) == ["vegas_library"]
    assert not told.panels["vegas"]
