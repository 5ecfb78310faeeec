"""Several groups at a time in processes: each on a core that no other has."""

from __future__ import annotations

import tempfile

import psutil
import pytest

from tests.lab.run.experiments import affinities, experiment, measuring, trick
from tokdfa.lab.run import cores, execute, slots
from tokdfa.lab.run.store import open_run

SIX = [{"label": text, "choice": [text, text * 2]} for text in "abcdef"]


@pytest.fixture(autouse=True)
def frequent_words(monkeypatch):
    monkeypatch.setattr(execute, "WORKING_SECONDS", 0.05)
    monkeypatch.setattr(slots, "TELL_SECONDS", 0.05)


def run_and_look(config, number):
    """The summary, and the sets of processors that were seen together."""
    together = []

    def look(event):
        if event.event == "working" and hasattr(psutil.Process(), "cpu_affinity"):
            together.append(affinities(measuring(forks_only=True)))

    return execute.run(config, progress=look, workers=number), together


def test_two_at_a_time_share_no_core(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usable = cores.usable_processors()
    if len(usable) < 2:
        pytest.skip("this machine has one core")
    config = experiment(tmp_path, trick("nap"), constraints=SIX)
    summary, together = run_and_look(config, 2)
    assert summary.statuses == {"ok": 6}
    assert [pair for pair in together if len(pair) == 2]
    for pinned in together:
        assert len(set(pinned)) == len(pinned)
        assert all(len(processors) == 1 and processors[0] in usable for processors in pinned)
    assert open_run(summary.folder).provenance["environment"]["workers"] == 2


def test_no_more_at_a_time_than_there_are_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cores, "usable_processors", lambda: psutil.Process().cpu_affinity()[:1])
    summary, together = run_and_look(experiment(tmp_path, trick("nap"), constraints=SIX), 3)
    assert summary.statuses == {"ok": 6}
    assert max(map(len, together)) == 1


def test_one_process_goes_where_the_system_puts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "take_cores", None)  # it asks for none
    summary, together = run_and_look(experiment(tmp_path, trick("nap"), constraints=SIX[:1]), None)
    assert summary.statuses == {"ok": 1}
    seen = [pinned for pinned in together if pinned]
    assert seen
    assert all(pinned == [tuple(psutil.Process().cpu_affinity())] for pinned in seen)
