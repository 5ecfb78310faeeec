"""MaskBench on a fake engine that accepts the texts a schema lists, with every way to fail; settings; the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml

from tests.lab.kinds.fake_schemas import FakeSchemas
from tests.lab.kinds.telling import Told
from tokdfa.backends import registry
from tokdfa.constraint import JsonSchema
from tokdfa.errors import ConfigError, OptionError, TokdfaError
from tokdfa.lab.config.expand import expand
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.maskbench import KIND
from tokdfa.lab.measure.maskbench_plan import Settings, complete, split, turns
from tokdfa.lab.measure.maskbench_replay import Verbs, run_case
from tokdfa.lab.measure.schema_corpus import SchemaCase, SchemaTest
from tokdfa.lab.measure.settings import typed_settings
from tokdfa.lab.run.execute import run
from tokdfa.lab.run.store import open_run
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
#: Both spell one JSON value.
TEXT, OTHER = '{"a": 1, "b": 2}', '{"b": 2, "a": 1}'
SCHEMA: dict[str, Any] = {"texts": [TEXT], "properties": {"a": {}, "b": {}}}
GOOD, WRONG = (True, {"a": 1, "b": 2}), (False, {"a": 7})
ENGINE = {"backend": "fake_schemas"}


@pytest.fixture(autouse=True)
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(registry.BUILT_IN, "fake_schemas", "tests.lab.kinds.fake_schemas:FakeSchemas")
    registry.backend_targets.cache_clear()
    yield
    registry.backend_targets.cache_clear()


def judged(schema: dict[str, Any], *tests: tuple[bool, Any], seconds: float = 20.0, to_end: bool = False) -> Any:
    """The final row of a case, in this process."""
    made = tuple(SchemaTest(valid, json.dumps(data)) for valid, data in tests)
    case, tokenizer = SchemaCase("made up", json.dumps(schema), made, "split"), load_tokenizer("bytes")
    backend, constraint = FakeSchemas(tokenizer.vocabulary), JsonSchema(case.schema_text)
    return run_case(case, constraint, Verbs(backend), tokenizer, seconds, to_end, lambda phase: None)


def test_a_case_passes_if_valid_instances_go_through_and_invalid_ones_are_stopped() -> None:
    row = judged(SCHEMA, GOOD, WRONG, GOOD)
    assert (row["outcome"], row["message"], row["right_tests"], row["tests"]) == ("passed", "", 3, 3)
    # {"a": 7 is refused at the 7: its mask counts, and so does the look at its bit
    assert row["tokens"] == 2 * len(TEXT) + 7
    masks, commits = (np.frombuffer(row[name], dtype="<f4") for name in ("mask_ns", "advance_ns"))
    assert len(masks) == len(commits) == row["tokens"]
    assert masks.min() > 0
    assert commits.min() > 0
    assert min(row["compile_ns"], row["first_ns"]) > 0


def test_of_several_faults_the_benchmark_keeps_the_last_and_tells_the_first() -> None:
    rejected, accepted = (True, {"c": 1}), (False, {"a": 1, "b": 2})
    for tests, outcome, message in (
        ((accepted, rejected), "over", "invalid, and went through"),
        ((rejected, accepted), "under", "valid, rejected at token 3 of 8, b'c'"),
    ):
        row = judged(SCHEMA, *tests)
        assert (row["outcome"], row["message"], row["over_tests"], row["under_tests"]) == (outcome, message, 1, 1)


def test_the_end_of_the_text_decides_in_a_suite_only() -> None:
    tests = ((True, 1), (False, 1), (True, 12))
    row = judged({"texts": ["12"]}, *tests)
    assert [row[name] for name in ("outcome", "right_tests", "under_tests", "unended_tests")] == ["under", 2, 1, 1]
    row = judged({"texts": ["12"]}, *tests, to_end=True)
    assert [row[name] for name in ("outcome", "right_tests", "over_tests")] == ["over", 2, 1]
    assert row["message"] == "valid, rejected at the end of the text"
    # a schema that is refused since it has no value has judged its tests there
    for to_end, expected in ((False, (0, 0)), (True, (2, 1))):
        row = judged({"trick": "be empty"}, (True, 1), (False, 2), (False, 3), to_end=to_end)
        assert (row["outcome"], row["right_tests"], row["over_tests"]) == ("refused", *expected)


@pytest.mark.parametrize(
    ("trick", "where", "outcome", "said"),
    [
        ("refuse", "compile", "refused", "uniqueItems at #/properties/a: too hard"),
        ("mutter", "compile", "refused", "ValueError: cannot do minItems here"),
        ("raise", "mask", "over", "RuntimeError: on purpose"),
        ("raise", "advance", "over", "RuntimeError: on purpose"),
        ("panic", "compile", "crash", "Panic: the engine broke down"),
        ("panic", "advance", "crash", "Panic: the engine broke down"),
        ("nap", "advance", "timeout", "compiling and 2 tokens took longer than 0.5 s"),
        ("go back on it", "compile", "over", "valid, rejected at token 1 of 16, b'{'"),
    ],
)
def test_errors_of_an_engine_are_outcomes(trick: str, where: str, outcome: str, said: str) -> None:
    row = judged({**SCHEMA, "trick": trick, "where": where}, GOOD, WRONG, seconds=0.5)
    assert (row["outcome"], row["message"]) == (outcome, said)
    assert outcome == "over" or (row["compile_ns"], row["mask_ns"]) == (None, b"")


def write(folder: Path, name: str, schema: dict[str, Any], *tests: tuple[bool, Any]) -> None:
    folder.mkdir(exist_ok=True)
    made = [{"valid": valid, "data": data} for valid, data in tests]
    (folder / f"{name}.json").write_text(json.dumps({"schema": schema, "tests": made}))


def rows_of(
    folder: Path, results: Path, seed: int = 0, python: Path | None = None, **more: Any
) -> list[dict[str, Any]]:
    """The rows of a run on the cases of a folder, in a folder below `results`. `python`: runs the fake engine."""
    settings = {"data": str(folder), "engines": [ENGINE], **more}
    experiment = {"name": "bench", "question": "Who?", "kind": "maskbench", "tokenizers": ["bytes"], "seed": seed}
    file = results / f"{len(list(results.glob('*.yaml')))}.yaml"
    file.write_text(yaml.safe_dump({**experiment, "settings": settings}))
    config = load_config(file, {"pythons.fake_schemas": str(python)} if python else {})
    return open_run(run(config).folder).results().to_dict("records")


def test_a_limit_or_a_death_costs_one_case_only(tmp_path: Path) -> None:
    tricks = [None, "segfault", "exit", "panic", None, "sleep", "hog", "raise", None]
    for number, trick in enumerate(tricks, 1):
        where = {"exit": "advance", "panic": "mask"}.get(str(trick), "compile")
        trouble = {"trick": trick, "where": where} if trick else {}
        write(tmp_path / "data", str(number), {**SCHEMA, **trouble}, GOOD)
    rows = rows_of(tmp_path / "data", tmp_path, seconds=5.0, memory_mb=50.0)
    assert [row["case"] for row in rows] == list("123456789")
    assert [row["outcome"] for row in rows] == [
        *("passed", "crash", "crash", "crash", "passed", "timeout", "memory", "refused", "passed"),
    ]
    said = [row["message"] for row in rows]
    assert said[1] == "the process died of SIGSEGV during 'compile'"
    assert said[2] == "the process died of exit code 7 during 'mask'; its last words: so long"
    assert said[5] == "'compile' took longer than 5 s"
    assert said[6].startswith("'compile' took ")
    found = rows_of(tmp_path / "data", tmp_path, engines=[{**ENGINE, "options": {"how": "raise", "where": "init"}}])
    assert len(found) == len(tricks)
    assert {(row["outcome"], row["message"]) for row in found} == {("unavailable", "RuntimeError: on purpose")}


def test_served_engines_live_on_and_take_turns_that_the_seed_draws(tmp_path: Path) -> None:
    for number in range(6):
        write(tmp_path / "data", str(number), {**SCHEMA}, GOOD)
    write(tmp_path / "data", "6", {**SCHEMA, "trick": "segfault", "where": "compile"}, GOOD)
    write(tmp_path / "data", "7", {**SCHEMA, "trick": "sleep", "where": "compile"}, GOOD)
    engines = [ENGINE, {**ENGINE, "label": "second", "sample": 3}]
    engines += [{**ENGINE, "label": "never", "options": {"how": "raise", "where": "init"}}]
    rows = rows_of(tmp_path / "data", tmp_path, way="served", chunk=2, engines=engines, seconds=5.0)
    assert len(rows) == 8 + 3 + 8
    by_engine = {name: [row for row in rows if row["engine"] == name] for name in ("fake_schemas", "second", "never")}
    assert [row["outcome"] for row in by_engine["fake_schemas"]] == ["passed"] * 6 + ["crash", "timeout"]
    said = [row["message"] for row in by_engine["fake_schemas"]]
    assert said[6:] == ["the process died of SIGSEGV during 'compile'", "'compile' took longer than 5 s"]
    assert {row["outcome"] for row in by_engine["never"]} == {"unavailable"}
    setups = {row["setup_ns"] for row in by_engine["fake_schemas"] if row["outcome"] == "passed"}
    assert 1 <= len(setups) <= 3, "a process for all cases, and one more for each that died"
    assert min(setups) > 0
    assert {row["way"] for row in rows} == {"served"}


@pytest.mark.parametrize("way", ["served", "fresh"])
def test_an_engine_may_have_an_interpreter_of_its_own(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for number, trick in enumerate((None, "segfault", None, "raise")):
        trouble = {} if trick is None else {"trick": trick, "where": "compile"}
        write(tmp_path / "data", str(number), {**SCHEMA, **trouble}, GOOD)
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$$" >> "{log}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    rows = rows_of(tmp_path / "data", tmp_path, way=way, chunk=3, python=python)
    assert [row["outcome"] for row in rows] == ["passed", "crash", "passed", "refused"]
    assert rows[1]["message"] == "the process died of SIGSEGV during 'compile'"
    assert rows[3]["message"] == "RuntimeError: on purpose"
    assert {row["way"] for row in rows} == {way}
    assert len(set(log.read_text().split())) >= 3, "asked what it has, and started twice at least"
    rows = rows_of(tmp_path / "data", tmp_path, way=way, python=tmp_path / "none")
    assert [row["outcome"] for row in rows] == ["unavailable"] * 4
    assert rows[0]["message"].startswith(f"there is no Python interpreter at {tmp_path / 'none'}")


def test_turns_have_every_case_of_every_engine_once_and_are_drawn() -> None:
    names = [f"case {number}" for number in range(20)]
    engines = [{**ENGINE, "label": label, "sample": sample} for label, sample in (("a", None), ("b", None), ("c", 5))]
    typed = typed_settings(Settings, {"data": "x", "engines": engines, "names": names, "chunk": 4, "way": "served"})
    found = turns(typed, 3)
    had = {
        label: sorted(name for turn in found if turn.engine.name == label for _, name in turn.cases) for label in "abc"
    }
    assert had["a"] == had["b"] == sorted(names)
    assert len(had["c"]) == 5
    numbers = [number for turn in found for number, _ in turn.cases]
    assert sorted(numbers) == list(range(45))
    firsts = [turn.engine.name for turn in found[::3]]
    assert turns(typed, 3) == found != turns(typed, 4)
    assert len(set(firsts)) > 1, "not always the same engine is first"
    groups = {
        label: [[name for _, name in turn.cases] for turn in found if turn.engine.name == label] for label in "ab"
    }
    assert groups["a"] == groups["b"], "the same cases in the same order"
    assert groups["a"] != [names[start : start + 4] for start in range(0, 20, 4)]


def test_a_suite_refers_to_its_remotes(tmp_path: Path) -> None:
    """Files in the form of the suite, judged by an engine that reads schemas."""
    for name, content in {
        "tests/draft7/refRemote.json": [
            {
                "description": "another document",
                "schema": {"$ref": "http://localhost:1234/folder/integer.json"},
                "tests": [{"description": "", "data": data, "valid": data == 1} for data in (1, "a")],
            },
            {
                "description": "relative",
                "schema": {"$id": "http://localhost:1234/root.json", "items": {"$ref": "folder/integer.json"}},
                "tests": [{"description": "", "data": data, "valid": data == [1]} for data in ([1], ["a"])],
            },
        ],
        "remotes/folder/integer.json": {"type": "integer"},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    given = {"suite": str(tmp_path / "tests"), "engines": [{"backend": "pushdown_trie"}], "data": None}
    rows = rows_of(tmp_path, tmp_path, **given, remotes=str(tmp_path / "remotes"))
    assert [(row["outcome"], row["right_tests"]) for row in rows] == [("passed", 2)] * 2, rows


def test_engines_take_turns_on_the_same_cases_and_samples_are_nested(tmp_path: Path) -> None:
    for number in range(10):
        write(tmp_path, f"case {number}", SCHEMA, GOOD)
    samples = {"all": None, "five": 5, "three": 3, "more than there are": 99}
    engines = [{**ENGINE, "label": label, "sample": sample} for label, sample in samples.items()]
    settings = {"data": str(tmp_path), "engines": engines, "chunk": 4}
    parts = split(settings, 7)
    assert [title for title, _ in parts][:5] == [
        *("all, cases 1 to 4 of 10", "five, cases 1 to 4 of 5", "three, cases 1 to 3 of 3"),
        *("more than there are, cases 1 to 4 of 10", "all, cases 5 to 8 of 10"),
    ]
    names: dict[str, list[str]] = {}
    for _, part in parts:
        names.setdefault(part["engines"][0]["label"], []).extend(part["names"])
    assert names["all"] == names["more than there are"] == [f"case {number}" for number in range(10)]
    assert set(names["three"]) < set(names["five"]) < set(names["all"])
    assert split(settings, 7) == parts != split(settings, 8)
    one = {**settings, "engines": [ENGINE]}
    assert [part["names"] for _, part in split({**one, "names": ["case 3", "case 1"]}, 0)] == [["case 1", "case 3"]]
    assert [len(part["names"]) for _, part in split({**one, "max_cases": 2}, 0)] == [2]
    with pytest.raises(OptionError, match="there is no case 'case x'"):
        split({**one, "names": ["case x"]}, 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "on the command line: --set data=DIR"),
        ({"data": "a", "suite": "b"}, "folder of cases"),
        ({"engines": [{**ENGINE, "json_schema": {"a": 1}}], "data": "a"}, "option of a JSON schema 'a'"),
        ({"engines": [{**ENGINE, "json_schema": {"order": 1}}], "data": "a"}, "order"),
        ({"data": "no/such/folder"}, "there are no JSON files in"),
    ],
)
def test_faults_name_their_setting(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(TokdfaError, match=said):
        complete({"engines": [ENGINE], **settings})


EXPERIMENT = {
    **{"name": "bench", "question": "Who passes?", "kind": "maskbench", "tokenizers": ["bytes"]},
    **{"limits": {"seconds": 60}, "settings": {"engines": [{**ENGINE, "json_schema": {"order": "any"}}], "chunk": 2}},
}


def test_from_yaml_to_rows_and_on_after_an_interruption(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / "data", str(number), SCHEMA, GOOD, WRONG)
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(EXPERIMENT))
    config = load_config(tmp_path / "e.yaml", {"data": str(tmp_path / "data")})
    assert [str(item) for item in expand(config)][2] == "bytes / fake_schemas, cases 5 to 5 of 5 / maskbench"
    summary = run(config)
    results = open_run(summary.folder).results()
    assert results["case"].tolist() == list("01234")
    assert set(results["outcome"]) == {"passed"}
    assert {len(blob) for blob in results["mask_ns"]} == {4 * (len(TEXT) + 7)}
    # what is stored is an experiment itself, and what is finished is not measured again
    assert load_config(summary.folder / "config.yaml").model_dump() == config.model_dump()
    next((summary.folder / "items").glob("000001-*")).unlink()
    assert run(config).statuses == {"ok": 1}
    write(tmp_path / "data", "1", SCHEMA, WRONG)
    with pytest.raises(ConfigError, match="has changed since"):
        load_config(summary.folder / "config.yaml")
    with pytest.raises(ConfigError, match=r"settings\.data\.folder: there is no folder"):
        load_config(tmp_path / "e.yaml", {"data": {"folder": "nowhere"}})


def row(engine: str, case: str, outcome: str = "passed", micros: float = 1.0, **more: Any) -> dict[str, Any]:
    """A case whose masks take 1, 2 ... 100 times `micros`, and its commits nothing; compiled in 1,000 times that."""
    is_judged = outcome in ("passed", "over", "under")
    masks = 1e3 * micros * np.arange(1, 101) if is_judged else np.zeros(0)
    return {
        **{"tokenizer": "t", "suite": False, "to_end": False, "engine": engine, "case": case, "outcome": outcome},
        **{"split": case.partition("---")[0], "tests": 2, "message": ""},
        **{"right_tests": 2 * (outcome == "passed"), "over_tests": int(outcome == "over")},
        **{"under_tests": int(outcome == "under"), "unended_tests": 0, "tokens": len(masks)},
        **{"compile_ns": 1e6 * micros if is_judged else None, "first_ns": 5e5 * micros if is_judged else None},
        **{"mask_ns": masks.astype("<f4").tobytes(), "advance_ns": np.zeros(len(masks), "<f4").tobytes()},
        **more,
    }


MADE_UP = [
    *(row("ours", "A---1"), row("ours", "A---2"), row("ours", "B---2", tests=0, right_tests=0)),
    row("ours", "B---1", "over", message="valid, rejected"),
    *(
        row("peer", "A---1", micros=10.0, unended_tests=1),
        row("peer", "A---2", "refused", message="oneOf at #/a/1: 12 ways"),
    ),
    row("peer", "B---1", "refused", message="oneOf at #/b: 7 ways"),
    row("peer", "B---2", "under", micros=10.0, message="invalid, and went through"),
    *(row("slow", "A---1", micros=1000.0), row("slow", "B---2", "timeout", message="not ended after 20 s")),
]


def test_the_report_has_the_same_work_for_all_and_takes_outcomes_apart() -> None:
    told = Told(KIND, MADE_UP)
    tables = told.tables
    assert tables["maskbench"][["on", "engine", "cases", "passes", "refused", "over", "under", "timeout"]].to_numpy(
    ).tolist() == [
        ["all cases", "ours", 4, 3, 0, 1, 0, 0], ["all cases", "peer", 4, 1, 2, 0, 1, 0],
        ["a sample of 2 cases", "ours", 2, 2, 0, 0, 0, 0], ["a sample of 2 cases", "peer", 2, 1, 0, 0, 1, 0],
        ["a sample of 2 cases", "slow", 2, 1, 0, 0, 0, 1],
    ]  # fmt: skip
    # four cases of 1 .. 100 us each
    heads = ["TBM mean", "TBM p50", "TBM max", "TTFM p50", "whole case p50", "compile p50", "mask p50"]
    expected = [50.5e-6, 50.5e-6, 100e-6, 1.5e-3, 1.5e-3 + 5.05e-3, 1e-3, 50.5e-6]
    assert tables["maskbench"].iloc[0][heads].tolist() == pytest.approx(expected)
    assert tables["common"].set_index("engine")["TBM max"].tolist() == pytest.approx([100e-6, 1e-3])
    assert {point["engine"] for point in told.panels["case"][""]} == {"ours", "peer"}
    verdicts = tables["verdicts"].set_index("engine")
    assert verdicts.loc["ours"].tolist() == [1, 3, 1, 0, 6, 4]
    assert verdicts.loc["peer", ["passes with ends", "any invalid accepted"]].tolist() == [0, 1]
    assert tables["splits"][["cases", "ours", "peer", "slow"]].to_numpy().tolist() == [[2, 1, 0.5, 1], [2, 0.5, 0, 0]]
    assert tables["refusals"][["engine", "cases", "reason"]].to_numpy().tolist() == [
        ["peer", 2, "oneOf at … … ways"], ["slow", 1, "not ended after … s"],
    ]  # fmt: skip


def test_a_suite_is_told_by_draft() -> None:
    many = {"tests": 8, "right_tests": 4, "over_tests": 3, "under_tests": 1}
    splits: list[tuple[str, str, dict[str, Any]]] = [
        *(("draft7/optional/format/date", "passed", {}), ("draft7/type", "over", many)),
        ("draft7/not", "refused", {"tests": 3, "right_tests": 2, "over_tests": 1}),
        *(("draft7/optional/bignum", "refused", {}), ("draft4/type", "timeout", {}), ("draft7/ref", "refused", {})),
    ]
    rows = [{**row("ours", f"{name}[0]", end, **more), "split": name, "suite": True} for name, end, more in splits]
    tables = Told(KIND, rows).tables
    assert not {"splits", "common"} & set(tables)
    assert tables["drafts"].to_numpy().tolist() == [
        ["draft4", "required", "ours", 2, 0, 0, 0, 0, 2],
        ["draft7", "required", "ours", 13, 6, 4, 1, 2, 0],
        ["draft7", "optional", "ours", 2, 0, 0, 0, 2, 0],
        ["draft7", "formats", "ours", 2, 2, 0, 0, 0, 0],
    ]
