"""Reports on MaskBench, from made-up rows in which every outcome and every time is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.measure.maskbench_replay import OUTCOMES as STORED_OUTCOMES
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.maskbench_data import OUTCOMES, fields, passed_by_all, percentile

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

TOKENS = 100


def row(engine: str, case: str, outcome: str = "passed", micros: float = 1.0, **more: Any) -> dict[str, Any]:
    """A case whose masks take 1, 2 ... 100 times `micros`, and its commits nothing; compiled in 1,000 times that."""
    judged = outcome in ("passed", "over", "under")
    masks = 1e3 * micros * np.arange(1, TOKENS + 1) if judged else np.zeros(0)
    return {
        **{"tokenizer": "llama", "suite": False, "to_end": False, "engine": engine, "backend": engine, "options": "{}"},
        **{"sample": None, "case": case, "split": case.partition("---")[0], "keywords": json.dumps(["type"])},
        **{"tests": 2, "valid_tests": 1, "unordered_tests": 0, "outcome": outcome, "message": "", "keyword": ""},
        **{"pointer": "", "right_tests": 2 * (outcome == "passed"), "over_tests": int(outcome == "over")},
        **{"under_tests": int(outcome == "under"), "order_artefacts": 0, "unended_tests": 0, "ended_under_tests": 0},
        **{"tokens": len(masks), "verdicts": "[]", "compile_ns": 1e6 * micros if judged else None, "clock_ns": 50.0},
        **{"first_ns": 5e5 * micros if judged else None, "mask_ns": masks.astype("<f4").tobytes()},
        **{"advance_ns": np.zeros(len(masks), "<f4").tobytes()},
        **more,
    }


def made_up() -> list[dict[str, Any]]:
    hard = {"keywords": json.dumps(["oneOf", "type"])}
    said = {"message": "oneOf at #/a/1: 12 ways", "keyword": "oneOf"}
    same = {**said, "message": "oneOf at #/b: 7 ways"}
    return [
        row("ours", "A---1"),
        row("ours", "A---2", **hard),
        row("ours", "B---1", "over", order_artefacts=1, unordered_tests=1, message="valid, rejected", **hard),
        row("ours", "B---2", tests=0, right_tests=0),
        row("peer", "A---1", micros=10.0, unended_tests=1),
        row("peer", "A---2", "refused", **hard | said),
        row("peer", "B---1", "refused", unordered_tests=1, **hard | same),
        row("peer", "B---2", "under", micros=10.0, ended_under_tests=1, message="invalid, and went through"),
        row("slow", "A---1", micros=1000.0, sample=2),
        row("slow", "B---2", "timeout", sample=2, message="'mask' had not ended after 20 s"),
    ]


def data_of(rows: list[dict[str, Any]]) -> RunData:
    settings = {"chunk": 7, "engines": [{"backend": "ours"}, {"backend": "peer"}, {"backend": "slow", "sample": 2}]}
    shape = config(name="bench", kind="maskbench", reference="", settings=settings)
    return RunData.read(FakeRun(Path("made-up"), shape, dict(PROVENANCE), {"results": pd.DataFrame(rows)}))


@pytest.fixture(scope="module")
def data() -> RunData:
    return data_of(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def lines(table: Table) -> dict[str, dict[str, str]]:
    """First cell of a row -> head -> text, with its detail after a comma."""
    return {
        line[0].text: {
            head: ", ".join(filter(None, (cell.text, cell.detail)))
            for head, cell in zip(table.columns, line, strict=True)
        }
        for line in table.rows
    }


def test_reports_know_all_outcomes() -> None:
    assert tuple(OUTCOMES) == STORED_OUTCOMES


def test_percentiles_are_the_benchmarks() -> None:
    values = np.arange(200.0)[::-1]
    assert [percentile(values, percent) for percent in (0, 50, 99, 99.9, 100)] == [0, 100, 198, 199, 199]
    assert np.isnan(percentile(values[:0], 50))


def test_the_main_table_has_outcomes_and_both_times(tables: dict[str, Table]) -> None:
    table = tables["maskbench"]
    found = lines(table)
    assert list(found) == ["ours", "peer"]
    assert [found["ours"][head] for head in table.columns[1:6]] == ["4", "3, 75.0%", "0", "1", "0"]
    assert [found["peer"][head] for head in table.columns[1:6]] == ["4", "1, 25.0%", "2", "0", "1"]
    assert table.columns[6:] == (
        *("TBM mean", "TBM p50", "TBM p90", "TBM p99", "TBM p99.9", "TBM max"),
        *("TTFM mean", "TTFM p50", "TTFM p90", "TTFM p99", "TTFM max"),
    )
    # four cases of 1 .. 100 us each: number 400 * 50 // 100 of 400 is the first 51
    assert [found["ours"][f"TBM {head}"] for head in ("mean", "p50", "p99", "max")] == [
        *("50.5 µs", "51.0 µs", "100 µs", "100 µs"),
    ]
    assert found["ours"]["TTFM p50"] == "1.50 ms"
    assert found["peer"]["TTFM mean"] == "15.0 ms"
    best = {head for head, cell in zip(table.columns, table.rows[0], strict=True) if cell.best}
    assert best == {"passes", *table.columns[6:]}
    assert "Up to 7 cases of an engine share a process" in table.note
    assert "A case may take 20 s and 4,000 MiB. The best are bold." in table.note


def test_samples_have_a_table_with_everyone_on_the_same_cases(data: RunData, tables: dict[str, Table]) -> None:
    assert [(field.title, field.cases, field.engines) for field in fields(data)] == [
        ("all cases", 4, ["ours", "peer"]),
        ("a sample of 2 cases", 2, ["ours", "peer", "slow"]),
    ]
    found = lines(tables["sample_2"])
    assert {engine: (line["cases"], line["passes"]) for engine, line in found.items()} == {
        "ours": ("2", "2, 100%"), "peer": ("2", "1, 50.0%"), "slow": ("2", "1, 50.0%"),
    }  # fmt: skip
    assert found["slow"]["timeouts"] == "1"
    assert found["slow"]["TBM max"] == "100 ms"


def test_the_official_table_is_in_whole_microseconds(tables: dict[str, Table]) -> None:
    found = lines(tables["official"])
    assert found["TBM avg (us)"] == {"metric": "TBM avg (us)", "ours": "50", "peer": "505", "slow": "50,500"}
    assert found["TBM p100"]["peer"] == "1,000"
    assert found["TTFM p50"]["slow"] == "1,500,000"
    counted = {head: (line["ours"], line["peer"], line["slow"]) for head, line in found.items()}
    assert counted["tokens"] == ("400", "200", "100")
    assert counted["schemas"] == ("4", "4", "2")
    assert counted["passing"] == ("3", "1", "1")
    assert counted["compile errors"] == ("0", "2", "0")
    assert counted["validation errors"] == ("1", "0", "0")
    assert counted["invalidation errors"] == ("0", "1", "0")
    assert counted["timeouts"] == ("0", "0", "1")


def test_the_same_work_is_that_of_cases_all_pass(data: RunData, tables: dict[str, Table]) -> None:
    assert set(passed_by_all(fields(data)[0]).rows["case"]) == {"A---1"}
    found = lines(tables["common"])
    assert (found["ours"]["TBM max"], found["peer"]["TBM max"]) == ("100 µs", "1.00 ms")
    assert "Of 1 case that all engines pass:" in tables["common"].note


def test_parts_and_verdicts_take_the_outcomes_apart(tables: dict[str, Table]) -> None:
    parts = tables["parts"].frame.set_index(["engine", "part"])
    assert parts.loc[("peer", "compile"), "mean"] == pytest.approx(10e-3)
    assert parts.loc[("peer", "first mask"), "mean"] == pytest.approx(5e-3)
    assert parts.loc[("ours", "mask"), "samples"] == 400
    assert parts.loc[("ours", "commit"), "max"] == 0
    assert "50.0 ns (median)" in tables["parts"].note
    ours, peer = (lines(tables["verdicts"])[name] for name in ("ours", "peer"))
    assert [ours[head] for head in tables["verdicts"].columns[1:]] == [
        *("4", "3", "1", "3", "1", "1", "1", "0", "0", "6", "4"),
    ]
    assert [peer[head] for head in ("passes with ends", "any invalid accepted", "under with end")] == ["0", "1", "1"]
    assert "1 of the cases have a valid instance in another order" in tables["verdicts"].note


def test_breakdowns_count_passes(tables: dict[str, Table]) -> None:
    splits = lines(tables["splits"])
    assert splits["A"] == {"split": "A", "cases": "2", "ours": "2", "peer": "1", "slow": "1 of 1"}
    assert splits["B"] == {"split": "B", "cases": "2", "ours": "1", "peer": "0", "slow": "0 of 1"}
    assert [cell.best for cell in tables["splits"].rows[0]] == [False, False, True, False, False]
    keywords = lines(tables["keywords"])
    assert list(keywords) == ["type", "oneOf"]
    assert keywords["oneOf"] == {"keyword": "oneOf", "cases": "2", "ours": "1", "peer": "0", "slow": "0 of 0"}


def test_differences_and_refusals_have_their_reasons(tables: dict[str, Table]) -> None:
    found = lines(tables["differences"])
    assert list(found) == ["A---2", "B---1", "B---2"]
    assert found["B---1"]["ours"] == "over, valid, rejected"
    assert found["A---2"]["peer"] == "refused, oneOf at #/a/1: 12 ways"
    assert found["A---2"]["slow"] == "–"
    assert [[cell.text for cell in line] for line in tables["refusals"].rows] == [
        ["peer", "refused", "oneOf", "2", "4", "oneOf at … … ways", "A---2"],
        ["slow", "timeout", "–", "1", "2", "… had not ended after … s", "B---2"],
    ]


def test_long_lists_are_cut_off_and_say_so() -> None:
    rows = [row("ours", f"A---{number}") for number in range(450)]
    rows += [row("peer", f"A---{number}", "refused", message=f"reason {'x' * number}") for number in range(450)]
    tables = {table.name: table for table in build_tables(data_of(rows))}
    assert len(tables["differences"].rows) == 400
    assert tables["differences"].note.startswith("Of 450 in all;")
    assert "The first 400 are listed" in tables["differences"].note
    assert len(tables["refusals"].rows) <= 400
    assert max(len(line[5].text) for line in tables["refusals"].rows) == 120


def test_headlines_are_computed(data: RunData) -> None:
    ours, peer, slow, lax, shared, empty = build_headlines(data)
    assert ours == (
        "ours passes 3 of 4 cases, 75.0%; over-constrained 1. TBM p50 51.0 µs, p99 100 µs, p99.9 100 µs; "
        "TTFM p50 1.50 ms, p99 1.50 ms."
    )
    assert peer.startswith("peer passes 1 of 4 cases, 25.0%; refused 2, under-constrained 1. ")
    assert slow.startswith("slow passes 1 of 2 cases (a sample), 50.0%; timeouts 1. ")
    assert lax == "Invalid instances accepted: peer 1 (1 with their end)."
    assert shared == ("On 1 case that all engines pass, TBM p50 and p99: ours 51.0 µs, 100 µs; peer 510 µs, 1.00 ms.")
    assert empty == "Without a test, so that whoever compiles them passes: 1 case."


def test_plots_show_outcomes_and_tails(data: RunData) -> None:
    outcomes, tbm, ttfm = build_plots(data)
    bars = outcomes.figure.axes[0].patches
    assert [(bar.get_x(), bar.get_width()) for bar in bars[:4]] == [(0, 3), (3, 0), (3, 1), (4, 0)]
    ecdf, tail = tbm.figure.axes
    assert len(ecdf.lines) == len(tail.lines) == 3
    times, shares = ecdf.lines[0].get_xdata(), ecdf.lines[0].get_ydata()
    assert (times[-1], shares[-1]) == (pytest.approx(100e-6), 1.0)
    assert np.interp(0.5, shares, times) == pytest.approx(50e-6, rel=0.02)
    assert (tail.get_xscale(), tail.get_yscale()) == ("log", "log")
    # one of 400 is the least that a tail of 400 can show, ten times that of one of 4,000
    assert min(tail.lines[0].get_ydata()) == pytest.approx(1 / 400, rel=0.1)
    assert len(ttfm.figure.axes[0].lines) == 3


def test_a_suite_has_a_table_by_file() -> None:
    rows = [{**one, "suite": True, "to_end": True} for one in made_up()]
    tables = {table.name: table for table in build_tables(data_of(rows))}
    assert "splits" not in tables
    assert "the end of the text decides, too." in tables["maskbench"].note
    found = lines(tables["suite"])
    assert list(found) == ["A", "B", "all"]
    assert found["A"] == {"file": "A", "tests": "4", "ours": "4 / 0 / 0", "peer": "2 / 2 / 0", "slow": "2 / 0 / 0"}
    assert found["all"] == {"file": "all", "tests": "6", "ours": "4 / 0 / 2", "peer": "2 / 4 / 2", "slow": "2 / 0 / 2"}


def test_a_suite_has_a_table_by_draft() -> None:
    many = {"tests": 8, "valid_tests": 5, "right_tests": 4, "over_tests": 3, "under_tests": 1, "order_artefacts": 2}
    empty = {"tests": 3, "valid_tests": 1, "right_tests": 2, "over_tests": 1}
    splits = [
        *(
            ("draft7/optional/format/date", "passed", {}),
            ("draft7/type", "over", many),
            ("draft7/not", "refused", empty),
        ),
        *(("draft7/optional/bignum", "refused", {}), ("draft4/type", "timeout", {}), ("draft7/ref", "refused", {})),
    ]
    rows = [
        {**row("ours", f"{split}[0]", outcome, **more), "split": split, "suite": True, "to_end": True}
        for split, outcome, more in splits
    ]
    table = next(table for table in build_tables(data_of(rows)) if table.name == "drafts")
    assert [[cell.text for cell in line] for line in table.rows] == [
        ["draft4", "required", "ours", "2", "0", "0", "0", "0", "0", "2"],
        ["draft7", "required", "ours", "13", "6", "2", "2", "1", "2", "0"],
        ["draft7", "optional", "ours", "2", "0", "0", "0", "0", "2", "0"],
        ["draft7", "formats", "ours", "2", "2", "0", "0", "0", "0", "0"],
    ]


def test_walks_have_tables_and_a_sentence(tables: dict[str, Table]) -> None:
    assert "walks" not in tables
    none = {"walks_asked": 9, "walks": 0, "walk_tokens": 0, "walks_finished": 0, "walks_unfinished": 0, "dead_ends": 0}
    none |= {"invalid_texts": 0, "unjudged_texts": 0, "walk_faults": "[]"}
    some = none | {"walks": 9, "walk_tokens": 70, "walks_finished": 6, "walks_unfinished": 1, "dead_ends": 1}
    some |= {"invalid_texts": 1, "walk_faults": json.dumps([["dead end", "[1", ""], ["invalid", "x" * 200, "$: no"]])}
    lost = none | {"walks": 4, "walks_unfinished": 3, "unjudged_texts": 1}
    rows = [row("ours", "A---1", **some), row("ours", "A---2", **lost), row("ours", "B---1", "refused", **none)]
    data = data_of(rows)
    found = {table.name: table for table in build_tables(data)}
    assert [[cell.text for cell in line] for line in found["walks"].rows] == [
        ["ours", "2", "13", "70", "6", "4", "1", "1", "1", "1", "1", "14"]
    ]
    assert [[cell.text for cell in line] for line in found["walk_faults"].rows] == [
        ["ours", "A---1", "dead end", "[1", "–"],
        ["ours", "A---1", "invalid", "x" * 159 + "…", "$: no"],
    ]
    said = "Of 13 random walks on 2 schemas, ours finishes 6; dead ends 1, invalid texts 1."
    assert said in build_headlines(data)


def test_one_engine_that_passes_nothing_has_a_report_too() -> None:
    data = data_of([row("ours", "A---1", "unavailable", message="no package", clock_ns=None)])
    tables = {table.name: table for table in build_tables(data)}
    assert lines(tables["maskbench"])["ours"]["unavailable"] == "1"
    assert "common" not in tables
    assert "differences" not in tables
    assert build_headlines(data) == [
        "ours passes 0 of 1 case, 0%; unavailable 1.",
        "No engine accepts an invalid instance.",
    ]
    assert [plot.reason for plot in build_plots(data)] == ["", "no engine has a time", "no engine has a time"]
