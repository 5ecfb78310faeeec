from __future__ import annotations

import json
import os
import subprocess
import sys

from tokdfa.lab.measure import machine
from tokdfa.lab.measure.machine import machine_facts


def test_facts_are_json_and_agree_with_the_system():
    facts = json.loads(json.dumps(machine_facts()))
    assert facts["cpu"]
    assert 1 <= facts["cores_usable"] <= facts["cores_logical"] == os.cpu_count()
    assert facts["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert len(facts["load_average"]) == 3


def test_what_others_take_is_what_is_busy_less_our_own(monkeypatch):
    """Ten seconds on four processors: 12 s of work, 4 of them ours; others took 8 of 40."""
    monkeypatch.setattr(machine.os, "cpu_count", lambda: 4)
    clock, busy, own = iter((100.0, 110.0)), iter((1000.0, 1012.0)), iter((5.0, 9.0))
    monkeypatch.setattr(machine.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(machine, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(machine, "_own_seconds", lambda: next(own))
    monkeypatch.setattr(machine, "other_processes", lambda: ["compiler 99%"])
    facts = json.loads(json.dumps(machine.MachineUse().facts()))
    assert facts["others_share"] == 0.2 > machine.QUIET
    assert facts["others"] == ["compiler 99%"]
    assert len(facts["load_average"]) == 2


def test_children_that_have_ended_are_our_own():
    before = machine._own_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert machine._own_seconds() > before
    assert not any("python" in one and str(os.getpid()) in one for one in machine.other_processes(0.01))
