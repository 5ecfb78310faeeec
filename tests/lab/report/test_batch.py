"""Reports on batches, from made-up runs in which every time is known."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.kinds.batch import WAYS
from tokdfa.lab.report.batch import gains, loops
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

if TYPE_CHECKING:
    from tokdfa.lab.declare.cells import Table

#: Engine -> microseconds of a mask; batches take half as long, those of two threads a quarter.
EACH = {"pushdown_trie": 2.0, "earley_trie": 4.0, "llguidance": 40.0}
SIZES = (8, 256)
CONTENDERS = [(label, threads) for label, way in WAYS.items() for threads in ((1, 2) if way.call == "batch" else (1,))]


def row(constraint: str, size: int, phase: str, label: str, threads: int) -> dict[str, Any]:
    way = WAYS[label]
    micros = EACH[way.engine.label] * (10 if phase == "first" else 1) * (3 if constraint == "sql" else 1)
    if way.call == "batch":
        micros /= 2 * threads
    return {
        **{"tokenizer": "llama", "vocab_size": 100_000, "constraint": constraint, "size": size, "places": size},
        **{"distinct_masks": 7, "phase": phase, "way": label, "engine": way.engine.label, "call": way.call},
        **{"threads": threads, "status": "ok", "message": "", "rounds": 3, "ns_median": 1e3 * micros * size},
        **{"ns_min": 1e3 * micros * size, "differing": 3 if way.engine.label == "llguidance" else 0},
    }


def made_up(contenders: list[tuple[str, int]] = CONTENDERS) -> FakeRun:
    places = itertools.product(("json", "sql"), SIZES, ("seen", "first"), contenders)
    rows = [row(constraint, size, phase, *one) for constraint, size, phase, one in places]
    settings = config(name="batch", kind="batch", reference="")
    return FakeRun(Path("made-up"), settings, dict(PROVENANCE), {"results": pd.DataFrame(rows)})


@pytest.fixture(scope="module")
def data() -> RunData:
    return RunData.read(made_up())


@pytest.fixture(scope="module")
def tables(data: RunData) -> dict[str, Table]:
    return {table.name: table for table in build_tables(data)}


def test_batches_are_compared_with_the_loop_of_their_engine(data: RunData) -> None:
    ours, peer = "pushdown_trie loop", "llguidance loop"
    assert loops(data) == {
        **{"pushdown_trie batch": ours, "pushdown_trie batch, 2 threads": ours},
        **{"llguidance batch": peer, "llguidance batch, 2 threads": peer},
    }
    for phase in ("seen", "first"):
        for name, factors in gains(data, phase).items():
            assert factors.tolist() == pytest.approx([4.0 if "threads" in str(name) else 2.0] * 4)


def test_time_tables_have_the_batch_and_a_mask_of_it(tables: dict[str, Table]) -> None:
    table = tables["batch_seen"]
    line = dict(zip(table.columns, table.rows[1], strict=True))
    assert [line[name].text for name in ("constraint", "matchers", "places", "masks")] == ["json", "256", "256", "7"]
    assert (line["pushdown_trie loop"].text, line["pushdown_trie loop"].detail) == ("512 µs", "2.00 µs each")
    assert [name for name, cell in line.items() if cell.best] == ["pushdown_trie batch, 2 threads"]
    first = tables["batch_first"].frame.set_index(["constraint", "matchers"])
    assert first.loc[("sql", 8), "earley_trie loop"] == pytest.approx(8 * 120e-6)


def test_gain_table_has_a_line_for_each_phase_and_way(tables: dict[str, Table]) -> None:
    frame = tables["gains"].frame.set_index(["phase", "way"])
    assert len(frame) == 2 * 4
    assert frame.loc[("first", "llguidance batch, 2 threads")].tolist() == pytest.approx([4, 4])


def test_headlines_are_computed(data: RunData) -> None:
    seen, faster, first, _, other, same = build_headlines(data)
    assert seen.startswith(
        "A mask of a batch of 256, masks that the constraint has filled before (median of the cases): "
        "pushdown_trie batch, 2 threads 1.00 µs; pushdown_trie batch 2.00 µs; pushdown_trie loop 4.00 µs; "
        "earley_trie loop 8.00 µs;"
    )
    assert faster.startswith("Times as fast as the engine's own loop: pushdown_trie batch 2.0; pushdown_trie batch, 2")
    assert "that was just compiled" in first
    assert other == (
        "llguidance has another lexing rule: 12 of its 528 masks of these grammars are not those of pushdown_trie loop."
    )
    assert same == "All 28 batches were filled: ways of one lexing rule gave the same masks."


def test_plots_have_a_panel_for_each_phase(data: RunData) -> None:
    each, gained = build_plots(data)
    seen, first = each.figure.axes
    assert [axes.get_title(loc="left") for axes in (seen, first)] == ["masks filled before", "first masks"]
    assert len(seen.lines) == len(CONTENDERS)
    assert seen.lines[0].get_xydata().ravel().tolist() == pytest.approx([8, 4e-6, 256, 4e-6])
    assert first.lines[0].get_ydata() == pytest.approx([40e-6, 40e-6])
    assert gained.figure.axes[0].lines[0].get_ydata() == pytest.approx([2, 2])


def test_what_failed_is_listed_and_enters_nothing_else() -> None:
    run = made_up()
    results = run.frames["results"]
    results.loc[results["way"] == "pushdown_trie loop", ["status", "message", "ns_median"]] = ["error", "oh", None]
    data = RunData.read(run)
    tables = {table.name: table for table in build_tables(data)}
    assert [cell.text for cell in tables["broken"].rows[0]] == [
        "llama",
        "json",
        "8",
        "pushdown_trie loop",
        "error",
        "oh",
    ]
    assert len(tables["broken"].rows) == 4
    assert set(loops(data)) == {"llguidance batch", "llguidance batch, 2 threads"}
    assert build_headlines(data)[-1] == "Of 28 batches these failed: 4 error."


def test_loops_alone_have_a_report_too() -> None:
    data = RunData.read(made_up([("earley_trie loop", 1)]))
    assert [table.name for table in build_tables(data)] == ["batch_seen", "batch_first", "environment"]
    assert [plot.reason for plot in build_plots(data)] == ["", "no way has a result to show"]
