"""Reports on 002's Table 2, from made-up rows with known answers."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.page import Page

SECONDS = {"fixpoint": [0.01, 0.03, 0.02], "pairs": [1.0, 6.0, None]}
MASKS = {"fixpoint": [2e-6, 2e-6, 4e-6], "pairs": [2e-5, 4e-5, None]}


def fake_run(rows):
    frames = {"results": pd.DataFrame(rows)}
    return FakeRun(Path("made-up"), config(kind="proper_table2", reference=""), dict(PROVENANCE), frames)


def run_data(rows):
    return RunData.read(fake_run(rows))


def row(step, engine, seconds, constraint="", **more):
    made = {"item_id": constraint, "tokenizer": "mistral-v1", "constraint": constraint, "step": step, "engine": engine}
    made |= {"backend": "cartesian_merge", "status": "ok", "message": "", "seconds": seconds}
    if seconds is None:
        made |= {"status": "timeout", "message": f"too slow {HOSTILE}"}
    return made | more


@pytest.fixture(scope="module")
def data():
    rows = [row(1, "ours, built", 0.2), row(1, "002's replay", 15.0)]
    for place, constraint in enumerate(("person", "order", "song")):
        rows.append(row(2, "token_index", 0.002, constraint, compile_s=0.002, states=154.0, transitions=71_395.0))
        for engine in SECONDS:
            more = {"pairs": 9_000.0 if engine == "pairs" else None, "bytes": 2e6, "compile_s": 7.0}
            rows.append(row(3, engine, SECONDS[engine][place], constraint, **more))
            seconds = MASKS[engine][place]
            masks = {} if seconds is None else {"masks": 100, "differing": 0, "p99_s": 5e-5, "again_s": 1e-6}
            rows.append(row(4, engine, seconds, constraint, call_s=1e-7, **masks))
    return run_data(rows)


def test_automata_have_states_transitions_and_the_time_of_the_compile(data):
    table = next(table for table in build_tables(data) if table.name == "proper_table2_automata")
    assert table.columns == ("tokenizer", "constraint", "token_index", "fixpoint", "pairs")
    assert [line[1].text for line in table.rows] == ["person", "order", "song"]
    index, fixpoint, pairs = table.rows[2][2:]
    assert (index.text, index.value, index.detail) == ("154", 154, "71,395 transitions, 2.00 ms")
    assert fixpoint.text == "7.00 s"  # a compile that says nothing of its size
    assert pairs.text == "timeout"


def test_the_table_has_medians_beside_what_was_published(data):
    table = next(table for table in build_tables(data) if table.name == "proper_table2")
    lines = {(line[0].text, line[2].text): line for line in table.rows}
    assert list(lines) == [
        ("1", "ours, built"), ("1", "002's replay"), ("2", "token_index"), ("3", "fixpoint"), ("3", "pairs"),
        ("4", "fixpoint"), ("4", "pairs"),
    ]  # fmt: skip
    assert [lines["1", "ours, built"][3].value, lines["3", "fixpoint"][3].value] == [20.9, 27.3]
    assert lines["3", "pairs"][3].text == "–"  # once a step
    assert lines["3", "fixpoint"][4].value == 0.02
    assert lines["3", "pairs"][4].value == 3.5
    assert lines["3", "pairs"][4].detail == "1.00 s to 6.00 s, 2 of 3"
    assert lines["4", "fixpoint"][4].value == 2e-6


def test_masks_and_constraints_and_failures_are_listed(data):
    tables = {table.name: table for table in build_tables(data)}
    masks = tables["proper_table2_masks"]
    found = {line[1].text: [cell.value for cell in line[2:]] for line in masks.rows}
    assert found["fixpoint"] == [3, 2e-6, 5e-5, 1e-6, 1e-7, 300, 0]
    by_constraint = tables["proper_table2_step3"]
    assert [cell.text for cell in by_constraint.rows[2]] == ["mistral-v1", "song", "20.0 ms", "timeout"]
    assert by_constraint.rows[0][2].best
    assert by_constraint.rows[0][3].detail == "9,000 pairs, 2.00 MB"
    failures = tables["proper_table2_failures"]
    assert [(line[1].text, line[2].text, line[4].text) for line in failures.rows] == [
        ("3", "pairs", "song"), ("4", "pairs", "song")
    ]  # fmt: skip


def test_headlines_are_computed(data):
    sentences = build_headlines(data)
    assert sentences[0] == (
        "mistral-v1, step 1 (proper sequences of the tokenizer): ours, built 200 ms, 002's replay 15.0 s; 002 "
        "published 20.9 s, on another machine."
    )
    assert "fixpoint 20.0 ms, pairs 3.50 s (2 of 3 constraints); 002 published 27.3 s" in sentences[2]
    assert "step 3, against fixpoint, constraint by constraint: pairs 150 times (100 to 200, 2" in sentences[4]
    assert "pairs 15 times (10 to 20, 2 constraints)" in sentences[5]
    assert sentences[6] == "500 masks of proper engines compared bit by bit: 0 differ."
    assert sentences[7].startswith("2 of 17 measurements have no number or are wrong: 2 timeout")


def test_the_plot_and_the_page_are_made(data):
    (plot,) = build_plots(data)
    assert plot.figure is not None
    axes = plot.figure.axes[0]
    assert len(axes.get_yticks()) == 7
    dotted = sorted(line.get_xdata()[0] for line in axes.lines)
    assert dotted == [0.00153, 0.687, 20.9, 27.3]
    page = Page.of(fake_run(data.results.to_dict("records")))
    assert HOSTILE not in page.markdown({plot.name: "plot.png"})


def test_nothing_measured_is_said():
    empty = run_data([])
    assert "no results" in build_headlines(empty)[0]
    assert [plot.figure for plot in build_plots(empty)] == [None]
    failed = run_data([row(3, "fixpoint", None, "person"), row(4, "fixpoint", None, "person")])
    assert [plot.reason for plot in build_plots(failed)] == ["no step was measured"]
    assert build_tables(failed)[0].rows[0][4].text == "timeout"
