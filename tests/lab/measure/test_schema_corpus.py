"""Reading folders of schemas: texts against the json module, places of faults, splits, and the test suite's layout."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.errors import ConfigError, UnknownNameError
from tokdfa.lab.measure.schema_corpus import (
    DRAFTS,
    SchemaTest,
    read_case,
    read_cases,
    read_suite,
    split_of,
)

#: Without half surrogate pairs, which a JSON text can name but UTF-8 cannot hold.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def case_text(schema="{}", data="1", valid="true"):
    return f'{{"schema": {schema}, "tests": [{{"valid": {valid}, "data": {data}}}]}}'


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    schema=st.dictionaries(TEXTS, VALUES, max_size=4) | st.booleans(),
    data=st.lists(VALUES, max_size=3),
    indent=st.sampled_from([None, 1]),
    escaped=st.booleans(),
)
def test_texts_are_those_of_the_json_module(tmp_path_factory, schema, data, indent, escaped):
    tests = [{"data": value, "valid": index % 2 == 0} for index, value in enumerate(data)]
    content = json.dumps({"tests": tests, "meta": data, "schema": schema}, indent=indent, ensure_ascii=escaped)
    case = read_case(write(tmp_path_factory.mktemp("one"), "a.json", content))
    assert case.schema_text == json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    assert [test.text for test in case.tests] == [json.dumps(value, ensure_ascii=False) for value in data]
    assert [test.valid for test in case.tests] == [test["valid"] for test in tests]


@pytest.mark.parametrize(
    "number",
    ["1E+3", "-0", "0.1000000000000000055", "1e400", "1" * 5000],
)
def test_numbers_keep_their_spelling(tmp_path, number):
    case = read_case(write(tmp_path, "a.json", case_text(f'{{"minimum" : {number}}}', f'[ {number},"{number}" ]')))
    assert case.schema_text == f'{{"minimum":{number}}}'
    assert case.tests[0].text == f'[{number}, "{number}"]'


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("Github_easy---o10008", "Github_easy"),
        ("Snowplow---sp_204_Normalized", "Snowplow"),
        ("part_2_of_3", "part_2_of"),
        ("o10008", "other"),
        ("---odd", "other"),
    ],
)
def test_splits(name, split):
    assert split_of(name) == split


def test_names_choose_and_order(tmp_path):
    for name in ("b", "a", "c"):
        write(tmp_path, f"{name}.json", case_text())
    write(tmp_path, "deeper/d.json", "no case")
    write(tmp_path, "README.md", "no case")
    assert [case.name for case in read_cases(tmp_path)] == ["a", "b", "c"]
    assert [case.name for case in read_cases(tmp_path, ["c", "a.json"])] == ["c", "a"]
    assert read_cases(tmp_path, []) == []
    with pytest.raises(UnknownNameError, match=r"there is no schema in .* 'bb'; did you mean 'b'"):
        read_cases(tmp_path, ["a", "bb"])


FAULTS = {
    "{": "a.json: this is no file of JSON in UTF-8: .* line 1 column 2",
    '{"schema": [], "tests": []}': "a.json: schema: .*a schema is an object, true or false",
    '{"schema": {}, "tests": [{"valid": true}]}': r"a.json: tests\[0\].data: field required",
    case_text(data="NaN"): "NaN is not a JSON value",
    case_text(data='{"a": 1, "b": 2, "\\u0061": 3}'): "two members named 'a'",
    case_text(data="[" * 100_000 + "]" * 100_000): "a.json: this is nested too deep",
    case_text(data="[" * 1_000 + "]" * 1_000): "a.json: this is nested too deep",
}


@pytest.mark.parametrize("content", FAULTS, ids=range(len(FAULTS)))
def test_faults_name_the_file_and_the_place(tmp_path, content):
    path = write(tmp_path, "a.json", content)
    with pytest.raises(ConfigError, match=FAULTS[content]) as caught:
        read_cases(tmp_path)
    assert caught.value.path == str(path)


def group(schema, description="one", **test):
    return {"description": description, "schema": schema, "tests": [{"description": "t", "data": 1, **test}]}


def test_the_suite_declares_the_draft_of_its_folder(tmp_path):
    declared = {"$schema": DRAFTS["draft2019-09"], "type": "null"}
    escaped = '[{"description": "e", "schema": {"\\u0024schema": "x"}, "tests": []}]'
    groups = [group({"type": "null"}, valid=False), group({}, "two", valid=True), group(True, "three", valid=True)]
    write(tmp_path, "tests/draft7/type.json", json.dumps(groups))
    write(tmp_path, "tests/draft2020-12/optional/format/date.json", json.dumps([group(declared, "", valid=False)]))
    write(tmp_path, "tests/draft4/escaped.json", escaped)
    write(tmp_path, "tests/draft3/type.json", "[no JSON")
    found = {case.name: case for case in read_suite(tmp_path / "tests")}
    assert list(found) == [
        "draft2020-12/optional/format/date[0]",
        "draft4/escaped[0] e",
        "draft7/type[0] one",
        "draft7/type[1] two",
        "draft7/type[2] three",
    ]
    assert [case.schema_text for case in found.values()] == [
        json.dumps(declared, separators=(",", ":")),
        '{"$schema":"x"}',
        f'{{"$schema":"{DRAFTS["draft7"]}","type":"null"}}',
        f'{{"$schema":"{DRAFTS["draft7"]}"}}',
        "true",
    ]
    assert found["draft7/type[0] one"].tests == (SchemaTest(False, "1"),)
    assert [case.split for case in found.values()] == [name.split("[")[0] for name in found]
    assert read_suite(tmp_path / "tests" / "draft7") == list(found.values())[2:]
    assert [case.name for case in read_suite(tmp_path / "tests/draft2020-12/optional")] == list(found)[:1]


def test_declared_drafts_are_those_of_jsonschema():
    from jsonschema import validators

    for name, uri in DRAFTS.items():
        draft = name.removeprefix("draft").replace("-", "")
        assert validators.validator_for({"$schema": uri}) is getattr(validators, f"Draft{draft}Validator")


def test_faults_of_the_suite(tmp_path):
    path = write(tmp_path, "draft3/type.json", json.dumps([group({}, valid=True)]))
    with pytest.raises(ConfigError, match=r"type\.json: no folder above it is named after a draft that is known") as e:
        read_suite(tmp_path)
    assert e.value.path == str(path)
