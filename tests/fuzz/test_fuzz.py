"""A moment of fuzzing for every entry; Hypothesis makes what fails small.

FUZZ_CASES=20000 pytest -n 0 tests/fuzz -k regexes --hypothesis-seed=1      (by hand, for long)
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from tests.fuzz.case import Case, outcome
from tokdfa.errors import TokenizerError

if TYPE_CHECKING:
    from tests.fuzz.case import Entry

#: The modules that hold an entry.
ENTRIES = ("regexes", "grammars", "schemas", "experiments", "tokenizer_files", "stored_files")
CASES = int(os.environ.get("FUZZ_CASES", "20"))


@pytest.mark.parametrize("name", ENTRIES)
def test_cases_of_every_entry(name: str) -> None:
    entry: Entry = importlib.import_module(f"tests.fuzz.{name}").ENTRY
    entry.prepare()
    words = set()

    @settings(max_examples=CASES, derandomize="FUZZ_CASES" not in os.environ, suppress_health_check=list(HealthCheck))
    @given(entry.cases())
    def run(case: Case) -> None:
        words.add(outcome(entry, case))

    run()
    assert len(words) > 1, "either nothing is accepted, or everything"


@pytest.mark.parametrize(
    ("error", "is_right"),
    [(TokenizerError("a.json: no"), True), (TokenizerError("no"), False), (KeyError("a.json"), False)],
)
def test_errors_must_be_ours_and_name_their_place(error: Exception, is_right: bool) -> None:
    class Raises:
        file_name = "a.json"

        def run(self, case: Case) -> str:
            raise error

    if is_right:
        assert outcome(Raises(), Case("", "")) == "TokenizerError"  # type: ignore[arg-type]
    else:
        with pytest.raises(AssertionError):
            outcome(Raises(), Case("", ""))  # type: ignore[arg-type]
