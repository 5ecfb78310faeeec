"""Masks of grammars and regexes are those that are kept (`tests.reference_masks` compares all of them)."""

from __future__ import annotations

import json

import pytest

from tests.reference_masks import FILE, SECTIONS, differences, items, record

KEPT = json.loads(FILE.read_text())


def test_every_section_is_kept() -> None:
    assert KEPT.keys() == SECTIONS.keys()


@pytest.mark.parametrize(
    "title", ["grammars as llguidance", "grammars, any lexer", "regexes", "regexes, pushdown_trie"]
)
def test_masks_are_those_that_are_kept(title: str) -> None:
    section = SECTIONS[title]
    assert differences(KEPT[title], {item[0]: record(*item, section)[0] for item in items(section, None)}) == []


def test_a_changed_mask_is_a_difference() -> None:
    section = SECTIONS["regexes"]
    item = next(iter(items(section, None)))
    summary, steps = record(*item, section)
    assert int(summary.split()[0]) == len(steps)
    assert differences({item[0]: "3 0123456789abcdef"}, {item[0]: summary}) == [
        f"  {item[0]}: kept 3 0123456789abcdef, found {summary}"
    ]
