"""What is told of two runs: changes that were put in, none that were not, whatever the machine did in between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, FakeRun, backend_run, config, trie_walk_run
from tokdfa.errors import ConfigError, StoreError, UnknownNameError
from tokdfa.lab.declare import Column, Kind
from tokdfa.lab.declare.columns import text
from tokdfa.lab.kinds import ADDED, find_kind
from tokdfa.lab.report.compare import LEAST, compare_runs
from tokdfa.lab.report.compare_page import page
from tokdfa.lab.report.html import render
from tokdfa.lab.report.tables import compare_environments

if TYPE_CHECKING:
    from collections.abc import Iterable
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


def rows(frame: pd.DataFrame) -> list[Any]:
    return frame.to_dict("records")


def changed(frame: pd.DataFrame) -> set[tuple[str, str, str]]:
    return {(row["engine"], row["measure"], row["verdict"]) for row in rows(frame) if row["told"]}


def test_without_controls_the_machine_is_taken_for_the_code(before: FakeRun, tmp_path: Path) -> None:
    found = compare_runs(before, measured(tmp_path, 2, speed=1.4), controls=())
    assert {row["verdict"] for row in rows(found.engines) if row["unit"] == "s"} == {"slower"}


def test_what_was_put_in_is_told_and_nothing_else(before: FakeRun, tmp_path: Path) -> None:
    factors: dict[str, Any] = {"token_index": 1.5, "token_index lazy": 0.5}
    found = compare_runs(before, measured(tmp_path, 3, speed=0.8, **factors))
    words = {"token_index": "slower", "token_index lazy": "faster"}
    times = {column.name for column in find_kind("backends").columns if column.unit == "s"}
    times &= {row["measure"] for row in rows(found.engines)}
    assert {"compile", "first_mask", "mask_p50", "mask_mean", "mask_p99", "advance_p50"} <= times
    assert changed(found.engines) == {(label, time, word) for label, word in words.items() for time in times}
    for row in rows(found.engines):
        if row["told"]:
            assert row["low"] * 0.97 < factors[row["engine"]] < row["high"] * 1.03
            assert row["count"] == 8


def test_controls_may_be_named_and_are_not_judged(before: FakeRun, tmp_path: Path) -> None:
    after = measured(tmp_path, 3, token_index=1.5)
    found = compare_runs(before, after, controls=["token_index lazy"])
    assert {row["verdict"] for row in rows(found.engines) if row["engine"] == "token_index lazy"} == {"control"}
    assert ("token_index", "compile", "slower") in changed(found.engines)
    after.provenance["packages"] = {**PACKAGES, "llguidance": "2.0"}
    assert compare_runs(before, after).controls == PEERS[1:]


def test_controls_that_disagree_raise_the_floor(before: FakeRun, tmp_path: Path) -> None:
    factors: dict[str, Any] = {"glrmask": 1.6, "token_index": 1.3}
    found = compare_runs(before, measured(tmp_path, 3, **factors))
    floors = {row["floor"] for row in rows(found.engines) if row["measure"] == "mask_p50"}
    assert len(floors) == 1
    assert 1.4 < floors.pop() < 1.8
    assert changed(found.engines) == set()
    alone = compare_runs(before, measured(tmp_path, 3, **factors), controls=["llguidance"])
    assert {row["floor"] for row in rows(alone.engines)} == {LEAST}
    assert {name for name, _, word in changed(alone.engines) if word == "slower"} == {"glrmask", "token_index"}


def test_few_cases_are_not_judged(tmp_path: Path) -> None:
    runs = [backend_run(tmp_path, constraints=("email",), steps=5) for _ in range(2)]
    runs[1].frames["samples"]["ns"] *= 10
    found = compare_runs(*runs)
    assert {row["verdict"] for row in rows(found.engines)} == {"too few"}
    written = page(found, (tmp_path, tmp_path))
    assert written.left_out == {"After over before, against the controls": "there are no such rows"}
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
    told = found.outcomes[["engine", "what", "before", "after"]].to_numpy().tolist()
    assert sorted(told) == [["glrmask", "status", "ok", "timeout"], ["token_index", "tokens allowed", "2,800", "2,801"]]
    places = ["small · url · random_walk · seed 20", "large · url · random_walk · seed 20"]
    assert found.outcomes.set_index("engine").loc["glrmask", "cases"].tolist() == places
    sides = {row["engine"]: (row["before"], row["after"]) for row in rows(found.one_sided)}
    assert set(sides) == {"glrmask", "llguidance"}
    assert all(before >= 2 * len({*TIMES}) and after == 0 for before, after in sides.values())


def many(values: Iterable[float]) -> bytes:
    return np.array([*values]).astype("<f4").tobytes()


#: A kind whose columns are declared: samples in arrays, a count of which more is better, a text, a key of two columns.
ODD = Kind(
    columns=(
        Column("mask_ns", "mask time", "s", "lower", factor=1e-9),
        Column("solved", "solved", "", "higher"),
        Column("size", "size", "B", "lower", resolution=100.0),
        Column("clock_ns", "clock", "s", "neither"),
        Column("tokens", "tokens"),
        text("outcome"),
    ),
    engine="variant",
    case=("pattern", "length"),
)


def odd_run(folder: Path, factor: float, **last: Any) -> FakeRun:
    """Eight cases of two variants, of which "new" takes `factor` times as long; `last`: what the last row says."""
    times = 1000.0 * np.arange(1, 42)
    rows = [
        {
            **{"variant": variant, "pattern": "ab"[number % 2], "length": number // 2, "repeat": 0, "clock_ns": 7.0},
            **{"mask_ns": many(times * (factor if variant == "new" else 1)), "solved": 10, "size": 5, "tokens": 3},
            "outcome": "passed",
        }
        for variant in ("old", "new")
        for number in range(8)
    ]
    rows[-1] |= last
    return FakeRun(folder, config(kind="odd"), {}, {"results": pd.DataFrame(rows)})


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADDED, "odd", f"{__name__}:ODD")


@pytest.mark.usefixtures("odd")
def test_arrays_are_samples_and_counts_have_a_better_end(tmp_path: Path) -> None:
    after = odd_run(tmp_path, 3)
    results = after.frames["results"]
    results["solved"] = results["solved"].where(results["variant"] == "old", 20)
    found = compare_runs(odd_run(tmp_path, 1), after, controls=["old"])
    assert changed(found.engines) == {("new", "mask_ns", "slower"), ("new", "solved", "more")}
    medians = found.engines.set_index(["engine", "measure"])
    assert set(found.engines["measure"]) == {"mask_ns", "solved", "size"}
    assert medians.loc[("old", "mask_ns"), "before"] == pytest.approx(21e-6)
    assert medians.loc[("old", "size"), "before"] == 100, "what is below the resolution counts as it"
    assert medians.loc[("new", "mask_ns"), "ratio"] == pytest.approx(3, rel=1e-5)
    assert [row["measure"] for row in found.slower(2)] == ["mask_ns"]


@pytest.mark.usefixtures("odd")
def test_texts_counts_and_what_becomes_zero_are_outcomes(tmp_path: Path) -> None:
    found = compare_runs(odd_run(tmp_path, 1), odd_run(tmp_path, 1, outcome="over_limit", tokens=4, solved=0))
    assert [(row["what"], row["before"], row["after"], (*row["cases"],)) for row in rows(found.outcomes)] == [
        ("solved", "10", "0", ("b · length 3",)),
        ("tokens", "3", "4", ("b · length 3",)),
        ("outcome", "passed", "over limit", ("b · length 3",)),
    ]
    less = compare_runs(odd_run(tmp_path, 1), odd_run(tmp_path, 1, solved=9))
    assert less.outcomes.empty, "a ratio says it"


def test_sections_are_compared_too(tmp_path: Path) -> None:
    runs = [backend_run(tmp_path, steps=2) for _ in range(2)]
    for run in runs:
        section = {"item_id": "m", "tokenizer": None, "backend": "trie_walk", "label": "trie_walk", "status": "ok"}
        run.frames["items"] = pd.concat([run.frames["items"], pd.DataFrame([section])], ignore_index=True)
        run.config["settings"] = {"trie_walk": {}}
        run.frames["results"] = trie_walk_run(tmp_path).frames["results"].assign(item_id="m")
    found = compare_runs(*runs)
    assert ("tokdfa", "ns_median") in {(row["engine"], row["measure"]) for row in rows(found.engines)}


def test_what_cannot_be_compared_is_refused(before: FakeRun, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one kind"):
        compare_runs(before, trie_walk_run(tmp_path))
    with pytest.raises(UnknownNameError, match="glrmask"):
        compare_runs(before, before, controls=["glrmusk"])
    empty = FakeRun(tmp_path, config(kind="unknown"), {}, {"results": pd.DataFrame([{"mean": 1.0}])})
    with pytest.raises(StoreError, match="no times to compare"):
        compare_runs(empty, empty)
    others = backend_run(tmp_path, constraints=("other",), steps=2)
    with pytest.raises(StoreError, match="no engine, case and measure in common"):
        compare_runs(before, others)


def test_the_page_says_what_was_found(before: FakeRun, tmp_path: Path) -> None:
    after = measured(tmp_path, 3, token_index=1.5)
    after.provenance["packages"] = {**PACKAGES, "regex": HOSTILE}
    before_too = replace(before, provenance={**before.provenance, "packages": {**PACKAGES, "regex": "1"}})
    found = compare_runs(before_too, after)
    written = page(found, (before.folder, tmp_path / "it's"))
    assert len(found.engines) == len(written.tables[0].rows)
    assert compare_environments([found.before, found.after]) == {
        "packages · regex": ["1", HOSTILE],
        "git · commit": ["1" * 40, "3" * 40],
    }
    web = render(written)
    assert HOSTILE not in web
    assert "alert(&#39;x&#39;)" in web
    assert "What has changed from 1111111111 to 3333333333?" in web
    assert written.command.startswith(f"tokdfa compare {before.folder} ")
    assert written.command.endswith(" --control llguidance --control outlines_core --control glrmask")
    assert written.markdown({}, {}).startswith("# What has changed")
    (chart,) = written.charts
    panels = {panel.title: panel.spec["data"]["values"] for panel in chart.panels}
    assert {point["engine"]: point["verdict"] for point in panels["compile time"]}["token_index"] == "slower"
    assert chart.to_png().startswith(b"\x89PNG")
