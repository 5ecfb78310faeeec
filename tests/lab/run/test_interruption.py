"""Real signals: workers and whole runs are killed or interrupted, then the run is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.full_disk import fill_disk
from tests.lab.run.experiments import children, experiment, gone, run_all, trick
from tokdfa.errors import StoreError
from tokdfa.lab.config.expand import expand
from tokdfa.lab.run import execute
from tokdfa.lab.run.store import open_run

SCRIPT = """
import sys
from tokdfa.backends import registry
registry.BUILT_IN["fake"] = "tests.lab.run.fake_backends:Fake"
from tokdfa.lab.run import execute, slots
from tokdfa.lab.config.resolve import load_config
slots.TELL_SECONDS = 0.05
def tell(event):
    if event.event in ("group_started", "group_finished", "working"):
        print(event.event, flush=True)
if __name__ == "__main__":
    print(execute.run(load_config(sys.argv[1]), progress=tell, scheduler=sys.argv[2] or None))
"""


def slow_experiment(tmp_path, constraints="abcd"):
    """Some 0.4 s a group."""
    listed = [{"label": text, "choice": [text, text * 2]} for text in constraints]
    measures = ["compile", "first_mask", "mask", "advance"]
    return experiment(tmp_path, trick("nap"), "fake", constraints=listed, measures=measures)


def start(config, scheduler="", **environment):
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(config.source), scheduler],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )


def read_until(process, event, count):
    """Read what the run says until it has said `event` `count` times."""
    said = []
    for line in process.stdout:
        said.append(line)
        count -= line.strip() == event
        if count == 0:
            return
    process.communicate()
    raise AssertionError(f"the run ended without {event}: {''.join(said)}")


def wait_until_gone(pids, seconds=10.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if all(map(gone, pids)):
            return
        time.sleep(0.02)
    raise AssertionError("processes of the run are still there")


def complete(config, summary):
    """All items are there, once, and measured in full."""
    stored = open_run(summary.folder)
    items, samples = stored.items(), stored.samples()
    assert items["item_id"].tolist() == [item.item_id for item in expand(config)]
    assert set(items["status"]) == {"ok"}
    counts = samples.groupby(["item_id", "measure"]).size().unstack()
    assert (counts["compile"] == 2).all()
    assert (counts["first_mask"] == 2).all()
    assert counts["mask"].tolist() == counts["advance"].tolist()
    assert not samples.duplicated(["item_id", "measure", "repeat", "step"]).any()


@pytest.mark.parametrize("victim", ["worker", "fork"])
def test_a_killed_worker_loses_nothing(tmp_path, victim):
    config = slow_experiment(tmp_path)
    killed = []

    def kill_once(event):
        if event.event != "working" or killed:
            return
        worker = children()[0]
        forks = worker.children()
        if victim == "worker" or forks:
            killed.append(worker.pid)
            (worker if victim == "worker" else forks[0]).kill()

    summary = execute.run(config, progress=kill_once)
    assert killed
    assert summary.statuses == {"ok": 8}
    complete(config, summary)


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    config = slow_experiment(tmp_path)
    process = start(config)
    read_until(process, "group_finished", 2)
    read_until(process, "working", 1)
    family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    process.wait()
    process.stdout.close()
    assert family
    wait_until_gone(family)
    folder = execute.RunStore.locate(config).folder
    parts = {part.name: part.read_bytes() for part in (folder / "items").glob("*.parquet")}
    assert 2 <= len(parts) < 4
    assert open_run(folder).provenance["ended"] is None
    summary = execute.run(config)
    assert summary.found == 2 * len(parts)
    assert summary.measured == 8 - summary.found
    complete(config, summary)
    assert all((folder / "items" / name).read_bytes() == content for name, content in parts.items())


@pytest.mark.parametrize("groups", [0, 1])
def test_an_interrupted_run_says_what_it_did_and_how_to_go_on(tmp_path, groups):
    config = slow_experiment(tmp_path)
    process = start(config)
    if groups:
        read_until(process, "group_finished", groups)
    read_until(process, "working", 1)
    family = [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    os.kill(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Traceback" not in said
    assert f"what is finished is kept, go on with: tokdfa run {config.source}" in said
    assert "items measured in" in said
    assert groups or "0 items measured in" in said
    assert "items to go (2 were at work and begin anew)" in said
    wait_until_gone(family)
    folder = execute.RunStore.locate(config).folder
    assert open_run(folder).provenance["interrupted"] is True
    found = len(open_run(folder).items())
    assert 2 * groups <= found < 8
    summary, _, _ = run_all(config)
    assert summary.found == found
    complete(config, summary)


@pytest.mark.usefixtures("interruptible")
def test_a_second_interruption_is_raised_at_once(tmp_path):
    def interrupt_twice(event):
        if event.event == "group_started":
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        execute.run(experiment(tmp_path, trick("sleep")), progress=interrupt_twice)
    assert not children(recursive=True)


def test_a_run_whose_disk_is_full_ends_and_goes_on_when_there_is_room(tmp_path):
    config = slow_experiment(tmp_path)
    with pytest.MonkeyPatch.context() as patch:

        def fill(event):
            if event.event == "group_finished":
                fill_disk(patch, "replace")

        with pytest.raises(StoreError, match="make room"):
            execute.run(config, progress=fill)
    folder = config.results_folder / config.folder_name
    assert not list(folder.rglob("*.tmp"))
    assert not children()
    assert len(open_run(folder).items()) == 2
    summary, _, _ = run_all(config)
    assert (summary.found, summary.measured, summary.interrupted) == (2, 6, False)
