"""Reports on the special kinds of experiments: what all have in common, and kinds without a page of their own."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config, trie_walk_run
from tokdfa.lab.kinds import find_kind, targets
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


def test_an_interrupted_run_says_so():
    run = trie_walk_run(FOLDER)
    run.provenance["interrupted"] = True
    assert build_headlines(RunData.read(run))[0] == "The run was interrupted: this is what it had finished."


@pytest.mark.parametrize("kind", sorted(kind for kind in targets() if find_kind(kind).columns and kind != "backends"))
def test_a_run_without_results_says_so(kind):
    """Before there are rows, and where every item failed."""
    item = {"item_id": "1", "label": kind, "status": "timeout", "message": "too slow", "tokenizer": "small"}
    failed = ["The run has no results yet.", "0 of 1 items succeeded; the others: 1 timeout."]
    frames = {"items": pd.DataFrame([item])}
    for given, said, names in (({}, ["The run has no items yet."], []), (frames, failed, ["failures"])):
        data = RunData.read(FakeRun(FOLDER, config(kind=kind, reference=""), dict(PROVENANCE), given))
        assert build_headlines(data) == said
        assert all(chart.reason and not chart.panels for chart in build_charts(data))
        assert [table.name for table in build_tables(data)] == [*names, "environment"]
