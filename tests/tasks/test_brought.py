"""Tasks from folders, on made-up files in the published formats: items, judges, and what is said of other files."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

import tokdfa
from tests.packages import needs
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


@pytest.fixture
def spider_folder(tmp_path: Path) -> Path:
    (tmp_path / "database/pets").mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / "database/pets/pets.sqlite")) as connection:
        connection.executescript(
            """CREATE TABLE pet (id INTEGER, "order" TEXT, "pet name" TEXT);
            CREATE TABLE owner (pet_id INTEGER, age INTEGER);
            INSERT INTO pet VALUES (1, 'cat', 'Tom'), (2, 'dog', 'Rex'), (3, 'cat', 'Ann');
            INSERT INTO owner VALUES (1, 30), (3, 60);"""
        )
    columns = [[-1, "*"], [0, "id"], [0, "order"], [0, "pet name"], [1, "pet_id"], [1, "age"]]
    names = {"db_id": "pets", "table_names_original": ["pet", "owner"], "column_names_original": columns}
    (tmp_path / "tables.json").write_text(json.dumps([names]))
    asked = [("Names of cats?", "select \"pet name\" from pet where \"order\" = 'cat'"),
             ("Who is oldest?", "SELECT age FROM owner ORDER BY age DESC")]  # fmt: skip
    questions = [{"db_id": "pets", "question": question, "query": query} for question, query in asked]
    (tmp_path / "dev.json").write_text(json.dumps(questions))
    return tmp_path


def test_spider(spider_folder: Path) -> None:
    task = load_task("spider", str(spider_folder))
    names, oldest = task.items
    assert "pet(id, order, pet name); owner(pet_id, age)" in names.prompt
    joined = 'SELECT T1."pet name" FROM pet AS T1 JOIN owner AS T2 ON T1.id = T2.pet_id'
    for item, text, score in [
        (names, 'SELECT "pet name" FROM pet WHERE "order" = \'cat\'', 1),
        (names, joined, 1),  # the same rows by another way
        (names, joined + " ORDER BY T1.id DESC", 1),  # the reference asks for no order
        (names, 'SELECT "pet name" FROM pet', 0),
        (oldest, "SELECT age FROM owner ORDER BY age DESC", 1),
        (oldest, "SELECT age FROM owner ORDER BY age ASC", 0),
        (oldest, "SELECT age FROM owner WHERE pet_id IN (SELECT id FROM pet) GROUP BY age HAVING COUNT(*) > 0", 0),
        (
            names,
            "SELECT id FROM pet WHERE \"pet name\" NOT LIKE 'O''%' AND id BETWEEN 1 AND 2 UNION SELECT age FROM owner",
            0,
        ),
    ]:
        assert task.is_valid(item, text), text
        assert accepts(item.constraint, text), text
        assert task.score(item, text) == score, text
    for text in ["SELECT", "SELECT weight FROM pet", "DELETE FROM pet", "SELECT id FROM shop", ""]:
        assert not task.is_valid(names, text)
        assert not accepts(names.constraint, text)
    # of the database, but of the other table: the grammar cannot tell
    assert accepts(names.constraint, "SELECT age FROM pet")
    assert task.score(names, "SELECT age FROM pet") == 0


def test_spider_says_what_is_wrong(spider_folder: Path) -> None:
    (spider_folder / "database/pets/pets.sqlite").unlink()
    with pytest.raises(OptionError, match=r"entry 0: there is no file .*pets\.sqlite"):
        load_task("spider", str(spider_folder))
    for name, text, words in [
        ("dev.json", '[{"db_id": "zoo", "question": "", "query": ""}]', "entry 0: no question of a known db_id"),
        ("tables.json", '[{"db_id": "pets"}]', "entry 0: no names"),
        ("tables.json", "{", "published data"),
    ]:
        (spider_folder / name).write_text(text)
        with pytest.raises(OptionError, match=words):
            load_task("spider", str(spider_folder))


@needs("rdkit")
def test_molecules(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"molecules\.smi"):
        load_task("molecules", str(tmp_path))
    path = tmp_path / "molecules.smi"
    known = ["CCO", "c1ccccc1 benzene", "CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)C(=O)O", "C/C=C\\C", "[Na+].[Cl-]"]
    path.write_text("\n".join(known))
    with pytest.raises(OptionError, match="has 6 molecules"):
        load_task("molecules", str(tmp_path))
    path.write_text("\n".join([*known[:5], "CN1C=NC2=C1C(=O)N(C(=O)N2C)C", "C#N", "O", "C%10CCCC%10"]))
    task = load_task("molecules", str(tmp_path))
    for item in task.items:
        assert task.is_valid(item, item.reference)
        assert 0 < task.score(item, item.reference) < 1
    item = task.items[0]
    assert all(accepts(item.constraint, other.reference) for other in task.items)
    for text in ["C(", "X", "", "C C", "CC)", "(C)"]:
        assert not task.is_valid(item, text)
        assert not accepts(item.constraint, text)
    # what no grammar of this kind tells: a ring that stays open, a valence
    for text in ["C1CC", "CF(C)(C)C"]:
        assert not task.is_valid(item, text)
        assert accepts(item.constraint, text)
    path.write_text("CCO\nC1CC\n")
    load_task.cache_clear()
    with pytest.raises(OptionError, match="line 2"):
        load_task("molecules", str(tmp_path))
