"""Reports on the special kinds of experiments: what all have in common, and kinds without a page of their own."""

from pathlib import Path

import pandas as pd

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_charts, build_headlines, build_tables

FOLDER = Path("made-up")


def test_a_kind_without_a_page_of_its_own_shows_its_results():
    results = pd.DataFrame([{"what": "a<b", "value": 1.5, "count": 3}, {"what": None, "value": 2, "count": None}])
    results["count"] = results["count"].astype("Int64")
    run = FakeRun(FOLDER, config(kind="something new", reference=""), dict(PROVENANCE), {"results": results})
    data = RunData.read(run)
    table, environment = build_tables(data)
    assert (environment.name, build_charts(data), build_headlines(data)) == ("environment", [], [])
    assert [[cell.text for cell in row] for row in table.rows] == [["a<b", "1.50", "3"], ["–", "2", "–"]]
