from __future__ import annotations

import json
import os

from tokdfa.lab.measure.machine import calibrate, machine_facts


def test_facts_are_json_and_agree_with_the_system():
    facts = json.loads(json.dumps(machine_facts()))
    assert facts["cpu"]
    assert 1 <= facts["cores_usable"] <= facts["cores_logical"] == os.cpu_count()
    assert facts["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert len(facts["load_average"]) == 3


def test_the_calibration_gives_numbers_of_a_plausible_size():
    found = calibrate()
    assert 0.01 < found["memory_copy_gb_per_s"] < 10_000
    assert 0.1 < found["python_loop_ns"] < 100_000
    assert 1 <= found["clock_overhead_ns"] < 1_000_000
