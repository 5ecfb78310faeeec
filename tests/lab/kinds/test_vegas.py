"""The experiment about parts: its rows on a few cases, what must hold between them, and what the report says."""

import json

import pytest

from tests.lab.kinds.told import tell
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


SPEED = {"whole": 1.0, "parts": 2.0, "library": 4.0, "seen": 8.0}


def case(family, name, members, total, **changes):
    """Rows of the four variants; `whole` takes `total` seconds, merging half of all."""
    place = {"tokenizer": "small", "family": family, "case": name, "members": members, "status": "ok", "equal": True}
    sizes = {"states": 30, "transitions": 90, "parts": 12, "distinct": 5, "find_seconds": 0.001}
    return [
        {**place, **sizes, "variant": variant, "seconds": total / speed, "merge_seconds": total / speed / 2}
        | ({"known": 3} if variant == "library" else {})
        | changes
        for variant, speed in SPEED.items()
    ]


def test_the_report_says_what_parts_save():
    failed = {"status": "memory", "equal": None, "seconds": None, "merge_seconds": None}
    library = {"tokenizer": "small", "family": "library", "status": "ok", "message": ""}
    rows = [
        *case("yaml", "yaml 1", 1, 0.01), *case("yaml", "yaml 8", 8, 0.08), *case("regex", "huge", None, 1.0, **failed),
        *case("regex", "small", None, 0.2), {**library, "case": "date", "seconds": 0.3, "parts": 4},
    ]  # fmt: skip
    rows[1]["equal"] = False
    told = tell(KIND, rows)
    heads = ("way of merging", "faster, median", "merging faster, max", "cases", "equal")
    assert told.values("vegas_gains", *heads)[:2] == [
        ("by parts", 2.0, 2.0, 3, 2), ("library of usual types", 4.0, 4.0, 3, 3)
    ]  # fmt: skip
    assert told.texts("vegas_families")[0] == ["small", "yaml", "2", "2.00x", "4.00x", "8.00x"]
    assert told.texts("vegas_objects") == [
        ["small", "yaml 8", "12", "5", "3", "30", "90", "1.00 ms", "80.0 ms", "40.0 ms", "20.0 ms", "10.0 ms"]
    ]
    assert [line[1] for line in told.texts("vegas_regexes")] == ["small"]
    assert told.texts("vegas_library")[0][:4] == ["small", "date", "4", "300 ms"]
    assert told.sentences[0].startswith("8 of 9 automata")
    assert told.sentences[1].startswith("small: with the library of usual types 4.00x as fast")
    assert told.sentences[-1] == "12 of 16 measurements succeeded; the others: 4 memory."
    (panel,) = told.charts["vegas"].panels
    assert len(panel.spec["data"]["values"]) == 8


def test_a_library_alone_is_told():
    told = tell(KIND, [{"tokenizer": "small", "family": "library", "case": "date", "seconds": 1.0, "parts": 0}])
    assert [name for name, table in told.tables.items() if table.rows] == ["vegas_library"]
    assert told.charts["vegas"].figure is None
