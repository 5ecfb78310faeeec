"""The page of several runs: contents, the runs side by side, and what their environments differ in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.lab.report.synthetic import HOSTILE, backend_run, trie_walk_run
from tests.lab.report.test_html import Reader
from tokdfa.lab.report.data import RunData
from tokdfa.lab.report.tables import compare_environments, environment_table
from tokdfa.lab.report.write import write_together

if TYPE_CHECKING:
    from pathlib import Path

    from tests.lab.report.synthetic import FakeRun


def with_environment(run: FakeRun, **provenance: object) -> FakeRun:
    run.provenance = {"started": "2026-01-02T03:04:05+00:00", **provenance}
    return run


@pytest.fixture
def runs(tmp_path: Path) -> list[FakeRun]:
    machine = {"cpu": "one", "load_average": [1.0]}
    other = {"cpu": HOSTILE, "load_average": [2.0]}
    walks = (trie_walk_run(tmp_path), trie_walk_run(tmp_path))
    return [
        with_environment(walks[0], packages={"numba": "1", "tiktoken": "3"}, machine=machine),
        with_environment(walks[1], packages={"numba": "2"}, machine=other, process=7),
        with_environment(
            backend_run(tmp_path, steps=2), packages={"numba": "1", "numpy": "2"}, machine=machine, seeds={"a": 1}
        ),
    ]


def test_environments_differ_where_two_runs_know_different_things(runs: list[FakeRun]) -> None:
    read = [RunData.read(run) for run in runs]
    assert compare_environments(read) == {
        "packages · numba": ["1", "2", "1"],
        "machine · cpu": ["one", HOSTILE, "one"],
    }
    assert [row[0].text for row in environment_table(read[::2], ["a", "b"]).rows] == ["all that is recorded"]


def test_every_run_has_a_section_with_ids_of_its_own(runs: list[FakeRun], tmp_path: Path) -> None:
    write_together(runs, tmp_path / "deep" / "all.html")
    page = (tmp_path / "deep" / "all.html").read_text(encoding="utf-8")
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    assert {value.removeprefix("#") for value in reader.values("href")} <= set(reader.ids)
    assert re.findall(r'<section class="run" id="([^"]+)"', page) == ["run-1-run", "run-2-run", "run-3-run"]
    assert {"run-1-chart-node_time_density", "run-3-chart-mask_ecdf", "run-3-environment"} <= set(reader.ids)
    assert "3 runs: walks, made-up" in reader.shown
    assert "2026-01-02 03:04:05 UTC" in reader.shown
    assert "<script>alert" not in page
    assert page.count("window.vegaEmbed") == 1
    assert reader.shown.count("tokdfa run ") == 3


def test_items_done_and_failed_are_counted(tmp_path: Path) -> None:
    one = backend_run(tmp_path, constraints=("a", "b"), steps=2, fail={("glrmask", "a"): ("timeout", "slow")})
    write_together([one], tmp_path / "one.html")
    page = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert ">18/20</td>" in page
    assert ">2 timeout</td>" in page
