"""The experiment on the growth of proper backends: families are what they claim, and no size goes missing."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tokdfa.errors import OptionError, TokdfaError, UnknownNameError
from tokdfa.lab.kinds import proper_scaling

ENGINES: list[dict[str, Any]] = [
    {"label": "direct", "backend": "direct_merge"},
    {"label": "lazy", "backend": "cartesian_merge"},
    {"label": "all", "backend": "cartesian_merge", "options": {"lazy": False}},
    {"label": "index", "backend": "token_index"},
]


def run(**changes: Any) -> list[dict[str, Any]]:
    settings = {"tokenizer": "mistral-v1", "label": "digits", "regex": "([0-9]{1,2}:){n}", "sizes": {"digits": [1, 3]}}
    return proper_scaling.run_item({"repeats": 2, "engines": ENGINES, **settings, **changes}, seed=3)


def test_families_are_filled() -> None:
    assert proper_scaling.fill_family("a{1,n}b{n}", 4, seed=0) == "a{1,4}b{4}"
    assert re.fullmatch("[a-z]+([|][a-z]+){4}", proper_scaling.fill_family("<words>", 5, seed=0))
    with pytest.raises(OptionError, match="no template"):
        proper_scaling.fill_family("abc", 4, seed=0)


def test_members_are_those_of_json() -> None:
    few, many = (proper_scaling.json_members(count, seed=1) for count in (3, 5))
    assert many.startswith(few)
    names = re.findall('"([a-z]{4,10})": ', many)
    assert len(set(names)) == 5
    pattern = re.compile(proper_scaling.fill_family(r"\{<members>\}", 5, seed=1))
    object_ = dict(zip(names, [True, "red", -12, "any, text", False], strict=True))
    assert pattern.fullmatch(json.dumps(object_))
    assert not pattern.fullmatch(json.dumps(object_ | {names[1]: "pink"}))


def test_a_row_for_each_size_and_engine() -> None:
    rows = run()
    assert [(row["parameter"], row["engine"]) for row in rows] == [
        (n, engine["label"]) for n in (1, 3) for engine in ENGINES
    ]
    for row in rows:
        assert (row["status"], row["message"], row["repeats"]) == ("ok", "", 2)
        assert row["states"] == 3 * row["parameter"] + 1
        assert 0 < row["own_s"] <= row["compile_s"]
        assert row["transitions"] > 0
        assert row["bytes"] > 0
        assert row["index_states"] > row["parameter"]


def test_a_broken_limit_ends_the_family_for_one_engine() -> None:
    tight = {"label": "tight", "backend": "direct_merge", "options": {"max_transitions": 60}}
    rows = run(engines=[tight, ENGINES[1]], regex="[a-z]{1,n}", sizes={"digits": [1, 2, 3]})
    mine = [row for row in rows if row["engine"] == "tight"]
    assert [row["status"] for row in mine] == ["ok", "memory", "not_asked"]
    assert mine[2]["message"] == "failed (memory) at 2"
    assert {row["status"] for row in rows if row["engine"] == "lazy"} == {"ok"}


def test_a_slow_engine_is_not_asked_for_more() -> None:
    rows = run(seconds=1e-9, engines=ENGINES[1:2])
    assert [(row["status"], row.get("repeats")) for row in rows] == [("ok", 1), ("not_asked", None)]
    assert "more than 1e-09 s, at 1" in rows[1]["message"]


def test_an_automaton_with_too_many_states_is_left_to_the_engines() -> None:
    rows = run(regex="(a|b)*a(a|b){n}", sizes={"digits": [17]}, engines=ENGINES[1:2])
    assert [(row["states"], row["status"]) for row in rows] == [(None, "memory")]


def test_a_family_without_sizes_is_refused() -> None:
    with pytest.raises(OptionError, match=r"give settings\.sizes an entry 'other'"):
        run(label="other")


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"sizes": {}}, OptionError, r"settings\.sizes"),
        ({"sizes": {"x": [2, 1]}}, OptionError, "rising"),
        ({"sizes": {"x": [0]}}, OptionError, r"settings\.sizes\.x"),
        ({"engines": [ENGINES[0], ENGINES[0]]}, OptionError, "same label"),
        ({"engines": [{"label": "x", "backend": "direct_merg"}]}, UnknownNameError, "direct_merge"),
        ({"engines": [{**ENGINES[0], "options": {"lazy": True}}]}, UnknownNameError, "max_states"),
        ({"repeat": 2}, OptionError, r"settings\.repeat"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, Any], error: type[TokdfaError], said: str) -> None:
    with pytest.raises(error, match=said):
        proper_scaling.check_settings({"sizes": {"x": [1]}, "engines": ENGINES, **change})
