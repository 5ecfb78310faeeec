"""Distributions count what is zero."""

import pandas as pd

from tokdfa.lab.declare import Distribution, Results


def test_zeros_count_and_stand_at_the_smallest_value():
    rows = pd.DataFrame({"engine": ["a"] * 4 + ["b"], "value": [0.0, 0.0, 0.2, 0.4, 0.1]})
    (panel,) = Distribution("d", "D", x="value").build(Results({"": rows})).panels
    points = [point for point in panel.spec["data"]["values"] if point["engine"] == "a"]
    assert max(point["y"] for point in points if point["x"] == 0.1) == 0.5
    assert {point["x"] for point in points} == {0.1, 0.2, 0.4}
    zeros = Results({"": rows.assign(value=0.0)})
    assert Distribution("d", "D", x="value").build(zeros).reason
