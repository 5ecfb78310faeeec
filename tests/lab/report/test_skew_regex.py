"""Reports on estimated skew: from made-up rows with known answers."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.skew_regex import check_settings, run_item
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page
from tokdfa.lab.report.skew_regex import MAX_SHOWN, common

FOLDER = Path("made-up")
EXPERIMENTS = Path(__file__).parents[3] / "experiments"
BACKENDS = {"plain": "token_index", "peer": "llguidance", "proper": "cartesian_merge"}
MEASURES = (
    *("total_variation", "kl_forward", "kl_backward", "jensen_shannon", "log_mass", "mean_tokens", "forced_share"),
    *("improper_masked", "improper_target"),
)


def estimate(language, engine, tv, **changes):
    row = {"part": "estimate", "model": "m", "tokenizer": "t", "language": language, "engine": engine}
    row |= {"backend": BACKENDS[engine], "status": "ok", "message": "", "samples": 100, "effective": 50.0}
    for name in MEASURES:
        value = tv if name == "total_variation" else 0.5
        row |= {name: value, f"{name}_se": 0.05, f"{name}_low": value - 0.1, f"{name}_high": value + 0.1}
    row |= {"kept": 0.9, "kept_low": 0.8, "kept_high": 1.0, "cut_share": 0.0, "rows": 70, "rows_computed": 30}
    row |= {"seconds": 1.0, "sequences": f"{language} {engine}".replace("peer", "plain")}
    row |= {"drawn": json.dumps([["one", 0.5, 0.1]]), "meant": json.dumps([["t" * 99, 0.01, 0.7]])}
    return row | changes


def difference(language, other, value, other_value, verdict, engine="plain"):
    row = {"part": "difference", "model": "m", "tokenizer": "t", "language": language, "status": "ok", "message": ""}
    row |= {"engine": engine, "other": other, "measure": "total_variation", "verdict": verdict}
    return row | {"value": value, "other_value": other_value}


def run_data(rows):
    stored = {"results": pd.DataFrame([{"item_id": "one", **row} for row in rows])}
    return RunData.read(FakeRun(FOLDER, config(kind="skew_regex", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = [
        {"part": "model", "model": "m", "tokenizer": "t", "status": "ok", "message": "", "rows": 90, "seconds": 9.0},
        {"part": "model", "model": "big", "tokenizer": "", "status": "error", "message": "pip install it"},
    ]
    for language, tv, proper_tv, verdict in (
        ("date", 0.6, 0.2, "yes"), ("price", 0.4, 0.5, "no"), ("url", 0.8, 0.9, "yes"), ("name", 0.3, 0.1, "unknown"),
    ):  # fmt: skip
        weak = {"effective": 3.0} if language == "name" else {}
        rows += [estimate(language, "plain", tv, kept=1.0, kept_low=1.0, kept_high=1.0, **weak)]
        rows += [estimate(language, "peer", tv, rows_computed=0, **weak), estimate(language, "proper", proper_tv)]
        rows += [difference(language, "peer", tv, tv, "no"), difference(language, "proper", tv, proper_tv, verdict)]
        rows += [difference(language, "proper", tv, proper_tv, verdict, engine="peer")]
    rows[-2] |= {"other_value": 0.1}
    rows += [estimate("lost", "plain", 0.7, cut_share=0.2)]
    rows += [{"part": "estimate", "model": "m", "tokenizer": "t", "language": "lost", "engine": "proper",
              "backend": "cartesian_merge", "status": "memory", "message": HOSTILE}]  # fmt: skip
    rows += [{"part": "event", "model": "m", "tokenizer": "t", "language": "date", "engine": "plain", "event": "old",
              "pattern": "1.*", "status": "ok", "message": "", "masked": 0.6, "masked_low": 0.5, "masked_high": 0.7,
              "target": 0.2, "target_low": 0.1, "target_high": 0.3}]  # fmt: skip
    rows += [rows[-1] | {"event": "new", "target": 0.5, "target_low": 0.4, "target_high": 0.6}]
    return run_data(rows)


def table(data, name):
    return next(one for one in build_tables(data) if one.name == name)


def values(one, number):
    return dict(zip(one.columns, (cell.text for cell in one.rows[number]), strict=True))


def test_medians_are_over_the_languages_of_all_engines(data):
    plain, peer, proper = (values(table(data, "skew_regex"), place) for place in range(3))
    assert [row["engine"] for row in (plain, peer, proper)] == ["plain", "peer", "proper"]
    assert [row["languages"] for row in (plain, peer, proper)] == ["4"] * 3
    assert (plain["median TV"], proper["median TV"]) == ("50.0%", "35.0%")
    assert (plain["weak"], proper["weak"]) == ("1", "0")
    told = [proper[name] for name in ("TV below plain", "above", "no difference", "undecided")]
    assert told == ["1", "1", "1", "1"]
    assert plain["TV below plain"] == "–"


def test_estimates_have_their_intervals_and_weak_ones_are_marked(data):
    one = table(data, "skew_regex_estimates")
    assert len(one.rows) == 13
    cell = one.rows[0][one.columns.index("total variation")]
    assert (cell.text, cell.detail, cell.value) == ("60.0%", "50.0% to 70.0%", 0.6)
    kept, effective = (one.columns.index(name) for name in ("kept share", "effective samples"))
    proper = {row[1].text: row for row in one.rows if row[2].text == "proper"}
    assert (proper["date"][kept].text, proper["date"][kept].detail) == ("0.900", "0.800 to 1.00")
    assert proper["name"][kept].text == "–"  # the first engine is weak there
    weak = [row for row in one.rows if row[effective].detail == "weak"]
    assert [(row[1].text, row[2].text) for row in weak] == [("name", "plain"), ("name", "peer")]


def test_only_what_exceeds_its_error_is_a_difference(data):
    one = table(data, "skew_regex_differences")
    # those of the peer, which drew what plain drew, are not told again
    assert [[cell.text for cell in row[1:]] for row in one.rows] == [
        ["date", "total variation", "plain", "0.600", "proper", "0.200"],
        ["url", "total variation", "plain", "0.800", "proper", "0.900"],
    ]
    assert "Of 4 comparisons, 2 differ" in one.note


def test_events_and_texts(data):
    one = table(data, "skew_regex_events")
    assert [values(one, place)["intervals apart"] for place in range(2)] == ["yes", "no"]
    texts = table(data, "skew_regex_texts")
    first = values(texts, 0)
    assert first["engines with these samples"] == "plain, peer"
    assert first["drawn"] == "'one' 50.0%"
    assert first["meant"] == f"'{'t' * 59}…' 70.0%"
    assert len(texts.rows) == 9


def test_failures_are_listed(data):
    assert [cell.text for cell in table(data, "not_measured").rows[0][:4]] == ["m", "lost", "proper", "memory"]
    assert table(data, "models").rows[1][-1].text == "pip install it"


def test_headlines_are_computed(data):
    assert build_headlines(data) == [
        "m, 4 languages: median total variation from the own target 50.0% plain, 50.0% peer, 35.0% proper.",
        "m: plain, peer drew equal sequences in each of 4 languages.",
        "m: beyond its error, the total variation of proper is below that of plain in 1 of 4 languages and above it in "
        "1; no difference beyond the error in 1, undecided in 1.",
        "m: 2 of 13 estimates rest on fewer than 30 effective samples, and 1 on samples of which more than 5% were "
        "cut.",
        "big was not measured: pip install it",
        "1 measurements failed or were left out: 1 memory.",
    ]


def test_a_mass_above_that_of_all_spellings_is_told():
    rows = [estimate("url", "plain", 0.9), estimate("url", "proper", 0.8, kept=40.0, kept_low=3.0, kept_high=500.0)]
    assert any("in 1 language the mass of proper is estimated above" in one for one in build_headlines(run_data(rows)))
    rows[1]["kept_low"] = 0.5
    assert not any("estimated above" in sentence for sentence in build_headlines(run_data(rows)))


def test_many_languages_are_spread_and_nothing_is_said_of_nothing():
    rows = [estimate(f"l{place:02d}", "plain", place / 100) for place in range(40)]
    (plot,) = build_plots(run_data(rows))
    assert len(plot.figure.axes[0].get_yticks()) == MAX_SHOWN
    assert f"{MAX_SHOWN} of 40 languages" in plot.caption
    failed = run_data([{"part": "model", "model": "m", "tokenizer": "", "status": "error", "message": "no"}])
    assert build_plots(failed)[0].figure is None
    assert build_headlines(failed) == ["m was not measured: no"]
    assert build_headlines(run_data([])) == ["The run has no results yet."]


def test_engines_are_compared_where_all_of_them_are():
    rows = pd.DataFrame({"model": "m", "language": ["a", "a", "b"], "engine": ["x", "y", "x"]})
    assert set(common(rows)["language"]) == {"a"}


def test_a_tiny_run_has_a_page():
    settings = {
        "models": [{"name": "table?seed=3", "tokenizer": "bytes"}],
        "languages": [
            {"label": HOSTILE, "prompt": "x", "regex": "[ab]c?|<b>", "max_tokens": 8, "events": {"a": "a.*"}}
        ],
        "engines": [{"backend": "token_index"}, {"backend": "tokens_dfa"}],
        "samples": 20,
    }
    rows = pd.DataFrame([{"item_id": "one", **row} for row in run_item(settings, seed=0)])
    text = Page.of(
        FakeRun(FOLDER, config(kind="skew_regex", reference=""), dict(PROVENANCE), {"results": rows})
    ).markdown({})
    assert "token\\_index, tokens\\_dfa drew equal sequences in each of 1 language" in text
    assert "<script>" not in text
    assert "\x1b" not in text


def test_the_shipped_experiment_asks_for_languages_and_events_that_there_are():
    experiment = load_config(EXPERIMENTS / "skew_regex.yaml")
    typed = check_settings(experiment.settings)
    assert len(typed.chosen()) == len(typed.only) == 13
    assert set(typed.events) <= set(typed.only)
    assert typed.seconds < experiment.limits.seconds
