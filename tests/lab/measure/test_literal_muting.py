"""The experiment on muting literals: its rows, what must hold between them, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tokdfa.errors import OptionError
from tokdfa.lab.kinds import literal_muting
from tokdfa.lab.kinds.literal_muting import PHASES, check_settings, random_words

SMALL: dict[str, Any] = {"repeats": 2, "drawn": 20, "max_bytes": 60}


def run(**settings: Any) -> list[dict[str, Any]]:
    return literal_muting.run_item(SMALL | settings, seed=3)


def part(rows: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["part"] == name]


@pytest.fixture(scope="module")
def https() -> list[dict[str, Any]]:
    return run(tokenizer="mistral-v1", label="https", regex="(https?://)?[a-z]{1,9}", texts=["https://abc", "!"])


def test_every_variant_has_a_row(https: list[dict[str, Any]]) -> None:
    rows = part(https, "cost")
    assert [row["variant"] for row in rows] == [
        *("strings", "strings, muted", "none", "none, muted", "transformations", "transformations, muted"),
    ]
    for row in rows:
        assert (row["constraint"], row["status"], row["samples"], row["vocab_size"]) == ("https", "ok", 2, 32_000)
        assert 0 < row["seconds_min"] <= row["seconds"] <= row["seconds_max"]
        assert sum(row[f"{phase}_s"] or 0 for phase in PHASES) <= row["seconds_max"]
        assert row["walks_s"] is None or row["token_classes"] != "transformations"


def test_sizes_do_not_depend_on_the_way_and_muting_needs_fewer_classes(https: list[dict[str, Any]]) -> None:
    plain, muted = ([row for row in part(https, "cost") if row["muted"] is which] for which in (False, True))
    for rows in (plain, muted):
        assert len({(row["states"], row["byte_classes"], row["token_classes_made"]) for row in rows}) == 1
    assert [(row["literals"], row["ghosts"]) for row in muted] == [(2, 2)] * 3
    assert [row["literals"] for row in plain] == [None] * 3
    assert muted[0]["class_strings"] < plain[0]["class_strings"]
    assert muted[0]["byte_classes"] < plain[0]["byte_classes"]
    assert muted[1]["class_strings"] == muted[1]["tokens_left"]


def test_texts_are_given_and_drawn(https: list[dict[str, Any]]) -> None:
    rows = part(https, "text")
    assert [row["source"] for row in rows] == ["given"] + ["drawn"] * 20
    assert [row["text"] for row in rows if row["source"] == "given"] == ["https://abc"]
    for row in rows:
        assert (row["status"], row["plain_stops_at"], row["literals"]) == ("ok", -1, 2)
        assert row["fewest_count"] <= min(row["muted_count"], row["proper_count"])
        assert row["positions"] == (row["proper_count"] if row["stops_at"] < 0 else row["stops_at"]) + 1
        if not row["text"].startswith("http"):
            assert row["stops_at"] == -1
    assert rows[0]["stops_at"] >= 0  # "https" is one token of this vocabulary
    assert [row["text"] for row in rows] == [row["text"] for row in part(run(**AGAIN), "text")]


AGAIN = {"tokenizer": "mistral-v1", "label": "https", "regex": "(https?://)?[a-z]{1,9}", "texts": ["https://abc"],
         "token_classes": ["none"], "repeats": 1}  # fmt: skip


def test_baselines_are_measured_where_they_are_asked_for() -> None:
    rows = part(run(tokenizer="bytes", label="x", regex="ab?[a-z]", baselines_for=["x"]), "cost")
    assert [row["variant"] for row in rows[-2:]] == ["token_index", "outlines_core"]
    for row in rows[-2:]:
        assert (row["status"], row["token_classes"], row["muted"]) == ("ok", "", False)
        assert row["index_s"] > 0
    assert rows[-2]["states"] == rows[0]["states"]


def test_a_variant_that_has_had_its_seconds_takes_no_further_turn() -> None:
    rows = part(run(tokenizer="bytes", regex="ab?[a-z]", repeats=5, seconds=1e-9), "cost")
    assert {row["samples"] for row in rows} == {1}


def test_what_cannot_be_muted_has_a_row_that_says_so() -> None:
    rows = run(tokenizer="bytes", regex=r"ab\b ?-", ascii_classes=True)
    for row in part(rows, "cost"):
        assert row["status"] == ("unsupported" if row["muted"] else "ok")
        assert ("word_boundary" in row["message"]) == row["muted"]
        assert (row["seconds"] is None) == row["muted"]
    (text,) = part(rows, "text")
    assert text["status"] == "unsupported"


def test_patterns_grow_with_words_and_with_letters() -> None:
    growth = {
        "shapes": {"list": {"each": '"WORD"', "join": ","}},
        **{"counts": [1, 3], "length": 2, "lengths": [1, 4], "count": 2, "repeats": 1},
    }
    rows = run(tokenizer="mistral-v1", label="list", regex=r"\[WORDS\]", growth=growth)
    assert {row["part"] for row in rows} == {"growth"}
    sizes = [(row["axis"], row["words"], row["length"]) for row in rows[::4]]
    assert sizes == [("words", 1, 2), ("words", 3, 2), ("length", 2, 1), ("length", 2, 4)]
    for row in rows:
        assert row["status"] == "ok"
        if row["muted"]:
            assert row["literals"] == row["words"]
        else:
            # brackets, quotes, commas, and each word's letters; one state more than there are bytes
            assert row["dfa_states"] == 2 + row["words"] * (row["length"] + 3)


def test_what_cannot_grow_is_refused() -> None:
    growth = {"shapes": {"x": {}}, "counts": [2], "lengths": [1]}
    with pytest.raises(OptionError, match="WORDS"):
        run(tokenizer="bytes", label="x", regex="a", growth=growth)
    with pytest.raises(OptionError, match="14 distinct words of 1 letters"):
        run(tokenizer="bytes", label="x", regex="WORDS", growth=growth | {"count": 14})
    with pytest.raises(OptionError, match="literal_muting needs"):
        run(tokenizer="bytes", label="x", choice=["a"])


def test_words_are_distinct_and_fewer_are_the_first_of_more() -> None:
    words = random_words(300, 2, seed=1)
    assert len(set(words)) == 300
    assert all(len(word) == 2 and word.isascii() and word.islower() for word in words)
    assert random_words(7, 2, seed=1) == words[:7]
    assert random_words(7, 2, seed=2) != words[:7]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"repeat": 3}, r"settings\.repeat: extra"),
        ({"repeats": 0}, r"settings\.repeats"),
        ({"token_classes": ["rows"]}, r"settings\.token_classes\.0"),
        ({"growth": {"shapes": {"x": {"each": "[a-z]"}}}}, r"settings\.growth\.shapes\.x\.each"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_settings(settings)
