"""The shipped tasks: references are in the constraints' languages, right and valid; mutants are not."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest

import tokdfa
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.tasks.registry import BUILT_IN, FOLDERS, load_task, task_names
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

OURS = [name for name in BUILT_IN if name not in FOLDERS]
each = pytest.mark.parametrize("name", OURS)
#: Task -> texts that have not its form, and texts that have it and are wrong everywhere.
FAULTS = {
    "extraction": (["{", "[]", '{"name": "Ada", "age": "9", "city": "Oslo"}', '{"name": "Ada", "age": 9}',
                    '{"name": "Ada", "age": 121, "city": "Oslo"}', '{"name": "Ada", "age": true, "city": "Oslo"}'],
                   ['{"name": "X", "age": 1, "city": "X"}']),
    "calls": (['{"name": "fly", "arguments": {}}', '{"name": "timer", "arguments": {"city": "Oslo"}}', "3",
               '{"name": "light", "arguments": {"colour": "pink", "level": 3}}', '{"name": [], "arguments": {}}'], []),
    "topics": (["music", "Sport", ""], []),
    "dates": (["1999-13-01", "1999-1-1", "4 May 1987"], ["1001-01-01"]),
    "units": (["12 pints", "12km", "012 km", "3.25 kg"], ["99.5 ml"]),
    "sums": (["12 pens", "", "12345"], ["9999"]),
    "sql": (["SELECT", "SELECT nothing FROM fruit", "DROP TABLE fruit", "DELETE FROM fruit", "",
             "SELECT 1; SELECT 2", "ATTACH 'x' AS y", "PRAGMA user_version",
             "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT COUNT(*) FROM t"],
            ["SELECT name FROM fruit WHERE price = 77", "SELECT COUNT(*) FROM fruit WHERE price > 99"]),
    "code": (["x +", "z + 1", "x ** 9", "__import__('os')", "1.5", "x" * 300, "x; y", "True"], ["98 + x"]),
}  # fmt: skip


@each
def test_items_are_many_and_their_references_right(name: str) -> None:
    task = load_task(name)
    assert len(task.items) >= 100
    assert task.licence == "CC0-1.0"
    assert len({item.prompt for item in task.items}) > len(task.items) / 2
    for item in task.items:
        assert task.is_valid(item, item.reference)
        assert task.score(item, item.reference) == 1
        assert item.prompt.endswith("Output:\n")


@each
def test_the_constraint_has_the_references_and_not_what_is_invalid(name: str) -> None:
    """By masks over single bytes, which `is_valid` knows nothing of."""
    vocabulary = load_tokenizer("bytes").vocabulary
    task = load_task(name)
    compiled = tokdfa.compile(task.items[0].constraint, vocabulary)

    def accepts(text: str) -> bool:
        matcher = compiled.start()
        for byte in text.encode():
            if not matcher.allows(byte):
                return False
            matcher.advance(byte)
        return matcher.can_end()

    for item in task.items[:30]:
        assert item.constraint == task.items[0].constraint
        assert accepts(item.reference), item.reference
    for text in FAULTS[name][0]:
        assert not accepts(text), text
    for text in FAULTS[name][1]:
        assert accepts(text), text


@each
def test_faults_are_invalid_and_wrong_answers_score_nothing(name: str) -> None:
    task = load_task(name)
    for item in task.items:
        for text in FAULTS[name][0]:
            assert not task.is_valid(item, text), text
            assert task.score(item, text) == 0
        for text in FAULTS[name][1]:
            assert task.is_valid(item, text), text
            assert task.score(item, text) == 0, (item.reference, text)


def test_answers_may_be_right_in_part_or_in_other_words() -> None:
    people, calls, code = load_task("extraction"), load_task("calls"), load_task("code")
    item = people.items[0]
    partly = json.loads(item.reference) | {"city": "Nowhere"}
    assert people.score(item, json.dumps(partly)) == pytest.approx(2 / 3)
    item = next(item for item in calls.items if "timer" in item.reference)
    assert calls.score(item, '{"name": "timer", "arguments": {"minutes": 100}}') == pytest.approx(1 / 2)
    assert calls.score(item, '{"name": "weather", "arguments": {"city": "Oslo"}}') == 0
    item = next(item for item in code.items if item.reference.startswith("x + "))
    left, right = item.reference.split(" + ")
    assert code.score(item, f"({right} + {left})") == 1


def test_items_are_the_same_in_every_process() -> None:
    """Written down, so that a change of the items is seen: scores before and after would not compare."""
    found = {}
    for name in OURS:
        text = "\n".join(item.prompt + item.reference for item in load_task(name).items)
        found[name] = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert found == DIGESTS


DIGESTS = {
    "extraction": "d9d7e80d453c2435",
    "calls": "bdb2cc61a935343e",
    "topics": "9e9a002699bf6bf4",
    "dates": "90b85e104a0a0670",
    "units": "61017b2fbf4f2282",
    "sums": "5bd2d139ada60cfd",
    "sql": "b06dead95617270c",
    "code": "d381fa2665e6fbc2",
}


def test_gsm8k_from_a_folder(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"test\.jsonl"):
        load_task("gsm8k", str(tmp_path))
    lines = [{"question": "1 + 1?", "answer": "one and one\n#### 2"}, {"question": "More?", "answer": "#### 1,200"}]
    path = tmp_path / "test.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    task = load_task("gsm8k", str(tmp_path))
    assert [item.reference for item in task.items] == ["2", "1200"]
    assert task.score(task.items[1], "1200") == 1
    path.write_text(json.dumps({"question": "?", "answer": "two"}))
    load_task.cache_clear()
    with pytest.raises(OptionError, match="line 1"):
        load_task("gsm8k", str(tmp_path))


def test_names() -> None:
    assert set(BUILT_IN) <= set(task_names())
    with pytest.raises(UnknownNameError, match="sums"):
        load_task("sum")
    with pytest.raises(OptionError, match="folder"):
        load_task("gsm8k")
    with pytest.raises(OptionError, match="reads no folder"):
        load_task("sums", "here")
