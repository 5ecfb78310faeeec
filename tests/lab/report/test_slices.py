"""Reports on slices, from made-up runs in which every factor is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.kinds.slices import ENGINES, _names
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.slices import factors, left

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

FOLDER = Path("made-up")
PATHS = ("random walks", "texts")
#: Constraint -> engine -> microseconds of a mean mask, and nodes of 100 masks.
MEASURED = {
    "json": {"walk": (100, 1_000), "slices": (8, 30), "partition": (4, 10), "llguidance walk": (60, 0)},
    "sql": {"walk": (80, 2_000), "slices": (80, 2_000), "partition": (10, 500), "llguidance walk": (60, 0)},
}


def row(constraint: str, path: str, engine: str) -> dict[str, Any]:
    micros, nodes = MEASURED[constraint].get(engine, (20, 900))
    sliced = engine == "slices" and constraint == "json"
    place = {"tokenizer": "llama", "vocab_size": 100_000, "trie_nodes": 200_000, "constraint": constraint, "path": path}
    return {
        **{**place, **_names(ENGINES[engine]), "status": "ok", "message": "", "rounds": 3},
        **{"first_ns_mean": 3e3 * micros, "masks": 100, "wide_masks": 40 if constraint == "json" else 0},
        **{"applied": 42 if sliced else 0, "wide_applied": 40 if sliced else 0},
        **{"nodes_visited": nodes, "wide_nodes": nodes, "slice_tokens": 0},
        **{"slice_proofs": 7 if "slices" in engine else 0, "slice_proofs_given_up": 0},
        **{f"mask_ns_{name}": 1e3 * micros * by for name, by in (("p50", 0.5), ("mean", 1), ("p99", 9))},
        **{
            f"wide_ns_{name}": 1e3 * micros * (5 if engine == "walk" else 1) if constraint == "json" else None
            for name in ("p50", "mean", "p99")
        },
    }


def made_up(engines: tuple[str, ...] = tuple(ENGINES)) -> FakeRun:
    rows = [row(*place) for place in itertools.product(MEASURED, PATHS, engines)]
    settings = config(name="slices", kind="slices", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def test_each_engine_is_compared_with_its_own_walk(data: RunData) -> None:
    found = factors(data)
    assert list(found.columns) == ["slices", "general slices", "partition", "llguidance slices"]
    assert found.loc[("llama", "json", "texts")].tolist() == pytest.approx([12.5, 5, 25, 3])
    assert found.loc[("llama", "sql", "texts")].tolist() == pytest.approx([1, 4, 8, 3])
    assert factors(data, "wide_ns_mean")["partition"].dropna().tolist() == pytest.approx([125, 125])


def test_what_is_left_is_a_share_of_the_walk(data: RunData) -> None:
    assert left(data).loc[("llama", "json", "texts")].to_dict() == pytest.approx(
        {"slices": 0.03, "general slices": 0.9, "partition": 0.01}
    )


def test_speed_table_tells_all_and_wide_masks(tables: dict[str, Table]) -> None:
    table = tables["slices"]
    line = dict(zip(table.columns, table.rows[1], strict=True))
    assert (line["constraint"].text, line["path"].text) == ("json", "texts")
    assert (line["partition"].text, line["partition"].detail) == ("4.00 µs", "25x, wide 125x")
    assert line["walk"].detail == line["llguidance walk"].detail == ""
    assert dict(zip(table.columns, table.rows[2], strict=True))["partition"].detail == "8.0x"


def test_coverage_table_has_our_engines_but_the_walk(tables: dict[str, Table]) -> None:
    frame = tables["coverage"].frame.set_index(["constraint", "path", "engine"])
    assert len(frame) == 2 * 2 * 3
    one = frame.loc[("json", "texts", "slices")]
    assert (one["wide"], one["a slice applies"], one["of the wide"]) == (0.4, 0.42, 1)
    assert (one["nodes left"], one["nodes a mask"], one["proofs"]) == (0.03, 0.3, 7)
    assert one["mean mask, first round"] == pytest.approx(24e-6)
    assert frame.loc[("json", "texts", "partition")][["a slice applies", "proofs"]].isna().all()
    assert pd.isna(frame.loc[("sql", "texts", "slices"), "of the wide"])  # there are none


def test_headlines_are_computed(data: RunData) -> None:
    slices, general, partition, peer, applied, general_applied, nodes, same = build_headlines(data)
    assert slices == (
        "slices against walk: mean masks 6.8 times as fast (1.0–12), median of 4 cases; wide masks 62; "
        "on JSON 12, 10 or more in 2 of 2 cases."
    )
    assert general.startswith("general slices against walk: mean masks 4.5 times as fast (4.0–5.0)")
    assert partition.endswith("on JSON 25, 10 or more in 2 of 2 cases.")
    assert peer.startswith("llguidance slices against llguidance walk: mean masks 3.0 times as fast, median of 4 cases")
    assert peer.endswith("on JSON 3.0, 10 or more in 0 of 2 cases.")
    assert applied == "slices: a slice applies to 21.0% of the masks, and to 100% of the wide ones."
    assert general_applied == "general slices: a slice applies to 0% of the masks, and to 0% of the wide ones."
    assert nodes == (
        "Nodes left to walk, median over the cases and range: slices 51.5% (3.00% to 100%); general slices 67.5% "
        "(45.0% to 90.0%); partition 13.0% (1.00% to 25.0%)."
    )
    assert same == "All 24 rows succeeded: every engine gave the same masks as its walk."


def test_what_failed_is_listed_and_enters_nothing_else() -> None:
    run = made_up()
    results = run.frames["results"]
    results.loc[results["engine"] == "walk", ["status", "message"]] = ["timeout", "too slow"]
    data = RunData.read(run)
    tables = {table.name: table for table in build_tables(data)}
    assert list(tables) == ["slices", "broken", "environment"]
    assert len(tables["broken"].rows) == 4
    assert [plot.reason for plot in build_plots(data)] == [
        *("", "", "no case has a result of the walk and of another engine"),
    ]
    sentences = build_headlines(data)
    assert sentences[0].startswith("llguidance slices against llguidance walk")
    assert sentences[-1] == "Of 24 rows these failed: 4 timeout."
    assert not any("Nodes left" in sentence for sentence in sentences)
