"""What stands on a chart: texts that can be drawn, labels on their axis, distributions with zeros and tails."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tokdfa.lab.declare import Column, Curves, Distribution, Results
from tokdfa.lab.declare.columns import seconds
from tokdfa.lab.declare.look import PALETTE, looks

COLUMNS = {"time_s": seconds("time_s"), "nodes": Column("nodes"), "ns": seconds("ns")}


def curve(times: list[float], engine: str = "ours", log: bool | None = None):
    rows = pd.DataFrame({"engine": engine, "nodes": range(1, len(times) + 1), "time_s": times})
    return Curves("c", "C", x="nodes", y="time_s", log=log).build(Results({"": rows}, COLUMNS))


def distribution(rows: pd.DataFrame, x: str, tail: bool = False) -> dict:
    (panel,) = Distribution("d", "D", x=x, tail=tail).build(Results({"": rows}, COLUMNS)).panels
    return panel.spec


def test_control_characters_are_drawn_as_escapes() -> None:
    drawn = curve([1.0, 2.0], "a\x1b\x00<b>")
    spec = json.dumps(drawn.panels[0].spec)
    assert json.dumps(r"a\x1b\x00<b>") in spec
    assert "\\u001b" not in spec
    assert drawn.to_png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        ([0.02, 1.0], [0.02, 0.05, 0.1, 0.2, 0.5, 1.0]),
        ([1e-6, 2.0], [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
        ([0.6, 1.0], [0.5, 1.0]),
        ([2.1, 4.4], [2.0, 5.0]),
    ],
)
def test_labels_of_a_logarithmic_axis_lie_on_it(times: list[float], labels: list[float]) -> None:
    assert curve(times, log=True).panels[0].spec["encoding"]["y"]["axis"]["values"] == labels


def test_zeros_count_and_stand_at_the_smallest_value() -> None:
    rows = pd.DataFrame({"engine": ["a"] * 4 + ["b"], "value": [0.0, 0.0, 0.2, 0.4, 0.1]})
    points = [point for point in distribution(rows, "value")["data"]["values"] if point["engine"] == "a"]
    assert max(point["y"] for point in points if point["x"] == 0.1) == 0.5
    assert {point["x"] for point in points} == {0.1, 0.2, 0.4}
    assert Distribution("d", "D", x="value").build(Results({"": rows.assign(value=0.0)})).reason


@pytest.mark.parametrize("tail", [False, True])
def test_a_distribution_reads_arrays_and_shows_the_tail_by_its_share(tail: bool) -> None:
    cells = [np.arange(first, first + 500).astype("<f4").tobytes() for first in (1, 501)]
    spec = distribution(pd.DataFrame({"engine": ["a", "a"], "ns": cells}), "ns", tail)
    points = {round(one["y"], 4): one["x"] * 1e9 for one in spec["data"]["values"]}
    assert points[0.1 if tail else 0.9] == pytest.approx(900, abs=1.01)
    assert (spec["encoding"]["y"]["scale"].get("type") == "log") == tail
    # of 1,000 values nothing is known of one in a million
    assert not tail or min(points) == pytest.approx(0.001, rel=0.3)


def test_names_without_a_colour_of_their_own_get_different_ones() -> None:
    names = ["python", "import", "tokenizer and trie", "the engine's code", "compile"]
    found = looks([*names, "llguidance", "llguidance slices"])
    assert len({found[name].colour for name in names}) == len(names)
    assert found["llguidance"].colour == found["llguidance slices"].colour == PALETTE[1][0]
    assert found["llguidance"].shape != found["llguidance slices"].shape
