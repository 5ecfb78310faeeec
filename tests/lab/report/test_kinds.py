"""Reports on the special kinds of experiments: trie walks, states of regexes, and kinds without a page of their own."""

from pathlib import Path

import pandas as pd
import pytest

from tests.lab.report.synthetic import PROVENANCE, FakeRun, config, regex_states_run, trie_walk_run
from tokdfa.lab.kinds import find_kind, targets
from tokdfa.lab.report import regex_states
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.kinds import build_headlines, build_plots, build_tables

FOLDER = Path("made-up")


@pytest.fixture(scope="module")
def states():
    return RunData.read(regex_states_run(FOLDER))


def test_states_have_a_column_per_variant(states):
    counts, seconds, _ = build_tables(states)
    assert counts.columns == ("constraint", *regex_states.variants(states))
    assert [cell.text for cell in counts.rows[1]] == ["ip", "20", "60", "limit", "40", "20"]
    assert counts.brief == ("constraint", "all laws", "no laws", "subset construction", "minimal")
    assert seconds.rows[1][1].value == pytest.approx(0.2)


def test_state_headlines_compare_with_the_minimal_dfa(states):
    assert build_headlines(states) == [
        "all laws: 1.0 times the states of the minimal DFA, median of 3 constraints.",
        "subset construction: 2.0 times the states of the minimal DFA, median of 3 constraints.",
        "Of single laws the costliest to leave out: without union_merge, with 180 states over all constraints, "
        "against 60 all laws.",
        "3 of 15 builds did not finish: 3 limit.",
    ]


def test_laws_that_do_not_matter_are_not_drawn():
    run = regex_states_run(FOLDER)
    results = run.frames["results"]
    idle = results[results["variant"] == "all laws"].assign(variant="without complement")
    run.frames["results"] = pd.concat([results, idle])
    counts = regex_states.build_plots(RunData.read(run))[1]
    assert len(counts.figure.axes[0].patches) == 12
    assert "without complement" in counts.caption
    assert "union_merge" not in counts.caption


def test_an_unfinished_variant_counts_as_its_limit_when_laws_are_ranked():
    run = regex_states_run(FOLDER)
    results = run.frames["results"]
    hard = (results["variant"] == "without union_merge") & (results["constraint"] == "url")
    results.loc[hard, ["states", "status"]] = [20_000, "limit"]
    sentence = next(line for line in build_headlines(RunData.read(run)) if "costliest" in line)
    assert "with 20,090 states over all constraints, 1 of them unfinished and counted as their limit" in sentence


def test_states_without_a_minimal_dfa_have_no_factors():
    run = regex_states_run(FOLDER)
    run.frames["results"] = run.frames["results"].query("variant != 'minimal'")
    plots = regex_states.build_plots(RunData.read(run))
    assert plots[0].reason == "no constraint has both a 'minimal' DFA and another variant"
    assert plots[1].figure is not None


def test_a_kind_without_a_page_of_its_own_shows_its_results():
    results = pd.DataFrame([{"what": "a<b", "value": 1.5, "count": 3}, {"what": None, "value": 2, "count": None}])
    results["count"] = results["count"].astype("Int64")
    run = FakeRun(FOLDER, config(kind="something new", reference=""), dict(PROVENANCE), {"results": results})
    data = RunData.read(run)
    table, environment = build_tables(data)
    assert (environment.name, build_plots(data), build_headlines(data)) == ("environment", [], [])
    assert [[cell.text for cell in row] for row in table.rows] == [["a<b", "1.50", "3"], ["–", "2", "–"]]


def test_an_interrupted_run_says_so():
    run = trie_walk_run(FOLDER)
    run.provenance["interrupted"] = True
    assert build_headlines(RunData.read(run))[0] == "The run was interrupted: this is what it had finished."


@pytest.mark.parametrize("kind", sorted(kind for kind in targets() if not find_kind(kind).columns))
def test_a_run_without_results_says_so(kind):
    """Before there are rows, and where every item failed."""
    item = {"item_id": "1", "label": kind, "status": "timeout", "message": "too slow", "tokenizer": "small"}
    failed = "0 of 1 items succeeded; the others: 1 timeout."
    for frames, more in (({}, []), ({"items": pd.DataFrame([item])}, [failed])):
        data = RunData.read(FakeRun(FOLDER, config(kind=kind, reference=""), dict(PROVENANCE), frames))
        assert build_headlines(data) == ["The run has no results yet.", *more]
        assert all(plot.reason and plot.figure is None for plot in build_plots(data))
        assert [table.name for table in build_tables(data)] == [*(["failures"] if more else []), "environment"]
