"""A moment of fuzzing for every entry, and the driver on an entry that does every wrong thing.

The long runs are ``python -m tests.fuzz ENTRY``. Failures that they found have tests beside the code that was mended.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.__main__ import summary
from tests.fuzz.child import Limits, attempt
from tests.fuzz.driver import fuzz
from tests.fuzz.entries import ENTRIES, find_entry
from tests.fuzz.shrink import shrink, smaller_json

if TYPE_CHECKING:
    from tests.fuzz.case import Case

CASES = 20


@pytest.mark.parametrize("name", ENTRIES)
def test_a_few_cases_of_every_entry(name: str) -> None:
    entry = find_entry(name)
    entry.prepare()
    words = set()

    @settings(max_examples=CASES, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(entry.cases())
    def run(case: Case) -> None:
        outcome = attempt(entry, case)
        assert not outcome.failure, f"{case}\n{outcome.detail}"
        words.add(outcome.word)

    run()
    assert len(words) > 1, "either nothing is accepted, or everything"


def test_the_driver_finds_every_kind_of_trouble() -> None:
    told: list[str] = []
    limits = Limits(seconds=0.1, megabytes=300)
    findings = fuzz("tests.fuzz.trouble", seconds=60, cases=60, seed_number=1, limits=limits, tell=told.append)
    assert findings.executed == 60
    assert {kind.split(" in ")[0] for kind in findings.failures} == {
        "TokenizerError", "KeyError", "Panic", "hang", "MemoryError", "exit code -11",
    }  # fmt: skip
    smallest = {failure.case.body for failure in findings.failures.values()}
    assert {"nameless", "raise", "panic", "grow", "die"} <= smallest
    assert findings.words["fine"]
    assert findings.words["TokenizerError"]
    assert len(told) == 2 * len(findings.failures)
    assert "FAILURE KeyError in no place of the package: no TokdfaError" in summary("trouble", findings, 1, limits, 3.0)


@pytest.mark.parametrize(
    ("body", "wanted", "smallest"),
    [("say needle to me", "needle", "needle"), (b"\x00needle\xff", b"needle", b"needle"), ((1, 2, 3, 4), None, (2, 4))],
)
def test_shrinking_leaves_out_what_does_not_matter(body, wanted, smallest) -> None:
    def fails(candidate) -> bool:
        return wanted in candidate if wanted else {2, 4} <= set(candidate)

    assert shrink(body, fails, lambda _: iter(()), 1000) == smallest


def test_shrinking_json_keeps_it_json() -> None:
    text = json.dumps({"a": [1, {"b": {"bad": [1, 2]}}], "c": "long" * 20})

    def fails(body) -> bool:
        try:
            return "'bad'" in str(json.loads(body))
        except ValueError:
            return False

    assert json.loads(str(shrink(text, fails, smaller_json, 1000))) == {"bad": 1}
