"""Tasks from folders, on made-up files in the published formats: items, judges, and what is said of other files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tokdfa.errors import OptionError
from tokdfa.tasks.registry import load_task
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.constraint import Constraint

AREA = {
    "name": "geo.area",
    "description": "Area.",
    "parameters": {
        "type": "dict",
        "properties": {
            "base": {"type": "integer", "description": "Base."},
            "sides": {"type": "tuple", "items": {"type": "float"}},
            "unit": {"type": "string", "enum": ["m", "km"]},
            "note": {"type": "any"},
        },
        "required": ["base"],
    },
}
RAIN = {"name": "rain", "description": "", "parameters": {"type": "dict", "properties": {}, "required": []}}


@pytest.fixture(autouse=True)
def _afresh() -> None:
    load_task.cache_clear()


def accepts(constraint: Constraint, text: str) -> bool:
    matcher = tokdfa.compile(constraint, load_tokenizer("bytes").vocabulary).start()
    for byte in text.encode():
        if not matcher.allows(byte):
            return False
        matcher.advance(byte)
    return matcher.can_end()


def write(path: Path, *rows: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)))


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def test_bfcl(tmp_path: Path) -> None:
    asked = {"id": "multiple_0", "question": [[{"role": "user", "content": "Area, 3 m?"}]], "function": [AREA, RAIN]}
    truth = {"geo.area": {"base": [3, 4], "unit": ["m", ""]}}
    several = {"id": "multiple_1", "ground_truth": [truth, truth]}
    write(tmp_path / "BFCL_v3_multiple.json", asked, {**asked, "id": "multiple_1"})
    write(tmp_path / "possible_answer/BFCL_v3_multiple.json", {"id": "multiple_0", "ground_truth": [truth]}, several)
    task = load_task("bfcl", str(tmp_path))
    (item,) = task.items
    assert item.reference == call("geo.area", base=3, unit="m")
    assert "Area, 3 m?" in item.prompt
    for text, score in [
        (item.reference, 1),
        (call("geo.area", base=4), 1),
        (call("geo.area", base=5), 2 / 3),
        (call("geo.area", base=3, sides=[1.5, 2]), 3 / 4),
        (call("geo.area", base=3, note=None), 3 / 4),
        (call("rain"), 0),
    ]:
        assert task.is_valid(item, text)
        assert accepts(item.constraint, text)
        assert task.score(item, text) == pytest.approx(score)
    for text in [
        *("3", "{", call("snow"), call("geo.area"), call("geo.area", base=True), call("geo.area", base="3")),
        *(call("geo.area", base=3, unit="mm"), call("geo.area", base=3, sides=["a"]), call("rain", base=3)),
        *(json.dumps({"name": ["rain"], "arguments": {}}), json.dumps({"name": "rain", "arguments": []})),
    ]:
        assert not task.is_valid(item, text), text
        assert not accepts(item.constraint, text), text


def test_bfcl_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="possible_answer"):
        load_task("bfcl", str(tmp_path))
    answers = tmp_path / "possible_answer/BFCL_v3_simple.json"
    write(answers, {"id": "a", "ground_truth": [{"rain": {}}]})
    with pytest.raises(OptionError, match=r"no file .*BFCL_v3_simple\.json"):
        load_task("bfcl", str(tmp_path))
    write(tmp_path / "BFCL_v3_simple.json", {"id": "b"})
    with pytest.raises(OptionError, match=r"line 1.*no function, question"):
        load_task("bfcl", str(tmp_path))
    write(tmp_path / "BFCL_v3_simple.json", {"id": "a", "question": [], "function": [RAIN]})
    with pytest.raises(OptionError, match=r"line 1.*question"):
        load_task("bfcl", str(tmp_path))


def test_patterns(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"patterns\.csv"):
        load_task("patterns", str(tmp_path))
    path = tmp_path / "patterns.csv"
    path.write_text('number,pattern\n1,[ab]{2}\n2,"a,b?"\n')
    task = load_task("patterns", str(tmp_path))
    first, second = task.items
    for item, text in [(first, "ab"), (second, "a,"), (second, "a,b")]:
        assert task.score(item, text) == 1
        assert accepts(item.constraint, text)
    for item, text in [(first, "a"), (first, "ab "), (second, "a"), (second, "")]:
        assert not task.is_valid(item, text)
        assert not accepts(item.constraint, text)


@pytest.mark.parametrize(("table", "words"), [("regex\na\n", "column 'pattern'"), ("pattern\na\n(\n", "line 3")])
def test_patterns_says_what_is_wrong(tmp_path: Path, table: str, words: str) -> None:
    (tmp_path / "patterns.csv").write_text(table)
    with pytest.raises(OptionError, match=words):
        load_task("patterns", str(tmp_path))


def test_json_schema_bench(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="MaskBench"):
        load_task("jsonschemabench", str(tmp_path))
    schema = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}
    tests = [{"valid": False, "data": 3}, {"valid": True, "data": {"day": "2001-02-03"}}]
    write(tmp_path / "one.json", {"schema": schema, "tests": tests})
    write(tmp_path / "two.json", {"schema": {"enum": [1, "a"]}})
    task = load_task("jsonschemabench", str(tmp_path))
    one, two = task.items
    assert (one.reference, two.reference) == ('{"day": "2001-02-03"}', "")
    for item, text in [(one, one.reference), (two, "1"), (two, '"a"')]:
        assert task.score(item, text) == 1
        assert accepts(item.constraint, text)
    for item, text in [(one, '{"day": "soon"}'), (one, "{}"), (one, "{"), (two, "2"), (two, "")]:
        assert not task.is_valid(item, text)
        assert not accepts(item.constraint, text)


@pytest.mark.parametrize("found", [3, {"tests": []}, {"schema": {"type": "text"}}, {"schema": {}, "tests": [{}]}])
def test_json_schema_bench_says_what_is_wrong(tmp_path: Path, found: Any) -> None:
    write(tmp_path / "odd.json", found)
    with pytest.raises(OptionError, match=r"odd\.json: not"):
        load_task("jsonschemabench", str(tmp_path))
