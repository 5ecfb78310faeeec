"""Random texts of a regex: in its language, as other engines see it, within bounds, and not only the dull ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import regex
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tokdfa.constraint import Regex
from tokdfa.errors import UnsupportedConstraint
from tokdfa.lab.measure.drawn_texts import draw_texts

INPUTS = Path(__file__).parents[3] / "experiments" / "inputs" / "regexes.yaml"
PATTERNS = {entry["label"]: entry["regex"] for entry in yaml.safe_load(INPUTS.read_text())}

atoms = st.sampled_from(["a", "b", "é", ".", "[ab]", "[^a]", r"\d", r"\s", "[à-ü]", "ab"])
patterns = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{0,3}", "{1,}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(patterns, st.integers(0, 2**63 - 1))
def test_drawn_texts_are_in_the_language(pattern: str, seed: int) -> None:
    texts = draw_texts(Regex(pattern), 10, 40, seed)
    assert all(regex.fullmatch(pattern, text) for text in texts)
    assert all(1 <= len(text.encode()) <= 40 for text in texts)
    assert texts == draw_texts(Regex(pattern), 10, 40, seed)


def test_literals_are_drawn_as_often_as_they_are_written() -> None:
    texts = draw_texts(Regex(r"(https?:\/\/)?[a-z]{5}"), 1000, 300, seed=0)
    assert 440 < sum("://" in text for text in texts) < 560
    assert 190 < sum(text.startswith("https://") for text in texts) < 310


def test_printable_ascii_is_preferred() -> None:
    assert set("".join(draw_texts(Regex(r"\w"), 300, 9, seed=0))) <= set(map(chr, range(0x21, 0x7F)))
    assert set("".join(draw_texts(Regex("[à-â\n]"), 100, 9, seed=0))) == set("àáâ\n")


@pytest.mark.parametrize(
    "pattern", ["a{301}", "[é]{200,}", r"[\ud800-\udfff]", "()", "((((a?){0,16}){0,16}){0,16}){0,16}b{301}"]
)
def test_what_has_no_short_text_gives_none(pattern: str) -> None:
    assert draw_texts(Regex(pattern), 3, 300, seed=0) == []


def test_anchors_at_the_ends_are_dropped_and_others_refused() -> None:
    assert set(draw_texts(Regex("^ab$"), 5, 9, seed=0)) == {"ab"}
    with pytest.raises(UnsupportedConstraint, match="word_boundary"):
        draw_texts(Regex(r"a\b b", ascii_classes=True), 5, 9, seed=0)
