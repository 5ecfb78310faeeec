"""Reports on the growth of proper backends, from made-up rows with known answers."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables
from tokdfa.lab.report.proper_scaling import MEMORY, TIME, exponents, measured

BACKENDS = {"direct": "direct_merge", "lazy": "cartesian_merge"}
SIZES = (1, 2, 4, 8, 16)


def run_data(rows):
    frames = {"results": pd.DataFrame(rows)}
    return RunData.read(FakeRun(Path("made-up"), config(kind="proper_scaling", reference=""), dict(PROVENANCE), frames))


def row(family, n, engine, **more):
    place = {"item_id": family, "tokenizer": "small", "family": family, "parameter": n, "states": 10 * n}
    return place | {"engine": engine, "backend": BACKENDS[engine], "status": "ok", "message": ""} | more


@pytest.fixture(scope="module")
def data():
    """Direct needs time and memory as the cube of the states, lazy in proportion; direct ends at 8 in one family."""
    rows = []
    for family in ("letters", "words"):
        for n in SIZES:
            cost = {"own_s": 1e-3 * n**3, "compile_s": 1e-3 * n**3, "bytes": 100 * n**3}
            cost |= {"index_states": n, "transitions": 7 * n**3, "repeats": 3}
            if family == "letters" and n >= 8:
                failed = {"status": "memory" if n == 8 else "not_asked", "message": "too many states"}
                rows.append(row(family, n, "direct", **failed))
            else:
                rows.append(row(family, n, "direct", **cost))
            rows.append(row(family, n, "lazy", **(cost | {"own_s": 1e-3 * n, "bytes": 50 * n, "transitions": 5 * n})))
    return run_data(rows)


def test_exponents_of_the_states(data):
    found = exponents(measured(data), TIME)
    assert found == pytest.approx({
        ("small", "letters", "lazy"): 1, ("small", "words", "direct"): 3, ("small", "words", "lazy"): 1
    })  # fmt: skip
    assert exponents(measured(data), MEMORY)["small", "words", "direct"] == pytest.approx(3)


def test_how_far_each_engine_gets(data):
    table = build_tables(data)[0]
    letters, words = table.rows
    assert table.columns == ("tokenizer", "family", "largest n", "direct", "lazy")
    assert (letters[3].text, letters[3].detail) == ("4", "4 states, then memory")
    assert (words[3].text, words[3].detail) == ("16", "16 states")
    assert letters[4].value == 16


def test_every_size_is_listed(data):
    table = next(table for table in build_tables(data) if table.name == "proper_time_series")
    assert len(table.rows) == 2 * len(SIZES)
    assert [cell.text for cell in table.rows[3]] == ["small", "letters", "8", "80", "memory", "8.00 ms"]
    assert [cell.best for cell in table.rows[1]] == [False, False, False, False, False, True]


def test_headlines_are_computed(data):
    first, time, memory, failed = build_headlines(data)
    assert first == (
        "small: of 2 families, finished up to the largest size: direct 1 (up to 28,672 transitions), "
        "lazy 2 (up to 80 transitions)."
    )
    assert "direct 3.00 (3.00 to 3.00, 1 series); lazy 1.00 (1.00 to 1.00, 2 series)" in time
    assert memory.startswith("Memory against DFA states")
    assert failed.startswith("2 of 20 measurements have no number: 1 memory, 1 not asked")


def test_plots_have_a_panel_for_each_family(data):
    drawn = build_plots(data)
    assert [plot.name for plot in drawn] == [
        "proper_time_small", "proper_bytes_small", "proper_transitions_small"
    ]  # fmt: skip
    for plot in drawn:
        assert len(plot.figure.axes) == 2
        assert "direct" in plot.caption
        lengths = [len(line.get_xdata()) for line in plot.figure.axes[0].lines]
        assert lengths == [3, 5]


def test_nothing_measured_is_said():
    empty = run_data([])
    assert "no results" in build_headlines(empty)[0]
    failed = run_data([row("letters", 1, "direct", status="memory", message="no")])
    assert {plot.reason for plot in build_plots(failed)} == {"no engine has finished a size"}
    assert build_tables(failed)[0].rows[0][3].text == "memory"
