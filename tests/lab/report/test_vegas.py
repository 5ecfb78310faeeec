"""Reports on parts: from made-up rows with known answers."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import HOSTILE, PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

FOLDER = Path("made-up")
SPEED = {"whole": 1.0, "parts": 2.0, "library": 4.0, "seen": 8.0}


def case(family, name, members, total, **changes):
    """Rows of the four variants; `whole` takes `total` seconds, merging half of all."""
    rows = []
    for variant, speed in SPEED.items():
        row = {"item_id": "1", "tokenizer": "small", "family": family, "case": name, "members": members}
        row |= {"variant": variant, "status": "ok", "message": "", "seconds": total / speed}
        row |= {"merge_seconds": total / speed / 2, "states": 30, "transitions": 90, "equal": True}
        if variant != "whole":
            known = {"parts": 0, "library": 3, "seen": 5}[variant]
            row |= {"parts": 12, "distinct": 5, "known": known, "find_seconds": 0.001}
        rows.append(row | changes)
    return rows


def run_data(rows):
    stored = {"results": pd.DataFrame(rows)}
    return RunData.read(FakeRun(FOLDER, config(kind="vegas", reference=""), dict(PROVENANCE), stored))


@pytest.fixture(scope="module")
def data():
    rows = [*case("yaml", "yaml 1", 1, 0.01), *case("yaml", "yaml 8", 8, 0.08)]
    rows += case("json_spaced", "json_spaced 8", 8, 0.2)
    failed = {"status": "memory", "message": "too many", "equal": None}
    failed |= dict.fromkeys(("seconds", "merge_seconds", "states", "transitions"))
    rows += case("regex", f"huge {HOSTILE}", None, 1.0, **failed)
    place = {"item_id": "1", "tokenizer": "small", "family": "library"}
    rows.append(place | {"case": "date", "status": "ok", "message": "", "seconds": 0.3, "parts": 4})
    rows.append(place | {"case": "string", "status": "memory", "message": "too large", "seconds": 2.0, "parts": 0})
    rows.append(place | {"case": "read", "status": "ok", "message": "", "seconds": 0.02, "parts": 4, "bytes": 5000})
    return run_data(rows)


def test_tables(data):
    gains, objects, regexes, library, environment = build_tables(data)
    assert [table.name for table in (gains, objects, regexes, library)] == [
        "vegas_gains", "vegas_objects", "vegas_regexes", "vegas_library",
    ]  # fmt: skip
    assert environment.name == "environment"
    texts = [[cell.text for cell in row] for row in gains.rows]
    assert texts[0] == ["small", "yaml", "2", "2.00x", "4.00x", "8.00x", "2.00x", "4.00x", "8.00x"]
    assert texts[2][:4] == ["small", "regex", "1", "–"]
    assert [cell.text for cell in objects.rows[1]] == [
        *("small", "yaml 8", "12", "5", "3", "30", "90", "1.00 ms"),
        *("80.0 ms", "40.0 ms", "20.0 ms", "10.0 ms", "yes"),
    ]
    assert [cell.best for cell in objects.rows[1]][8:12] == [False, False, False, True]
    assert objects.rows[1][8].detail == "merging 40.0 ms"
    assert [cell.text for cell in regexes.rows[0]][8:] == ["memory"] * 4 + ["–"]
    assert [row[1].text for row in library.rows] == ["date", "string", "reading it from the disk"]
    assert library.rows[1][-1].text == "too large"


def test_headlines(data):
    sentences = build_headlines(data)
    assert sentences == [
        "9 of 9 automata made by parts are the automaton that merging the whole makes, numbers and all.",
        "small, speed against merging the whole, median (range): by parts 2.00x (2.00 to 2.00); library of usual types "
        "4.00x (4.00 to 4.00); all parts known 8.00x (8.00 to 8.00).",
        "small, yaml, 8 members: 12 parts, 5 distinct, 3 of them in the library; 80.0 ms as a whole, 40.0 ms by parts, "
        "20.0 ms library of usual types, 10.0 ms all parts known.",
        "small, json_spaced, 8 members: 12 parts, 5 distinct, 3 of them in the library; 200 ms as a whole, 100 ms by "
        "parts, 50.0 ms library of usual types, 25.0 ms all parts known.",
        "5 of 19 measurements exceed a limit or fail: 5 memory.",
    ]


def test_an_unequal_automaton_is_told():
    rows = case("yaml", "yaml 1", 1, 0.01)
    rows[2]["equal"] = False
    data = run_data(rows)
    assert build_headlines(data)[0].startswith("2 of 3 automata")
    assert build_tables(data)[1].rows[0][-1].text == "NO"


def test_plots(data):
    (plot,) = build_plots(data)
    assert plot.name == "vegas_small"
    yaml, spaced = plot.figure.axes
    assert (yaml.get_title(loc="left"), spaced.get_title(loc="left")) == ("yaml", "json_spaced")
    assert list(yaml.lines[0].get_xdata()) == [1, 8]
    assert list(yaml.lines[2].get_ydata()) == pytest.approx([0.005, 0.04])


def test_nothing_to_show():
    only_failed = run_data([{"item_id": "1", "tokenizer": "small", "family": "library", "case": "date",
                             "status": "memory", "message": "m", "seconds": 1.0, "parts": 0}])  # fmt: skip
    assert [table.name for table in build_tables(only_failed)] == ["vegas_library", "environment"]
    (plot,) = build_plots(only_failed)
    assert plot.figure is None
    empty = run_data(pd.DataFrame())
    assert build_headlines(empty) == ["The run has no results yet."]
    assert build_plots(empty)[0].figure is None
