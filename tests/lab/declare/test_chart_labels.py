"""What stands on a chart: texts that can be drawn whatever the data say, and labels that lie on their axis."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tokdfa.lab.declare import Column, Curves, Results
from tokdfa.lab.declare.columns import seconds


def chart(times: list[float], engine: str = "ours", log: bool | None = None):
    rows = pd.DataFrame({"engine": engine, "nodes": range(1, len(times) + 1), "time_s": times})
    columns = {"time_s": seconds("time_s"), "nodes": Column("nodes")}
    return Curves("c", "C", x="nodes", y="time_s", log=log).build(Results({"": rows}, columns))


def test_control_characters_are_drawn_as_escapes() -> None:
    drawn = chart([1.0, 2.0], "a\x1b\x00<b>")
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
    axis = chart(times, log=True).panels[0].spec["encoding"]["y"]["axis"]
    assert axis["values"] == labels
