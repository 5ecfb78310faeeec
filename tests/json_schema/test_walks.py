"""Random walks: what they come to on engines that are right, that lead nowhere, and that accept too much."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.json_schema import walks as random_walks
from tests.json_schema.walks import DEAD_END, FINISHED, INVALID, UNFINISHED, UNJUDGED, Walker, walk_case
from tests.lab.kinds.fake_schemas import FakeSchemas
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.lab.measure.schema_judge import Judge
from tokdfa.vocabulary.tokenizers import load_tokenizer

if TYPE_CHECKING:
    from collections import Counter

    from tokdfa.backends.base import CompiledConstraint

VOCABULARY = load_tokenizer("bytes").vocabulary
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.fixture(scope="module")
def walker() -> Walker:
    return Walker(VOCABULARY)


def fake(*texts: str, **more: Any) -> CompiledConstraint:
    return FakeSchemas(VOCABULARY).compile(JsonSchema({"texts": list(texts), **more}))


def walks(
    compiled: CompiledConstraint, walker: Walker, schema: Any, count: int = 40
) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    counts, faults = walk_case(compiled, walker, Judge(json.dumps(schema)), count, "a seed")
    assert counts.total() == count
    return counts, faults


def test_every_text_of_a_small_language_is_found(walker: Walker) -> None:
    texts = {"12", '{"a": [1]}', '"]"', '"\\\\"', "[ ]"}
    compiled = fake(*texts)
    found = [walker.walk(compiled, random.Random(number)) for number in range(60)]
    assert {outcome for outcome, _, _ in found} == {FINISHED}
    assert {text.decode() for _, text, _ in found} == texts
    assert all(taken == len(text) for _, text, taken in found)


def test_dead_ends_and_invalid_texts_are_told_apart(walker: Walker) -> None:
    assert walks(fake("12", trick="go back on it", where="advance"), walker, True) == (
        {DEAD_END: 40},
        [(DEAD_END, "1", "")] * 40,
    )
    _, broken = walks(fake("12", trick="raise", where="mask"), walker, True)
    assert broken == [(DEAD_END, "", "RuntimeError: on purpose")] * 40
    counts, faults = walks(fake("1", '"a"', "[", "nul"), walker, {"type": "integer"}, count=80)
    assert set(counts) == {FINISHED, INVALID}
    messages = {text: message for _, text, message in faults}
    assert messages["["].startswith("no JSON")
    assert messages['"a"'] == "$: 'a' is not of type 'integer'"
    assert "1" not in messages


def test_what_has_no_end_in_reach_is_unfinished(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_walks, "MOST", 30)
    assert walks(fake("1" * 50), walker, True, count=3) == ({UNFINISHED: 3}, [])


def test_a_library_that_breaks_down_judges_nothing(walker: Walker) -> None:
    assert walks(fake('"a"'), walker, {"pattern": r"\p{L}"}, count=2)[0] == {UNJUDGED: 2}


def test_numbers_are_judged_exactly_and_as_doubles() -> None:
    judge = Judge('{"type": "integer", "maximum": 10000000000000000000000}')
    assert judge.fault(b"1e22") == ""
    assert judge.fault(b"10000000000000000000001") != ""  # as a double it is the maximum
    assert judge.fault(b"0.5") != ""
    assert Judge('{"multipleOf": 0.1}').fault(b"0.3") == ""
    assert Judge('{"multipleOf": 0.1}').fault(b"0.35") != ""
    assert Judge('{"enum": [0]}').fault(b"0e99999999999999999999999") == ""
    assert Judge('{"enum": [0]}').fault(b"1e99999999999999999999999") != ""
    assert Judge('{"maximum": 0}').fault(b"-1e99999999999999999999999") == ""
    assert Judge('{"exclusiveMinimum": 0}').fault(b"1e-400") != ""  # to readers of doubles it is 0
    whole = Judge(f'{{"$schema": "{DRAFT_4}", "type": "integer"}}')
    assert (whole.fault(b"1"), whole.fault(b"1.0") != "", Judge('{"type": "integer"}').fault(b"1.0")) == ("", True, "")
    assert Judge('{"format": "date"}').fault(b'"2021-02-29"') != ""
    for text in (b"NaN", b"\xff", b"", b"1 2"):
        assert Judge("true").fault(text).startswith("no JSON")


def test_our_engine_walks_without_a_fault(walker: Walker) -> None:
    schema = {
        "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", None, 1.5]}},
        "patternProperties": {r"\w$": {"maxLength": 3}},
        "required": ["b"],
        "type": "object",
    }
    compiled = PushdownTrie(VOCABULARY).compile(JsonSchema(schema))
    count = walks(compiled, walker, schema, 60)[0]
    assert count[DEAD_END] == count[INVALID] == 0
    assert count[FINISHED] >= 55
