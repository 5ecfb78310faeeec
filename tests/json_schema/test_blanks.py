"""Strings without runaway blanks, against a reading of them character by character."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokdfa.json_schema.sets.blanks import FEW, FEW_STATES, LONG, limit_blanks
from tokdfa.json_schema.sets.string_set import StringSet, string_automaton

TEXTS = st.lists(
    st.sampled_from(
        [
            " ",
            "  ",
            "    ",
            "\t",
            "\n",
            "\r",
            "\n\n",
            16 * " ",
            "a",
            "b\u00e9",
            "\U0003ffff",
            "\U00040000",
            "\U000e0067",
        ]
    )
).map("".join)


def has_few_blanks(text: str) -> bool:
    """The rule, read run by run."""
    inner = text[:-1] if text[-1:] in tuple(" \t\n\r") else text
    runs, run = [], ""
    for character in inner:
        if character in " \t\n\r":
            run += character
        elif run or not runs:
            runs.append(run)
            run = ""
    if text and (text[0] in " \t\n\r" or run):
        return False
    for run in runs:
        ends = len(run) - len(run.lstrip("\n\r"))
        rest = run[ends:]
        if "\n" in rest or "\r" in rest or ends > 2 or len(rest) > (16 if ends else 4):
            return False
    return not any("\U00040000" <= character <= "\U000dffff" for character in text)


@given(TEXTS, st.sampled_from(["all", "needed"]))
def test_the_language_is_the_rule(text: str, escapes: str) -> None:
    automaton = string_automaton(FEW, escapes, FEW_STATES)  # type: ignore[arg-type]
    written = json.dumps(text, ensure_ascii=False)
    assert automaton.accepts(written.encode()) == has_few_blanks(text)
    assert FEW.holds(text) == has_few_blanks(text)


@pytest.mark.parametrize(
    "strings",
    [
        StringSet(values=frozenset([" a", "\n\n\n"])),
        StringSet(patterns=("^  $",)),
        StringSet(patterns=("^ +$",)),
        StringSet(formats=("date",)),
        StringSet(max_length=8),
        StringSet(min_length=LONG + 1),
    ],
    ids=["values", "two blanks", "blanks", "format", "maximum", "long"],
)
def test_what_the_schema_says_itself_is_left_alone(strings: StringSet) -> None:
    assert limit_blanks(strings) == strings.spelled_out


@pytest.mark.parametrize(
    "strings", [StringSet(), StringSet(min_length=LONG), StringSet(patterns=(r"\S",)), StringSet(not_patterns=("^x",))]
)
def test_all_others_are_limited(strings: StringSet) -> None:
    limited, draw = limit_blanks(strings), random.Random(0)
    for _ in range(300):
        text = "".join(draw.choices(" \nxyz", k=draw.randrange(24)))
        assert limited.holds(text) == (strings.holds(text) and has_few_blanks(text)), text
