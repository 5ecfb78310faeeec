"""Reports on the parts of grammar engines, from made-up runs in which every time and every count is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.kinds.engine_ablation import FAMILIES
from tokdfa.lab.report.data import RunData, factors
from tokdfa.lab.report.engine_ablation import headlines
from tokdfa.lab.report.engine_ablation_data import SWITCHES, ends, reach, reuse, times
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

FOLDER = Path("made-up")
EARLEY, PUSHDOWN = FAMILIES["earley_trie"], FAMILIES["pushdown_trie"]
VARIANTS, DRAWN = tuple(EARLEY.variants), EARLEY.drawn
OF_EARLEY = [switch for switch in SWITCHES if {switch[1], switch[2]} <= set(VARIANTS)]
OF_PUSHDOWN = [switch for switch in SWITCHES if {switch[1], switch[2]} <= set(PUSHDOWN.variants)]
PATHS = ("random walks", "texts")
#: Grammar -> how many times as long its masks take, and how many of 10,000 nodes end a lexeme.
GRAMMARS = {"json": (1.0, 30), "sql": (4.0, 200)}
#: Variant -> microseconds of a mean mask, and of an advance.
TIMES = {
    "all on": (2.0, 5.0),
    "cold partitions": (10.0, 5.0),
    "no clipping": (30.0, 5.0),
    "no mask memo": (20.0, 5.0),
    "no step memo": (2.0, 15.0),
    "partition": (25.0, 15.0),
    "no first byte": (50.0, 15.0),
    "slices": (50.0, 15.0),
    "walk": (100.0, 15.0),
    "one_byte": (1.0, 5.0),
    "one_byte walk": (80.0, 15.0),
}
PUSHDOWN_TIMES = {
    "all on": (1.0, 0.2),
    "not shared": (4.0, 0.2),
    "no mask memo": (8.0, 0.2),
    "no subtrees": (1.5, 0.2),
    "no partition": (10.0, 0.2),
    "no first bytes": (1.2, 0.2),
    "subtrees": (12.0, 0.2),
    "partition": (18.0, 0.2),
    "walk": (90.0, 0.2),
    "any": (1.0, 0.2),
    "any, no mask memo": (8.0, 0.2),
    "any, no exits": (9.0, 0.2),
    "any walk": (90.0, 0.2),
    "earley_trie": (3.0, 5.0),
    "llguidance": (30.0, 1.0),
}


def rows_of(grammar: str, path: str, variant: str) -> list[dict[str, Any]]:
    slower, ends_of = GRAMMARS[grammar]
    mask_us, advance_us = TIMES[variant]
    place = {"tokenizer": "llama", "vocab_size": 100_000, "constraint": grammar, "path": path, "variant": variant}
    remembers = "memo" not in EARLEY.variants[variant].options
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


def pushdown_row(grammar: str, path: str, variant: str) -> dict[str, Any]:
    mask_us, advance_us = PUSHDOWN_TIMES[variant]
    engine = PUSHDOWN.variants[variant]
    summary = {
        **{"row": "variant", "tokenizer": "llama", "vocab_size": 100_000, "constraint": grammar, "path": path},
        **{"variant": variant, "options": "{}", "status": "ok", "message": "", "rounds": 3, "masks": 400},
        **{"compile_s": 0.003 if variant == "not shared" else 0.001, "situations": 100, "lexeme_ends": None},
        **{f"mask_ns_{name}": 1e3 * mask_us * by for name, by in (("p50", 0.5), ("mean", 1), ("p99", 9))},
        **{f"advance_ns_{name}": 1e3 * advance_us for name in ("p50", "mean", "p99")},
    }
    if engine.backend != "pushdown_trie":
        return summary
    made = 400 if "memo" in engine.options else 100
    work = {"masks_made": made, "nodes_visited": 1_000 * made, "partitions": 7}
    return {**summary, **work, "rows": 50, "stacks": 9, "bytes": 120_000}


def pushdown_run() -> FakeRun:
    rows = [pushdown_row(*place) for place in itertools.product(GRAMMARS, PATHS, PUSHDOWN_TIMES)]
    settings = config(name="parts", kind="engine_ablation", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


def made_up(variants: tuple[str, ...] = VARIANTS) -> FakeRun:
    rows = [one for place in itertools.product(GRAMMARS, PATHS, variants) for one in rows_of(*place)]
    settings = config(name="parts", kind="engine_ablation", reference="")
    return FakeRun(FOLDER, settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def test_switches_name_variants() -> None:
    for _, without, value, _ in SWITCHES:
        assert any({without, value} <= set(family.variants) for family in FAMILIES.values())


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
    assert list(frame.index) == [switch[0] for switch in OF_EARLEY]
    assert frame["cases"].tolist() == [4] * len(OF_EARLEY)


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
    assert len(sentences) == len(OF_EARLEY) + 4
    assert sentences[0] == (
        "Partitions, against the walk: the mean mask is made 4.0 times as fast, median of 4 cases; "
        "most for json, random walks, least for json, random walks."
    )
    assert sentences[5].startswith("Steps remembered: the mean advance is 3.0 times as fast, median of 4 cases")
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
    assert sentences[-1] == ("All 44 variants of all cases succeeded: those of one lexing rule gave the same masks.")


def test_plots_show_density_speed_shares_and_rates(data: RunData) -> None:
    density, speeds, shares, rates = build_plots(data)
    assert [axes.get_title(loc="left") for axes in density.figure.axes] == list(DRAWN)
    points = density.figure.axes[-1].collections[0].get_offsets()
    assert sorted(set(points[:, 0].tolist())) == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])
    assert sorted(set(points[:, 1].tolist())) == pytest.approx([1e-4, 1e-3, 1e-2, 0.1, 1])
    labels = [label.get_text() for label in speeds.figure.axes[0].get_yticklabels()]
    assert labels == [variant for variant in VARIANTS if "walk" not in variant]
    dots = [line.get_xdata()[0] for line in speeds.figure.axes[0].lines if line.get_marker() == "o"]
    assert dots == pytest.approx([100 / TIMES[label][0] for label in labels])
    assert [bar.get_width() for bar in shares.figure.axes[0].patches] == pytest.approx(
        [0.003, 0.003, 0.02, 0.02, *([50e-6] * 4)]
    )
    assert [bar.get_width() for bar in rates.figure.axes[0].patches][:4] == [0.75] * 4
    assert rates.figure.axes[0].get_yticklabels()[0].get_text() == "json, random walks"


def test_an_engine_without_a_parser_of_its_own_has_no_shares_of_nodes() -> None:
    data = RunData.read(pushdown_run())
    tables = {table.name: table for table in build_tables(data)}
    assert list(tables) == ["switches", "variants", "cases", "rates", "environment"]
    assert [plot.name for plot in build_plots(data)] == ["density", "over_walk", "rates"]
    frame = tables["switches"].frame.set_index("part")
    assert list(frame.index) == [switch[0] for switch in OF_PUSHDOWN if switch[3] != "compile"]
    assert frame.loc["partitions of subtrees, too", "mean mask time"] == pytest.approx(1.5)
    assert frame.loc["automata and partitions shared", "mean mask time"] == pytest.approx(4)
    assert frame.loc["automata and partitions shared", "compile"] == pytest.approx(3)
    assert frame.loc["all of it, against llguidance", "p99 mask time"] == pytest.approx(30)
    sentences = build_headlines(data)
    assert "Automata shared: a compile is 3.0 times as fast, median of 4 cases" in " ".join(sentences)
    assert len(sentences) == len(OF_PUSHDOWN) + 2
    assert sentences[-2] == "From a cold start 75.0% of the masks are remembered ones (medians of 4 cases)."


def test_what_is_not_counted_is_missing_and_not_zero() -> None:
    tables = {table.name: table for table in build_tables(RunData.read(pushdown_run()))}
    frame = tables["variants"].frame.set_index(["path", "variant"])
    assert frame.loc[("texts", "llguidance"), ["masks made", "nodes a mask"]].isna().all()
    assert frame.loc[("texts", "all on"), "nodes a mask"] == 250
    rates = tables["rates"]
    assert rates.columns[3:] == (
        "masks",
        "situations",
        "rows",
        "stacks",
        "partitions of the vocabulary",
        "tables",
        "masks remembered",
    )
    assert [cell.text for cell in rates.rows[0]][3:] == ["400", "100", "50", "9", "7", "120 kB", "75.0%"]


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
    assert build_headlines(data)[-1] == "Of 44 variants of all cases these failed: 2 masks differ."


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
