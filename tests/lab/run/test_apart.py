"""Backends under an interpreter of their own, in an experiment on backends."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lab.run.experiments import experiment, run_all, trick
from tokdfa.lab.config.expand import expand
from tokdfa.lab.run.store import open_run


def test_a_backend_may_have_an_interpreter_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    log, python = tmp_path / "log", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$$" >> "{log}"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    backends = ["token_index", "fake", trick("segfault", "advance")]
    config = experiment(tmp_path, *backends, reference="token_index", pythons={"fake": str(python)})
    summary, rows, samples = run_all(config)
    assert {label: row["status"] for label, row in rows.items()} == {
        "token_index": "ok",
        "fake": "ok",
        "segfault": "crash",
    }
    assert rows["segfault"]["message"].startswith("the process died of SIGSEGV during 'advance'")
    masks = samples[(samples["measure"] == "mask") & (samples["item_id"] == rows["fake"]["item_id"])]
    assert len(masks) > 0
    assert (masks["differs"] == 0).all()
    assert rows["fake"]["memory_peak_bytes"] is not None
    assert len(set(log.read_text().split())) >= 3, "asked what it has, and started for turns and for memory"
    assert open_run(summary.folder).provenance["pythons"]["fake"]["path"] == str(python)

    plain = experiment(tmp_path, *backends, reference="token_index")
    before, after = ({item.label: item.item_id for item in expand(one)} for one in (plain, config))
    assert plain.fingerprint == config.fingerprint
    assert {label for label in before if before[label] != after[label]} == {"fake", "segfault"}

    gone = experiment(tmp_path, *backends, reference="token_index", pythons={"fake": str(tmp_path / "none")})
    _, rows, _ = run_all(gone, fresh=True)
    assert {rows[label]["status"] for label in ("fake", "segfault")} == {"unavailable"}
    assert rows["fake"]["message"].startswith("there is no Python interpreter at")
    assert rows["token_index"]["status"] == "ok"
