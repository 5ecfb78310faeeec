"""Reports on improper mass: from made-up rows with known answers."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.improper_mass import LISTED, SMALLEST, mass
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

FOLDER = Path("made-up")
INPUTS = Path(__file__).parents[3] / "experiments" / "inputs"


def rows_of(label, kind, masses, name="small"):
    """A text with these masses; the largest names its tokens."""
    place = {"model": name, "tokenizer": "tiny", "status": "ok", "message": "", "label": label, "kind": kind}
    text = {"part": "text", "positions": len(masses), "mean": float(np.mean(masses)), "any_improper": 0.25}
    rows = [place | text | {"perplexity": 20.0}]
    for position, one in enumerate(masses):
        preferred = json.dumps([["ing\n", one / 2], ["s", one / 4]]) if one == max(masses) else ""
        with np.errstate(divide="ignore"):
            logs = {"log_mass": float(np.log(one)), "log_special": -30.0, "log_chosen": -1.0}
        row = {"part": "position", "position": position, "before": f"{label} {HOSTILE}", "token": " on"}
        rows.append(place | row | logs | {"improper_count": 7, "preferred": preferred})
    return rows


def run_data(rows, **frames):
    stored = {"results": pd.DataFrame(rows), **frames}
    return RunData.read(FakeRun(FOLDER, config(kind="improper_mass", reference=""), dict(PROVENANCE), stored))


MODEL = {"part": "model", "model": "small", "tokenizer": "tiny", "status": "ok", "message": "", "rows": 10}


@pytest.fixture(scope="module")
def data():
    rows = [MODEL | {"seconds": 1.0}]
    for number in range(8):
        rows += rows_of(f"t{number}", "prose", [1e-6, 1e-4, 9e-3, 2e-2 + number / 100])
    rows += rows_of("none", "code", [0.0, 1e-15, 0.5])
    place = {"part": "text", "model": "small", "label": "long", "status": "error", "message": "too long"}
    return run_data([*rows, place])


def test_quantiles_are_of_positions(data):
    table = build_tables(data)[0]
    assert [tuple(cell.text for cell in row[1:4]) for row in table.rows] == [
        ("all", "9", "35"), ("prose", "8", "32"), ("code", "1", "3"),
    ]  # fmt: skip
    frame = table.frame
    assert frame["median"].tolist() == pytest.approx([1e-4, 1e-4, 1e-15])
    assert frame["largest"].tolist() == pytest.approx([0.5, 0.09, 0.5])
    prose = (8 * (1e-6 + 1e-4 + 9e-3 + 2e-2) + 0.28) / 32
    assert frame["mean"].tolist() == pytest.approx([(32 * prose + 0.5) / 35, prose, 0.5 / 3])
    assert frame["large"].tolist() == pytest.approx([9 / 35, 8 / 32, 1 / 3])
    mean = table.columns.index("mean")
    assert " to " in table.rows[1][mean].detail
    assert table.rows[2][mean].detail == ""  # one text has no interval


def test_the_largest_positions_come_first(data):
    tables = {table.name: table for table in build_tables(data)}
    rows = tables["improper_mass_largest"].rows
    assert len(rows) == 9 <= LISTED
    assert [row[1].text for row in rows[:2]] == ["none", "t7"]
    assert rows[0][4].text == '" on" 0.368'
    assert rows[0][5].text == '"ing\\n" 0.250, "s" 0.125'
    assert "<script>" not in tables["improper_mass_largest"].markdown()
    assert [cell.text for cell in tables["improper_mass_texts"].rows[0]][3:] == ["4", "0.00728", "25.0%", "20.0"]
    assert tables["not_measured"].rows[0][-1].text == "too long"


def test_headlines(data):
    typical, largest, freely, failed = build_headlines(data)
    assert typical.startswith(
        "small: of 35 positions in 9 texts half have an improper mass of at most 1.00e-4, and 25.7% one above 0.01; "
        "the mean is 0.0289 (95% interval "
    )
    assert largest.startswith("small: the largest mass, 0.500, is in none after ")
    assert 'the likeliest improper token is "ing\\n" (0.250).' in largest
    assert freely == (
        "small: drawn freely at every position of a text, at least one improper token comes with a probability of "
        "25.0% (median of 9 texts, 25.0% to 25.0%)."
    )
    assert failed == "1 measurements failed or were left out: 1 error."


def test_plots_hold_every_position(data):
    histogram, kinds, along = build_plots(data)
    (axes,) = histogram.figure.axes
    assert sum(bar.get_height() for bar in axes.patches) == 35
    assert axes.patches[0].get_height() == 2  # what is below the first edge, and what is nothing
    assert axes.patches[0].get_x() == pytest.approx(10.0**SMALLEST)
    assert [label.get_text() for label in kinds.figure.axes[0].get_yticklabels()] == ["prose", "code"]
    (axes,) = along.figure.axes
    assert axes.get_title(loc="left") == "small: none"
    assert axes.collections[0].get_offsets()[:, 1].tolist() == pytest.approx([10.0**SMALLEST] * 2 + [0.5])


def test_probabilities_are_short():
    assert [mass(value) for value in (0.0, 0.25, 0.001, 9.9e-4, 3.2e-12)] == [
        "0", "0.250", "0.00100", "9.90e-4", "3.20e-12",
    ]  # fmt: skip


def test_nothing_to_show():
    empty = run_data([])
    assert build_headlines(empty) == ["The run has no results yet."]
    assert [plot.reason for plot in build_plots(empty)] == ["the run has no results yet"]
    lost = run_data([MODEL | {"status": "error", "message": "pip install it"}])
    assert build_headlines(lost) == ["small was not measured: pip install it"]
    assert [plot.reason for plot in build_plots(lost)] == ["no text was measured"]


def test_the_shipped_texts_are_of_several_kinds_and_lengths():
    texts = yaml.safe_load((INPUTS / "model_texts.yaml").read_text())
    assert len(texts) == 20
    assert len({text["label"] for text in texts}) == 20
    kinds = {text["kind"] for text in texts}
    assert kinds == {"prose", "explanation", "dialogue", "code", "JSON", "German", "table", "recipe"}
    for text in texts:
        assert 450 <= len(text["text"]) <= 1200, text["label"]
        assert text["text"] == text["text"].strip()
    json.loads(next(text["text"] for text in texts if text["label"] == "json_order"))
    compile(next(text["text"] for text in texts if text["label"] == "python_queue"), "python_queue", "exec")
