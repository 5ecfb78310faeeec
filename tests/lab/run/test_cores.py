"""Which cores are whose; and runs of several groups at a time, each on a core that no other has."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile

import psutil
import pytest

from tests.lab.run.experiments import experiment, trick
from tokdfa.errors import StoreError
from tokdfa.lab.config.expand import Group, Item, expand_groups
from tokdfa.lab.kinds import targets
from tokdfa.lab.run import cores, execute, slots
from tokdfa.lab.run.cores import take_cores, threads_of, usable_processors
from tokdfa.lab.run.store import open_run


@pytest.fixture
def take(tmp_path, monkeypatch):
    """`take_cores` on a machine with four cores that no other test knows of; all leases end with the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cores, "usable_processors", lambda: (0, 1, 4, 5))
    leases = []

    def take_and_note(count):
        lease = take_cores(count)
        leases.extend([lease] if lease else [])
        return lease

    yield take_and_note
    for lease in leases:
        lease.release()


def test_nobody_gets_a_core_that_another_has(take):
    first, second = take(1), take(2)
    assert (first.processors, second.processors) == ((0,), (1, 4))
    assert take(2) is None
    assert take(1).processors == (5,)  # the attempt before has kept nothing
    assert take(1) is None
    second.release()
    assert take(2).processors == (1, 4)


def test_more_cores_than_there_are_means_all_of_them(take):
    all_of_them = take(9)
    assert all_of_them.processors == (0, 1, 4, 5)
    all_of_them.release()
    take(1)
    assert take(9) is None


def test_a_lease_ends_with_its_process(tmp_path, take):
    code = (
        f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n"
        "from tokdfa.lab.run import cores\n"
        "cores.usable_processors = lambda: (0, 1, 4, 5)\n"
        "lease = cores.take_cores(4)\n"
        "print(lease.processors, flush=True)\n"
        "input()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline().strip() == "(0, 1, 4, 5)"
    assert take(1) is None
    holder.kill()
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    assert take(4).processors == (0, 1, 4, 5)


def test_two_processors_of_one_core_are_one(tmp_path, monkeypatch):
    for processor, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / str(processor)).write_text(siblings + "\n")
    monkeypatch.setattr(cores, "_TOPOLOGY", str(tmp_path / "{}"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False)
    assert usable_processors() == (0, 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 2, 7})  # of 7 the system does not say
    assert usable_processors() == (2, 3, 7)


def test_threads_of_backends_are_an_option(tmp_path):
    config = experiment(tmp_path, "fake", {"name": "tokens_dfa", "options": {"threads": 3}}, {"name": "token_index"})
    (group,) = expand_groups(config)
    assert threads_of(group) == 3
    assert threads_of(Group(0, group.items[:1])) == 1


@pytest.mark.parametrize("kind", sorted(targets().keys() - {"backends"}))
def test_threads_of_special_kinds_are_a_setting(kind):
    of_two = {"batch", "skew", "intoxication", "overlap", "proper_gain", "worth"}

    def threads(settings):
        item = Item("i", "e", kind, None, None, None, None, 0, settings)
        return threads_of(Group(0, (item,)))

    assert threads({}) == (2 if kind in of_two else 1)
    assert threads({"threads": 3}) == threads({"threads": [1, 3]}) == 3


def test_locks_that_others_can_reach_are_refused(tmp_path, take):
    folder = tmp_path / f"tokdfa-{os.getuid()}"
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="TMPDIR"):
        take(1)
    folder.unlink()
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="TMPDIR"):
        take(1)
    folder.chmod(0o700)
    (folder / "core-0.lock").symlink_to(tmp_path / "made by us")
    with pytest.raises(StoreError, match="delete it"):
        take(1)
    assert not (tmp_path / "made by us").exists()
    (folder / "core-0.lock").unlink()
    assert take(1).processors == (0,)


SIX = [{"label": text, "choice": [text, text * 2]} for text in "abcdef"]


def run_and_look(config, number, monkeypatch):
    """The summary, and (began, ended, processors) of each nap."""
    naps = config.source.parent / "naps"
    monkeypatch.setenv("NAPS", str(naps))
    summary = execute.run(config, workers=number)
    return summary, [json.loads(line) for line in naps.read_text().splitlines()]


def together(naps):
    """The processors of each two naps that overlap."""
    return [
        (first[2], second[2])
        for first, second in itertools.combinations(naps, 2)
        if first[0] < second[1] and second[0] < first[1]
    ]


def test_two_at_a_time_share_no_core(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    usable = cores.usable_processors()
    if len(usable) < 2:
        pytest.skip("this machine has one core")
    config = experiment(tmp_path, trick("nap"), constraints=SIX)
    summary, naps = run_and_look(config, 2, monkeypatch)
    assert summary.statuses == {"ok": 6}
    assert together(naps)
    assert all(first != second for first, second in together(naps))
    assert all(len(processors) == 1 and processors[0] in usable for _, _, processors in naps)
    assert open_run(summary.folder).provenance["environment"]["workers"] == 2


def test_no_more_at_a_time_than_there_are_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(cores, "usable_processors", lambda: psutil.Process().cpu_affinity()[:1])
    summary, naps = run_and_look(experiment(tmp_path, trick("nap"), constraints=SIX), 3, monkeypatch)
    assert summary.statuses == {"ok": 6}
    assert not together(naps)


def test_one_process_goes_where_the_system_puts_it(tmp_path, monkeypatch):
    monkeypatch.setattr(slots, "take_cores", None)  # it asks for none
    summary, naps = run_and_look(experiment(tmp_path, trick("nap"), constraints=SIX[:1]), None, monkeypatch)
    assert summary.statuses == {"ok": 1}
    assert naps
    assert all(processors == sorted(psutil.Process().cpu_affinity()) for _, _, processors in naps)
