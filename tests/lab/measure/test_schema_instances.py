"""JSON schemas with instances become constraints with texts, or the reason why not."""

import json
from pathlib import Path

import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.measure.schema_instances import SKIPPED, SchemaLimits, schema_cases


def cases_of(folder, **limits):
    given = SchemaLimits(100, 5, 100_000, 600, 120.0)._replace(**limits)
    return {case.name: case for case in schema_cases(Path(folder), given)}


def write(folder, name, schema, *instances):
    tests = [{"description": "", "valid": valid, "data": data} for valid, data in instances]
    (folder / f"{name}.json").write_text(json.dumps({"description": name, "schema": schema, "tests": tests}))


def person(**kinds):
    return {"type": "object", "properties": {key: {"type": kind} for key, kind in kinds.items()}, "required": [*kinds]}


@pytest.fixture
def schemas(tmp_path):
    """A folder with a schema for each thing that can happen."""
    ada, bob = {"name": "Zoë", "age": 3}, {"name": "Bob", "age": 1}
    write(tmp_path, "a_person", person(name="string", age="integer"), (True, ada), (False, {}), (True, bob))
    write(tmp_path, "b_order", person(name="string", age="integer"), (True, {"age": 1, "name": "Eve"}))
    write(tmp_path, "c_invalid", person(name="string"), (False, {"name": 1}))
    write(tmp_path, "d_refused", {"not": {}}, (True, 1))
    write(tmp_path, "e_large", {"type": "string", "maxLength": 900}, (True, "x"))
    (tmp_path / "f_broken.json").write_text('{"schema": {}')
    (tmp_path / "g_other.json").write_text('{"schema": {}, "examples": []}')
    write(tmp_path, "h_surrogate", {"type": "string"}, (True, "\ud800"))
    (tmp_path / "notes.txt").write_text("not a schema")
    return tmp_path


def test_schemas_become_constraints_or_a_reason(schemas):
    cases = cases_of(schemas)
    assert cases["a_person"].texts == ('{"name": "Zoë", "age": 3}', '{"name": "Bob", "age": 1}')
    status = {name: [one[0] for one in case.skipped] for name, case in cases.items()}
    assert status == {
        "a_person": [], "b_order": ["not_matched"], "c_invalid": ["no_instance"], "d_refused": ["refused"],
        "e_large": ["too_large"], "f_broken": ["unreadable"], "g_other": ["unreadable"], "h_surrogate": ["not_matched"],
    }  # fmt: skip
    assert {one for found in status.values() for one in found} <= set(SKIPPED)
    assert [name for name, case in cases.items() if case.constraint] == ["a_person"]
    assert cases["b_order"].skipped[0][2] == '{"age": 1, "name": "Eve"}'


def test_limits(schemas):
    def statuses(**limits):
        return {name: [one[0] for one in case.skipped] for name, case in cases_of(schemas, **limits).items()}

    half = statuses(schemas=4)
    assert [name for name, status in half.items() if "not_asked" not in status] == [
        "a_person", "c_invalid", "e_large", "g_other",
    ]  # fmt: skip
    assert len(half) == 8
    assert statuses(instances=1)["a_person"] == ["not_asked"]
    assert statuses(pattern=10)["a_person"] == ["too_large"]
    assert set(map(tuple, statuses(seconds=1e-9).values())) == {("not_asked",)}
    with pytest.raises(OptionError, match="no files"):
        cases_of(schemas / "nowhere")


def test_instances_are_written_as_the_regex_wants_them(tmp_path, monkeypatch):
    from outlines_core import json_schema

    build = json_schema.build_regex_from_schema
    monkeypatch.setattr(json_schema, "build_regex_from_schema", lambda schema: build(schema, whitespace_pattern=""))
    write(tmp_path, "compact", person(name="string", age="integer"), (True, {"name": "Ada", "age": 36}))
    assert cases_of(tmp_path)["compact"].texts == ('{"name":"Ada","age":36}',)
