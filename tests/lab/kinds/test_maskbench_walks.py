"""Random walks: what they come to on engines that are right, that lead nowhere, and that accept too much."""

from __future__ import annotations

import json
import random
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.kinds.fake_schemas import FakeSchemas
from tests.lab.kinds.test_maskbench import rows_of, write
from tokdfa.backends.pushdown_trie.strategy import PushdownTrie
from tokdfa.constraint import JsonSchema
from tokdfa.lab.measure import maskbench_walks
from tokdfa.lab.measure.maskbench_plan import complete
from tokdfa.lab.measure.maskbench_walks import (
    DEAD_END,
    FINISHED,
    INVALID,
    UNFINISHED,
    UNJUDGED,
    Judge,
    Walker,
    Walks,
    hints_of,
    walk_case,
)
from tokdfa.vocabulary.tokenizers import load_tokenizer
from tokdfa.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from tokdfa.backends.base import CompiledConstraint

VOCABULARY = load_tokenizer("bytes").vocabulary
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


@pytest.fixture(scope="module")
def walker() -> Walker:
    return Walker(VOCABULARY)


def fake(*texts: str, **more: Any) -> CompiledConstraint:
    return FakeSchemas(VOCABULARY).compile(JsonSchema({"texts": list(texts), **more}))


def walks(compiled: CompiledConstraint, walker: Walker, schema: Any, count: int = 40, hints: Any = ()) -> Walks:
    *_, last = walk_case(compiled, walker, Judge(json.dumps(schema)), count, "a seed", hints)
    assert last.taken == last.asked == count
    return last


def test_every_text_of_a_small_language_is_found(walker: Walker) -> None:
    texts = {"12", '{"a": [1]}', '"]"', '"\\\\"', "[ ]"}
    compiled = fake(*texts)
    found = [walker.walk(compiled, random.Random(number)) for number in range(60)]
    assert {outcome for outcome, _, _ in found} == {FINISHED}
    assert {text.decode() for _, text, _ in found} == texts
    assert all(taken == len(text) for _, text, taken in found)


def test_dead_ends_and_invalid_texts_are_told_apart(walker: Walker) -> None:
    lost = walks(fake("12", trick="go back on it", where="advance"), walker, True)
    assert lost.counts == {DEAD_END: 40}
    assert lost.faults == [[DEAD_END, "1", ""]] * 5 or lost.faults == [(DEAD_END, "1", "")] * 5
    broken = walks(fake("12", trick="raise", where="mask"), walker, True)
    assert broken.counts == {DEAD_END: 40}
    assert broken.faults[0] == (DEAD_END, "", "RuntimeError: on purpose")
    mixed = walks(fake("1", '"a"', "[", "nul"), walker, {"type": "integer"}, count=80)
    assert set(mixed.counts) == {FINISHED, INVALID}
    messages = {text: message for _, text, message in mixed.faults}
    assert messages["["].startswith("no JSON")
    assert messages['"a"'] == "$: 'a' is not of type 'integer'"
    assert "1" not in messages


def test_an_empty_mask_is_a_dead_end(walker: Walker) -> None:
    class Stuck(FakeSchemas):
        """Promises the text ``12`` and refuses its second token."""

    compiled = Stuck(VOCABULARY).compile(JsonSchema({"texts": ["12"]}))
    compiled.start = lambda context=(): _StopsAfter(compiled, 1)  # type: ignore[method-assign]
    assert walker.walk(compiled, random.Random(0)) == (DEAD_END, b"1", 1)


class _StopsAfter:
    """A matcher whose masks are empty after so many tokens."""

    def __init__(self, compiled: Any, count: int) -> None:
        from tests.lab.kinds.fake_schemas import FakeMatcher

        self.inner, self.left = FakeMatcher(compiled), count

    def fill_mask(self, out: Any) -> None:
        self.inner.fill_mask(out)
        if not self.left:
            out[:] = 0

    def advance(self, token: int) -> None:
        self.left -= 1
        self.inner.advance(token)


def test_what_has_no_end_in_reach_is_unfinished(walker: Walker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maskbench_walks, "MOST", 30)
    found = walks(fake("1" * 50), walker, True, count=3)
    assert found.counts == {UNFINISHED: 3}
    assert (found.tokens, found.faults) == (90, [])


def test_hints_lead_through_patterns(walker: Walker) -> None:
    assert hints_of(['{"a": "x\\"y", "b": ["2020-01-02"]}', '"a"']) == [b"a", b'x\\"y', b"b", b"2020-01-02"]
    schema = {"type": "string", "pattern": "[0-9]{4}-[0-9]{2}-[0-9]{2}x"}
    compiled = PushdownTrie(VOCABULARY).compile(JsonSchema(schema))
    assert walks(compiled, walker, schema, 10, [b"2020-01-02x"]).counts[FINISHED] == 10


def test_a_library_that_breaks_down_judges_nothing(walker: Walker) -> None:
    found = walks(fake('"a"'), walker, {"pattern": r"\p{L}"}, count=2)
    assert found.counts == {UNJUDGED: 2}
    assert found.columns()["unjudged_texts"] == 2


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
    count: Counter[str] = Counter()
    schema = {
        "properties": {"a": {"type": "integer", "minimum": 3}, "b": {"enum": ["x", None, 1.5]}},
        "patternProperties": {r"\w$": {"maxLength": 3}},
        "required": ["b"],
        "type": "object",
    }
    compiled = PushdownTrie(VOCABULARY).compile(JsonSchema(schema))
    count.update(walks(compiled, walker, schema, 60).counts)
    assert count[DEAD_END] == count[INVALID] == 0
    assert count[FINISHED] >= 55


def test_walks_are_part_of_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "array", "items": {"enum": [1, "a"]}, "maxItems": 3}
    write(tmp_path / "data", "good", schema, (True, [1]))
    write(tmp_path / "data", "refused", {"pattern": r"(a)\1"})
    settings: dict[str, Any] = {"engines": [{"backend": "pushdown_trie"}], "walks": 15}
    good, refused = rows_of(tmp_path / "data", tmp_path, **settings)
    assert (good["outcome"], good["walks_asked"], good["walks"], good["walks_finished"]) == ("passed", 15, 15, 15)
    assert (refused["outcome"], refused["walks_asked"], refused["walks"]) == ("refused", 15, 0)
    assert rows_of(tmp_path / "data", tmp_path, seed=1, **settings)[0]["walk_tokens"] != good["walk_tokens"]
    monkeypatch.setitem(__import__("sys").modules, "jsonschema", None)
    with pytest.raises(ImportError, match="judging random walks needs the package jsonschema"):
        complete({**settings, "data": str(tmp_path / "data")})


def test_signs_are_drawn_from_wide_and_narrow_masks() -> None:
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], end_tokens=[256])
    from tokdfa import mask as masks

    kind = maskbench_walks._Kind(range(64), vocabulary.size)
    draw = random.Random(1)
    for allowed in (range(256), [63], [3, 200]):
        mask = masks.mask_from_ids(list(allowed), vocabulary.size)
        drawn = {kind.draw(mask, draw) for _ in range(2_000)}
        assert drawn == set(allowed) & set(range(64))
    assert kind.draw(masks.mask_from_ids([64, 200], vocabulary.size), draw) is None
    assert Decimal(1) == maskbench_walks._decimal("1")
