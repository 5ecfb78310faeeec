"""Runs on a Dask cluster: the same rows as in processes, whoever dies meanwhile."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

import tokdfa
from tests.lab.run.experiments import children, experiment, measuring, run_all, trick
from tests.lab.run.test_interruption import complete, read_until, slow_experiment, start, wait_until_gone
from tokdfa.errors import ClusterError, MissingDependency, OptionError
from tokdfa.lab.measure import interpreters
from tokdfa.lab.run import cluster, execute, provenance
from tokdfa.lab.run.cluster import CODE, LOCAL, Order, describe_worker, faults, versions_of
from tokdfa.lab.run.store import open_run

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'tokdfa[scale]'")
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module", autouse=True)
def own_locks(tmp_path_factory):
    """Leases of cores that no test in another process takes; workers learn of the folder as they are started."""
    with pytest.MonkeyPatch.context() as patch:
        folder = str(tmp_path_factory.mktemp("locks"))
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(scope="module")
def local_cluster(own_locks):
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, resources={"core": 1}, memory_limit=0, dashboard_address=":0"
        ) as started,
    ):
        yield started


@pytest.fixture
def scheduler(local_cluster):
    """The address of a scheduler with two workers, which are started anew when they die."""
    deadline = time.monotonic() + 60
    while len(local_cluster.scheduler.workers) < 2:
        assert time.monotonic() < deadline
        if len(local_cluster.workers) < 2:  # one was not back in time, and the cluster has given it up
            local_cluster.scale(2)
        time.sleep(0.05)
    return local_cluster.scheduler_address


def worker_pids(scheduler):
    with distributed.Client(scheduler, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def test_the_same_rows_as_in_processes(tmp_path, scheduler):
    config = experiment(
        tmp_path,
        "fake",
        *(trick(how) for how in ("raise", "segfault", "unsupported", "sleep", "hog")),
        limits={"seconds": 4.0, "memory_mb": 30},
    )
    summary, rows, samples = run_all(config, scheduler=scheduler)
    assert summary.statuses == dict.fromkeys(("ok", "error", "crash", "unsupported", "timeout", "memory"), 1)
    assert rows["sleep"]["message"] == "'compile' took longer than 4 s"
    assert "more than 30 MiB" in rows["hog"]["message"]
    assert "SIGSEGV during 'compile'" in rows["segfault"]["message"]
    again, alone, same = run_all(config, folder=tmp_path / "alone")
    assert {label: row["status"] for label, row in alone.items()} == {k: row["status"] for k, row in rows.items()}
    assert same[["item_id", "measure", "allowed"]].equals(samples[["item_id", "measure", "allowed"]])
    record, before = open_run(summary.folder).provenance, open_run(again.folder).provenance
    assert provenance.differences(before, record) == []
    assert (record["environment"]["scheduler"], record["environment"]["workers"]) == (scheduler, 2)
    assert [facts["cpu"] for facts in record["workers"].values()] == [record["machine"]["cpu"]] * 2
    assert record["tokenizers"]["bytes"]["size"] == 257


def test_a_killed_worker_loses_and_doubles_nothing(tmp_path, scheduler):
    config = slow_experiment(tmp_path)
    victims, killed, said = worker_pids(scheduler), [], []

    def kill_both_in_turn(event):
        said.append(event.message)
        # the first in the middle of its first group, the second after the run has written some rows
        if victims and measuring(victims[0]) and event.event == ("group_finished" if killed else "working"):
            killed.append(victims.pop(0))
            os.kill(killed[-1], signal.SIGKILL)

    summary = execute.run(config, progress=kill_both_in_turn, scheduler=scheduler)
    assert len(killed) == 2
    assert summary.statuses == {"ok": 8}
    complete(config, summary)
    assert [message for message in said if "is gone; what it was measuring is measured again" in message]
    wait_until_gone([process.pid for process in measuring(*killed)])


def test_a_group_that_kills_its_workers_becomes_rows_that_say_so(tmp_path, scheduler, local_cluster, monkeypatch):
    monkeypatch.setattr(local_cluster.scheduler, "allowed_failures", 0)
    config = slow_experiment(tmp_path, "a")

    def kill(event):
        if event.event == "working":
            for pid in worker_pids(scheduler):
                if measuring(pid):
                    os.kill(pid, signal.SIGKILL)

    summary, rows, _ = run_all(config, progress=kill, scheduler=scheduler)
    assert summary.statuses == {"crash": 2}
    assert rows["fake"]["message"] == "the workers that measured this group died, one after the other"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_ends_early_stops_its_workers_and_goes_on(tmp_path, scheduler, number):
    """Interrupted, it goes on in processes; killed, on the cluster."""
    config = slow_experiment(tmp_path, "abcde")
    process = start(config, scheduler)
    read_until(process, "group_finished", 1)
    read_until(process, "working", 1)
    busy = [child.pid for child in measuring(*worker_pids(scheduler))]
    os.kill(process.pid, number)
    said, _ = process.communicate(timeout=20)
    if number == signal.SIGINT:
        assert (process.returncode, "Traceback" in said) == (0, False)
        assert "go on with: tokdfa run" in said
    assert busy
    wait_until_gone(busy, seconds=20)
    found = len(open_run(execute.RunStore.locate(config).folder).items())
    assert 2 <= found < 10
    summary, _, _ = run_all(config, scheduler=scheduler if number == signal.SIGKILL else None)
    assert (summary.found, summary.measured) == (found, 10 - found)
    complete(config, summary)


def test_workers_come_and_go(tmp_path):
    """A scheduler whose only worker dies for good; the run waits, and goes on when another joins."""
    said, started, waiting = [], [], []
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty:
        address = empty.scheduler_address

        def join():
            command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
            resources = ["--nthreads", "1", "--resources", "core=1", "--death-timeout", "20"]
            started.append(subprocess.Popen([*command, *resources], stderr=subprocess.DEVNULL))

        def replace_the_worker(event):
            said.append(event.message)
            if event.event == "note" and "waiting for 1 workers" in event.message:
                join()
            if event.event == "working" and len(started) == 1 and measuring(started[0].pid):
                started[0].kill()
                started[0].wait()
            if event.event == "note" and "no worker is left" in event.message:
                waiting.append(event.done)
                join()

        try:
            config = slow_experiment(tmp_path, "ab")
            summary = execute.run(config, progress=replace_the_worker, scheduler=address)
        finally:
            for process in started:
                process.kill()
                process.wait()
    assert waiting
    assert summary.statuses == {"ok": 4}
    complete(config, summary)


def test_a_cluster_of_this_machine(tmp_path):
    before = set(children())
    summary, _, _ = run_all(slow_experiment(tmp_path, "ab"), scheduler=LOCAL, workers=2)
    assert summary.statuses == {"ok": 4}
    assert open_run(summary.folder).provenance["environment"]["scheduler"] == LOCAL
    assert set(children()) <= before


def test_workers_must_have_the_same_code(tmp_path, scheduler, monkeypatch):
    monkeypatch.setattr(interpreters, "code_fingerprint", lambda folder: "other")
    config = experiment(tmp_path, "fake")
    with pytest.raises(
        ClusterError, match=r"worker tcp://.* does not fit this run: its code of tokdfa is .*, not other"
    ):
        execute.run(config, scheduler=scheduler)
    assert open_run(execute.RunStore.locate(config).folder).items().empty


def test_what_a_worker_lacks(tmp_path):
    config, names = experiment(tmp_path, "fake"), ("numpy", "no-such-package", "torch")
    mine = versions_of(describe_worker(names), names)
    mine[CODE] = interpreters.code_fingerprint(Path(tokdfa.__file__).parent)
    assert (mine["Python"], mine["no-such-package"]) == (platform.python_version(), "none")
    fitting = Order("r", config, {}, {}, mine, (str(tmp_path),), {})
    assert faults(fitting) == []
    told = [said.partition(";")[0] for said in faults(replace(fitting, versions={**mine, "numpy": "1.0"}))]
    assert told == [f"its numpy is {mine['numpy']}, not 1.0"]
    assert faults(replace(fitting, paths=("/nowhere/data",))) == [
        "/nowhere/data is not there; give every worker the same data at the same path"
    ]
    (tmp_path / "a.json").write_text("{}")
    changed = {"engines": [{"backend": "token_index"}], "data": str(tmp_path), "inputs": "0123456789"}
    (said,) = faults(replace(fitting, sections={"maskbench": changed}))
    assert "has changed since this experiment was resolved" in said


def test_a_worker_that_announces_no_core(tmp_path):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as bare,
        pytest.raises(ClusterError, match=r"announces the resource core.*--resources core=1"),
    ):
        execute.run(experiment(tmp_path, "fake"), scheduler=bare.scheduler_address)


def test_a_scheduler_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.3)
    config = experiment(tmp_path, "fake")
    with pytest.raises(ClusterError, match=r"no Dask scheduler at tcp://127.0.0.1:1 .*start one with: dask scheduler"):
        execute.run(config, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(OptionError, match=r"a scheduler is dask:local, or an address .*, not 'dask'"):
        execute.run(config, scheduler="dask")


def test_too_few_workers(tmp_path, monkeypatch, scheduler):
    monkeypatch.setattr(cluster, "JOIN_SECONDS", 0.2)
    with pytest.raises(ClusterError, match="fewer than 3 workers have joined"):
        execute.run(experiment(tmp_path, "fake"), scheduler=scheduler, workers=3)


def test_the_scheduler_dies(tmp_path):
    local = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, resources={"core": 1}, processes=False, dashboard_address=":0"
    )

    def close(event):
        if event.event == "working":
            local.close()

    with local, pytest.raises(ClusterError, match="what is finished is kept"):
        execute.run(slow_experiment(tmp_path), progress=close, scheduler=local.scheduler_address)
    wait_until_gone([process.pid for process in measuring()])


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependency, match=r"pip install 'tokdfa\[scale\]'"):
        execute.run(experiment(tmp_path, "fake"), scheduler=LOCAL)
