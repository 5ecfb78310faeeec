"""The growth of proper backends: families are what they claim, no size goes missing, and growth is told rightly."""

import json
import re

import pytest

from tests.lab.kinds.telling import Told
from tokdfa.errors import OptionError, UnknownNameError
from tokdfa.lab.kinds.proper_scaling import KIND, fill_family, json_members, measure

ENGINES = [
    {"label": "direct", "backend": "direct_merge"},
    {"label": "lazy", "backend": "cartesian_merge"},
    {"label": "all", "backend": "cartesian_merge", "options": {"lazy": False}},
    {"label": "index", "backend": "token_index"},
]


def run(**changes):
    settings = {"tokenizer": "mistral-v1", "label": "digits", "regex": "([0-9]{1,2}:){n}", "sizes": {"digits": [1, 3]}}
    return measure({"repeats": 2, "engines": ENGINES, **settings, **changes}, seed=3)


def test_families_are_filled():
    assert fill_family("a{1,n}b{n}", 4, seed=0) == "a{1,4}b{4}"
    assert re.fullmatch("[a-z]+([|][a-z]+){4}", fill_family("<words>", 5, seed=0))
    with pytest.raises(OptionError, match="no template"):
        fill_family("abc", 4, seed=0)


def test_members_are_those_of_json():
    few, many = (json_members(count, seed=1) for count in (3, 5))
    assert many.startswith(few)
    names = re.findall('"([a-z]{4,10})": ', many)
    assert len(set(names)) == 5
    pattern = re.compile(fill_family(r"\{<members>\}", 5, seed=1))
    object_ = dict(zip(names, [True, "red", -12, "any, text", False], strict=True))
    assert pattern.fullmatch(json.dumps(object_))
    assert not pattern.fullmatch(json.dumps(object_ | {names[1]: "pink"}))


def test_a_row_for_each_size_and_engine():
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


def test_a_broken_limit_or_a_slow_compile_ends_the_family_for_one_engine():
    tight = {"label": "tight", "backend": "direct_merge", "options": {"max_transitions": 60}}
    rows = run(engines=[tight, ENGINES[1]], regex="[a-z]{1,n}", sizes={"digits": [1, 2, 3]})
    mine = [row for row in rows if row["engine"] == "tight"]
    assert [row["status"] for row in mine] == ["ok", "memory", "not_asked"]
    assert mine[2]["message"] == "failed (memory) at 2"
    assert {row["status"] for row in rows if row["engine"] == "lazy"} == {"ok"}
    rows = run(seconds=1e-9, engines=ENGINES[1:2])
    assert [(row["status"], row.get("repeats")) for row in rows] == [("ok", 1), ("not_asked", None)]
    assert "more than 1e-09 s, at 1" in rows[1]["message"]


def test_an_automaton_with_too_many_states_is_left_to_the_engines():
    rows = run(regex="(a|b)*a(a|b){n}", sizes={"digits": [17]}, engines=ENGINES[1:2])
    assert [(row["states"], row["status"]) for row in rows] == [(None, "memory")]


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"label": "other"}, OptionError, r"give settings\.sizes an entry 'other'"),
        ({"sizes": {}}, OptionError, r"settings\.sizes"),
        ({"sizes": {"x": [2, 1]}}, OptionError, r"settings\.sizes\.x: .*rising"),
        ({"sizes": {"x": [0]}}, OptionError, r"settings\.sizes\.x"),
        ({"engines": [ENGINES[0], ENGINES[0]]}, OptionError, "same label"),
        ({"engines": [{"label": "x", "backend": "direct_merg"}]}, UnknownNameError, "direct_merge"),
        ({"repeat": 2}, OptionError, r"settings\.repeat"),
    ],
)
def test_faults_name_the_key(change, error, said):
    with pytest.raises(error, match=said):
        run(**change)


def made_up():
    """Direct needs time and memory as the cube of the states, lazy in proportion; direct ends at 4 in one family."""
    rows = []
    for family in ("letters", "words"):
        for n in (1, 2, 4, 8):
            place = {"tokenizer": "small", "family": family, "parameter": n, "states": 10 * n}
            cost = {"status": "ok", "own_s": 1e-3 * n**3, "bytes": 100 * n**3, "index_states": n, "transitions": 7 * n}
            lost = {"status": "memory" if n == 4 else "not_asked"}
            rows.append({**place, "engine": "direct", **(lost if family == "letters" and n >= 4 else cost)})
            rows.append({**place, "engine": "lazy", **cost, "own_s": 1e-3 * n, "bytes": 50 * n})
    return rows


def test_the_report_tells_ends_and_exponents():
    told = Told(KIND, made_up())
    letters, words = told.built["proper_scaling_ends"].rows
    assert [(cell.text, cell.detail) for cell in letters[2:]] == [("2", "2 states, then memory"), ("8", "8 states")]
    assert words[2].value == 8
    (_, *few), (_, *many) = told.values("proper_time_exponents", "family", "direct", "lazy")
    assert few == pytest.approx([float("nan"), 1], nan_ok=True)
    assert many == pytest.approx([3, 1])
    assert "direct: 1 of 2 series" in told.sentences[0]
    assert "lazy: 2 of 2 series finished up to the largest size, with up to 56 transitions" in told.sentences[1]
    assert "power of 3.00 (median of 1 series" in told.sentences[2]
    assert told.sentences[-1] == "14 of 16 measurements succeeded; the others: 1 memory, 1 not asked."
    assert [panel.title for panel in told.charts["proper_time"].panels] == ["letters", "words"]


def test_a_run_in_which_all_failed_says_so():
    told = Told(KIND, [{**row, "status": "memory", "own_s": None} for row in made_up()[:1]])
    assert told.sentences[-1] == "0 of 1 measurements succeeded; the others: 1 memory."
    assert told.charts["proper_time"].figure is None
