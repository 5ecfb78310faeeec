"""What is told of two runs: changes that were put in, none that were not, whatever the machine did in between."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.report.synthetic import HOSTILE, LABELS, FakeRun, backend_run, config, regex_states_run, trie_walk_run
from tokdfa.errors import ConfigError, StoreError, UnknownNameError
from tokdfa.lab.report import compare_statistics
from tokdfa.lab.report.compare import LEAST, compare_runs
from tokdfa.lab.report.compare_page import MAX_ROWS, page, to_json
from tokdfa.lab.report.compare_series import read_series, time_of_column
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.html import render

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PACKAGES = {"llguidance": "1.0", "outlines-core": "0.2", "glrmask": "0.5"}
PEERS = ("llguidance", "outlines_core", "glrmask")
TIMES = ("compile_s", "first_mask_s")


def measured(folder: Path, seed: int, speed: float = 1.0, **factors: float) -> FakeRun:
    """A made-up run of eight cases on a machine that takes `speed` times as long. `factors`: label -> how much longer
    its masks and compiles take. All times have noise of their own by `seed`: 3% a sample and 2% a case.
    """
    run = backend_run(folder, steps=25)
    rng = np.random.default_rng(seed)
    items, samples = run.frames["items"], run.frames["samples"]
    factor = items["label"].map(lambda label: factors.get(label, 1.0)) * speed * rng.lognormal(0, 0.02, len(items))
    for column in TIMES:
        items[column] = items[column] * factor * rng.lognormal(0, 0.02, len(items))
    of_item = samples["item_id"].map(dict(zip(items["item_id"], factor, strict=True)))
    samples["ns"] = (samples["ns"] * of_item * rng.lognormal(0, 0.03, len(samples))).astype("int64")
    run.provenance = {**run.provenance, "packages": PACKAGES, "git": {"commit": f"{seed:x}" * 40}}
    return run


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> FakeRun:
    return measured(tmp_path_factory.mktemp("before"), 1)


def changed(changes: Sequence[Any]) -> set[tuple[str, str, str]]:
    return {(change.engine, change.metric.name, change.verdict) for change in changes if change.told}


def test_a_slower_machine_changes_nothing(before: FakeRun, tmp_path: Path) -> None:
    found = compare_runs(before, measured(tmp_path, 2, speed=1.4))
    assert found.controls == PEERS
    assert changed([*found.engines, *found.cases]) == set()
    assert all(1.3 < change.raw.interval.value < 1.5 for change in found.engines if change.metric.unit == "s")
    assert all(0.9 < change.ratio < 1.1 for change in found.engines)


def test_without_controls_the_machine_is_taken_for_the_code(before: FakeRun, tmp_path: Path) -> None:
    found = compare_runs(before, measured(tmp_path, 2, speed=1.4), controls=())
    times = [change for change in found.engines if change.metric.unit == "s"]
    assert {change.verdict for change in times} == {"slower"}
    assert any("No engine is known to be the same" in line for line in page(found, (tmp_path, tmp_path)).headlines)


def test_what_was_put_in_is_told_and_nothing_else(before: FakeRun, tmp_path: Path) -> None:
    factors: dict[str, Any] = {"token_index": 1.5, "token_index lazy": 0.5}
    found = compare_runs(before, measured(tmp_path, 3, speed=0.8, **factors))
    words = {"token_index": "slower", "token_index lazy": "faster"}
    times = ("compile", "first_mask", "mask_p50", "mask_mean", "mask_p99", "advance_p50")
    assert changed(found.engines) == {(label, time, word) for label, word in words.items() for time in times}
    for change in found.engines:
        if change.told:
            low, high = change.estimate.interval[1:]
            assert low * 0.97 < factors[change.engine] < high * 1.03
            assert change.estimate.size == 8
    cases = [change for change in found.cases if change.told]
    assert changed(cases) == {
        (label, time, word) for label, word in words.items() for time in ("mask_p50", "advance_p50")
    }
    assert len(cases) == 2 * 2 * 8
    assert {change.estimate.size for change in cases} == {25}


def test_only_what_is_slower_by_so_much_is_counted(before: FakeRun, tmp_path: Path) -> None:
    found = compare_runs(before, measured(tmp_path, 3, token_index=1.5))
    assert {change.engine for change in found.slower(1.3)} == {"token_index"}
    assert found.slower(2) == []


def test_controls_may_be_named_and_are_not_judged(before: FakeRun, tmp_path: Path) -> None:
    after = measured(tmp_path, 3, token_index=1.5)
    found = compare_runs(before, after, controls=["token_index lazy"])
    assert {change.verdict for change in found.engines if change.engine == "token_index lazy"} == {"control"}
    assert ("token_index", "compile", "slower") in changed(found.engines)
    after.provenance["packages"] = {**PACKAGES, "llguidance": "2.0"}
    assert compare_runs(before, after).controls == PEERS[1:]


def test_controls_that_disagree_raise_the_floor(before: FakeRun, tmp_path: Path) -> None:
    factors: dict[str, Any] = {"glrmask": 1.6, "token_index": 1.3}
    found = compare_runs(before, measured(tmp_path, 3, **factors))
    floors = {change.floor for change in found.engines if change.metric.name == "mask_p50"}
    assert len(floors) == 1
    assert 1.4 < floors.pop() < 1.8
    assert changed([*found.engines, *found.cases]) == set()
    alone = compare_runs(before, measured(tmp_path, 3, **factors), controls=["llguidance"])
    assert {change.floor for change in alone.engines} == {LEAST}
    assert {name for name, _, word in changed(alone.engines) if word == "slower"} == {"glrmask", "token_index"}


def test_few_cases_and_few_samples_are_not_judged(tmp_path: Path) -> None:
    runs = [backend_run(tmp_path, constraints=("email",), steps=5) for _ in range(2)]
    runs[1].frames["samples"]["ns"] *= 10
    found = compare_runs(*runs)
    assert {change.verdict for change in (*found.engines, *found.cases)} == {"too few"}
    assert all(math.isnan(change.estimate.chance) for change in found.cases)
    written = page(found, (tmp_path, tmp_path))
    assert "no engine has six cases" in written.plots[0].reason
    assert render(written)


def test_outcomes_masks_and_rows_of_one_run_are_listed(before: FakeRun, tmp_path: Path) -> None:
    after = measured(tmp_path, 4)
    items, samples = after.frames["items"], after.frames["samples"]
    broken = items[(items["label"] == "glrmask") & (items["constraint"] == "url")]
    items.loc[broken.index, ["status", "message"]] = ["timeout", "too slow"]
    one = items[(items["label"] == "token_index") & (items["constraint"] == "email")]["item_id"].iloc[0]
    first = samples[(samples["item_id"] == one) & (samples["measure"] == "mask")].index[0]
    samples.loc[first, "allowed"] += 1
    after.frames["items"] = items[~((items["label"] == "llguidance") & (items["constraint"] == "date"))]
    found = compare_runs(before, after)
    assert [(one.engine, one.what, one.before, one.after) for one in found.outcomes] == [
        ("token_index", "tokens allowed by all masks", "2,800", "2,801"),
        ("glrmask", "status", "ok", "timeout"),
    ]
    assert found.outcomes[1].places == ("small · url · random_walk", "large · url · random_walk")
    sides = {one.engine: (one.before, one.after) for one in found.one_sided}
    assert sides == {"glrmask": (12, 0), "llguidance": (12, 0)}  # 2 cases, 6 measures
    headlines = " ".join(page(found, (tmp_path, tmp_path)).headlines)
    assert "3 cases have another outcome. 24 series of an engine on a case are in the earlier run alone." in headlines


@pytest.mark.parametrize("make", [trie_walk_run, regex_states_run])
def test_special_kinds_are_compared_by_their_times(make: Any, tmp_path: Path) -> None:
    runs = [make(tmp_path) for _ in range(2)]
    results = runs[1].frames["results"]
    name = "engine" if "engine" in results else "variant"
    slow = results[name].iloc[0]
    column = "ns_median" if "ns_median" in results else "seconds"
    results[column] = results[column].astype(float)
    results.loc[results[name] == slow, column] *= 2
    if make is regex_states_run:  # three patterns are too few: make them nine
        for run in runs:
            rows = run.frames["results"]
            tripled = [rows.assign(constraint=rows["constraint"] + str(copy)) for copy in range(3)]
            run.frames["results"] = pd.concat(tripled, ignore_index=True)
    found = compare_runs(*runs)
    assert changed(found.engines) == {(slow, column, "slower")}
    assert [change.ratio for change in found.engines if change.told] == [pytest.approx(2)]
    assert found.cases == ()
    assert "The store holds no samples" in " ".join(page(found, (tmp_path, tmp_path)).headlines)


def test_arrays_in_results_are_samples(tmp_path: Path) -> None:
    def run(factor: float) -> FakeRun:
        times = np.random.default_rng(0).lognormal(8, 1, 40)
        blob = (times * factor).astype("<f4").tobytes()
        outcome = "passed" if factor == 1 else "over"
        rows = [
            {"engine": "glrmask", "case": case, "mask_ns": blob, "outcome": outcome, "clock_ns": 70.0} for case in "ab"
        ]
        return FakeRun(tmp_path, config(kind="maskbench"), {}, {"results": pd.DataFrame(rows)})

    found = compare_runs(run(1), run(3))
    assert [(change.case, change.verdict, change.estimate.size) for change in found.cases] == [
        (("a",), "slower", 40),
        (("b",), "slower", 40),
    ]
    assert found.cases[0].ratio == pytest.approx(3, rel=1e-5)
    assert found.outcomes[0].places == ("a", "b")


def test_sections_are_compared_too(tmp_path: Path) -> None:
    runs = [backend_run(tmp_path, steps=2) for _ in range(2)]
    for run in runs:
        section = {"item_id": "m", "tokenizer": None, "backend": "maskbench", "label": "maskbench", "status": "ok"}
        run.frames["items"] = pd.concat([run.frames["items"], pd.DataFrame([section])], ignore_index=True)
        run.config["settings"] = {"maskbench": {}}
        row = {"item_id": "m", "engine": "pushdown_trie", "case": "a", "compile_ns": 1e6}
        run.frames["results"] = pd.DataFrame([row])
    found = compare_runs(*runs)
    assert ("pushdown_trie", "compile_ns") in {(change.engine, change.metric.name) for change in found.engines}


@pytest.mark.parametrize(
    ("column", "title", "factor"),
    [
        ("compile_s", "compile time", 1.0),
        ("mask_ns_p50", "mask p50 time", 1e-9),
        ("ns_median", "time", 1e-9),
        ("build_ms", "build time", 1e-3),
        ("others_us", "others time", 1e-6),
        ("merge_seconds", "merge time", 1.0),
    ],
)
def test_times_are_known_by_the_unit_in_their_name(column: str, title: str, factor: float) -> None:
    metric = time_of_column(column)
    assert metric is not None
    assert (metric.title, metric.factor, metric.unit) == (title, factor, "s")


@pytest.mark.parametrize("column", ["states", "tokens", "clock_ns", "ns_min", "seconds_max", "status", "bytes"])
def test_other_columns_are_no_times(column: str) -> None:
    assert time_of_column(column) is None


def test_every_kind_of_row_has_one_place(tmp_path: Path) -> None:
    rows = [{"engine": "a", "backend": "a", "constraint": "x", "seconds": 1.0}] * 3
    series = read_series(RunData.read(FakeRun(tmp_path, config(kind="odd"), {}, {"results": pd.DataFrame(rows)})))
    ((key, found),) = series.items()
    assert (key.engine, key.case) == ("a", ("x",))
    assert len(set(found.places)) == 3


def test_what_cannot_be_compared_is_refused(before: FakeRun, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one kind"):
        compare_runs(before, trie_walk_run(tmp_path))
    with pytest.raises(UnknownNameError, match="glrmask"):
        compare_runs(before, before, controls=["glrmusk"])
    empty = FakeRun(tmp_path, config(kind="improper_mass"), {}, {"results": pd.DataFrame([{"mean": 1.0}])})
    with pytest.raises(StoreError, match="no times to compare"):
        compare_runs(empty, empty)
    others = backend_run(tmp_path, constraints=("other",), steps=2)
    with pytest.raises(StoreError, match="no engine, case and measure in common"):
        compare_runs(before, others)


def test_the_page_and_the_json_say_the_same(before: FakeRun, tmp_path: Path) -> None:
    after = measured(tmp_path, 3, token_index=1.5)
    after.provenance["packages"] = {**PACKAGES, "numba": HOSTILE}
    before_too = replace(before, provenance={**before.provenance, "packages": {**PACKAGES, "numba": "1"}})
    found = compare_runs(before_too, after)
    written = page(found, (before.folder, tmp_path / "it's"))
    content = json.loads(to_json(found, (before.folder, tmp_path)))
    assert content["findings"] == written.headlines
    assert len(content["engines"]) == len(found.engines) == len(written.tables[0].rows)
    told = [entry for entry in content["cases"] if entry["told"]]
    table = next(table for table in written.tables if table.name == "cases")
    assert len(told) == len(table.rows) <= MAX_ROWS
    commits = ["1" * 40, "3" * 40]
    assert content["environment"] == {"packages · numba": ["1", HOSTILE], "git · commit": commits}
    web = render(written)
    assert HOSTILE not in web
    assert "alert(&#x27;x&#x27;)" in web
    assert "What has changed from 1111111111 to 3333333333?" in web
    assert written.command.startswith(f"tokdfa compare {before.folder} ")
    assert written.command.endswith(" --control llguidance --control outlines_core --control glrmask")
    assert written.markdown({}).startswith("# What has changed")


def naive_interval(before: list[float], after: list[float], seed: int) -> tuple[float, float]:
    """The bootstrap written down as it is defined, with numbers drawn in another way."""
    import random
    import statistics

    drawn, chooser = [], random.Random(seed)
    for _ in range(1000):
        rows = [chooser.randrange(len(before)) for _ in before]
        drawn.append(statistics.median(after[row] for row in rows) / statistics.median(before[row] for row in rows))
    drawn.sort()
    return drawn[25], drawn[974]


def test_intervals_are_those_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    before = rng.lognormal(0, 1, 60)
    after = before * rng.lognormal(0.2, 0.3, 60)
    estimate, _ = compare_statistics.ratio_of_medians(before, after)
    assert estimate.interval.value == pytest.approx(np.median(after) / np.median(before))
    low, high = naive_interval(before.tolist(), after.tolist(), 1)
    assert estimate.interval.low == pytest.approx(low, rel=0.06)
    assert estimate.interval.high == pytest.approx(high, rel=0.06)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        estimate, _ = compare_statistics.median_ratio(rng.normal(math.log(1.2), 0.1, 25))
        held += estimate.interval.low <= 1.2 <= estimate.interval.high
    assert 88 <= held <= 99


@pytest.mark.parametrize(
    ("t", "free", "expected"),
    [(2.571, 5, 0.05), (4.032, 5, 0.01), (2.228, 10, 0.05), (3.169, 10, 0.01), (4.587, 10, 0.001), (1.96, 10**6, 0.05)],
)
def test_chances_are_those_of_students_table(t: float, free: int, expected: float) -> None:
    assert compare_statistics.chance(-t, 1.0, free + 1) == pytest.approx(expected, abs=0.0005)


def test_a_difference_without_spread_is_certain() -> None:
    assert compare_statistics.chance(0.1, 0.0, 10) == 0
    assert compare_statistics.chance(0.0, 0.0, 10) == 1


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.lists(st.sampled_from([0.0, 0.004, 0.01, 0.02, 0.03, 0.05, 0.2, 1.0, math.nan]), max_size=9))
def test_discoveries_are_the_largest_set_whose_worst_passes(chances: list[float]) -> None:
    known = [value for value in chances if not math.isnan(value)]
    best: set[float] = set()
    for size in range(len(known), 0, -1):
        passing = [one for one in itertools.combinations(sorted(known), size) if max(one) <= 0.05 * size / len(known)]
        if passing:
            best = set(passing[0])
            break
    assert compare_statistics.discoveries(chances) == [value in best for value in chances]


def test_labels_of_the_made_up_run_have_a_series_each(before: FakeRun) -> None:
    engines = {key.engine for key in read_series(RunData.read(before))}
    assert engines == set(LABELS)
