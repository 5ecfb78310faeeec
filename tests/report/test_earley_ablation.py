"""Reports on the parts of the Earley engine, from made-up runs in which every time and every count is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.bench.earley_ablation import DRAWN, VARIANTS
from tokdfa.report.data import RunData
from tokdfa.report.earley_ablation import headlines
from tokdfa.report.earley_ablation_data import SWITCHES, ends, factors, reach, reuse, times
from tokdfa.report.kinds import build_headlines, build_plots, build_tables

if TYPE_CHECKING:
    from tokdfa.report.cells import Table

FOLDER = Path("made-up")
PATHS = ("random walks", "texts")
#: Grammar -> how many times as long its masks take, and how many of 10,000 nodes end a lexeme.
GRAMMARS = {"json": (1.0, 30), "sql": (4.0, 200)}
#: Variant -> microseconds of a mean mask, and of an advance.
TIMES = {
    "all on": (2.0, 5.0),
    "cold partitions": (10.0, 5.0),
    "no mask memo": (20.0, 5.0),
    "no step memo": (2.0, 15.0),
    "partition": (25.0, 15.0),
    "slices": (50.0, 15.0),
    "walk": (100.0, 15.0),
    "one_byte": (1.0, 5.0),
    "one_byte walk": (80.0, 15.0),
}


def rows_of(grammar: str, path: str, variant: str) -> list[dict[str, Any]]:
    slower, ends_of = GRAMMARS[grammar]
    mask_us, advance_us = TIMES[variant]
    place = {"tokenizer": "llama", "vocab_size": 100_000, "constraint": grammar, "path": path, "variant": variant}
    remembers = "memo" not in VARIANTS[variant]
    summary = {
        **{"row": "variant", **place, "options": "{}", "status": "ok", "message": "", "rounds": 3, "masks": 400},
        **{"compile_s": 0.01, "masks_made": 100 if remembers else 400, "situations": 100, "lexer_states": 30},
        **{"nodes_visited": 1_000_000, "lexeme_ends": 100 * ends_of, "mask_scans": 50},
        **{"rows": 31, "rows_scanned": 60, "rows_refused": 20, "rows_found": 10},
        **{f"mask_ns_{name}": 1e3 * mask_us * slower * by for name, by in (("p50", 0.5), ("mean", 1), ("p99", 9))},
        **{f"advance_ns_{name}": 1e3 * advance_us for name in ("p50", "mean", "p99")},
    }
    masks = [
        {"row": "mask", **place, "position": k, "allowed": 10 ** (1 + k), "ns": 1e3 * mask_us * 10**k, "status": None}
        for k in range(5)
    ]
    return [summary, *(masks if variant in DRAWN else [])]


def made_up(variants: tuple[str, ...] = tuple(VARIANTS)) -> FakeRun:
    rows = [one for place in itertools.product(GRAMMARS, PATHS, variants) for one in rows_of(*place)]
    settings = config(name="parts", kind="earley_ablation", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def test_switches_name_variants() -> None:
    assert {name for _, without, value, _ in SWITCHES for name in (without, value)} <= set(VARIANTS)


def test_factors_are_paired_case_by_case(data: RunData) -> None:
    table = times(data)
    assert list(table.columns) == list(VARIANTS)
    assert factors(table, "walk", "partition").tolist() == pytest.approx([4.0] * 4)
    assert factors(table, "walk", "no such").empty
    assert ends(pd.Series([1.0, 3.0], index=[("t", "a", "x"), ("t", "b", "y")])) == ("b, y", "a, x")


def test_switch_table_judges_masks_by_masks_and_steps_by_advances(tables: dict[str, Table]) -> None:
    frame = tables["switches"].frame.set_index("part")
    assert frame.loc["partitions, against the walk", "mean mask time"] == pytest.approx(4)
    assert frame.loc["masks remembered", "p99 mask time"] == pytest.approx(10)
    assert frame.loc["steps remembered", "mean mask time"] == pytest.approx(1)
    assert frame.loc["steps remembered", "mean advance"] == pytest.approx(3)
    assert frame.loc["partitions shared between grammars", "mean mask time"] == pytest.approx(5)
    assert frame["cases"].tolist() == [4] * len(SWITCHES)


def test_variants_and_cases_have_their_times(tables: dict[str, Table]) -> None:
    frame = tables["variants"].frame.set_index(["path", "variant"])
    assert len(frame) == 2 * len(VARIANTS)
    assert frame.loc[("texts", "slices"), "mask, mean"] == pytest.approx(125e-6)  # between 50 and 200
    assert frame.loc[("texts", "slices"), "masks made"] == 1
    assert frame.loc[("texts", "one_byte"), "masks made"] == 0.25
    cases = tables["cases"]
    line = dict(zip(cases.columns, cases.rows[-1], strict=True))
    assert (line["constraint"].text, line["path"].text) == ("sql", "texts")
    assert line["walk"].value == pytest.approx(400e-6)
    assert (line["walk"].detail, line["all on"].detail) == ("", "50x")
    assert [name for name, cell in line.items() if cell.best] == ["one_byte"]


def test_shares_of_nodes_are_those_of_the_walks(data: RunData, tables: dict[str, Table]) -> None:
    found = reach(data)
    assert set(found["variant"]) == {"walk", "one_byte walk"}
    frame = tables["nodes"].frame.set_index(["constraint", "path", "variant"])
    one = frame.loc[("json", "texts", "one_byte walk")]
    assert one["nodes a mask"] == 2_500
    assert one["a lexeme ends"] == pytest.approx(0.003)
    assert one["new to the parser"] == pytest.approx(50e-6)
    assert one["time a node"] == pytest.approx(80e-6 / 2_500)


def test_rates_tell_what_is_found_again(data: RunData, tables: dict[str, Table]) -> None:
    found = reuse(data)
    assert found["mask_hits"].tolist() == [0.75] * 4
    assert found["row_hits"].tolist() == pytest.approx([1 - 50 / 3_000] * 2 + [1 - 50 / 20_000] * 2)
    assert found["equal_rows"].tolist() == [0.25] * 4  # of 40 rows 30 are new
    assert tables["rates"].frame["situations"].tolist() == [100] * 4


def test_headlines_are_computed(data: RunData) -> None:
    sentences = build_headlines(data)
    assert len(sentences) == len(SWITCHES) + 4
    assert sentences[0] == (
        "Partitions, against the walk: the mean mask is made 4.0 times as fast, median of 4 cases; "
        "most for json, random walks, least for json, random walks."
    )
    assert sentences[4].startswith("Steps remembered: the mean advance is 3.0 times as fast, median of 4 cases")
    assert sentences[-4] == (
        "A lexeme ends at 1.15% of the nodes of a walk (median of 4 cases), at most at 2.00% (sql, random walks); "
        "under the 0.500% of 000 in 2 of 4. Of the nodes of all cases together: at 1.15%; and at 0.00500% the parser "
        "is asked what it was not asked before."
    )
    assert sentences[-3] == "A node takes 80.0 ns (median of 4 cases), from 32.0 ns to 128 ns."
    assert sentences[-2] == (
        "From a cold start 75.0% of the masks are remembered ones; after all but 0.958% of the lexemes that end in "
        "walks the row is known; 25.0% of the rows that are made were there already (medians of 4 cases)."
    )
    assert sentences[-1] == ("All 36 variants of all cases succeeded: those of one lexing rule gave the same masks.")


def test_plots_show_density_speed_shares_and_rates(data: RunData) -> None:
    density, speeds, shares, rates = build_plots(data)
    assert [axes.get_title(loc="left") for axes in density.figure.axes] == list(DRAWN)
    points = density.figure.axes[-1].collections[0].get_offsets()
    assert sorted(set(points[:, 0].tolist())) == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])
    assert sorted(set(points[:, 1].tolist())) == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])
    labels = [label.get_text() for label in speeds.figure.axes[0].get_yticklabels()]
    assert labels == [variant for variant in VARIANTS if "walk" not in variant]
    dots = [line.get_xdata()[0] for line in speeds.figure.axes[0].lines if line.get_marker() == "o"]
    assert dots == pytest.approx([50, 10, 5, 50, 4, 2, 100])
    assert [bar.get_width() for bar in shares.figure.axes[0].patches] == pytest.approx(
        [0.003, 0.003, 0.02, 0.02, *([50e-6] * 4)]
    )
    assert [bar.get_width() for bar in rates.figure.axes[0].patches][:4] == [0.75] * 4
    assert rates.figure.axes[0].get_yticklabels()[0].get_text() == "json, random walks"


def test_what_failed_is_listed_and_enters_nothing_else() -> None:
    run = made_up()
    results = run.frames["results"]
    lost = (results["variant"] == "partition") & (results["constraint"] == "sql") & (results["row"] == "variant")
    results.loc[lost, ["status", "message"]] = ["masks differ", "at position 3"]
    data = RunData.read(run)
    broken = {table.name: table for table in build_tables(data)}["broken"]
    assert [[cell.text for cell in line][1:] for line in broken.rows] == [
        ["sql", path, "partition", "masks differ", "at position 3"] for path in PATHS
    ]
    assert len(factors(times(data), "walk", "partition")) == 2
    assert build_headlines(data)[-1] == "Of 36 variants of all cases these failed: 2 masks differ."


def test_few_variants_have_a_report_too() -> None:
    data = RunData.read(made_up(("one_byte",)))
    assert [table.name for table in build_tables(data)] == ["variants", "cases", "environment"]
    assert [plot.reason for plot in build_plots(data)] == [
        "no masks were measured one by one",
        "no case has a result of 'walk' and of another variant",
        "the variant 'one_byte walk' has no result",
        "the variant 'all on' has no result",
    ]
    assert len(headlines(data)) == 1
    remembering = RunData.read(made_up(("all on",)))
    assert "of the lexemes" not in headlines(remembering)[0]


def test_no_results() -> None:
    run = made_up()
    run.frames["results"] = run.frames["results"].iloc[:0]
    data = RunData.read(run)
    assert build_headlines(data)[0] == "The run has no results yet."
    assert [plot.reason for plot in build_plots(data)] == ["the run has no results yet"]
