"""MaskBench on a fake engine that accepts the texts a schema lists, with every way to fail, and from YAML to rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from tests.lab.measure.fake_schemas import FakeSchemas
from tokdfa.backends import registry
from tokdfa.constraint import JsonSchema
from tokdfa.errors import ConfigError, OptionError, UnknownNameError
from tokdfa.lab.config.expand import expand, expand_groups
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds import maskbench
from tokdfa.lab.measure import maskbench_process
from tokdfa.lab.measure.limits import Failure, Limits
from tokdfa.lab.measure.maskbench_process import READY, Found, Unprepared, in_forks
from tokdfa.lab.measure.maskbench_replay import run_case
from tokdfa.lab.measure.maskbench_schema import keyword_in, reordered, respelled, used_keywords
from tokdfa.lab.measure.schema_corpus import SchemaCase, SchemaTest
from tokdfa.lab.run import provenance
from tokdfa.lab.run.execute import run
from tokdfa.lab.run.store import open_run
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Both spell one JSON value.
TEXT, OTHER = '{"a": 1, "b": 2}', '{"b": 2, "a": 1}'
SCHEMA: dict[str, Any] = {"texts": [TEXT], "properties": {"a": {}, "b": {}}}
GOOD, WRONG = (True, {"a": 1, "b": 2}), (False, {"a": 7})


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "fake_schemas", "tests.lab.measure.fake_schemas:FakeSchemas")
    monkeypatch.setattr(provenance, "calibrate", dict)  # it has tests of its own
    registry._targets.cache_clear()
    yield
    registry._targets.cache_clear()


def case(schema: dict[str, Any], *tests: tuple[bool, Any]) -> SchemaCase:
    made = tuple(SchemaTest(valid, json.dumps(data)) for valid, data in tests)
    return SchemaCase("made up", json.dumps(schema), made, "split")


def judged(one: SchemaCase, seconds: float = 20.0, to_end: bool = False) -> dict[str, Any]:
    """The final row of a case, in this process."""
    tokenizer = load_tokenizer("bytes")
    backend = FakeSchemas(tokenizer.vocabulary)
    constraint = JsonSchema(one.schema_text)
    rows = list(run_case(one, constraint, backend, tokenizer, seconds, to_end, lambda phase: None))
    assert [final for _, final in rows] == [False] * (len(rows) - 1) + [True]
    return rows[-1][0]


def times(row: dict[str, Any], column: str) -> list[float]:
    return [float(value) for value in np.frombuffer(row[column], dtype="<f4")]


def test_a_case_passes_if_valid_instances_go_through_and_invalid_ones_are_stopped() -> None:
    row = judged(case(SCHEMA, GOOD, WRONG, (True, {"a": 1, "b": 2})))
    assert (row["outcome"], row["message"], row["right_tests"], row["tests"], row["valid_tests"]) == (
        *("passed", "", 3, 3, 2),
    )
    # {"a": 7 is refused at the 7: its mask counts, its commit is none
    assert row["tokens"] == 2 * len(TEXT) + 7
    masks, commits = times(row, "mask_ns"), times(row, "advance_ns")
    assert len(masks) == len(commits) == row["tokens"]
    assert min(masks) > 0
    assert [place for place, value in enumerate(commits) if value == 0] == [len(TEXT) + 6]
    assert row["compile_ns"] > 0
    assert row["first_ns"] > 0
    assert json.loads(row["verdicts"]) == [
        [True, "right", 16, 16, True], [False, "right", 6, 8, False], [True, "right", 16, 16, True],
    ]  # fmt: skip
    assert json.loads(row["keywords"]) == ["properties"]


def test_of_several_faults_the_benchmark_keeps_the_last() -> None:
    rejected, accepted = (True, {"c": 1}), (False, {"a": 1, "b": 2})
    over_last = judged(case(SCHEMA, accepted, rejected))
    assert (over_last["outcome"], over_last["over_tests"], over_last["under_tests"]) == ("over", 1, 1)
    assert over_last["message"] == "invalid, and went through"  # the first
    under_last = judged(case(SCHEMA, rejected, accepted))
    assert (under_last["outcome"], under_last["over_tests"], under_last["under_tests"]) == ("under", 1, 1)
    assert under_last["message"] == "valid, rejected at token 3 of 8, b'c'"


def test_the_end_of_the_text_decides_in_a_suite_only() -> None:
    one = case({"texts": ["12"]}, (True, 1), (False, 1), (True, 12))
    row = judged(one)
    assert (row["outcome"], row["right_tests"], row["over_tests"], row["under_tests"]) == ("under", 2, 0, 1)
    assert (row["unended_tests"], row["ended_under_tests"]) == (1, 0)
    row = judged(one, to_end=True)
    assert (row["outcome"], row["right_tests"], row["over_tests"], row["under_tests"]) == ("over", 2, 1, 0)
    assert row["message"] == "valid, rejected at the end of the text"


def test_a_rejected_instance_out_of_order_is_an_order_artefact() -> None:
    row = judged(case(SCHEMA, (True, {"b": 2, "a": 1}), (True, {"c": 3})))
    assert (row["outcome"], row["over_tests"], row["unordered_tests"], row["order_artefacts"]) == ("over", 2, 1, 1)
    # the engine decides: one that has another order in mind rejects the schema's, too
    row = judged(case({**SCHEMA, "texts": ["0"]}, (True, {"b": 2, "a": 1})))
    assert (row["unordered_tests"], row["order_artefacts"]) == (1, 0)
    row = judged(case({**SCHEMA, "texts": [OTHER]}, (True, {"b": 2, "a": 1})))
    assert (row["outcome"], row["unordered_tests"], row["order_artefacts"]) == ("passed", 1, 0)


def test_a_setting_lets_the_end_decide(tmp_path: Path) -> None:
    write(tmp_path, "1", {"texts": ["12"]}, (True, 1))
    found = []
    for to_end in (None, True):
        ((_, part),) = maskbench.split_settings(settings_of(tmp_path, to_end=to_end), 0)
        found += [(row["to_end"], row["outcome"]) for row in maskbench.run_item(part, 0)]
    assert found == [(False, "passed"), (True, "over")]


@pytest.mark.parametrize(
    ("trick", "where", "outcome", "said", "keyword"),
    [
        ("refuse", "compile", "refused", "uniqueItems at #/properties/a: too hard", "uniqueItems"),
        ("mutter", "compile", "refused", "ValueError: cannot do minItems here", "minItems"),
        ("raise", "mask", "over", "RuntimeError: on purpose", ""),
        ("raise", "advance", "over", "RuntimeError: on purpose", ""),
        ("panic", "compile", "crash", "Panic: the engine broke down", ""),
        ("panic", "advance", "crash", "Panic: the engine broke down", ""),
        ("nap", "advance", "timeout", "compiling and 2 tokens took longer than 0.5 s", ""),
        ("go back on it", "compile", "over", "valid, rejected at token 1 of 16, b'{'", ""),
    ],
)
def test_errors_of_an_engine_are_outcomes(trick: str, where: str, outcome: str, said: str, keyword: str) -> None:
    row = judged(case({**SCHEMA, "trick": trick, "where": where}, GOOD, WRONG), seconds=0.5)
    assert (row["outcome"], row["message"], row["keyword"]) == (outcome, said, keyword)
    assert row["pointer"] == ("/properties/a" if trick == "refuse" else "")
    if outcome != "over":
        assert (row["compile_ns"], row["mask_ns"]) == (None, b"")


def test_instances_are_respelled_in_the_order_of_the_schema() -> None:
    schema = {
        "$defs": {"p": {"properties": {"y": {"type": "object", "properties": {"1": {}, "2": {}}}, "x": {}}}},
        "allOf": [{"$ref": "#/$defs/p"}],
        "properties": {"list": {"items": {"properties": {"k": {}, "l": {}}}}},
        "required": ["new"],
        "patternProperties": {"^_": {"properties": {"m": {}, "n": {}}}},
    }
    value = {"_": {"n": 1, "m": 2}, "x": 1.0, "y": {"2": "é", "1": []}, "new": 0, "list": [{"l": 1, "k": 2}, 3]}
    spellings = respelled(schema, json.dumps(value, ensure_ascii=False))
    assert spellings == [
        '{"list": [{"k": 2, "l": 1}, 3], "y": {"1": [], "2": "é"}, "x": 1.0, "_": {"m": 2, "n": 1}, "new": 0}',
        '{"list": [{"k": 2, "l": 1}, 3], "y": {"1": [], "2": "é"}, "x": 1.0, "new": 0, "_": {"m": 2, "n": 1}}',
        '{"y": {"1": [], "2": "é"}, "x": 1.0, "list": [{"k": 2, "l": 1}, 3], "_": {"m": 2, "n": 1}, "new": 0}',
        '{"y": {"1": [], "2": "é"}, "x": 1.0, "list": [{"k": 2, "l": 1}, 3], "new": 0, "_": {"m": 2, "n": 1}}',
    ]
    assert all(json.loads(spelling) == value for spelling in spellings)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (SCHEMA, TEXT),
        (SCHEMA, '{"b":2,"a":1}'),  # not as json.dumps writes it
        (SCHEMA, '{"b": 1, "b": 2, "a": 1}'),
        (SCHEMA, '{"b": 1.00, "a": 1}'),
        (SCHEMA, "[" * 100_000),
        (True, OTHER),
        ({"$ref": "#/nowhere"}, OTHER),
        ({"$ref": "#", "anyOf": [{"$ref": "#/anyOf/0"}], "properties": 3}, OTHER),
    ],
)
def test_instances_that_have_the_order_or_might_change_are_left_alone(schema: Any, text: str) -> None:
    assert respelled(schema, text) == []


def test_tuples_have_the_order_of_their_places() -> None:
    pair = {"properties": {"a": {}, "b": {}}}
    for schema in (
        {"items": [{}, pair]},
        {"prefixItems": [True, pair], "items": {"properties": {"b": {}}}},
        {"items": [{}], "additionalItems": pair},
    ):
        assert respelled(schema, f"[{OTHER}, {OTHER}]")[0] == f"[{OTHER}, {TEXT}]"


def test_keywords_are_those_at_schema_positions() -> None:
    schema = {
        "title": "pattern",
        "properties": {"minimum": {"enum": [{"maxItems": 1}]}, "x": {"items": [{"format": "date"}]}},
        "dependencies": {"a": ["b"], "c": {"not": {"const": {"minLength": 3}}}},
    }
    assert used_keywords(schema) == ["const", "dependencies", "enum", "format", "items", "not", "properties"]
    assert used_keywords(True) == []
    assert keyword_in("line 3: the keyword 'oneOf' at #/$defs/minimum") == "oneOf"
    assert keyword_in('cannot do it: Unimplemented keys: ["if", "then"] if not needed') == "if"
    assert keyword_in("the items that are required do not have this type") == ""
    assert keyword_in("Unknown format: idn-email in oneOf") == "format"


def write(folder: Path, name: str, schema: dict[str, Any], *tests: tuple[bool, Any]) -> None:
    folder.mkdir(exist_ok=True)
    made = [{"valid": valid, "data": data} for valid, data in tests]
    (folder / f"{name}.json").write_text(json.dumps({"name": name, "schema": schema, "tests": made}))


def settings_of(folder: Path, **more: Any) -> dict[str, Any]:
    settings = {"data": str(folder), "engines": [{"backend": "fake_schemas"}], "tokenizer": "bytes", **more}
    return maskbench.complete_settings(settings)


def test_a_limit_or_a_death_costs_one_case_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    write(data, "1", SCHEMA, GOOD)
    write(data, "2", {**SCHEMA, "trick": "segfault"}, GOOD)
    write(data, "3", {**SCHEMA, "trick": "exit", "where": "advance"}, GOOD)
    write(data, "4", {**SCHEMA, "trick": "panic", "where": "mask"}, GOOD)
    write(data, "5", SCHEMA, WRONG)
    write(data, "6", {**SCHEMA, "trick": "sleep"}, GOOD)
    write(data, "7", {**SCHEMA, "trick": "hog"}, GOOD)
    write(data, "8", {**SCHEMA, "trick": "raise"}, GOOD)
    write(data, "9", SCHEMA, (True, {"c": 1}))
    ((_, part),) = maskbench.split_settings(settings_of(data, seconds=3.0, memory_mb=100.0), 0)
    rows = maskbench.run_item(part, 0)
    assert [row["case"] for row in rows] == list("123456789")
    assert [row["outcome"] for row in rows] == [
        *("passed", "crash", "crash", "crash", "passed", "timeout", "memory", "refused", "over"),
    ]
    said = [row["message"] for row in rows]
    assert said[1] == "the process died of SIGSEGV during 'compile'"
    assert said[2] == "the process died of exit code 7 during 'mask'; its last words: so long"
    assert said[5] == "'compile' had not ended after 3 s"
    assert said[6].startswith("'compile' took ")
    assert said[6].endswith("more than 100 MiB")
    assert {(row["engine"], row["backend"], row["tokenizer"], row["sample"]) for row in rows} == {
        ("fake_schemas", "fake_schemas", "bytes", None)
    }


def test_a_suite_is_judged_by_the_end_of_its_texts(tmp_path: Path) -> None:
    (tmp_path / "draft7").mkdir()
    tests = [{"description": "", "valid": valid, "data": data} for valid, data in ((True, 12), (False, 1), (True, 1))]
    groups = [{"description": name, "schema": {"texts": ["12"]}, "tests": tests} for name in ("one", "two")]
    (tmp_path / "draft7" / "minimum.json").write_text(json.dumps(groups))
    settings = settings_of(tmp_path, suite=str(tmp_path), chunk=1)
    settings = maskbench.complete_settings({**settings, "data": None, "inputs": None})
    rows = [row for _, part in maskbench.split_settings(settings, 0) for row in maskbench.run_item(part, 0)]
    assert [(row["case"], row["split"]) for row in rows] == [
        ("draft7/minimum[0] one", "draft7/minimum"), ("draft7/minimum[1] two", "draft7/minimum"),
    ]  # fmt: skip
    assert {(row["suite"], row["outcome"], row["right_tests"]) for row in rows} == {(True, "over", 2)}


def test_members_are_tried_in_every_order_if_there_are_few() -> None:
    assert reordered(True, '{"a": 1, "b": [{"c": 1, "d": 2}, 3]}') == [
        '{"a": 1, "b": [{"d": 2, "c": 1}, 3]}', '{"b": [{"c": 1, "d": 2}, 3], "a": 1}',
        '{"b": [{"d": 2, "c": 1}, 3], "a": 1}',
    ]  # fmt: skip
    assert len(reordered(True, json.dumps(dict.fromkeys("abcde")))) == 119
    for text in (json.dumps(dict.fromkeys("abcdef")), '{"a": 1, "a": 2}', "[1, 2]", '{"a": 1.50, "b": 1}', "{"):
        assert reordered(True, text) == []
    assert reordered(SCHEMA, OTHER) == [TEXT]
    row = judged(case({**SCHEMA, "texts": [OTHER], "properties": {}}, (True, {"a": 1, "b": 2})))
    assert (row["unordered_tests"], row["over_tests"], row["order_artefacts"]) == (0, 1, 1)


def test_a_schema_without_a_value_judges_its_tests_in_a_suite() -> None:
    one = case({"trick": "be empty"}, (True, 1), (False, 2), (False, 3))
    for to_end, expected in ((False, (0, 0)), (True, (2, 1))):
        row = judged(one, to_end=to_end)
        assert row["outcome"] == "refused"
        assert (row["right_tests"], row["over_tests"]) == expected


def test_an_engine_that_cannot_be_made_says_so_for_every_case(tmp_path: Path) -> None:
    write(tmp_path, "1", SCHEMA, GOOD)
    write(tmp_path, "2", SCHEMA, GOOD)
    engines = [{"backend": "fake_schemas", "options": {"broken": True}}]
    ((_, part),) = maskbench.split_settings(settings_of(tmp_path, engines=engines), 0)
    found = {(row["outcome"], row["message"], row["tests"]) for row in maskbench.run_item(part, 0)}
    assert found == {("unavailable", "RuntimeError: it cannot be made", 1)}


def test_forks_keep_what_was_found_before_they_die(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskbench_process, "GRACE_SECONDS", 0.0)

    def work(tasks: Any, send: Any, begin: Any) -> None:
        send(READY)
        for task in tasks:
            begin("mask")
            if task == 1:
                send(Found(task, "half", final=False))
                while True:
                    pass
            send(Found(task, f"whole {task}"))
            if task == 2:
                return

    assert in_forks(work, 4, Limits(seconds=0.3)) == ["whole 0", "half", "whole 2", "whole 3"]


def test_forks_without_a_word_do_not_go_on_forever() -> None:
    silent = in_forks(lambda tasks, send, begin: None, 2, Limits(seconds=1))
    assert silent == [Unprepared("crash", "the process ended without a result")] * 2
    lazy = in_forks(lambda tasks, send, begin: send(READY), 2, Limits(seconds=1))
    assert lazy == [Failure("crash", "the process ended without a result")] * 2


def test_engines_take_turns_on_the_same_cases_and_samples_are_nested(tmp_path: Path) -> None:
    for number in range(10):
        write(tmp_path, f"case {number}", SCHEMA, GOOD)
    engines = [
        {"backend": "fake_schemas", "label": "all"},
        {"backend": "fake_schemas", "label": "five", "sample": 5},
        {"backend": "fake_schemas", "label": "three", "sample": 3},
        {"backend": "fake_schemas", "label": "more than there are", "sample": 99},
    ]
    settings = settings_of(tmp_path, engines=engines, chunk=4)
    parts = maskbench.split_settings(settings, 7)
    assert [title for title, _ in parts] == [
        *("all, cases 1 to 4 of 10", "five, cases 1 to 4 of 5", "three, cases 1 to 3 of 3"),
        *("more than there are, cases 1 to 4 of 10", "all, cases 5 to 8 of 10"),
        *("more than there are, cases 5 to 8 of 10", "all, cases 9 to 10 of 10", "five, cases 5 to 5 of 5"),
        "more than there are, cases 9 to 10 of 10",
    ]
    names: dict[str, list[str]] = {}
    for _, part in parts:
        names.setdefault(part["engines"][0]["label"], []).extend(part["names"])
    assert names["all"] == names["more than there are"] == [f"case {number}" for number in range(10)]
    assert set(names["three"]) < set(names["five"]) < set(names["all"])
    assert names["five"] == sorted(names["five"])
    assert maskbench.split_settings(settings, 7) == parts
    assert maskbench.split_settings(settings, 8) != parts
    chosen = maskbench.split_settings({**settings, "names": ["case 3", "case 1"], "engines": engines[:1]}, 0)
    assert [part["names"] for _, part in chosen] == [["case 1", "case 3"]]
    few = maskbench.split_settings({**settings, "max_cases": 2, "engines": engines[:1]}, 0)
    assert [len(part["names"]) for _, part in few] == [2]
    with pytest.raises(OptionError, match="there is no case 'case x'"):
        maskbench.split_settings({**settings, "names": ["case x"]}, 0)


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"engines": []}, OptionError, "settings.engines"),
        ({"engines": [{"backend": "fake_schemas"}]}, OptionError, "on the command line: --set data=DIR"),
        ({"engines": [{"backend": "fake_schemas"}], "data": "a", "suite": "b"}, OptionError, "folder of cases"),
        ({"engines": [{"backend": "fake"}], "data": "a"}, UnknownNameError, "backend 'fake'"),
        ({"engines": [{"backend": "fake_schemas", "options": {"a": 1}}], "data": "a"}, UnknownNameError, "option"),
        ({"engines": [{"backend": "fake_schemas"}] * 2, "data": "a"}, OptionError, "same label"),
        ({"engines": [{"backend": "fake_schemas", "json_schema": {"a": 1}}], "data": "a"}, OptionError, "lacks"),
        ({"engines": [{"backend": "fake_schemas", "json_schema": {"order": 1}}], "data": "a"}, OptionError, "order"),
        ({"engines": [{"backend": "fake_schemas"}], "data": "a", "chunks": 2}, OptionError, "settings.chunks"),
    ],
)
def test_settings_that_cannot_be_run_are_refused(settings: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        maskbench.check_settings(settings)


def test_results_belong_to_what_the_folder_held(tmp_path: Path) -> None:
    write(tmp_path / "data", "1", SCHEMA, GOOD)
    settings = settings_of(tmp_path / "data")
    assert maskbench.complete_settings(settings) == settings
    write(tmp_path / "data", "1", SCHEMA, WRONG)
    with pytest.raises(OptionError, match="has changed since"):
        maskbench.complete_settings(settings)
    with pytest.raises(OptionError, match="no JSON files"):
        maskbench.complete_settings({**settings, "data": str(tmp_path / "nowhere")})


EXPERIMENT = {
    "name": "bench",
    "question": "Who passes?",
    "kind": "maskbench",
    "tokenizers": ["bytes"],
    "limits": {"seconds": 60},
    "settings": {"engines": [{"backend": "fake_schemas", "json_schema": {"order": "any"}}], "chunk": 2},
}


def test_from_yaml_to_rows_and_on_after_an_interruption(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / "data", str(number), SCHEMA, GOOD, WRONG)
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    config = load_config(tmp_path / "e.yaml", {"data": str(tmp_path / "data")})
    assert config.command.endswith(f"e.yaml --set 'data=\"{tmp_path}/data\"'")
    assert [str(item) for item in expand(config)] == [
        f"bytes / fake_schemas, cases {cases} of 5 / maskbench" for cases in ("1 to 2", "3 to 4", "5 to 5")
    ]
    assert [group.title for group in expand_groups(config)][2] == "bytes / fake_schemas, cases 5 to 5 of 5"
    summary = run(config)
    assert summary.statuses == {"ok": 3}
    results = open_run(summary.folder).results()
    assert results["case"].tolist() == list("01234")
    assert set(results["outcome"]) == {"passed"}
    assert {len(blob) for blob in results["mask_ns"]} == {4 * (len(TEXT) + 7)}
    assert results["item_id"].nunique() == 3
    # what is stored is an experiment itself, and what is finished is not measured again
    again = load_config(summary.folder / "config.yaml")
    assert again.model_dump() == config.model_dump()
    next((summary.folder / "items").glob("000001-*")).unlink()
    assert run(config).statuses == {"ok": 1}
    assert open_run(summary.folder).results()["case"].tolist() == list("01234")


def test_the_folder_may_be_named_beside_the_file_and_the_kind_be_a_section(tmp_path: Path) -> None:
    write(tmp_path / "data", "1", SCHEMA, GOOD)
    inside = {**EXPERIMENT["settings"], "data": {"folder": "data"}}  # type: ignore[dict-item]
    (tmp_path / "e.yaml").write_text(yaml.safe_dump({**EXPERIMENT, "settings": inside}))
    assert load_config(tmp_path / "e.yaml").settings["data"] == str(tmp_path / "data")
    beside = {
        "name": "both",
        "tokenizers": ["bytes"],
        "constraints": [{"label": "a", "regex": "a"}],
        "backends": ["token_index"],
        "settings": {"maskbench": {**inside, "tokenizer": "bytes"}},
    }
    (tmp_path / "both.yaml").write_text(yaml.safe_dump(beside))
    items = expand(load_config(tmp_path / "both.yaml", {"maskbench.max_cases": 1}))
    assert str(items[-1]) == "fake_schemas, cases 1 to 1 of 1 / maskbench"
    assert maskbench.run_item(items[-1].settings, 0)[0]["outcome"] == "passed"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "settings: maskbench needs a folder of cases"),
        ({"data": "no/such/folder"}, "there are no JSON files in"),
        ({"date": "x"}, "settings.date"),
        ({"data.x": 1, "data": 3}, "settings.data"),
        ({"data": {"folder": "nowhere"}}, "settings.data.folder: there is no folder"),
        ({"data": {"folder": 3}}, "the name of a folder is expected"),
    ],
)
def test_mistakes_in_an_experiment_are_named(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    with pytest.raises(ConfigError, match=said):
        load_config(tmp_path / "e.yaml", given)
