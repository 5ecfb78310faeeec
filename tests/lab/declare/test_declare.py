"""Declarations over small frames whose statistics can be worked out by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
import vl_convert

from tokdfa.errors import OptionError
from tokdfa.lab.declare import (
    Bars,
    Column,
    Curves,
    Custom,
    Distribution,
    Listing,
    Options,
    Pairs,
    Pivot,
    Points,
    Quotient,
    Ranking,
    Results,
    Say,
    Stat,
    Summary,
    Tally,
)
from tokdfa.lab.declare.cells import text_cell
from tokdfa.lab.declare.columns import seconds, text
from tokdfa.lab.declare.stats import exponent, paired

COLUMNS = {
    column.name: column
    for column in (
        text("engine"),
        text("case"),
        seconds("mask_ns", "mask time"),
        Column("nodes", "nodes", "", "lower"),
        Column("passes", "passes", "share", "higher"),
    )
}
ROWS = pd.DataFrame(
    {
        "engine": ["ours", "ours", "theirs", "theirs", "broken"],
        "case": ["a", "b", "a", "b", "a"],
        "mask_ns": [100.0, 400.0, 300.0, 200.0, None],
        "nodes": [10, 40, 10, 40, None],
        "passes": [True, False, True, True, None],
        "status": ["ok", "ok", "ok", "ok", "timeout"],
    }
)


def results(rows: pd.DataFrame = ROWS, **more) -> Results:
    return Results({"": rows}, COLUMNS, "engine", ("case",), more.pop("reference", "ours"), more)


def texts(table) -> list[list[str]]:
    return [[f"{cell.text}, {cell.detail}" if cell.detail else cell.text for cell in row] for row in table.rows]


def test_values_are_written_with_their_unit():
    values = {"s": 0.00123, "B": 4_200_000, "ratio": 3.25, "share": 0.5, "": 12_345}
    written = [Column("x", unit=unit).format(value) for unit, value in values.items()]
    assert written == ["1.23 ms", "4.20 MB", "3.25x", "50.0%", "12,345"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("mask_ns", 250e-9),
        ("mask_ns:max", 400e-9),
        ("mask_ns:mean", 250e-9),
        ("mask_ns:p25", 175e-9),
        ("mask_ns:count", 4.0),
        ("nodes:distinct", 2.0),
        ("nodes:sum", 100.0),
        ("passes:share", 0.75),
        ("engine:first", "ours"),
    ],
)
def test_statistics(written, value):
    found = Stat.of(written).compute(ROWS, COLUMNS)
    assert found == value if isinstance(value, str) else found == pytest.approx(value)


def test_statistics_of_nothing_are_missing_and_unknown_ones_are_refused():
    assert math.isnan(Stat("mask_ns", where="mask_ns > 1e9").compute(ROWS, COLUMNS))
    assert Stat("engine").compute(ROWS.iloc[:0], COLUMNS) is None
    assert math.isnan(Quotient("mask_ns", Stat("nodes", where="nodes > 99")).compute(ROWS, COLUMNS))
    with pytest.raises(OptionError, match="p100"):
        Stat("mask_ns", "p100")


def test_ratios_are_paired_by_case_and_say_which_end_is_better():
    mine, theirs = pd.Series({"a": 2.0, "b": 5.0, "c": None}), pd.Series({"a": 4.0, "b": 5.0, "c": 1.0, "d": 9.0})
    ratio = paired(mine, theirs, COLUMNS["mask_ns"])
    assert ratio is not None
    assert (ratio.median, ratio.low, ratio.high, ratio.cases) == (1.5, 1.0, 2.0, 2)
    higher = paired(mine, theirs, COLUMNS["passes"])
    assert higher is not None
    assert (higher.low, higher.high) == (0.5, 1.0)
    coarse = Column("m", "memory", "B", "lower", resolution=5.0)
    equal = paired(mine, theirs, coarse)
    assert equal is not None
    assert (equal.low, equal.high) == (1.0, 1.0)
    assert paired(mine, pd.Series({"z": 1.0}), coarse) is None


def test_a_summary_takes_medians_over_cases_and_pairs_with_the_reference():
    table = Summary("s", "S", by=("engine",), values=("mask_ns", "passes:share"), over=("case",), ratios="all").build(
        results()
    )
    assert table.columns == ("engine", "mask time", "passes")
    assert texts(table) == [
        ["ours", "250 ns", "50.0%"],
        ["theirs", "250 ns, 1.2x faster (0.33–2.0)", "100%, equal"],
        ["broken", "–", "–"],
    ]
    assert [row[2].best for row in table.rows] == [False, True, False]


def test_a_pivot_has_an_engine_a_column_and_shows_how_items_failed():
    table = Pivot("p", "P", rows=("case",), value="mask_ns", beside=("nodes:max",)).build(results())
    assert table.columns == ("case", "nodes, max", "ours", "theirs", "broken")
    assert texts(table) == [
        ["a", "10", "100 ns", "300 ns, 3.0x slower", "timeout"],
        ["b", "40", "400 ns", "200 ns, 2.0x faster", "–"],
    ]
    detailed = Pivot("p", "P", rows=("case",), value="mask_ns", detail="nodes").build(results())
    assert texts(detailed)[0][1] == "100 ns, 10"
    assert not Pivot("p", "P", rows=("case",), value="not_measured").build(results(ROWS.iloc[:4])).rows
    many = pd.DataFrame({"engine": [f"e{n}" for n in range(40)], "case": "a", "mask_ns": 1.0})
    assert not Pivot("p", "P", rows=("case",), value="mask_ns").build(results(many)).rows


def test_parts_of_an_ablation_are_without_over_with():
    parts = [
        {"part": "memory", "with": "ours", "without": "theirs"},
        {"part": "x", "with": "ours", "without": "nobody"},
    ]
    table = Pairs("x", "X", values=("mask_ns",)).build(results(parts=parts))
    assert texts(table) == [["memory", "1.8x, 0.50–3.0", "a", "b"]]


def test_options_compare_those_that_differ_in_nothing_else():
    grid = [(memo, width) for memo in (True, False) for width in (1, 2)]
    rows = pd.DataFrame(
        {
            "engine": [f"{memo} {width}" for memo, width in grid],
            "backend": "e",
            "options": [json.dumps({"memo": memo, "width": width}) for memo, width in grid],
            "case": "a",
            "mask_ns": [10.0, 20.0, 40.0, 40.0],
        }
    )
    table = Options("o", "O", values=("mask_ns", "nodes")).build(results(rows))
    assert table.columns == ("backend", "option", "value", "against", "mask time", "pairs")
    assert texts(table) == [
        ["e", "width", "2", "1", "1.3x slower (1.0–2.0)", "2"],
        ["e", "memo", "false", "true", "2.7x slower (2.0–4.0)", "2"],
    ]


def test_the_exponent_of_a_power_law_is_that_of_its_larger_half():
    assert exponent([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0]) == pytest.approx(2)
    assert exponent([1, 2, 4, 8, 16, 32], [9.0, 9.0, 9.0, 8.0, 16.0, 32.0]) == pytest.approx(1)
    assert math.isnan(exponent([1, 2], [1.0, 2.0]))
    assert math.isnan(exponent([1, 2, 4], [0.0, math.nan, 2.0]))


def test_a_listing_shows_some_rows_and_says_how_many_there_are():
    table = Listing("l", "L", shown=("case", "mask_ns"), most=2).build(results())
    assert texts(table) == [["a", "100 ns"], ["b", "400 ns"]]
    assert "2 of 5" in table.note


def test_tables_of_nothing_have_no_rows():
    empty = results(ROWS.iloc[:0])
    tables = (
        Summary("s", "S", values=("mask_ns",)),
        Pivot("p", "P", rows=("case",), value="mask_ns"),
        Pairs("x", "X", values=("mask_ns",)),
        Options("o", "O", values=("mask_ns",)),
        Listing("l", "L"),
        Summary("s", "S", values=("mask_ns",), where="no_such_column > 1"),
    )
    assert not any(table.build(empty).rows for table in tables)
    assert not tables[-1].build(results()).rows
    custom = Custom("c", "C", function=lambda results: (["n"], [[text_cell(len(results.rows()))]]))
    assert texts(custom.build(results())) == [["5"]]


def test_sentences():
    said = Say(
        "{engine}: {time}, {ratio} of all.",
        per=("engine",),
        blanks={"time": "mask_ns:max", "ratio": Quotient("mask_ns:max", Stat("mask_ns", "sum"))},
    )
    assert said.sentences(results()) == ["ours: 400 ns, 0.80 of all.", "theirs: 300 ns, 0.60 of all."]
    assert Ranking(("mask_ns", "passes:share")).sentences(results()) == [
        "Lowest mask time: ours with 250 ns, then theirs with 250 ns (medians over the 2 cases that all completed).",
        "Highest passes: theirs with 100%, then ours with 50.0% (means over the 2 cases that all completed).",
    ]
    assert Tally("rows").sentences(results()) == ["4 of 5 rows succeeded; the others: 1 timeout."]
    assert Tally("rows").sentences(results(ROWS.iloc[:4])) == ["All 4 rows succeeded."]
    assert not [
        line for one in (said, Ranking(("mask_ns",)), Tally()) for line in one.sentences(results(ROWS.iloc[:0]))
    ]


def test_a_lead_makes_one_sentence_of_all_groups():
    say = Say("{engine} {n}", per=("engine",), blanks={"n": "nodes:sum", "all": "nodes:sum"}, lead="Of {all}:")
    assert say.sentences(results(ROWS.iloc[:4])) == ["Of 100: ours 50; theirs 50."]


HOSTILE = ROWS.assign(case=['x"y', "a.b[0]\\", 'x"y', "a.b[0]\\", "c"])


@pytest.mark.parametrize("rows", [ROWS, HOSTILE])
@pytest.mark.parametrize(
    "declared",
    [
        Curves("c", "C", x="nodes", y="mask_ns", hover=("case",)),
        Points("p", "P", x="nodes", y="mask_ns", hover=("case",)),
        Distribution("d", "D", x="mask_ns"),
        Bars("b", "B", x="mask_ns", rows="case", hover=("case",)),
        Curves("c", "C", x="nodes", y="mask_ns", panels="case", log=True),
    ],
)
def test_charts_are_specifications_that_vega_lite_takes(declared, rows):
    chart = declared.build(results(rows))
    assert chart.panels
    for panel in chart.panels:
        vl_convert.vegalite_to_vega(json.dumps(panel.spec))
        engines = panel.spec["encoding"]["color"]["scale"]["domain"]
        assert engines == ["ours", "theirs", "broken"]  # the same looks in every panel
        assert all(np.isfinite(point["x"]) for point in panel.spec["data"]["values"])
    assert chart.to_png().startswith(b"\x89PNG")
    assert declared.build(results(ROWS.iloc[:0])).reason
