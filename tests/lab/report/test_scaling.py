"""Reports on growth: fits against numpy's own, and runs that follow known power laws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.report import scaling
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

FOLDER = Path("made-up")
FIXED = 1e-4
#: engine -> (backend, cost of its index part by axis: factor and exponent)
ENGINES = {
    "index": ("token_index", {"states": (1e-4, 1.0), "vocabulary": (1e-6, 1.25), "token_length": (1e-2, 0.5)}),
    "classes": ("tokens_dfa", {"states": (5e-5, 0.5), "vocabulary": (1e-4, 0.0), "token_length": (2e-2, -0.25)}),
    "peer": ("outlines_core", {"states": (1e-3, 1.0), "vocabulary": (1e-5, 1.0), "token_length": (1e-1, 0.0)}),
}
SIZES = {"states": (10, 20, 40, 80, 160, 320), "vocabulary": (1000, 4000, 16_000, 64_000), "token_length": (1, 2, 4, 8)}


def row(axis: str, family: str, size: int, engine: str, tokenizer: str = "small") -> dict[str, Any]:
    backend, laws = ENGINES[engine]
    factor, exponent = laws[axis]
    index = factor * size**exponent
    own = engine != "peer"
    return {
        "tokenizer": tokenizer,
        "axis": axis,
        "family": family,
        "parameter": size,
        "states": size if axis == "states" else 100,
        "vocab_tokens": size if axis == "vocabulary" else 256 if (axis, size) == ("token_length", 1) else 14_000,
        "mean_token_bytes": float(size) if axis == "token_length" else 5.0,
        "engine": engine,
        "backend": backend,
        "compile_s": index + 0.01 * own,
        "index_s": index,
        "index_part": "own phases" if own else "whole compile",
        "fixed_compile_s": FIXED,
        "fixed_index_s": FIXED,
        "bytes": 1000 * size if own else None,
        "token_classes": 12 if engine == "classes" else None,
        "status": "ok",
        "message": "",
    }


def failed(like: dict[str, Any], status: str) -> dict[str, Any]:
    kept = ("tokenizer", "axis", "family", "parameter", "states", "vocab_tokens", "mean_token_bytes")
    return {name: like[name] for name in (*kept, "engine", "backend")} | {"status": status, "message": "why"}


def growth_rows() -> list[dict[str, Any]]:
    """Two families by states, one by the others; item by item, so the axes are not in order."""
    places = (("vocabulary", "url"), ("token_length", "url"), ("states", "letters"), ("states", "words"))
    rows = [row(axis, family, size, engine) for axis, family in places for size in SIZES[axis] for engine in ENGINES]
    return [failed(one, "not_asked") if (one["engine"], one["parameter"]) == ("peer", 320) else one for one in rows]


def read(rows: list[dict[str, Any]]) -> RunData:
    frame = pd.DataFrame(rows)
    whole = ("parameter", "states", "vocab_tokens", "bytes", "token_classes")
    frame = frame.astype({name: "Int64" for name in whole if name in frame})  # as the store gives them
    return RunData.read(
        FakeRun(FOLDER, config(name="grow", kind="scaling", reference=""), dict(PROVENANCE), {"results": frame})
    )


@pytest.fixture(scope="module")
def data() -> RunData:
    return read(growth_rows())


@given(st.lists(st.tuples(st.floats(1, 1e6), st.floats(1e-6, 1e3)), min_size=3, max_size=12, unique_by=lambda p: p[0]))
@settings(deadline=None, derandomize=True, max_examples=200)
def test_fits_are_those_of_numpy(points: list[tuple[float, float]]) -> None:
    x, y = np.log(np.array(points)).T
    if x.max() - x.min() < 1e-3:
        return  # numpy itself warns of these
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    fit = scaling.fit_power(*np.array(points).T)
    assert fit.points == len(points)
    assert fit.exponent == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert fit.error == pytest.approx(np.sqrt(covariance[0, 0]), rel=1e-5, abs=1e-6)
    if y.max() - y.min() > 1e-3:
        assert fit.r2 == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2, abs=1e-6)


def test_a_constant_cost_has_exponent_zero() -> None:
    fit = scaling.fit_power([1, 2, 4], [3, 3, 3])
    assert (fit.exponent, fit.error) == (0, 0)
    assert np.isnan(fit.r2)
    assert np.isnan(scaling.fit_power([1, 2], [3, 6]).error)


def test_known_laws_are_found_again(data: RunData) -> None:
    found = scaling.fits(scaling.measured(data))
    for (axis, _, _, engine), fit in found.items():
        exponent = ENGINES[engine][1][axis][1]
        if (axis, engine) in (("token_length", "index"), ("token_length", "classes"), ("token_length", "peer")):
            assert fit is None  # one of four sizes has fewer tokens, and three are not enough
        elif (axis, engine) == ("vocabulary", "classes"):
            assert fit is None  # as cheap as nothing
        else:
            assert fit is not None
            assert fit.exponent == pytest.approx(exponent)
            assert fit.error == pytest.approx(0, abs=1e-6)
    assert list(dict.fromkeys(axis for axis, *_ in found)) == ["states", "vocabulary", "token_length"]


def test_sizes_up_to_the_last_below_the_floor_are_not_fitted() -> None:
    rows = [row("states", "letters", size, "classes") for size in SIZES["states"]]
    # 5e-5 * sqrt(size) passes twice the fixed cost after 16
    assert scaling.measured(read(rows))["fitted"].tolist() == [False, True, True, True, True, True]
    rows[0]["index_s"], rows[2]["index_s"] = 1.0, 1.5e-4  # noise lifts one and lowers one
    assert scaling.measured(read(rows))["fitted"].tolist() == [False, False, False, True, True, True]
    assert scaling.measured(read(rows))["fitted_compile"].all()


def test_only_equal_vocabularies_are_fitted_against_length() -> None:
    rows = [row("token_length", "url", size, "index") for size in (1, 2, 3, 4, 6, 8)]
    rows[1]["vocab_tokens"] = 12_000
    frame = scaling.measured(read(rows))
    assert frame["fitted"].tolist() == [False, False, True, True, True, True]
    fit = scaling.fits(frame)["token_length", "small", "url", "index"]
    assert fit is not None
    assert (fit.points, fit.exponent) == (4, pytest.approx(0.5))


def test_the_first_table_has_a_row_per_axis(data: RunData) -> None:
    growth, exponents, compiles, largest, *series, environment = build_tables(data)
    assert [table.name for table in (growth, exponents, compiles, largest)] == [
        *("growth", "exponents_index", "exponents_compile", "largest"),
    ]
    assert [table.name for table in series] == ["series_states", "series_vocabulary", "series_token_length"]
    assert environment.name == "environment"
    assert growth.columns == ("against", "index", "classes", "peer")
    states, vocabulary, length = growth.rows
    assert [cell.text for cell in states] == ["DFA states", "1.00", "0.50", "1.00"]
    assert states[1].detail == "1.00 to 1.00, 2 of 2"
    assert [cell.text for cell in vocabulary] == ["vocabulary size", "1.25", "–", "1.00"]
    assert [cell.detail for cell in length] == ["", "0 of 1", "0 of 1", "0 of 1"]
    assert "Of peer it is the whole compile." in growth.note


def test_exponents_have_their_error_or_a_reason(data: RunData) -> None:
    _, exponents, compiles, *_ = build_tables(data)
    assert [(row[0].text, row[2].text) for row in exponents.rows] == [
        *(("DFA states", "letters"), ("DFA states", "words"), ("vocabulary size", "url"), ("mean token bytes", "url")),
    ]
    assert [cell.text for cell in exponents.rows[0][3:]] == ["1.00 ± 0.00", "0.50 ± 0.00", "1.00 ± 0.00"]
    assert exponents.rows[0][5].detail == "R² 1.00, 5 points"
    assert (exponents.rows[2][4].text, exponents.rows[2][4].detail) == ("too cheap", "up to 100 µs")
    # 10 ms that all sizes share flatten the whole compile
    assert 0 < compiles.rows[0][3].value < 1
    assert compiles.rows[0][5].value == pytest.approx(1)


def test_an_engine_that_never_worked_has_its_status() -> None:
    rows = [*growth_rows(), *(failed(one, "error") | {"engine": "gone"} for one in growth_rows())]
    data = read(rows)
    growth, exponents, _, largest, *_ = build_tables(data)
    assert {row[-1].text for row in exponents.rows} == {"error"}
    assert {row[-1].text for row in largest.rows} == {"–"}
    assert growth.rows[0][-1].detail == "0 of 2"
    assert not any("gone" in sentence for sentence in build_headlines(data))


def test_largest_sizes_say_where_an_engine_stopped() -> None:
    rows = growth_rows()
    stopped = [
        failed(one, "memory") if (one["axis"], one["engine"], one["parameter"]) == ("states", "index", 320) else one
        for one in rows
    ]
    largest = build_tables(read(stopped))[3]
    by_name = dict(zip(largest.columns, largest.rows[0], strict=True))
    assert by_name["largest size"].text == "320"
    assert (by_name["index"].text, by_name["index"].detail) == ("160 kB", "at 160")
    assert (by_name["classes"].text, by_name["classes"].detail) == ("320 kB", "12 classes")
    assert by_name["peer"].text == "–"


def test_series_hold_every_size(data: RunData) -> None:
    series = build_tables(data)[4]
    assert len(series.rows) == 2 * len(SIZES["states"])
    last = dict(zip(series.columns, series.rows[-1], strict=True))
    assert (last["family"].text, last["size"].text, last["tokens"].text) == ("words", "320", "14,000")
    assert (last["index"].text, last["index"].detail) == ("32.0 ms", "of 42.0 ms")
    assert last["peer"].text == "not asked"
    assert [cell.best for cell in series.rows[-1]] == [column == "classes" for column in series.columns]
    assert series.rows[0][-1].detail == ""  # the index part of a peer is its whole compile


def test_headlines_are_medians_over_the_series(data: RunData) -> None:
    assert build_headlines(data) == [
        "Index part (whole compile of peer) against DFA states, exponent (median of the series, range): "
        "index 1.00 (1.00 to 1.00, 2 series); classes 0.50 (0.50 to 0.50, 2 series); peer 1.00 (1.00 to 1.00, "
        "2 series).",
        "Index part (whole compile of peer) against vocabulary size, exponent (median of the series, range): "
        "index 1.25 (1.25 to 1.25, 1 series); classes too cheap to tell, up to 100 µs; peer 1.00 (1.00 to 1.00, "
        "1 series).",
        "Index part (whole compile of peer) against mean token bytes, exponent (median of the series, range): "
        "index too few sizes to tell, up to 28.3 ms; classes too few sizes to tell, up to 20.0 ms; "
        "peer too few sizes to tell, up to 100 ms.",
        "2 of 60 measurements have no number: 2 not asked.",
    ]


def test_plots_have_a_panel_per_family(data: RunData) -> None:
    plots = build_plots(data)
    assert [plot.name for plot in plots] == [f"scaling_{axis}_small" for axis in SIZES]
    letters, words = plots[0].figure.axes
    assert [axes.get_title(loc="left") for axes in (letters, words)] == ["letters", "words"]
    assert (letters.get_xscale(), letters.get_yscale()) == ("log", "log")
    lines = letters.lines
    assert len(lines) == 3 * 3 + 1  # for each engine a line, its fitted points, the others; and the guide
    assert list(lines[3].get_xdata()) == list(SIZES["states"])
    assert list(lines[4].get_xdata()) == [20, 40, 80, 160, 320]
    assert list(lines[5].get_xdata()) == [10]
    assert list(lines[6].get_xdata()) == [10, 20, 40, 80, 160]
    guide = lines[-1]
    assert guide.get_ydata()[1] / guide.get_ydata()[0] == pytest.approx(32)
    assert plots[0].caption.endswith("Lines that end early, see the table: peer.")
    assert "end early" not in plots[1].caption


def test_a_run_without_a_number_says_so() -> None:
    data = read([failed(one, "error") for one in growth_rows()])
    assert {plot.reason for plot in build_plots(data)} == {"no engine has finished a size"}
    assert build_headlines(data) == ["60 of 60 measurements have no number: 60 error."]
    assert {cell.text for row in build_tables(data)[1].rows for cell in row[3:]} == {"error"}
