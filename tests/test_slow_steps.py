"""The schemas that `tests.slow_steps` draws are valid, the same for a seed, and have steps."""

from __future__ import annotations

import pytest

import tokdfa
from tests.slow_steps import KINDS, Steps, drawn_cases


def test_schemas_are_drawn_from_the_seed() -> None:
    count = len(KINDS)
    assert list(drawn_cases(1, count)) == list(drawn_cases(1, count))
    assert {case.schema_text for case in drawn_cases(1, count)}.isdisjoint(
        case.schema_text for case in drawn_cases(2, count)
    )


@pytest.mark.parametrize("case", list(drawn_cases(0, len(KINDS))), ids=lambda case: case.name)
def test_every_kind_has_steps(case) -> None:
    found = Steps(case, tokdfa.load_tokenizer("mistral-v1"), "schema").found
    assert {"compile", "first mask", "advance 0.0"} <= found.keys()
