"""Intervals of statistics: rows of one sample stay together, and tables and sentences show both ends."""

import numpy as np
import pandas as pd
import pytest

from tokdfa.lab.declare import Column, Pivot, Quotient, Results, Say, Stat, Summary
from tokdfa.lab.declare.stats import cluster_interval

ROWS = pd.DataFrame({"text": np.repeat(np.arange(40), 5), "value": np.repeat(np.arange(40.0), 5), "engine": "a"})


def test_rows_of_a_cluster_are_drawn_together():
    values = ROWS["value"].to_numpy()

    def mean(chosen):
        return float(values[chosen].mean())

    low, high = cluster_interval(mean, ROWS["text"].tolist())
    deviation = np.arange(40).std() / np.sqrt(40)
    assert (high - low) / (2 * 1.96 * deviation) == pytest.approx(1, abs=0.15)
    alone = cluster_interval(mean, range(len(ROWS)))
    assert alone[1] - alone[0] < 0.6 * (high - low)
    assert cluster_interval(mean, [1, 2, 3] * 60) is None


def test_tables_and_sentences_show_the_ends():
    results = Results({"": ROWS}, {"value": Column("value", factor=2.0)})
    stat = Stat("value", "mean", resample=("text",))
    (row,) = Summary("one", "One", values=(stat,)).build(results).rows
    low, high = stat.interval(ROWS, results.columns)
    assert low < 39 < high
    assert row[1][:2] == ("39", 39.0)
    assert row[1].detail == f"{low:.1f} to {high:.1f}"
    (said,) = Say("It is {mean}.", blanks={"mean": stat}).sentences(results)
    assert said == f"It is 39 (95% interval {low:.1f} to {high:.1f})."
    few = Results({"": ROWS.head(10)})
    assert Say("It is {mean}.", blanks={"mean": stat}).sentences(few) == ["It is 0.500."]


def test_quotients_have_intervals():
    rows = ROWS.assign(of=2 * ROWS["value"] + np.arange(len(ROWS)) % 3)
    share = Quotient("value:sum", "of:sum", "half", unit="share", resample=("text",))
    low, high = share.interval(rows, {})
    assert low < share.compute(rows, {}) < high < 0.5
    (row,) = Summary("one", "One", values=(share,)).build(Results({"": rows})).rows
    assert row[1].detail == f"{100 * low:.1f}% to {100 * high:.1f}%"
    assert Quotient("value:sum", "of:sum").interval(rows, {}) is None


def test_an_interval_that_the_rows_have_is_shown():
    rows = pd.DataFrame({"engine": ["a", "b"], "case": "x", "ms": [2.0, 3.0], "low": [1.0, 3.0], "high": [4.0, 3.0]})
    results = Results({"": rows}, {"ms": Column("ms", unit="s", factor=1e-3)})
    stat = Stat("ms", ends=("low", "high"))
    (row,) = Pivot("p", "P", rows=("case",), value=stat).build(results).rows
    assert [(cell.text, cell.detail) for cell in row[1:]] == [("2.00 ms", "1.00 ms to 4.00 ms"), ("3.00 ms", "")]
