"""Reports on cost against skew: from made-up rows with known answers, and from a tiny run."""

import math
from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.config.resolve import load_config
from tokdfa.lab.kinds.cost_vs_skew import METHODS, check_settings, run_item
from tokdfa.lab.report.cost_vs_skew import LOCAL, points, summary
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page

FOLDER = Path("made-up")
EXPERIMENTS = Path(__file__).parents[3] / "experiments"
#: label -> (method, engine, backend, size, total variation by entry, engine's microseconds)
STRATEGIES = {
    "plain": (LOCAL, "plain", "token_index", None, (0.5, 0.7), 20.0),
    "peer": (LOCAL, "peer", "llguidance", None, (0.5, 0.7), 200.0),
    "proper": (LOCAL, "proper", "cartesian_merge", None, (0.3, 0.5), 40.0),
    "rejection, plain": ("rejection", "plain", "token_index", None, (None, 0.02), 800.0),
    "smc 4, plain": ("smc", "plain", "token_index", 4, (0.2, 0.3), 80.0),
    "smc 16, proper": ("smc", "proper", "cartesian_merge", 16, (0.01, -0.01), 160.0),
    "smc 2, proper": ("smc", "proper", "cartesian_merge", 2, (0.35, 0.45), 80.0),
    "asap 16, proper": ("asap", "proper", "cartesian_merge", 16, (0.9, 0.8), 320.0),
}


def point(entry, strategy, place):
    method, engine, backend, size, skews, engine_us = STRATEGIES[strategy]
    row = {"part": "point", "model": "m", "tokenizer": "t", "entry": entry, "strategy": strategy, "method": method}
    row |= {"engine": engine, "backend": backend, "size": size, "compile_ms": 2.0}
    tv = skews[place]
    if tv is None:
        return row | {"status": "nothing_drawn", "message": "0 answers in 40 runs"}
    row |= {"status": "ok", "message": "", "tv": tv, "runs": 40, "answered": 40, "tokens": 4.0, "texts": 1.0}
    row |= {"rows": 3.0, "rows_asked": 9.0, "calls": 3.0, "masks": 5.0, "checks": 0.0, "engine_us": engine_us}
    row |= {"others_us": 5.0, "arithmetic_us": 100.0, "model_us": 50 * engine_us, "mask_us": 2.0, "advance_us": 1.0}
    if method == LOCAL:
        return row | {"tv_low": tv - 1e-6, "tv_high": tv + 1e-6, "exact_rows": 20}
    return row | {"tv_se": 0.03, "plug_in": max(tv, 0) + 0.05, "noise_floor": 0.06}


def run_data(rows):
    stored = {"results": pd.DataFrame([{"item_id": "one", **row} for row in rows])}
    return RunData.read(FakeRun(FOLDER, config(kind="cost_vs_skew", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = [{"part": "model", "model": "m", "tokenizer": "t", "status": "ok", "message": "", "rows": 90, "seconds": 9.0,
             "call_seconds": 0.05, "row_seconds": 0.002}]  # fmt: skip
    for place, entry in enumerate(("first", "second")):
        rows.append({"part": "entry", "model": "m", "tokenizer": "t", "entry": entry, "topic": "x", "status": "ok",
                     "message": "", "choices": 4, "log_mass": math.log(0.25), "unresolved": 0.0, "prefixes": 30,
                     "proper_tv": 0.01, "seconds": 1.0})  # fmt: skip
        rows += [point(entry, strategy, place) for strategy in STRATEGIES]
    return run_data(rows)


def table(data, name):
    return next(one for one in build_tables(data) if one.name == name)


def by_strategy(one):
    place = one.columns.index("strategy")
    return {row[place].text: dict(zip(one.columns, row, strict=True)) for row in one.rows}


def test_means_errors_and_comparisons_on_the_same_entries(data):
    one = by_strategy(table(data, "cost_vs_skew"))
    assert list(one) == list(STRATEGIES)
    assert one["plain"]["total variation"].value == pytest.approx(0.6)
    assert one["plain"]["total variation"].detail == ""
    smc = one["smc 4, plain"]
    assert smc["total variation"].text == "25.0%"
    assert smc["total variation"].detail == "± 4.16%"  # 1.96 * 0.03 / sqrt(2)
    assert (smc["plug-in"].text, smc["noise floor"].text) == ("30.0%", "6.00%")
    assert (smc["local masking, same entries"].text, smc["against that"].text) == ("60.0%", "lower")
    # rejection has an answer to the second entry only
    rejection = one["rejection, plain"]
    assert (rejection["entries"].text, rejection["local masking, same entries"].text) == ("1", "70.0%")
    assert one["smc 2, proper"]["against that"].text == "not beyond the error"
    assert one["asap 16, proper"]["against that"].text == "higher"


def test_costs_are_by_token_and_by_answer(data):
    one = by_strategy(table(data, "cost_vs_skew"))
    assert one["smc 4, plain"]["engine, a token"].value == pytest.approx(80e-6 / 4)
    assert one["smc 4, plain"]["all, an answer"].value == pytest.approx((51 * 80 + 105) * 1e-6)
    costs = by_strategy(table(data, "cost_vs_skew_costs"))["smc 4, plain"]
    assert (costs["model rows"].text, costs["rows asked"].text) == ("3", "9")
    assert (costs["runs with an answer"].text, costs["a check"].text) == ("100%", "–")
    (price,) = table(data, "cost_vs_skew_prices").rows
    assert [cell.text for cell in price] == ["m", "50.0 ms", "2.00 ms"]


def test_a_point_keeps_both_ends(data):
    found = {one.strategy: one for one in summary(points(data))}
    smc = found["smc 4, plain"]
    assert smc.low == pytest.approx(0.25 - 1.96 * 0.03 / math.sqrt(2), abs=1e-4)
    assert smc.high == pytest.approx(0.30 + 1.96 * 0.03 / math.sqrt(2), abs=1e-4)
    assert smc.times_local == pytest.approx((51 * 80 + 105) / (51 * 20 + 105))
    assert math.isnan(found["plain"].size)


def test_entries_show_local_masking_by_each_engine(data):
    one = table(data, "cost_vs_skew_entries")
    assert one.columns[-3:] == ("plain", "peer", "proper")
    assert [cell.text for cell in one.rows[0][-3:]] == ["50.0%", "50.0%", "30.0%"]
    assert one.rows[0][one.columns.index("mass")].text == "25.0%"
    assert [cell.text for cell in table(data, "not_measured").rows[0]] == [
        "m", "first", "rejection, plain", "nothing drawn", "0 answers in 40 runs",
    ]  # fmt: skip


def test_headlines_are_computed(data):
    plain, proper, rejection, four, sixteen, two, asap, failures = build_headlines(data)
    assert plain == (
        "m, 2 entries: local masking is 60.0% in total variation from the ideal with plain and peer; masks and "
        "advances take, by token, 5.00 µs plain, 50.0 µs peer."
    )
    assert proper.startswith("m, 2 entries: local masking is 40.0% in total variation from the ideal with proper;")
    assert rejection.startswith("m: rejection, plain (1 entry): 2.00% ± 5.88% (plug-in 7.00%, noise floor 6.00%), not")
    assert "below local masking by plain on the same entries (70.0%)" in rejection
    assert "below local masking by plain on the same entries (60.0%); an answer takes 3.7 times as long" in four
    assert "not told from 0 by its error" not in four
    assert "not told from 0 by its error" in sixteen
    assert "no difference from local masking by proper beyond the error (40.0%)" in two
    assert "above local masking by proper on the same entries (40.0%)" in asap
    assert failures == "1 measurements failed or were left out: 1 nothing drawn."


def test_nothing_is_said_of_nothing():
    failed = run_data([{"part": "model", "model": "m", "tokenizer": "", "status": "error", "message": "no torch"}])
    assert build_plots(failed)[0].figure is None
    assert build_headlines(failed) == ["m was not measured: no torch"]
    assert build_headlines(run_data([])) == ["The run has no results yet."]


def test_a_tiny_run_has_a_page():
    settings = {
        "models": [{"name": "table?seed=2&concentration=0.2", "tokenizer": "bytes"}],
        "entries": [{"label": HOSTILE, "prompt": "x", "choices": ["ab", "b"]}],
        "engines": [{"backend": "token_index"}],
        "strategies": [{"method": "smc", "size": 2, "engine": "token_index"}],
        "runs": 10,
    }
    rows = pd.DataFrame([{"item_id": "one", **row} for row in run_item(settings, seed=0)])
    stored = {"results": rows}
    page = Page.of(FakeRun(FOLDER, config(kind="cost_vs_skew", reference=""), dict(PROVENANCE), stored))
    text = page.markdown({})
    assert "smc 2, token\\_index (1 entry)" in text
    assert "<script>" not in text
    assert "\x1b" not in text


def test_the_shipped_experiment_composes_every_method_with_both_token_languages():
    experiment = load_config(EXPERIMENTS / "cost_vs_skew.yaml")
    typed = check_settings(experiment.settings)
    assert len(typed.entries) == 280
    for engine in ("token_index", "cartesian_merge"):
        assert {one.method for one in typed.strategies if one.engine == engine} == set(METHODS)
    assert typed.seconds < experiment.limits.seconds
